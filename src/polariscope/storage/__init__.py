"""The files of a run, of a sizing search and of an estimator: their names, which no other room spells out."""

from __future__ import annotations

from pathlib import Path

FORMAT = 2
"""Of the files in a folder; a change that old readers cannot read raises it."""

RUN, MANIPULATION = "run", "manipulation"
"""Kinds of folders that something is trained in, as their settings have them; those that say nothing are runs."""

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

LINKS = "links"
"""Folder of a study with a link to each run, under its readable name."""

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
    """Where the model of a run, of a checkpoint or of an estimator is stored."""
    return Path(folder) / MODEL


def report_file(folder: str | Path, step: int | None = None) -> Path:
    """Where the report of a run is written; that of a checkpoint has a name of its own."""
    return Path(folder) / (REPORT if step is None else f"{Path(REPORT).stem}-step-{step}.html")


def readable_name(run: Path) -> str:
    """Return the name of a run: that of its folder, or that of its link if it is a run of a study.

    Folders of runs of studies are named by hashes; the study links to them under readable names.

    :param run: folder of a run, or a link to it.
    """
    if run.is_symlink():
        return run.name
    folder = run.resolve()
    links = folder.parent.parent / LINKS
    if links.is_dir():
        for link in sorted(links.iterdir()):
            if link.is_symlink() and link.resolve() == folder:
                return link.name
    return folder.name
