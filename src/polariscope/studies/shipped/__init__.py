"""Studies that come with polariscope: ``polariscope study list`` shows them."""

from __future__ import annotations

from pathlib import Path

from polariscope.core.errors import unknown
from polariscope.core.paths import user_path

FOLDER = Path(__file__).parent


def shipped() -> dict[str, Path]:
    """Return the files of the studies by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def find(study: str | Path) -> Path:
    """Return the file of a study.

    :param study: path of the file, or the name of a study that comes with polariscope.
    """
    path = user_path(study, "study")
    if path.suffix == ".toml" or path.is_file():
        return path  # a folder can have the name of a shipped study, whose runs it contains
    if str(study) not in shipped():
        raise unknown("study", str(study), shipped(), "A path to your own file ends in .toml.")
    return shipped()[str(study)]
