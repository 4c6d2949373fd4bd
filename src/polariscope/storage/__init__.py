"""The files of a run, of a sizing search and of an estimator: their names, which no other room spells out."""

from __future__ import annotations

from pathlib import Path

FORMAT = 2
"""Of the files in a folder; a change that old readers cannot read raises it."""

SETTINGS = "settings.json"
LOG = "log.jsonl"
MODEL = "model.safetensors"
CHECKPOINTS = "checkpoints"
STATE = "state.safetensors"
REPORT = "report.html"
TENSORBOARD = "tensorboard"
LOCK = ".lock"
ARTEFACT_LOCK = ".artefacts.lock"
ASKED = ".asked.json"
LEASE = ".lease-"
"""Begins the names of leases: who may write into a folder, by fencing number."""
CLAIM = ".claim-"
"""Begins the names of leases that have no number yet."""
CLOCK = ".clock"
"""Touched to learn the time of the disk."""
FAILURE = "failure.json"
TIMING = "timing.json"
ASIDE = ".damaged"
"""End of the names of files that did not match their hash when they were computed again."""

JOURNAL = ".jsonl"
"""End of the names of journals: what was measured of many checkpoints, a line for each."""

RECIPE = "recipe.json"
SIZE = "size.json"
SIZES = "sizes.json"
SIZE_PAGE = "size.html"
SIZE_PICTURE = "size.png"
POINTS = "points.json"
CURVE = "curve.json"
CURVE_BANDS = "curve.csv"
CURVE_MODELS = "curve-models.csv"
CURVE_PICTURE = "curve.svg"
SIZE_TABLE = "size-table"
"""Begins the names of tables of many searches."""

SIMILARITY = "similarity.json"
SIMILARITY_PICTURE = "similarity.png"
ESTIMATOR = "estimator.safetensors"

NAMES = (
    *(SETTINGS, LOG, MODEL, STATE, REPORT, RECIPE, SIZE, SIZES, SIZE_PAGE, SIZE_PICTURE),
    *(POINTS, CURVE, CURVE_BANDS, CURVE_MODELS, CURVE_PICTURE),
    *(SIMILARITY, SIMILARITY_PICTURE, ESTIMATOR, ARTEFACT_LOCK, FAILURE, TIMING),
)
"""What ``tests/test_shelf.py`` looks for in the other rooms."""


def is_run(folder: str | Path) -> bool:
    """Whether a run was begun in this folder."""
    return (Path(folder) / SETTINGS).is_file()


def is_search(folder: str | Path) -> bool:
    """Whether this folder holds a sizing search, finished or not."""
    folder = Path(folder)
    return any((folder / name).is_file() for name in (SIZE, SIZES)) or any(folder.glob(f"seed-*/{RECIPE}"))


def model_file(folder: str | Path) -> Path:
    """Where the model of a run, of a checkpoint or of an estimator is kept."""
    return Path(folder) / MODEL


def report_file(folder: str | Path, step: int | None = None) -> Path:
    """Where the report of a run is written; that of a checkpoint has a name of its own."""
    return Path(folder) / (REPORT if step is None else f"{Path(REPORT).stem}-step-{step}.html")
