"""``polariscope demo``: the whole path in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DEMO_DATASET = "sprites"
DEMO_DATASET_OPTIONS: dict[str, Any] = {"image_size": 32}
DEMO_SIZING: dict[str, Any] = {"method": "fondue", "objective": "vae", "net": "conv"}
DEMO_SETTINGS: dict[str, Any] = {
    "objective": "vae",
    "net": "conv",
    "learning_rate": 2e-4,  # as the models that size it: larger steps prune more latents
    "batch_size": 64,
    "steps": 3000,
    "log_every": 25,
    "probe_samples": 512,
    "seed": 0,
}
"""What the demo trains, once it knows how many latents: as the sizing did, so its model is only trained on."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.", metavar="RUN")] = Path("runs/demo"),
    steps: Annotated[int | None, typer.Option(help=f"How many. [{DEMO_SETTINGS['steps']}]", min=1)] = None,
) -> None:
    """See it all: size a model for sprites, train it, diagnose it, write a report."""
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
    say(
        f"How many latents do {DEMO_DATASET} need ({len(data):,} images of {data.shape[1]}×{data.shape[2]} pixels)?",
        errors=True,
    )
    place = out.with_name(f"{out.name}-size")
    with SizeProgress() as progress:
        found = size(data, out=place, progress=progress, **DEMO_SIZING)
    print_size(found)
    settings = {**DEMO_SETTINGS, "n_latents": max(1, found.n_latents)} | (
        {} if steps is None else {"steps": steps}
    )
    done = begin_from_candidate(place, out, plan(data, **settings))
    model = f"A VAE with {settings['n_latents']} latents, {settings['steps']:,} steps"
    say(f"\n{model}{f'; the sizing has trained it for {done:,}' if done else ''}.", errors=True)
    train_and_tell(data, out, settings)
    keep_size(place, out)
    say("")
    regime = Run(out).regime()
    print_latents(regime)
    print_notes(regime)
    tell_report(report(out))
    images = f"{DEMO_DATASET} --image-size {DEMO_DATASET_OPTIONS['image_size']}"
    same = f"polariscope train {images} --steps {settings['steps']} --learning-rate {settings['learning_rate']:g}"
    say_next(
        (f"polariscope diagnose {quoted(out)}", "the evidence behind the types"),
        (f"polariscope size {images} --compare", "what other methods say"),
        (f"{same} --objective beta --beta 8", "a stronger pull to the prior: fewer latents"),
        (f"{same} --objective beta-tc", "independent latents"),
        ("polariscope list objectives", "all there are"),
        ("polariscope train --help", "your own data: arrays:FILE.npz or images:FOLDER"),
    )
