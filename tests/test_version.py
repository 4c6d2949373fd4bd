"""The version stands in one place; what repeats it must agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import polariscope

ROOT = Path(__file__).parents[1]


def citation() -> dict[str, str]:
    """The simple fields of CITATION.cff."""
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


def test_the_newest_section_of_the_changelog_is_dated_and_of_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    version, _, date = headings[0].partition(" – ")
    assert version == polariscope.__version__
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)
    assert citation()["date-released"] == date


def test_the_citation_is_of_this_version_and_licence():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation()["cff-version"] == "1.2.0"
    assert citation()["version"] == polariscope.__version__
    assert citation()["license"] == settings["license"]
    assert citation()["abstract"] == settings["description"]
