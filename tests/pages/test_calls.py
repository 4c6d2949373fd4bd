"""The code that repeats a run gives the same run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from polariscope.data.sources import load_dataset
from polariscope.pages.calls import repeat_call
from polariscope.pages.record import ReportRecord, make_record
from polariscope.training.plan import plan


def test_the_code_to_repeat_a_run_gives_the_same_settings(
    image_record: ReportRecord, flat_record: ReportRecord, conditional_run: Path, headless_run: Path
) -> None:
    others = (make_record(run, n_samples=500) for run in (conditional_run, headless_run))
    for record in (image_record, flat_record, *others):
        repeated = repeat(record.settings, record.name)
        assert repeated["hash"] == record.settings["hash"]
        assert repeated["out"] == record.name


def repeat(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """The settings of the run that the code to repeat one would make."""
    repeated: dict[str, Any] = {}

    def train(data: Any, out: str, **options: Any) -> None:
        repeated.update(plan(data, **options).describe("cpu"), out=out)

    code = repeat_call(settings, name).replace("import polariscope as ps", "")
    exec(code, {"ps": SimpleNamespace(load_dataset=load_dataset, train=train)})
    return repeated


@pytest.mark.parametrize(
    "options",
    [{}, {"learning_rate": 1e-4, "adam_beta1": 0.9}, {"optimiser": "sgd"}, {"batch_norm": False}],
    ids=str,
)
def test_the_code_to_repeat_a_run_tells_apart_what_was_said_from_what_the_objective_brought(
    options: dict[str, Any],
) -> None:
    record = plan(load_dataset("sprites", image_size=16), "weak-gan", n_latents=5, **options).describe("cpu")
    assert repeat(record, "again")["hash"] == record["hash"]
