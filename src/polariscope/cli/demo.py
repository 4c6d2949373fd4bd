"""``polariscope demo``: the whole path in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DEMO_DATASET = "sprites"
DEMO_DATASET_OPTIONS: dict[str, Any] = {"image_size": 32}
DEMO_SETTINGS: dict[str, Any] = {
    "objective": "vae",
    "net": "conv",
    "n_latents": 10,
    "learning_rate": 1e-3,
    "batch_size": 64,
    "steps": 3000,
    "seed": 0,
}
"""What the demo trains: under four minutes on two cores, with active and passive latents at the end."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.", metavar="RUN")] = Path("runs/demo"),
    steps: Annotated[int | None, typer.Option(help=f"How many. [{DEMO_SETTINGS['steps']}]", min=1)] = None,
) -> None:
    """See it all: train on sprites, diagnose, write a report."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.latents import print_latents, print_notes
    from polariscope.cli.report import tell_report
    from polariscope.cli.train import train_and_tell
    from polariscope.data.sources import load_dataset
    from polariscope.report.record import diagnose_run
    from polariscope.report.report import report

    data = load_dataset(DEMO_DATASET, **DEMO_DATASET_OPTIONS)
    settings = DEMO_SETTINGS if steps is None else {**DEMO_SETTINGS, "steps": steps}
    say(
        f"A VAE with {settings['n_latents']} latents on {DEMO_DATASET} "
        f"({len(data):,} images of {data.shape[1]}×{data.shape[2]} pixels), {settings['steps']} steps.",
        errors=True,
    )
    train_and_tell(data, out, settings)
    say("")
    regime = diagnose_run(out)
    print_latents(regime)
    print_notes(regime)
    tell_report(report(out))
    size, rate = DEMO_DATASET_OPTIONS["image_size"], settings["learning_rate"]
    same = f"polariscope train {DEMO_DATASET} --image-size {size} --steps {settings['steps']} --learning-rate {rate:g}"
    say_next(
        (f"polariscope diagnose {quoted(out)}", "the evidence behind the types"),
        (f"{same} --objective beta --beta 8", "a stronger pull to the prior: fewer latents"),
        (f"{same} --objective beta-tc", "independent latents"),
        ("polariscope list objectives", "all there are"),
        ("polariscope train --help", "your own data: arrays:FILE.npz or images:FOLDER"),
    )
