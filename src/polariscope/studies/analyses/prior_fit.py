"""Distance of the aggregate posterior from the prior, and overlap of encodings."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float

from polariscope.analysis.prior_fit import PriorFit, prior_fit
from polariscope.models.kernels import Kernel
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run


@analysis(
    "prior-fit",
    scope="each",
    gives={
        "kl.prior_to_aggregate": Column("KL(p(z) ‖ q(z)) (nats)"),
        "kl.prior_to_aggregate.error": Column("standard error (nats)"),
        "mmd": Column("maximum mean discrepancy"),
        "encodings.overlap": Column("overlap of encodings"),
    },
)
@dataclasses.dataclass(frozen=True)
class PriorFitAnalysis(AbstractAnalysis[PriorFit]):
    """KL(p(z) ‖ q(z)), the maximum mean discrepancy of q(z) and p(z), and the overlap of encodings."""

    n_points: Annotated[int, Ge(2)] | None = 2000
    """Number of encodings in the mixture q(z); none for all."""
    n_draws: Annotated[int, Ge(2)] = 5000
    """Number of draws from the prior for estimating KL(p(z) ‖ q(z))."""
    n_compared: Annotated[int, Ge(2)] = 1000
    """Number of draws from each distribution for the discrepancy."""
    kernel: Kernel = "imq"
    """Kernel of the discrepancy."""
    kernel_width: Annotated[float, Gt(0)] = 1.0
    """Width of the kernel."""

    kind = "prior-fit"
    record = PriorFit

    def measure(self, run: Run, step: int | None = None) -> PriorFit:
        def compute() -> PriorFit:
            from polariscope.models.inference import draw_prior

            drawn = draw_prior(run.model(step), self.n_draws, self.seed)
            draws, log_density = (None, None) if drawn is None else drawn
            return prior_fit(
                run.representation(**self.where, step=step),
                draws,
                log_density,
                discrepancy=self._mmd,
                n_points=self.n_points,
                n_compared=self.n_compared,
                seed=self.seed,
            )

        settings = {
            **{"n_points": self.n_points, "n_draws": self.n_draws, "n_compared": self.n_compared},
            **{"kernel": self.kernel, "kernel_width": self.kernel_width},
        }
        return run.measurement(self.kind, PriorFit, compute, settings, **self.where, step=step)

    def _mmd(self, x: Float[np.ndarray, "first latent"], y: Float[np.ndarray, "second latent"]) -> float:
        import torch

        from polariscope.models.kernels import mmd

        return float(mmd(torch.from_numpy(x), torch.from_numpy(y), self.kernel, self.kernel_width))

    def columns(self, measured: PriorFit) -> Columns:
        return {
            "kl.prior_to_aggregate": measured.divergence,
            "kl.prior_to_aggregate.error": measured.error,
            "mmd": measured.discrepancy,
            "encodings.overlap": measured.overlap,
        }
