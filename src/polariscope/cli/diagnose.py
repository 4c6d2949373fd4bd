"""``polariscope diagnose``: which latents are active, mixed and passive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polariscope.cli.flags import in_flag_spelling
from polariscope.cli.targets import SAMPLES, check_file
from polariscope.core.errors import InputError

if TYPE_CHECKING:
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.regime.regime import Regime


def diagnose(
    target: Annotated[Path, typer.Argument(metavar="RUN|FILE.npz", help="A finished run, or codes.")],
    alpha: Annotated[float, typer.Option(help="Tolerance of the rule, between 0 and 0.5.")] = 0.1,
    samples: Annotated[
        int | None, typer.Option(help=f"Observations to encode, for a run. [{SAMPLES}]", min=2)
    ] = None,
    seed: Annotated[int, typer.Option(help="Which observations, and the noise of the sampled codes.")] = 0,
    decompose: Annotated[
        bool,
        typer.Option(
            "--decompose", help="Also split the KL: mutual information, total correlation, the rest."
        ),
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Also write everything here.", metavar="FILE")] = None,
) -> None:
    """Name each latent active, mixed or passive, with evidence.

    Of a run, some observations are encoded and regime.json is written beside it. A FILE.npz from any library
    holds mean and variance (or log_variance), both (sample, latent), and may hold sampled and factors.
    --decompose looks at no more than 5000 of them, and writes decomposition.json beside a run.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.latents import print_regime
    from polariscope.core import files

    if json is not None and json.is_dir():
        raise InputError(f"--json must be a file, got the folder {json}.")
    try:
        decomposition = find_decomposition(target, samples, seed) if decompose else None
        regime = find_regime(target, alpha, samples, seed)
    except InputError as error:
        raise InputError(in_flag_spelling(str(error), ("alpha",))) from None
    print_regime(regime)
    parts = {}
    if decomposition is not None:
        say(f"\n{decomposition}\n")
        parts["decomposition"] = decomposition.to_dict()
    if json is not None:
        files.write_json(json, {**regime.to_dict(), **parts})
        say(f"Everything is in {json}")
    if target.is_dir():
        say(f"Written: {target / 'regime.json'}")
        if decomposition is not None:
            files.write_json(target / "decomposition.json", decomposition.to_dict())
            say(f"Written: {target / 'decomposition.json'}")
        say_next((f"polariscope report {quoted(target)}", "all of it on one page"))


def find_regime(target: Path, alpha: float, samples: int | None, seed: int) -> Regime:
    """The diagnosis of a run, written beside it, or of the arrays in a file."""
    if target.is_dir():
        from polariscope.pages.record import diagnose_run

        return diagnose_run(target, n_samples=samples or SAMPLES, alpha=alpha, seed=seed)
    check_file(target, samples)
    from polariscope.analysis.regime.diagnose import diagnose as diagnose_codes
    from polariscope.storage.representation import load_codes

    return diagnose_codes(load_codes(target, seed), alpha=alpha, seed=seed)


def find_decomposition(target: Path, samples: int | None, seed: int) -> Decomposition:
    """The parts of the rate of a run, whose encoding is at hand after its diagnosis, or of the arrays in a file."""
    from polariscope.analysis.decomposition import decompose

    if target.is_dir():
        from polariscope.runs.encode import encode

        return decompose(encode(target, n_samples=samples or SAMPLES, seed=seed), seed=seed)
    from polariscope.storage.representation import load_codes

    return decompose(load_codes(target, seed), seed=seed)
