"""The regime of the iVAE, with its prior's mean fixed and learned (bonheme2023 §5.3, Figs 5.1–5.4; claims B1, B2).

python studies/ivae_regime.py [--out runs/ivae-regime] [--steps 5000] [--image-size 32] [--latents 15] [--seed 0]

Trains two iVAEs on sprites given their five factors: the prior N(μ†(u), Σ†(u)) with μ† = 0 and with μ† learned. The
published models have 30 latents and 300,000 steps on dSprites at 64 × 64. Of each latent it measures, over 10,000
observations,

* ``type``: the rule for conditional priors (σ² against Σ†, μ against μ†, σ² against the spread of μ);
* the means of μ², Σ, Σ†, μ†, and of Σ/Σ† and (μ − μ†)²/Σ†;
* ``match``: E[Σ†] / E[Σ + (μ − μ†)²], 1 where the prior is the best one for these posteriors;
* ``use``: what the decoder makes of the latent, as a share of the variance of the data, E‖f(z) − f(z̃)‖² / 2 Var x
  with z the posterior means and z̃ the same with latent j of another observation. u determines x here, so a
  small KL does not make a latent passive: no use does;

and says what the claims look like. Writes results.json and histograms.png beside the models; a model that is there
already is not trained again.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.options import options_of
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.decoder import decode
from polariscope.models.model import Model
from polariscope.models.priors.conditional import ConditionalPrior
from polariscope.pages.figures import COLOURS

N_SAMPLES = 10_000
N_DECODED = 1_000
UNUSED = 0.001
"""Share of the data's variance below which the decoder does not use a latent."""
PANELS = {
    "mean": "mean μ",
    "variance": "variance Σ",
    "prior_variance": "prior variance Σ†",
    "prior_mean": "prior mean μ†",
}
MEANS: tuple[str, ...] = get_args(options_of(ConditionalPrior)["mean"].annotation)


@dataclasses.dataclass(frozen=True)
class LatentSummary:
    """One latent over the observations; means unless it says otherwise."""

    index: int
    type: str
    use: float
    kl: float
    mean_square: float
    largest_mean: float
    variance: float
    prior_variance: float
    largest_prior_variance: float
    prior_mean: float
    std_of_prior_mean: float
    ratio: float
    displacement: float
    match: float


def train(data: AbstractDataset, mean: str, arguments: argparse.Namespace) -> Model:
    """One iVAE, or what is left of its training."""
    return ps.train(
        data,
        objective="ivae",
        prior={"name": "conditional", "mean": mean},
        net="conv",
        n_latents=arguments.latents,
        steps=arguments.steps,
        learning_rate=arguments.learning_rate,
        seed=arguments.seed,
        out=arguments.out / f"{mean}-{arguments.image_size}-{arguments.latents}-{arguments.seed}",
        device="cpu",
        progress=True,
    )


def decoder_use(model: Model, data: AbstractDataset, representation: Representation, seed: int) -> np.ndarray:
    """Variance of the decoder's output that goes with each latent, as a share of the variance of the data."""
    assert representation.indices is not None
    rng = generator(seed, "ivae-regime", "use")
    rows = rng.choice(representation.n_samples, size=min(N_DECODED, representation.n_samples), replace=False)
    z = representation.mean[rows]
    outputs = decode(model, z).reshape(len(z), -1).astype(np.float64)
    observed = data.values(representation.indices[rows]).reshape(len(z), -1)
    spread = observed.astype(np.float64).var(axis=0).sum()
    found = []
    for j in range(z.shape[1]):
        moved = z.copy()
        moved[:, j] = np.roll(z[:, j], 1)
        change = decode(model, moved).reshape(len(z), -1) - outputs
        found.append(float((change**2).sum(axis=1).mean() / (2 * spread)))
    return np.array(found)


def summarise(representation: Representation, regime: Regime, use: np.ndarray) -> list[LatentSummary]:
    """The numbers of every latent, most used first."""
    assert representation.prior_mean is not None
    assert representation.prior_variance is not None
    mean, variance, prior_mean, prior_variance = (
        array.astype(np.float64)
        for array in (
            representation.mean,
            representation.variance,
            representation.prior_mean,
            representation.prior_variance,
        )
    )
    relative = relative_posterior(representation)
    best = (variance + (mean - prior_mean) ** 2).mean(axis=0)
    return [
        LatentSummary(
            index=int(j),
            type=regime.types[j],
            use=float(use[j]),
            kl=regime.latents[j].kl,
            mean_square=float((mean[:, j] ** 2).mean()),
            largest_mean=float(np.abs(mean[:, j]).max()),
            variance=float(variance[:, j].mean()),
            prior_variance=float(prior_variance[:, j].mean()),
            largest_prior_variance=float(prior_variance[:, j].max()),
            prior_mean=float(prior_mean[:, j].mean()),
            std_of_prior_mean=float(prior_mean[:, j].std()),
            ratio=float(relative.variance[:, j].mean()),
            displacement=float((relative.mean[:, j] ** 2).mean()),
            match=float(prior_variance[:, j].mean() / best[j]),
        )
        for j in np.argsort(-use, kind="stable")
    ]


