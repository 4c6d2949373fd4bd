"""``polariscope demo``: the whole path in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from polariscope.analysis.regime.regime import Regime
    from polariscope.sizing import Size

DEMO_DATASET = "sprites"
DEMO_DATASET_OPTIONS: dict[str, Any] = {"image_size": 32}
DEMO_LATENTS = 16
"""More than the data need, so there is something to prune: as many as the widest model of the search."""
DEMO_SIZING: dict[str, Any] = {
    "method": "fondue",
    "objective": "vae",
    "net": "conv",
    "learning_rate": 2e-3,  # fast, for a demo: larger steps prune more latents
    "steps": 1500,
}
DEMO_SETTINGS: dict[str, Any] = {
    "objective": "vae",
    "net": "conv",
    "learning_rate": 2e-3,
    "batch_size": 64,
    "steps": 1500,
    "log_every": 25,
    "probe_samples": 512,
    "seed": 0,
}
"""What the demo trains: as the sizing does, so its widest model is only trained further."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.", metavar="RUN")] = Path("runs/demo"),
    steps: Annotated[int | None, typer.Option(help=f"How many. [{DEMO_SETTINGS['steps']}]", min=1)] = None,
) -> None:
    """See it all in two minutes: size a model for sprites, train one that is too wide, diagnose it, write a report."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.latents import print_latents, print_notes
    from polariscope.cli.report import tell_report
    from polariscope.cli.size import SizeProgress
    from polariscope.cli.sizes import print_size
    from polariscope.cli.train import train_and_tell
    from polariscope.data.sources import load_dataset
    from polariscope.pages.report import report
    from polariscope.runs.run import Run
    from polariscope.sizing.support.candidates import begin_from_candidate
    from polariscope.sizing.support.size import keep_size, size
    from polariscope.training.plan import plan

    data = load_dataset(DEMO_DATASET, **DEMO_DATASET_OPTIONS)
    settings = {**DEMO_SETTINGS, "n_latents": DEMO_LATENTS} | ({} if steps is None else {"steps": steps})
    say(
        f"A VAE describes each observation with a few numbers, its latents. The data: {len(data):,} images of "
        f"{data.shape[1]}×{data.shape[2]} pixels,\nmade from {len(data.factor_names)} factors "
        f"({', '.join(data.factor_names)}).\n\n1. How many latents do they need?",
        errors=True,
    )
    place = out.with_name(f"{out.name}-size")
    with SizeProgress() as progress:
        found = size(data, out=place, progress=progress, **DEMO_SIZING)
    print_size(found)
    done = begin_from_candidate(place, out, plan(data, **settings))
    begun = f" (the search has trained it for {done:,} steps)" if done else ""
    say(f"\n2. What does a VAE do with {DEMO_LATENTS} latents, more than it needs?{begun}", errors=True)
    train_and_tell(data, out, settings)
    keep_size(place, out)
    say("\n3. Which of them are in use?", errors=True)
    regime = Run(out).regime()
    print_latents(regime)
    print_notes(regime)
    tell_report(report(out))
    say(f"\n{conclusion(regime, found)}")
    images = f"{DEMO_DATASET} --image-size {DEMO_DATASET_OPTIONS['image_size']}"
    same = f"polariscope train {images} --steps {settings['steps']} --learning-rate {settings['learning_rate']:g}"
    say_next(
        (f"{same} --latents {max(1, found.n_latents)}", "a VAE of the size that was found"),
        (f"polariscope diagnose {quoted(out)}", "the evidence behind the types"),
        (f"{same} --objective beta --beta 4", "a stronger pull to the prior: fewer latents in use"),
        ("polariscope list objectives", "all there are"),
        ("polariscope train --help", "your own data: arrays:FILE.npz or images:FOLDER"),
    )


def conclusion(regime: Regime, found: Size) -> str:
    """What the search and the model say together."""
    counts, n = regime.counts, regime.n_latents
    in_use = n - counts["passive"]
    first = f"What it shows: of {n} latents the model uses {in_use} and leaves {counts['passive']} passive."
    if found.interval is not None and found.interval[0] <= in_use <= found.interval[1]:
        agree = "The search agrees" if in_use == found.n_latents else "Within its interval, the search agrees"
        return (
            f"{first} {agree}: {found.answer}. Take {found.n_latents} for these data and this short training."
        )
    return (
        f"{first} The search found {found.answer}, from models trained for fewer steps. Both change with the training: "
        "train longer before you trust either."
    )
