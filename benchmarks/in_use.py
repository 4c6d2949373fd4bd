"""Thresholds of "in use": chosen on one half of a panel of models, reported on the other; and the demo over seeds.

    python benchmarks/in_use.py                       cost of the decoder effect, relative to encoding
    python benchmarks/in_use.py --make FOLDER [--mnist F] [--fashion F] [--public F]
                                                      train and measure what is missing
    python benchmarks/in_use.py --show FOLDER         agreement of the two rules for all candidates, and tables
    python benchmarks/in_use.py --demo FOLDER [--seeds 0 1 …] [--threads 2]
                                                      train the demo's model and print its verdicts

``--mnist`` and ``--fashion`` are folders of the four IDX files, ``--public`` is the folder of the ten public models
(benchmarks/originals/README.md). Members whose files are not given are left out, and that is said. Members are split by
family of data, so that no data are in both halves. Each trained member is a run in FOLDER; its numbers are in
FOLDER/results. The whole panel takes about 15 minutes of one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from panel import SPECTRA, gaussian, table
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.analysis.regime.use import EFFECT, INFORMATION, LIMIT, information
from polariscope.cli.demo import (
    DEMO_DATASET,
    DEMO_DATASET_OPTIONS,
    DEMO_LATENTS,
    DEMO_SETTINGS,
    DEMO_VARIANT,
)
from polariscope.core import files
from polariscope.core.parsing import read_json
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset
from polariscope.runs.run import Run

CHOSEN_ON, REPORTED = "chosen on", "reported"
HALVES = {
    "handwriting": CHOSEN_ON,
    "gaussian": CHOSEN_ON,
    "breast cancer": CHOSEN_ON,
    "pinwheel": CHOSEN_ON,
    "sprites": REPORTED,
    "clothing": REPORTED,
    "wine": REPORTED,
    "diabetes": REPORTED,
    "counts": REPORTED,
}
"""Half of each family of data; fixed before any result was known."""
EFFECTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Candidates for t₁, in nats."""
INFORMATIONS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
"""Candidates for t₂, in nats."""
DENSE: dict[str, Any] = {
    "net": "mlp",
    "encoder_widths": (256, 128),
    "decoder_widths": (128, 256),
    "activation": "relu",
    "learning_rate": 1e-3,
    "steps": 2500,
    "n_latents": 10,
}
CONVOLUTIONAL: dict[str, Any] = {"net": "conv", "learning_rate": 2e-3, "steps": 1000, "n_latents": 10}
"""As the demo of version 0.2.0 trains, but shorter."""
TABLE: dict[str, Any] = {"steps": 4000, "learning_rate": 1e-3, "n_latents": 8}
UNTRAINED = {"steps": 1}