def chosen(latents: Sequence[LatentSummary]) -> dict[str, LatentSummary]:
    """The most used latent, an active one if there is any, and the least used, a passive one if there is any."""
    active = [latent for latent in latents if latent.type == "active"]
    passive = [latent for latent in latents if latent.type == "passive"]
    return {"most used": (active or list(latents))[0], "least used": (passive or list(latents))[-1]}


def claims(mean: str, latents: Sequence[LatentSummary]) -> dict[str, Any]:
    """What B1 (fixed) and B2 (learned) say, as numbers over the latents the decoder uses and those it does not."""
    used = [latent for latent in latents if latent.use >= UNUSED]
    unused = [latent for latent in latents if latent.use < UNUSED]

    def median(group: Sequence[LatentSummary], name: str) -> float | None:
        return float(np.median([getattr(latent, name) for latent in group])) if group else None

    found: dict[str, Any] = {
        "claim": "B1" if mean == "fixed" else "B2",
        "used": len(used),
        "unused": len(unused),
        "unused: E μ²": median(unused, "mean_square"),
        "unused: E Σ": median(unused, "variance"),
        "unused: E Σ†": median(unused, "prior_variance"),
        "unused: E Σ/Σ†": median(unused, "ratio"),
        "unused: E (μ − μ†)²/Σ†": median(unused, "displacement"),
        "used: E Σ": median(used, "variance"),
        "used: E Σ†": median(used, "prior_variance"),
        "used: E μ²": median(used, "mean_square"),
        "used: E Σ/Σ†": median(used, "ratio"),
        "used: E Σ† / E[Σ + (μ − μ†)²]": median(used, "match"),
        "largest |μ|": max((latent.largest_mean for latent in latents), default=None),
        "largest Σ†": max((latent.largest_prior_variance for latent in latents), default=None),
    }
    return found


def show(
    mean: str, regime: Regime, latents: Sequence[LatentSummary], found: dict[str, Any], console: Console
) -> None:
    """Counts, a row for every latent, and the claim in numbers."""
    counts = ", ".join(f"{count} {kind}" for kind, count in regime.counts.items())
    console.print(
        f"\n[bold]prior mean {mean}[/bold]: {counts}; the decoder uses {found['used']} of {len(latents)}"
    )
    table = Table(*(field.name.replace("_", " ") for field in dataclasses.fields(LatentSummary)))
    for latent in latents:
        table.add_row(
            *(
                f"{value:.3g}" if isinstance(value, float) else str(value)
                for value in dataclasses.astuple(latent)
            )
        )
    console.print(table)
    for name, value in found.items():
        console.print(f"  {name}: {value:.3g}" if isinstance(value, float) else f"  {name}: {value}")


def draw(panels: Sequence[tuple[str, LatentSummary, Representation]], path: Path) -> None:
    """Histograms of μ, Σ, Σ† and μ† of the latents chosen, a row each."""
    figure = Figure(figsize=(13, 2.4 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), len(PANELS), squeeze=False)
    for row, (title, latent, representation) in zip(axes, panels, strict=True):
        for place, (name, label) in zip(row, PANELS.items(), strict=True):
            values = getattr(representation, name)[:, latent.index].astype(np.float64)
            if np.ptp(values) <= 1e-6 * max(
                1.0, float(np.abs(values).max())
            ):  # a spike, however narrow the bins
                place.bar([values.mean()], [len(values)], width=0.02, color=COLOURS[latent.type])  # type: ignore[index]
                place.set_xlim(values.mean() - 1, values.mean() + 1)
            else:
                place.hist(values, bins=60, color=COLOURS[latent.type])  # type: ignore[index]
            place.set_xlabel(label)
        row[0].set_title(
            f"{title}: latent {latent.index}, {latent.type}, use {latent.use:.1%}", loc="left", fontsize=9
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs/ivae-regime"))
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--latents", type=int, default=15)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    console = Console()
    data = ps.load_dataset("sprites", image_size=arguments.image_size)
    results: dict[str, Any] = {
        "settings": {
            key: str(value) if isinstance(value, Path) else value for key, value in vars(arguments).items()
        },
        "unused_below": UNUSED,
    }
    panels = []
    for mean in MEANS:
        model = train(data, mean, arguments)
        with torch.inference_mode():
            representation = ps.encode(model, data, N_SAMPLES, seed=arguments.seed)
        regime = ps.diagnose(representation, seed=arguments.seed)
        latents = summarise(representation, regime, decoder_use(model, data, representation, arguments.seed))
        found = claims(mean, latents)
        show(mean, regime, latents, found, console)
        results[mean] = {
            "counts": regime.counts,
            "latents": [dataclasses.asdict(latent) for latent in latents],
            "claim": found,
        }
        panels += [
            (f"prior mean {mean}, {which}", latent, representation)
            for which, latent in chosen(latents).items()
        ]
    files.write_json(arguments.out / "results.json", results)
    draw(panels, arguments.out / "histograms.png")
    console.print(f"\nresults.json and histograms.png are in {arguments.out}")


if __name__ == "__main__":
    main()
