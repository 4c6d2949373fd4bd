"""``polariscope demo``: train, diagnose and report on a small built-in dataset."""

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
"""Upright squares with three factors: two coordinates and the size. docs/in_use.md shows the answer for each seed."""
DEMO_LATENTS = 10
"""Number of latents, more than the data need."""
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
"""Training settings."""


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
    """Run a two-minute demo: train, diagnose and report.

    The demo trains a VAE on small images, shows which latents it uses, and writes a report.
    """
    from polariscope.cli.console import quoted, say, say_next
    from polariscope.cli.diagnosis_output import print_latents, print_notes
    from polariscope.cli.report import say_report
    from polariscope.cli.train import run_and_print
    from polariscope.data.sources import load_dataset
    from polariscope.pages.report import report
    from polariscope.runs.run import Run

    data = load_dataset(DEMO_DATASET, variants=DEMO_VARIANT, **DEMO_DATASET_OPTIONS)
    out, settings = options.out, {**DEMO_SETTINGS, "steps": options.steps, "n_latents": DEMO_LATENTS}
    say(
        f"A VAE encodes each observation as a few numbers, its latents. The data are {len(data):,} images of "
        f"{data.shape[1]}×{data.shape[2]} pixels:\na white square of one of six sizes on a black background.\n\n"
        f"How many latents do they need? The demo trains a VAE with {DEMO_LATENTS} and shows which ones it uses.",
        errors=True,
    )
    run_and_print(data, out, settings)
    regime = Run(out).regime()
    print_latents(regime, verdict=False)
    print_notes(regime)
    say_report(report(out))
    say(f"\n{conclusion(regime.verdict)}")
    images = f"{DEMO_DATASET} --image-size {DEMO_DATASET_OPTIONS['image_size']} --variant {DEMO_VARIANT}"
    same = f"polariscope train {images} --steps {settings['steps']} --learning-rate {settings['learning_rate']:g}"
    say_next(
        (f"{same} --latents {max(1, regime.verdict.n_in_use)}", "train a VAE of that size"),
        (f"{same} --objective beta --beta 8", "weight the KL more: fewer latents in use"),
        (f"polariscope diagnose {quoted(out)} --details", "show the evidence for the types"),
        (f"polariscope size {images}", "search for the number of latents (FONDUE)"),
        ("polariscope list objectives", "list all objectives"),
        ("polariscope train YOUR.csv", "use your data: a table, .npz arrays, a folder of images"),
    )


def conclusion(verdict: Verdict) -> str:
    """Return the conclusion from the verdict on the demo's model.

    :param verdict: the verdict.
    """
    if not verdict.allows_advice:
        return f"Conclusion: {verdict.state} The number of latents in use can still change."
    if verdict.n_in_use == verdict.n_latents:
        return "Conclusion: every latent is in use, so the images might need more. Train with more latents."
    return (
        f"Conclusion: these images need {verdict.n_in_use} latents, for this model and this training. The decoder "
        f"hardly uses the others. Train with {verdict.n_in_use} latents, or select those in use: "
        'codes[:, regime.select("in-use")].'
    )
