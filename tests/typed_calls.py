"""Calls of the public API that mypy checks (test_typing.py): a line that ends in ``# error`` must be refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import polariscope as ps
from polariscope.analysis.dimension import Dimension
from polariscope.analysis.metrics import Score
from polariscope.sizing.result import Size

if TYPE_CHECKING:  # nothing of this is run
    codes, factors = np.zeros((100, 3)), np.zeros((100, 2))
    score: Score = ps.metrics.mig(codes, factors, n_bins=10)
    variant: Score = ps.metrics.mig(codes, factors, variant="chen", variance=codes)
    similarity: float = ps.similarity.cka(codes, codes)
    dimension: Dimension = ps.dimension.mle(codes, k=20)
    size: Size = ps.size(codes, "fondue", seeds=2, out="folder", beta=4.0, standardise=True)
    model = ps.train(codes, objective="beta", beta=4.0, n_latents=3, device="cpu")
    representation = ps.encode(model, codes, n_samples=50)

    objective = ps.objectives.beta(beta=4.0)
    comparison = ps.compare(["runs/a", model], codes, checkpoints=[100, 200])
    ps.report(model, codes, out="page.html")

    ps.objectives.beta(beta="four")  # error
    ps.compare(["runs/a"], checkpoints="all")  # error
    ps.report(5)  # error
    ps.metrics.mig(codes, factors, n_bins="ten")  # error
    ps.metrics.mig(codes, factors, variant="chenn")  # error
    ps.metrics.mig(codes)  # error
    ps.similarity.cka(codes)  # error
    ps.size(codes, seeds="two")  # error
    ps.size(codes, missing="ignore")  # error
    ps.encode(model, codes, n_samples="all")  # error
    text: str = ps.metrics.mig(codes, factors)  # error
