"""The version is defined in one place; every copy of it must agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import polariscope

ROOT = Path(__file__).parents[1]
UNRELEASED = "Unreleased"


def citation() -> dict[str, str]:
    """Return the simple fields of CITATION.cff."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return dict(re.findall(r'^([\w-]+): "?([^"\n]+)"?$', text, flags=re.MULTILINE))


def test_the_build_takes_the_version_from_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in settings["project"]
    assert settings["project"]["dynamic"] == ["version"]
    place = ROOT / settings["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.+)"$', place.read_text(encoding="utf-8"), flags=re.MULTILINE) == [
        polariscope.__version__
    ]


def released() -> tuple[str, str]:
    """Return version and date of the newest release in the changelog."""
    version, _, date = next(heading for heading in headings() if heading != UNRELEASED).partition(" – ")
    return version, date


def headings() -> list[str]:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## (.+)$", text, flags=re.MULTILINE)


def test_the_changelog_begins_with_this_version_or_while_developing_with_what_is_not_released():
    version, date = released()
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)
    numbers, is_developed, _ = polariscope.__version__.partition(".dev")
    assert (headings()[0] == UNRELEASED) == bool(is_developed)
    if is_developed:
        assert tuple(map(int, numbers.split("."))) > tuple(map(int, version.split(".")))
    else:
        assert numbers == version


def test_the_citation_is_of_the_newest_release_and_of_this_licence():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation()["cff-version"] == "1.2.0"
    assert (citation()["version"], citation()["date-released"]) == released()
    assert citation()["license"] == settings["license"]
    assert citation()["abstract"] == settings["description"]
