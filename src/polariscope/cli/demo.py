"""``polariscope demo``: size, train, diagnose and report on an embedded dataset."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from polariscope.cli.command import Flag, command
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.analysis.regime.regime import Regime
    from polariscope.sizing import Size

DEMO_DATASET = "sprites"
DEMO_DATASET_OPTIONS: dict[str, Any] = {"image_size": 32}
DEMO_VARIANT = "subset:scale=5,orientation=0"
"""Large and upright ones, whose outlines a short training learns."""
DEMO_LATENTS = 10
"""More than the data need, so there are some to spare."""
FEWEST = 400
"""A shorter training is too short to count latents by."""
DEMO_SETTINGS: dict[str, Any] = {
    "objective": "vae",
    "net": "conv",
    "learning_rate": 2e-3,
    "batch_size": 64,
    "steps": 2500,
    "log_every": 25,
    "probe_samples": 512,
    "seed": 0,
}
"""How the model is trained, both for the count and for the run: it is the same model."""


@checked
@dataclasses.dataclass(frozen=True)
class DemoOptions:
    """Options of ``polariscope demo``."""

    out: Annotated[Path, Flag("RUN")] = Path("runs/demo")
    """Folder of the run."""
    steps: Annotated[int, Ge(1)] = DEMO_SETTINGS["steps"]
    """Number of gradient steps."""


@command(options=DemoOptions)
def demo(options: DemoOptions) -> None:
    """See it all in two minutes: how many latents do images need, which are in use, and a report."""
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.latents import print_latents, print_notes
    from polariscope.cli.report import tell_report
    from polariscope.cli.size_progress import SizeProgress
    from polariscope.cli.sizes import print_size
    from polariscope.cli.train import train_and_tell
    from polariscope.data.sources import load_dataset
    from polariscope.pages.report import report
    from polariscope.runs.run import Run
    from polariscope.sizing.support.candidates import begin_from_candidate
    from polariscope.sizing.support.size import keep_size, size
    from polariscope.training.plan import plan

    data = load_dataset(DEMO_DATASET, variants=DEMO_VARIANT, **DEMO_DATASET_OPTIONS)
    out, settings = options.out, {**DEMO_SETTINGS, "steps": options.steps}
    say(
        f"A VAE describes each observation with a few numbers, its latents. The data: {len(data):,} images of "
        f"{data.shape[1]}×{data.shape[2]} pixels:\na square, an ellipse or a heart, somewhere on black.\n\n"
        f"1. How many latents do they need? Train a VAE with {DEMO_LATENTS} and count those it uses.",
        errors=True,
    )
    place = out.with_name(f"{out.name}-size")
    recipe = {name: settings[name] for name in ("objective", "net", "learning_rate", "batch_size", "seed")}
    recipe["steps"] = max(FEWEST, settings["steps"])
    with SizeProgress() as progress:
        found = size(data, "active-units", out=place, progress=progress, cap=DEMO_LATENTS, **recipe)
    print_size(found)
    say("\n2. Which of them are in use, and what do they do?", errors=True)
    settings = {**settings, "n_latents": DEMO_LATENTS}
    begin_from_candidate(place, out, plan(data, **settings))
    train_and_tell(data, out, settings)
    keep_size(place, out)
    regime = Run(out).regime()
    print_latents(regime)
    print_notes(regime)
    tell_report(report(out))
    say(f"\n{conclusion(regime, found)}")
    images = f"{DEMO_DATASET} --image-size {DEMO_DATASET_OPTIONS['image_size']} --variant {DEMO_VARIANT}"
    same = f"polariscope train {images} --steps {settings['steps']} --learning-rate {settings['learning_rate']:g}"
    say_next(
        (f"{same} --latents {max(1, found.n_latents)}", "a VAE of that size"),
        (f"{same} --objective beta --beta 8", "a stronger pull to the prior: fewer latents in use"),
        (f"polariscope diagnose {quoted(out)}", "the evidence behind the types"),
        (f"polariscope size {images}", "the size by a search over narrow models (FONDUE)"),
        ("polariscope list objectives", "all there are"),
        ("polariscope train YOUR.csv", "your own data: a table, .npz arrays, a folder of images"),
    )


def conclusion(regime: Regime, found: Size) -> str:
    """What the count and the diagnosis say together, as one piece of advice."""
    counts, n = regime.counts, regime.n_latents
    in_use = n - counts["passive"]
    first = f"What it shows: of {n} latents the model uses {in_use} and leaves {counts['passive']} passive."
    if in_use != found.n_latents:
        return (
            f"{first} On other samples {found.n_latents} were in use: some are about to change. Train longer before "
            "you trust either number."
        )
    if counts["passive"] == 0:
        return f"{first} It may need more: give it more latents, or train longer."
    return (
        f"{first} These images need {in_use} latents, for this model and this short training: the decoder "
        f"ignores the others. Train with {in_use}, or drop the passive ones."
    )