@dataclasses.dataclass(frozen=True)
class Member:
    """One model of the panel."""

    family: str
    data: str
    """Key of ``DATA``, or "public"."""
    change: str
    """What is special about it, in a few words."""
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its run and of its results."""
        return f"{self.data}, {self.change}"


def counts(_: Path) -> AbstractDataset:
    """2,000 rows of 50 negative-binomial counts: four factors with loadings on the logarithm of the rate."""
    rng = np.random.default_rng(0)
    rates = np.exp(rng.normal(size=(2000, 4)) @ rng.normal(size=(4, 50)) * 0.6 + rng.normal(size=50) + 1)
    return ps.from_arrays(rng.poisson(rates * rng.gamma(5.0, 1 / 5.0, size=rates.shape)))


def scaled_counts(folder: Path) -> AbstractDataset:
    """The logarithms of one plus these counts, every feature with variance 1."""
    rows = counts(folder).values(np.arange(2000))
    return apply_variants(ps.from_arrays(np.log1p(rows).astype(np.float32)), standardise=True)


def sprites(_: Path) -> AbstractDataset:
    """A random 20,000 of the sprites of 32 × 32 pixels."""
    return apply_variants(ps.load_dataset("sprites", image_size=32), [{"name": "subset", "n": 20_000}])


def old_demo(_: Path) -> AbstractDataset:
    """The images of the demo of version 0.2.0: squares, ellipses and hearts."""
    return ps.load_dataset("sprites", variants="subset:scale=5,orientation=0", image_size=32)


def demo_data() -> AbstractDataset:
    """The images of the demo."""
    return ps.load_dataset(DEMO_DATASET, variants=DEMO_VARIANT, **DEMO_DATASET_OPTIONS)


def idx(name: str) -> Callable[[Path], AbstractDataset]:
    """A random 20,000 of MNIST or its like, of 28 × 28 pixels."""
    return lambda folder: apply_variants(
        ps.load_dataset(name, path=str(folder)), [{"name": "subset", "n": 20_000}]
    )


DATA: dict[str, Callable[[Path], AbstractDataset]] = {
    "digits": lambda _: ps.load_dataset("digits"),
    "MNIST": idx("mnist"),
    "gaussian, power law": gaussian(SPECTRA["power law"]),
    "gaussian, equal": gaussian(SPECTRA["equal"]),
    "breast cancer": table("load_breast_cancer"),
    "pinwheel": lambda _: ps.load_dataset("pinwheel"),
    "demo of 0.2": old_demo,
    "sprites": sprites,
    "Fashion-MNIST": idx("fashion-mnist"),
    "wine": table("load_wine"),
    "diabetes": table("load_diabetes"),
    "counts": counts,
    "scaled counts": scaled_counts,
}


def members() -> Iterator[Member]:
    """All members of the panel, without the public models."""

    def dense(family: str, data: str, *changes: tuple[str, dict[str, Any]]) -> Iterator[Member]:
        for change, settings in changes:
            yield Member(family, data, change, {**DENSE, **settings})

    def rows(family: str, data: str, *changes: tuple[str, dict[str, Any]]) -> Iterator[Member]:
        for change, settings in changes:
            yield Member(family, data, change, {**TABLE, **settings})

    def beta(value: float, **settings: Any) -> tuple[str, dict[str, Any]]:
        return f"β = {value:g}", {"objective": "beta", "beta": value, **settings}

    vae = ("VAE", {"objective": "vae"})
    untrained = ("untrained", UNTRAINED)
    mixture, small_mixture = (
        ("mixture prior", {"prior": "mixture", "means": corners(n), "component_variance": 0.5})
        for n in (10, 8)
    )
    sparse = ("sparse prior", {"prior": "sparse"})
    learned = ("learned variances of the prior", {"prior": "anisotropic-learned"})
    identifiable = ("iVAE", {"objective": "ivae"})
    moved = ("iVAE, learned mean", {"objective": "ivae", "prior_mean": "learned"})
    wide = ("20 latents", {"n_latents": 20})
    short = ("300 steps", {"steps": 300})
    yield from dense(
        "handwriting", "digits", vae, wide, beta(2), beta(8), beta(50), untrained, short, mixture, learned
    )
    yield from dense("handwriting", "digits", identifiable, moved, sparse)
    yield from dense(
        "handwriting", "MNIST", vae, beta(8), ("20 latents, untrained", {"n_latents": 20, **UNTRAINED})
    )
    linear = {"net": "linear", "learning_rate": 3e-3, "n_latents": 14}
    for name in ("power law", "equal"):
        yield from rows("gaussian", f"gaussian, {name}", ("VAE", linear), (*beta(4, **linear),))
    yield from rows("breast cancer", "breast cancer", vae, beta(4), beta(30), untrained, small_mixture)
    yield from rows("pinwheel", "pinwheel", vae, identifiable, moved)
    for seed in range(3):
        yield Member("sprites", "demo of 0.2", f"seed {seed}, 1000 steps", {**CONVOLUTIONAL, "seed": seed})
    yield Member("sprites", "demo of 0.2", "untrained", {**CONVOLUTIONAL, **UNTRAINED})
    yield from dense("sprites", "sprites", vae, beta(4), beta(8), beta(100), wide, untrained, short)
    yield from dense("sprites", "sprites", learned, identifiable, moved)
    yield from dense("clothing", "Fashion-MNIST", vae, beta(8), mixture, untrained)
    for name in ("wine", "diabetes"):
        yield from rows(name, name, vae, beta(4), untrained)
    yield from rows("diabetes", "diabetes", small_mixture)
    likelihood = {"likelihood": "negative-binomial"}
    yield from rows("counts", "counts", ("negative-binomial", likelihood), (*beta(10, **likelihood),))
    yield from rows("counts", "counts", ("negative-binomial, untrained", {**likelihood, **UNTRAINED}))
    yield from rows("counts", "scaled counts", ("gaussian", {}), beta(4))


def corners(n_latents: int) -> tuple[tuple[float, ...], ...]:
    """Return the means of four components at ±1 in the first two latents."""
    rest = (0.0,) * (n_latents - 2)
    return tuple((x, y, *rest) for x in (-1.0, 1.0) for y in (-1.0, 1.0))


def demo_settings(seed: int) -> dict[str, Any]:
    """Settings of the demo's training with another seed."""
    return {**DEMO_SETTINGS, "n_latents": DEMO_LATENTS, "seed": seed}


