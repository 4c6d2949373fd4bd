"""A sparse prior on small images: Hoyer sparsity grows with γ and α (mathieu2019 §6.3, Fig. 4; claim D5).

python studies/sparsity.py [--out runs/sparsity] [--gammas 0 0.8] [--alphas 0 10 100] [--seeds 0]

Trains the decomposition objective with the spike-and-slab prior of weight γ, β = 1 and α on the maximum mean
discrepancy of each latent (kernel imq-per-latent, as in the authors' code) on the 1797 handwritten digits of
scikit-learn, 8 × 8, with 50 latents and a Gaussian likelihood of variance 0.02, which 30 of the 64 principal
variances of the data exceed. A stand-in for CelebA and Fashion-MNIST, with their number of latents, their kernel
and the γ = 0.8 of the code. Of each model it measures, on the posterior means of all images,

* ``hoyer``: how few latents a code uses, after each latent was divided by its standard deviation over the data,
  without which latents that never vary would count as sparse;
* ``mmd``: the discrepancy between q(z) and the prior, from 500 draws of each;
* ``reconstruction`` and ``rate`` in nats;

beside the Hoyer sparsity of draws from the prior itself, and says whether the claims hold. Writes results.json and
sparsity.png beside the models; a model that is there already is not trained again.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.core import files
from polariscope.core.seeds import derive
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Model
from polariscope.models.posteriors import kl
from polariscope.objectives.support.kernels import mmd

QUANTITIES = ("hoyer", "mmd", "reconstruction", "rate")
CLAIMS = {
    "sparsity grows with gamma": "at the largest α, Hoyer is larger for the largest γ than for the smallest",
    "sparsity grows with alpha": "for the largest γ, Hoyer is larger at the largest α than at the smallest",
    "alpha alone does not do it": "from the smallest to the largest α, Hoyer grows more for the largest γ than for "
    "the smallest",
}


def hoyer(codes: Float[np.ndarray, "sample latent"], *, normalise: bool = True) -> float:
    r"""How few latents a code uses, on average over codes.

    .. math:: \frac{\sqrt d - \|z\|_1 / \|z\|_2}{\sqrt d - 1}

    for a code z of d latents: 1 when a single latent is not 0, 0 when all have the same size. With ``normalise`` each
    latent is first divided by its standard deviation over the codes. Reference: Hoyer 2004; mathieu2019 §6.3.

    >>> hoyer(np.eye(4), normalise=False), hoyer(np.ones((3, 4)), normalise=False)
    (1.0, 0.0)
    """
    codes = np.asarray(codes, dtype=np.float64)
    d = codes.shape[1]
    if d < 2:
        raise ps.InputError("codes", "have at least 2 latents, which Hoyer sparsity compares", got=d)
    if normalise:
        spread = codes.std(axis=0)
        if (spread == 0).any():
            raise ps.InputError(
                problem=(
                    f"latents {np.flatnonzero(spread == 0).tolist()} never vary, so they cannot be divided by their "
                    "standard deviation"
                ),
                remedy="drop them, or do not normalise",
            )
        codes = codes / spread
    size = np.sqrt((codes**2).sum(axis=1))
    if (size == 0).any():
        raise ps.InputError(
            problem=f"{int((size == 0).sum())} codes are all 0 and have no sparsity", remedy="drop them"
        )
    return float(np.mean((np.sqrt(d) - np.abs(codes).sum(axis=1) / size) / (np.sqrt(d) - 1)))


def digits(n_images: int | None) -> AbstractDataset:
    """The handwritten digits of scikit-learn, 8 × 8, grey values in [0, 1]."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return ps.from_arrays(
        found.images[:n_images] / 16, factors=found.target[:n_images], factor_names=["digit"]
    )


def train(
    data: AbstractDataset, gamma: float, alpha: float, seed: int, given: argparse.Namespace, out: Path
) -> Model:
    """One model of the grid, or what is left of its training."""
    return ps.train(
        data,
        objective="decomposition",
        alpha=alpha,
        beta=1.0,
        divergence="mmd",
        kernel="imq-per-latent",
        prior={"name": "sparse", "spike_weight": gamma},
        likelihood={"name": "gaussian", "variance": 0.02},
        net={"name": "mlp", "encoder_widths": (256,), "decoder_widths": (256,), "activation": "relu"},
        n_latents=given.latents,
        steps=given.steps,
        batch_size=given.batch,
        learning_rate=1e-3,
        seed=seed,
        out=out,
        device="cpu",
    )


@torch.no_grad()
def measure(model: Model, x: torch.Tensor) -> tuple[dict[str, float], np.ndarray]:
    """The quantities of a model over all images, and its posterior means; the same draws for every model."""
    noise = torch.Generator().manual_seed(derive(0, "sparsity-study"))
    q = model.encode(x)
    z = q.sample(noise)
    few = torch.randperm(len(x), generator=noise)[:500]
    draws = model.prior.sample(len(few), noise)
    codes = q.mean.double().numpy()
    return {
        "hoyer": hoyer(codes),
        "mmd": float(mmd(z[few].double(), draws.double(), "imq-per-latent", 1.0)),
        "reconstruction": float(-model.decode(z).log_density(x).mean()),
        "rate": float(kl(q, model.prior, z).sum(1).mean()),
    }, codes


def mean_over_seeds(
    records: list[dict[str, Any]], quantity: str, gammas: Sequence[float], alphas: Sequence[float]
) -> np.ndarray:
    """``quantity`` with a row for each γ and a column for each α."""
    return np.array(
        [
            [np.mean([r[quantity] for r in records if (r["gamma"], r["alpha"]) == (g, a)]) for a in alphas]
            for g in gammas
        ]
    )


