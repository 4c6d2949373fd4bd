"""File names of runs, sizing searches and estimators; no other package contains these names."""

from __future__ import annotations

from pathlib import Path

from polariscope.core.paths import user_path

FORMAT = 2
"""Version of the file format; it is raised by changes that earlier versions cannot read."""

RUN, MANIPULATION = "run", "manipulation"
"""Kinds of training folders, as in their settings; folders without a kind are runs."""

SETTINGS = "settings.json"
STUDY = "study.json"
LOG = "log.jsonl"
MODEL = "model.safetensors"
CHECKPOINTS = "checkpoints"
STATE = "state.safetensors"
REPORT = "report.html"
TENSORBOARD = "tensorboard"
LOCK = ".lock"
ARTEFACT_LOCK = ".artefacts.lock"
LAST_USED = ".asked.json"
LEASE = ".lease-"
"""Prefix of lease files, which name the process that can write to a folder, by fencing number."""
CLAIM = ".claim-"
"""Prefix of leases that have no number yet."""
CLOCK = ".clock"
"""File that is touched to read the clock of the disk."""
FAILURE = "failure.json"
GIVEN = "given.json"
TIMING = "timing.json"
ASIDE = ".damaged"
"""Suffix of damaged files that were set aside before they were computed again."""

JOURNAL = ".jsonl"
"""Suffix of journals, which store the results of many checkpoints, one per line."""

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
"""Prefix of tables of many searches."""

SIMILARITY = "similarity.json"
SIMILARITY_PICTURE = "similarity.png"
ESTIMATOR = "estimator.safetensors"

LINKS = "links"
"""Folder of a study with a link to each run, under its readable name."""

NAMES = (
    *(SETTINGS, LOG, MODEL, STATE, REPORT, RECIPE, SIZE, SIZES, SIZE_PAGE, SIZE_PICTURE),
    *(POINTS, CURVE, CURVE_BANDS, CURVE_MODELS, CURVE_PICTURE),
    *(SIMILARITY, SIMILARITY_PICTURE, ESTIMATOR, ARTEFACT_LOCK, FAILURE, GIVEN, TIMING),
)
"""Names that ``tests/test_shelf.py`` searches for in other packages."""


def is_run(folder: str | Path) -> bool:
    """Return True if a run was begun in this folder."""
    return (user_path(folder) / SETTINGS).is_file()


def is_search(folder: str | Path) -> bool:
    """Return True if this folder contains a sizing search, finished or not."""
    folder = user_path(folder)
    return any((folder / name).is_file() for name in (SIZE, SIZES)) or any(folder.glob(f"seed-*/{RECIPE}"))


def is_study(folder: str | Path) -> bool:
    """Return True if this folder is that of a study."""
    return (user_path(folder) / STUDY).is_file()


def model_file(folder: str | Path) -> Path:
    """Return the path of the model of a run, of a checkpoint or of an estimator."""
    return user_path(folder) / MODEL


def report_file(folder: str | Path, step: int | None = None) -> Path:
    """Return the path of the report of a run, or of one of its checkpoints."""
    return user_path(folder) / (REPORT if step is None else f"{Path(REPORT).stem}-step-{step}.html")


def readable_name(run: Path) -> str:
    """Return the name of a run: that of its folder, or that of its link if it is a run of a study.

    Run folders of studies are named by hashes; the study links to them under readable names.

    :param run: run folder, or a link to it.
    """
    if run.is_symlink():
        return run.name
    folder = run.resolve()
    # Runs of a study are in runs/ and the links in links/, side by side.
    links = folder.parent.parent / LINKS
    if links.is_dir():
        for link in sorted(links.iterdir()):
            if link.is_symlink() and link.resolve() == folder:
                return link.name
    return folder.name
