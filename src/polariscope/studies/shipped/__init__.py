"""Studies that come with polariscope: ``polariscope study list`` shows them."""

from __future__ import annotations

from pathlib import Path

from polariscope.core.errors import unknown

FOLDER = Path(__file__).parent


def shipped() -> dict[str, Path]:
    """The files of the studies by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def find(study: str | Path) -> Path:
    """The file of a study: a path, or the name of one that comes with polariscope.

    :param study: what was given.
    """
    path = Path(study)
    if path.suffix == ".toml" or path.is_file():
        return path  # a folder may be that of a shipped study's runs, which has its name
    if str(study) not in shipped():
        raise unknown("study", str(study), shipped(), "A path of your own ends in .toml.")
    return shipped()[str(study)]