def judge(sparsity: np.ndarray) -> dict[str, bool]:
    """Whether each claim holds; rows are γ, columns α, both ascending."""
    growth = sparsity[:, -1] - sparsity[:, 0]
    held = [
        bool(sparsity[-1, -1] > sparsity[0, -1]),
        bool(growth[-1] > 0),
        bool(growth[-1] > growth[0]),
    ]
    return dict(zip(CLAIMS, held, strict=True))


def draw(
    sparsity: np.ndarray,
    prior_sparsity: dict[float, float],
    gammas: Sequence[float],
    alphas: Sequence[float],
    codes: dict[float, np.ndarray],
    labels: np.ndarray,
    file: Path,
) -> None:
    """Hoyer against α for every γ; and, at the largest α, how large each latent is for each digit."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=[1.1, 1.4, 1.4])
    for gamma, row, colour in zip(
        gammas, sparsity, ["#0f8b8d", "#e08e0b", "#c2410c", "#44546a"] * 9, strict=False
    ):
        panels[0].plot(range(len(alphas)), row, "o-", color=colour, label=f"γ = {gamma:g}")
        panels[0].axhline(prior_sparsity[gamma], color=colour, linewidth=0.8, linestyle=":")
    panels[0].set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
    panels[0].set_xlabel("α")
    panels[0].set_ylabel("Hoyer sparsity (dotted: the prior's)")
    panels[0].set_ylim(0, 1)
    panels[0].legend(frameon=False)
    for panel, (gamma, rows) in zip(panels[1:], codes.items(), strict=True):
        size = np.abs(rows / rows.std(axis=0))
        means = np.array([size[labels == label].mean(axis=0) for label in np.unique(labels)])
        order = np.argsort(means.max(axis=0) - means.min(axis=0))[::-1]
        shown = panel.imshow(means[:, order], aspect="auto", cmap="magma", vmin=0, vmax=3)
        panel.set_title(f"mean |z| / std, γ = {gamma:g}, α = {alphas[-1]:g}", fontsize=9)
        panel.set_xlabel("latent, by how much digits differ")
        panel.set_ylabel("digit")
    figure.colorbar(shown, ax=panels[2])
    with files.atomic(file) as part:
        figure.savefig(part, dpi=120, format="png")


def show(
    records: list[dict[str, Any]], gammas: Sequence[float], alphas: Sequence[float], console: Console
) -> None:
    table = Table(title="Sparse prior on digits, mean over seeds")
    for name in ("γ", "α", *QUANTITIES):
        table.add_column(name, justify="right")
    means = {name: mean_over_seeds(records, name, gammas, alphas) for name in QUANTITIES}
    for (row, gamma), (column, alpha) in itertools.product(enumerate(gammas), enumerate(alphas)):
        numbers = [f"{means[name][row, column]:.3f}" for name in QUANTITIES]
        table.add_row(f"{gamma:g}", f"{alpha:g}", *numbers, end_section=column == len(alphas) - 1)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("runs/sparsity"))
    parser.add_argument("--gammas", type=float, nargs="+", default=[0.0, 0.8])
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.0, 10.0, 100.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--latents", type=int, default=50)
    parser.add_argument("--images", type=int, default=None, help="fewer than all, for a quick look")
    given = parser.parse_args(arguments)
    gammas, alphas = sorted(set(given.gammas)), sorted(set(given.alphas))
    console = Console(soft_wrap=True)

    data = digits(given.images)
    x = torch.from_numpy(data.values(range(len(data))))
    records: list[dict[str, Any]] = []
    codes: dict[float, np.ndarray] = {}
    prior_sparsity: dict[float, float] = {}
    jobs = list(itertools.product(given.seeds, gammas, alphas))
    for number, (seed, gamma, alpha) in enumerate(jobs, start=1):
        place = given.out / "models" / f"gamma-{gamma:g}_alpha-{alpha:g}_seed-{seed}"
        model = train(data, gamma, alpha, seed, given, place)
        found, means = measure(model, x)
        record = {"gamma": gamma, "alpha": alpha, "seed": seed, **found}
        records.append(record)
        if seed == given.seeds[0]:
            prior_sparsity[gamma] = hoyer(
                model.prior.sample(20_000, torch.Generator().manual_seed(0)).numpy()
            )
            if alpha == alphas[-1] and gamma in (gammas[0], gammas[-1]):
                codes[gamma] = means
        numbers = ", ".join(f"{name} {record[name]:.3f}" for name in QUANTITIES)
        console.print(f"{number}/{len(jobs)}  γ {gamma:g}  α {alpha:g}  seed {seed}: {numbers}")

    sparsity = mean_over_seeds(records, "hoyer", gammas, alphas)
    labels = data.factors(range(len(data)))[:, 0]
    draw(sparsity, prior_sparsity, gammas, alphas, codes, labels, given.out / "sparsity.png")
    show(records, gammas, alphas, console)
    console.print(
        "Hoyer of the prior's own draws: " + ", ".join(f"γ {g:g}: {h:.3f}" for g, h in prior_sparsity.items())
    )
    held = judge(sparsity)
    for claim, holds in held.items():
        console.print(f"{'holds' if holds else 'does not hold'}: {claim} ({CLAIMS[claim]})")
    results = {
        "polariscope": ps.__version__,
        "settings": {**vars(given), "out": str(given.out), "gammas": gammas, "alphas": alphas},
        "prior_hoyer": {f"{gamma:g}": value for gamma, value in prior_sparsity.items()},
        "records": records,
        "claims": held,
    }
    files.write_json(given.out / "results.json", results)
    console.print(f"Written: {given.out / 'results.json'}, {given.out / 'sparsity.png'}")
    return results


if __name__ == "__main__":
    main()
