"""``polariscope diagnose``: which latents are active, mixed and passive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli.app import SAMPLES, Part, Step, open_target, say_kept, say_target, say_what_next

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.regime.regime import Regime
    from polariscope.runs.run import Run


def diagnose(
    targets: Annotated[list[Path], typer.Argument(metavar="RUN|FILE.npz…", help="Runs, or codes.")],
    alpha: Annotated[float, typer.Option(help="Tolerance of the rule, between 0 and 0.5.")] = 0.1,
    samples: Annotated[
        int | None, typer.Option(help=f"Observations to encode, for a run. [{SAMPLES}]", min=2)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the observations and of the noise of the sampled codes.")
    ] = 0,
    part: Part = "all",
    step: Step = None,
    decompose: Annotated[
        bool,
        typer.Option(
            "--decompose", help="Also split the KL: mutual information, total correlation, the rest."
        ),
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Also write everything here.", metavar="FILE")] = None,
) -> None:
    """Name each latent active, mixed or passive, with evidence.

    Of a run, some observations are encoded, and the diagnosis is kept beside the model: the same settings read it
    again, others are kept as well. Of several runs each is diagnosed, and 'polariscope table' puts them side by side.
    A FILE.npz from any library holds mean and variance (or log_variance), both
    (sample, latent), and may hold sampled and factors. --decompose looks at no more than 5000 observations.
    """
    from polariscope.cli.console import say
    from polariscope.cli.latents import print_regime
    from polariscope.core import files

    if json is not None:
        files.check_target(json, "json")
    runs = [open_target(target, samples, step, part) for target in targets]
    records: dict[str, Any] = {}
    for target, run in zip(targets, runs, strict=True):
        say_target(target, targets)
        regime, decomposition = measure(run or target, alpha, samples, seed, step, decompose, part)
        print_regime(regime)
        noise = None if run is None else run.noise(step)
        if noise is not None:
            say(f"{noise.in_words}.")
        parts: dict[str, Any] = {}
        if decomposition is not None:
            say(f"\n{decomposition}\n")
            parts["decomposition"] = decomposition.to_dict()
        records[str(target)] = {**regime.to_dict(), **parts}
        if run is not None:
            say_kept(run)
    if json is not None:
        files.write_json(json, records if len(targets) > 1 else records[str(targets[0])])
        say(f"Everything is in {json}")
    say_what_next(targets, runs)


def measure(
    target: Path | Run,
    alpha: float,
    samples: int | None,
    seed: int,
    step: int | None,
    decompose: bool,
    part: str = "all",
) -> tuple[Regime, Decomposition | None]:
    """The diagnosis of a run, kept with it, or of the arrays in a file; and the parts of the rate, if asked for."""
    if not isinstance(target, Path):
        where: dict[str, Any] = {"n_samples": samples or SAMPLES, "seed": seed, "part": part, "step": step}
        parts = target.decomposition(**where) if decompose else None
        return target.regime(alpha, **where), parts
    from polariscope.analysis.codes import load_codes
    from polariscope.analysis.decomposition import decompose as decompose_codes
    from polariscope.analysis.regime.diagnose import diagnose as diagnose_codes

    codes = load_codes(target, seed)
    decomposition = decompose_codes(codes, seed=seed) if decompose else None
    return diagnose_codes(codes, alpha=alpha, seed=seed), decomposition