def measure(rep: ps.Representation) -> list[dict[str, Any]]:
    """Return a row for each latent: both kinds of evidence with errors, type and KL."""
    regime = ps.diagnose(rep)
    values, errors = information(rep.mean, rep.variance)
    assert rep.effect is not None
    assert rep.effect_error is not None
    return [
        {
            "latent": j,
            "effect": float(rep.effect[j]),
            "effect_error": float(rep.effect_error[j]),
            "information": float(values[j]) if math.isfinite(values[j]) else 99.0,
            "information_error": float(errors[j]),
            "type": latent.type,
            "kl": latent.kl,
            "variance": latent.mean_of_variance,
        }
        for j, latent in enumerate(regime.latents)
    ]


def make(folder: Path, given: argparse.Namespace) -> None:
    """Train and measure the members that have no results yet."""
    sources = {"MNIST": given.mnist, "Fashion-MNIST": given.fashion}
    for member in members():
        result = _result(folder, member.family, member.name)
        if result.exists():
            continue
        source = sources.get(member.data, Path())
        if source is None:
            print(f"{member.name} is left out: its folder is not given")
            continue
        started = time.process_time()
        data = DATA[member.data](source)
        out = folder / member.name.replace(" ", "-").replace(",", "").replace("=", "")
        ps.train(data, out=out, **member.settings)
        run = Run(out, None if member.data in ("digits", "pinwheel") else data)
        _write(result, member, measure(run.representation()))
        print(f"{member.name}: {time.process_time() - started:.0f} s", flush=True)
    if given.public is None:
        print("the public models are left out: their folder is not given")
        return
    sys.path.append(str(Path(__file__).parent / "originals"))
    from public_models import open_model

    known = read_json(given.public / "models.json")
    for name in sorted(known):
        is_digits = name.endswith("mnist")
        member = Member("handwriting" if is_digits else "sprites", "public", name)
        result = _result(folder, member.family, member.name)
        if result.exists() or (is_digits and given.mnist is None):
            continue
        data = ps.load_dataset("sprites", image_size=64)
        if is_digits:
            data = apply_variants(
                ps.load_dataset("mnist", path=str(given.mnist)), [{"name": "resized", "image_size": 32}]
            )
        rep = ps.encode(open_model(given.public, name, known[name]["settings"]), data, n_samples=3000)
        _write(result, member, measure(rep))
        print(name, flush=True)


def _result(folder: Path, family: str, name: str) -> Path:
    return folder / "results" / f"{family}, {name}.json"


def _write(path: Path, member: Member, rows: list[dict[str, Any]]) -> None:
    record = {"family": member.family, "model": member.name, "latents": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, record)


def read(folder: Path, half: str) -> list[dict[str, Any]]:
    """Return the latents of one half of the panel."""
    records = [read_json(path) for path in sorted((folder / "results").glob("*.json"))]
    return [
        {**row, "model": record["model"], "family": record["family"]}
        for record in records
        if HALVES[record["family"]] == half
        for row in record["latents"]
    ]


