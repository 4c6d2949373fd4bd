"""A clustered prior on the pinwheel: what α does and what β does (mathieu2019 §6.2, Fig. 3; claim D4).

python studies/pinwheel.py [--out runs/pinwheel] [--alphas 0 1 3] [--betas 0 0.5 1 2 4] [--seeds 0 1 2]

Trains the decomposition objective with its inclusive KL and a prior of four clusters on 400 points in four arms,
for a grid of α and β: one hidden layer of 100, Gaussian likelihood with a learned scale per value, Adam 1e-3, the
whole training split in every batch, 500 steps. Of each model it measures, with q(z) the exact mixture of the
training posteriors,

* ``divergence``: KL(p(z) ‖ q(z)) in nats, from draws of the prior: how far q(z) is from filling it;
* ``mmd``: the squared maximum mean discrepancy of draws from the two (kernel imq);
* ``overlap``: ∫ √(q(z|x) q(z|x')) dz, the Bhattacharyya coefficient, averaged over pairs x ≠ x': from 0, no two
  encodings meet, to 1, all are the same;
* ``information``: I(x; z) in nats, at most log 400 = 5.99: what overlap leaves of who is who;
* ``reconstruction``: −log p(x|z) per point;

and says whether the claims hold. Writes results.json and density.png beside the models; a model that is there
already is not trained again.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.core import files
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.data.splits import split
from polariscope.models.model import Model
from polariscope.models.posteriors.diagonal import DiagonalGaussian
from polariscope.objectives.support.aggregate import pairwise_log_density
from polariscope.objectives.support.kernels import mmd

TRAIN_FRACTION = 0.8  # 400 of 500 points: the others are for validation, which the paper has not
QUANTITIES = ("divergence", "mmd", "overlap", "information", "reconstruction")
CLAIMS = {
    "alpha brings q(z) to the prior": "for every β, KL(p(z) ‖ q(z)) falls from the smallest α to the largest",
    "beta makes encodings overlap": "for every α, the overlap grows with every step of β",
    "too large a beta departs from the prior": "for every α, KL(p(z) ‖ q(z)) is larger at the largest β than at the "
    "best one",
}


def train(
    data: AbstractDataset, alpha: float, beta: float, seed: int, steps: int, out: Path, n_train: int
) -> Model:
    """One model of the grid, or what is left of its training."""
    return ps.train(
        data,
        objective="decomposition",
        alpha=alpha,
        beta=beta,
        divergence="inclusive-kl",
        prior={"name": "mixture", "layout": "cross"},
        likelihood={"name": "gaussian", "learned": "per-value"},
        keep_units=True,
        net={"name": "mlp", "encoder_widths": (100,), "decoder_widths": (100,), "activation": "relu"},
        n_latents=2,
        steps=steps,
        batch_size=n_train,
        learning_rate=1e-3,
        train_fraction=TRAIN_FRACTION,
        seed=seed,
        out=out,
        device="cpu",
    )


@torch.no_grad()
def posteriors(model: Model, x: torch.Tensor) -> DiagonalGaussian:
    """q(z|x) of the observations in float64."""
    q = model.encode(x)
    return DiagonalGaussian(q.mean.double(), q.log_variance.double())


def log_aggregate(q: DiagonalGaussian, z: torch.Tensor) -> torch.Tensor:
    """log q(z) of the whole mixture, some points at a time."""
    parts = [torch.logsumexp(pairwise_log_density(q, block)[0], dim=1) for block in z.split(2000)]
    return torch.cat(parts) - math.log(len(q.mean))


def bhattacharyya(q: DiagonalGaussian) -> float:
    r"""Mean coefficient ∫ √(q_i q_j) over pairs i ≠ j; with variances v, w and their mean m, per latent

    .. math:: \sqrt{\sqrt{v w} / m}\; e^{-(\mu_i - \mu_j)^2 / 8 m}
    """
    v = q.variance
    middle = 0.5 * (v[:, None] + v[None])
    log_width = 0.25 * (q.log_variance[:, None] + q.log_variance[None]) - 0.5 * torch.log(middle)
    distance = (q.mean[:, None] - q.mean[None]) ** 2 / (8 * middle)
    coefficients = torch.exp((log_width - distance).sum(2))
    n = len(v)
    return float((coefficients.sum() - coefficients.diagonal().sum()) / (n * (n - 1)))


@torch.no_grad()
def measure(model: Model, x: torch.Tensor, n_draws: int) -> dict[str, float]:
    """The five quantities of a model over its training points ``x``; the same draws for every model."""
    q = posteriors(model, x)
    noise = torch.Generator().manual_seed(derive(0, "pinwheel-study"))
    prior = model.prior.double()
    z = prior.sample(n_draws, noise)
    own = torch.arange(n_draws) % len(x)
    draws = DiagonalGaussian(q.mean[own], q.log_variance[own]).sample(noise)
    log_own = DiagonalGaussian(q.mean[own], q.log_variance[own]).log_density(draws).sum(1)
    log_q = log_aggregate(q, draws)
    few = 2000
    decoded = model.decode(draws.to(model.dtype)).log_density(x[own])
    return {
        "divergence": float((prior.log_density(z).sum(1) - log_aggregate(q, z)).mean()),
        "mmd": float(mmd(draws[:few], z[:few])),
        "overlap": bhattacharyya(q),
        "information": float((log_own - log_q).mean()),
        "reconstruction": float(-decoded.mean()),
    }


def mean_over_seeds(
    records: list[dict[str, Any]], quantity: str, alphas: Sequence[float], betas: Sequence[float]
) -> np.ndarray:
    """``quantity`` with a row for each α and a column for each β."""
    return np.array(
        [
            [np.mean([r[quantity] for r in records if (r["alpha"], r["beta"]) == (a, b)]) for b in betas]
            for a in alphas
        ]
    )


def judge(divergence: np.ndarray, overlap: np.ndarray) -> dict[str, bool]:
    """Whether each claim holds; rows are α, columns β, both ascending."""
    held = [
        bool((divergence[-1] < divergence[0]).all()),
        bool((np.diff(overlap, axis=1) > 0).all()),
        bool((divergence[:, -1] > divergence.min(axis=1)).all()),
    ]
    return dict(zip(CLAIMS, held, strict=True))


def draw(models: dict[tuple[float, float], Model], x: torch.Tensor, file: Path) -> None:
    """q(z) on a grid of the plane for every α (rows) and β (columns), with the prior's clusters as rings."""
    alphas, betas = (sorted({key[part] for key in models}) for part in (0, 1))
    reach, n = 2.0, 160
    axis = torch.linspace(-reach, reach, n, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    cell = 2 * reach / n
    figure = Figure(figsize=(1.9 * len(betas) + 0.6, 1.9 * len(alphas) + 0.6), layout="constrained")
    panels = figure.subplots(len(alphas), len(betas), squeeze=False)
    for (row, alpha), (column, beta) in itertools.product(enumerate(alphas), enumerate(betas)):
        q = posteriors(models[alpha, beta], x)
        # An encoding narrower than a pixel is drawn as wide as one, or it would fall between the points.
        seen = DiagonalGaussian(q.mean, torch.log(q.variance + cell**2))
        density = torch.exp(log_aggregate(seen, grid)).reshape(n, n).T.numpy()
        panel = panels[row, column]
        panel.imshow(
            density, origin="lower", extent=(-reach, reach) * 2, cmap="magma", norm=PowerNorm(0.5, vmin=0)
        )
        with torch.no_grad():
            prior = models[alpha, beta].prior.double().log_density(grid).sum(1).exp().reshape(n, n).T.numpy()
        panel.contour(
            axis.numpy(), axis.numpy(), prior, levels=[0.25 * prior.max()], colors="white", linewidths=0.6
        )
        panel.set_xticks([])
        panel.set_yticks([])
        if row == 0:
            panel.set_title(f"β = {beta:g}", fontsize=9)
        if column == 0:
            panel.set_ylabel(f"α = {alpha:g}", fontsize=9)
    figure.suptitle("q(z), and the prior's clusters", fontsize=10)
    with files.atomic(file) as part:
        figure.savefig(part, dpi=120, format="png")


def show(
    records: list[dict[str, Any]], alphas: Sequence[float], betas: Sequence[float], out: Console
) -> None:
    table = Table(title="Pinwheel, mean over seeds")
    for name in ("α", "β", *QUANTITIES):
        table.add_column(name, justify="right")
    means = {name: mean_over_seeds(records, name, alphas, betas) for name in QUANTITIES}
    for (row, alpha), (column, beta) in itertools.product(enumerate(alphas), enumerate(betas)):
        numbers = [f"{means[name][row, column]:.3f}" for name in QUANTITIES]
        table.add_row(f"{alpha:g}", f"{beta:g}", *numbers, end_section=column == len(betas) - 1)
    out.print(table)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("runs/pinwheel"))
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.0, 1.0, 3.0])
    parser.add_argument("--betas", type=float, nargs="+", default=[0.0, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--points", type=int, default=500, help="four fifths of them are trained on")
    parser.add_argument(
        "--draws", type=int, default=20_000, help="draws from which the quantities are measured"
    )
    given = parser.parse_args(arguments)
    alphas, betas = sorted(set(given.alphas)), sorted(set(given.betas))
    console = Console(soft_wrap=True)

    data = ps.load_dataset("pinwheel", n_samples=given.points)
    records: list[dict[str, Any]] = []
    first: dict[tuple[float, float], Model] = {}
    jobs = list(itertools.product(given.seeds, alphas, betas))
    for number, (seed, alpha, beta) in enumerate(jobs, start=1):
        rest = (1 - TRAIN_FRACTION) / 2
        indices = split(len(data), (TRAIN_FRACTION, rest, rest), seed).train
        place = given.out / "models" / f"alpha-{alpha:g}_beta-{beta:g}_seed-{seed}"
        model = train(data, alpha, beta, seed, given.steps, place, len(indices))
        x = torch.from_numpy(data.values(indices))
        record = {"alpha": alpha, "beta": beta, "seed": seed, **measure(model, x, given.draws)}
        records.append(record)
        if seed == given.seeds[0]:
            first[alpha, beta] = model
        numbers = ", ".join(f"{name} {record[name]:.3f}" for name in QUANTITIES)
        console.print(f"{number}/{len(jobs)}  α {alpha:g}  β {beta:g}  seed {seed}: {numbers}")

    rest = (1 - TRAIN_FRACTION) / 2
    shown = split(len(data), (TRAIN_FRACTION, rest, rest), given.seeds[0]).train
    draw(first, torch.from_numpy(data.values(shown)), given.out / "density.png")
    show(records, alphas, betas, console)
    held = judge(*(mean_over_seeds(records, name, alphas, betas) for name in ("divergence", "overlap")))
    for claim, holds in held.items():
        console.print(f"{'holds' if holds else 'does not hold'}: {claim} ({CLAIMS[claim]})")
    results = {
        "polariscope": ps.__version__,
        "settings": {**vars(given), "out": str(given.out), "alphas": alphas, "betas": betas},
        "records": records,
        "claims": held,
    }
    files.write_json(given.out / "results.json", results)
    console.print(f"Written: {given.out / 'results.json'}, {given.out / 'density.png'}")
    return results


if __name__ == "__main__":
    main()
