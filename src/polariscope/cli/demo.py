"""``polariscope demo``: train, diagnose and report on an embedded dataset."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from polariscope.cli.command import Flag, command
from polariscope.core.options import checked

if TYPE_CHECKING:
    from polariscope.analysis.verdict import Verdict

DEMO_DATASET = "sprites"
DEMO_DATASET_OPTIONS: dict[str, Any] = {"image_size": 16}
DEMO_VARIANT = "subset:shape=0,orientation=0"
"""Upright squares, which differ in three ways: two coordinates and the size. docs/in_use.md has the answer by seed."""
DEMO_LATENTS = 10
"""More than the data need, so there are some to spare."""
DEMO_SETTINGS: dict[str, Any] = {
    "objective": "vae",
    "net": "conv",
    "learning_rate": 1e-3,
    "batch_size": 64,
    "steps": 4000,
    "log_every": 25,
    "probe_samples": 512,
    "seed": 0,
}
"""How the model is trained."""


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
    from polariscope.cli.diagnosis_output import print_latents, print_notes
    from polariscope.cli.report import tell_report
    from polariscope.cli.train import run_and_print
    from polariscope.data.sources import load_dataset
    from polariscope.pages.report import report
    from polariscope.runs.run import Run

    data = load_dataset(DEMO_DATASET, variants=DEMO_VARIANT, **DEMO_DATASET_OPTIONS)
    out, settings = options.out, {**DEMO_SETTINGS, "steps": options.steps, "n_latents": DEMO_LATENTS}
    say(
        f"A VAE describes each observation with a few numbers, its latents. The data: {len(data):,} images of "
        f"{data.shape[1]}×{data.shape[2]} pixels:\na white square of one of six sizes, somewhere on black.\n\n"
        f"How many latents do they need? Train a VAE with {DEMO_LATENTS} and see which of them it uses.",
        errors=True,
    )
    run_and_print(data, out, settings)
    regime = Run(out).regime()
    print_latents(regime, verdict=False)
    print_notes(regime)
    tell_report(report(out))
    say(f"\n{conclusion(regime.verdict)}")
    images = f"{DEMO_DATASET} --image-size {DEMO_DATASET_OPTIONS['image_size']} --variant {DEMO_VARIANT}"
    same = f"polariscope train {images} --steps {settings['steps']} --learning-rate {settings['learning_rate']:g}"
    say_next(
        (f"{same} --latents {max(1, regime.verdict.n_in_use)}", "a VAE of that size"),
        (f"{same} --objective beta --beta 8", "a stronger pull to the prior: fewer latents in use"),
        (f"polariscope diagnose {quoted(out)} --details", "the evidence behind the types"),
        (f"polariscope size {images}", "the size by a search over narrow models (FONDUE)"),
        ("polariscope list objectives", "all there are"),
        ("polariscope train YOUR.csv", "your own data: a table, .npz arrays, a folder of images"),
    )


def conclusion(verdict: Verdict) -> str:
    """Return the advice that follows from the verdict on the demo's model.

    :param verdict: the verdict.
    """
    if not verdict.allows_advice:
        return f"What it shows: {verdict.state} The number of latents in use can still change."
    if verdict.n_in_use == verdict.n_latents:
        return "What it shows: every latent is in use, so the images may need more: train with more latents."
    return (
        f"What it shows: these images need {verdict.n_in_use} latents, for this model and this training. The others "
        f"carry next to nothing for the decoder. Train with {verdict.n_in_use}, or keep the latents in use: "
        'codes[:, regime.select("in-use")].'
    )