def decisions(rows: Sequence[dict[str, Any]], effect: float, bits: float) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each latent is in use by the decoder effect, and by the information."""

    def lower(name: str) -> np.ndarray:
        return np.array([row[name] - LIMIT * row[f"{name}_error"] for row in rows])

    return lower("effect") > effect, lower("information") > bits


def kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Return Cohen's κ: agreement beyond that of independent rules with the same shares."""
    chance = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    return float(((first == second).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


def show(folder: Path) -> None:
    """Print agreement for all candidates on the first half, and the second half with the thresholds in force."""
    console = Console(width=150)
    rows = read(folder, CHOSEN_ON)
    console.print(
        f"Chosen on: {len(rows)} latents of {len({row['model'] for row in rows})} models. Share that agree (%)"
    )
    grid = Table("t₁ \\ t₂", *(f"{bits:g}" for bits in INFORMATIONS))
    for effect in EFFECTS:
        cells = []
        for bits in INFORMATIONS:
            first, second = decisions(rows, effect, bits)
            cells.append(f"{100 * (first == second).mean():.1f} κ {kappa(first, second):.2f}")
        grid.add_row(f"{effect:g}", *cells)
    console.print(grid)
    for half in (CHOSEN_ON, REPORTED):
        report(console, half, read(folder, half))


def report(console: Console, half: str, rows: list[dict[str, Any]]) -> None:
    """Print how often the rules agree in one half, and the latents on which they do not."""
    first, second = decisions(rows, EFFECT, INFORMATION)
    agree = first == second
    console.print(
        f"\nHalf {half!r} with t₁ = {EFFECT:g}, t₂ = {INFORMATION:g}: the rules agree on {agree.sum()} of {len(rows)} "
        f"latents, {100 * agree.mean():.1f} % (κ = {kappa(first, second):.2f})"
    )
    families = Table("family", "models", "latents", "in use by the decoder", "agree", "%")
    for family in dict.fromkeys(row["family"] for row in rows):
        here = np.array([row["family"] == family for row in rows])
        n_models = len({row["model"] for row in rows if row["family"] == family})
        share = 100 * agree[here].mean()
        families.add_row(
            family, *map(str, (n_models, here.sum(), first[here].sum(), agree[here].sum())), f"{share:.1f}"
        )
    console.print(families)
    rest = Table("model", "latent", "effect (limits)", "information (limits)", "type", "KL", "in use by")
    for row, by_decoder, same in zip(rows, first, agree, strict=True):
        if not same:
            by = "decoder" if by_decoder else "information"
            span = (_span(row, "effect"), _span(row, "information"))
            rest.add_row(row["model"], str(row["latent"]), *span, row["type"], f"{row['kl']:.3f}", by)
    console.print(rest)
    named = np.array([row["type"] != "passive" for row in rows])
    changes = Counter(zip(named.tolist(), first.tolist(), strict=True))
    console.print(
        f"active or mixed: {named.sum()}, in use: {first.sum()}; {changes[True, False]} are active or mixed and not in "
        f"use, {changes[False, True]} are passive and in use"
    )


def _span(row: dict[str, Any], name: str) -> str:
    value, width = row[name], LIMIT * row[f"{name}_error"]
    return f"{value:.3f} ({value - width:.3f} to {value + width:.3f})"


def demo(folder: Path, seeds: Sequence[int], threads: int) -> None:
    """Train the demo's model for each seed and print its verdicts."""
    lines = Table("seed", "in use", "interval", "state", "gain (limit, tolerance)", "CPU s")
    counted = []
    for seed in seeds:
        out, started = folder / f"seed-{seed}", time.process_time()
        if not (out / "model.safetensors").exists():
            ps.train(demo_data(), out=out, threads=threads, **demo_settings(seed))
        verdict, used = Run(out).verdict(), time.process_time() - started
        counted.append(verdict.n_in_use)
        low, high = verdict.interval
        state = verdict.training
        gain = f"{state.gain or 0:.2f} ({state.gain_limit or 0:.2f}, {state.tolerance or 0:.2f})"
        lines.add_row(str(seed), str(verdict.n_in_use), f"{low}–{high}", state.code, gain, f"{used:.0f}")
    Console(width=120).print(lines)
    mode, count = Counter(counted).most_common(1)[0]
    print(f"{count} of {len(counted)} runs have {mode} latents in use")


def seconds(run: Callable[..., object], *arguments: object) -> float:
    """Return the processor time of one call with seed 0."""
    started = time.process_time()
    run(*arguments, 0)
    return time.process_time() - started


def cost() -> None:
    """Print the processor time of the decoder effect relative to that of encoding 10,000 observations, in one run."""
    from polariscope.models.effect import decoder_effect
    from polariscope.models.inference import represent
    from polariscope.training.plan import plan

    data = ps.load_dataset("sprites", image_size=32)
    indices = np.arange(0, len(data), len(data) // 10_000)[:10_000]
    console_table = Table("net", "latents", "encode 10,000 (s)", "effect (s)", "ratio")
    for net in ("conv", "mlp"):
        for n_latents in (5, 10, 20):
            model = plan(data, net=net, n_latents=n_latents).blueprint.build(0).eval()
            represent(model, data, indices, 0)  # draws the images, which are then cached
            times = []
            for run in (
                lambda m=model: represent(m, data, indices, 0),
                lambda m=model: decoder_effect(m, data, indices),
            ):
                started = time.perf_counter()
                run()
                times.append(time.perf_counter() - started)
            console_table.add_row(
                net, str(n_latents), f"{times[0]:.2f}", f"{times[1]:.2f}", f"{times[1] / times[0]:.2f}"
            )
    Console().print(console_table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("make", "show", "demo", "mnist", "fashion", "public"):
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.make:
        make(given.make, given)
    if given.show:
        show(given.show)
    if given.demo:
        demo(given.demo, given.seeds, given.threads)
    if not (given.make or given.show or given.demo):
        cost()


if __name__ == "__main__":
    main()
