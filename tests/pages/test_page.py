"""The page type: what every page has, whatever its record and sections are."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import jinja2
import pytest

from polariscope.core import files
from polariscope.pages.page import Page, Section

MOONS = """
{% block moons %}
<section><h2 id="moons">Moons</h2><p>{{ view.count }} of {{ record.name }}, {{ colour }}</p></section>
{% endblock %}
{% block stars %}
<section><h2 id="stars">Stars</h2><p>{{ view.missing }}</p></section>
{% endblock %}
"""
HOSTILE = "<script>alert('moon')</script>"


class Planet:
    """A record."""

    name = HOSTILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "moons.html.j2").write_text(MOONS)
    (tmp_path / "whole.html.j2").write_text('<section><h2 id="whole">Whole</h2>{{ view.count }}</section>')
    (tmp_path / "moons.css").write_text(".moon { color: silver }")
    (tmp_path / "moons.js").write_text("document.title = 'moons';")
    return tmp_path


def page(folder: Path, *sections: Section, **options: object) -> Page:
    fields: dict[str, object] = {"context": {"colour": "grey"}, "folders": (folder,), **options}
    return Page("planet", "mars", "Two moons", Planet(), sections, **fields)  # type: ignore[arg-type]


def moons(count: object = 2) -> Section:
    return Section("moons", "Moons & more", "moons.html.j2", {"count": count}, "moons")


def test_a_section_is_a_block_or_a_whole_template_and_reads_view_record_and_context(folder: Path) -> None:
    html = page(folder, moons(), Section("whole", "", "whole.html.j2", {"count": 3})).render()
    assert html.index('id="moons">Moons</h2><p>2 of') < html.index('id="whole">Whole</h2>3')
    assert "&lt;script&gt;alert(&#39;moon&#39;)&lt;/script&gt;, grey</p>" in html
    assert "Stars" not in html


def test_the_navigation_links_to_the_sections_that_have_a_title(folder: Path) -> None:
    html = page(folder, moons(), Section("whole", "", "whole.html.j2", {"count": 3})).render()
    assert re.findall(r'<a href="#([^"]+)">([^<]+)</a>', html) == [("moons", "Moons &amp; more")]


def test_everything_in_the_header_is_escaped(folder: Path) -> None:
    html = page(folder, moons(HOSTILE), lead=HOSTILE, facts=[(HOSTILE, HOSTILE)], title=HOSTILE).render()
    assert HOSTILE not in html
    assert html.count("&lt;script&gt;") == 6  # title, lead, fact twice, count and name of the record
    assert "<title>mars: &lt;script&gt;" in html
    assert '<p class="eyebrow">Polariscope planet · <strong>mars</strong></p>\n<h1>Two moons</h1>' in html


def test_a_value_that_the_template_needs_must_be_there(folder: Path) -> None:
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        page(folder, Section("stars", "Stars", "moons.html.j2", {}, "stars")).render()


def test_without_a_script_none_is_allowed(folder: Path) -> None:
    html = page(folder, moons()).render()
    assert "default-src 'none'" in html
    assert "script" not in re.sub(r"&lt;/?script", "", html)


def test_only_its_own_script_is_allowed_and_its_data_cannot_end_it(folder: Path) -> None:
    html = page(folder, moons(), script="moons.js", style="moons.css", data={"end": "</script>"}).render()
    digest = base64.b64encode(hashlib.sha256(b"document.title = 'moons';").digest()).decode()
    assert f"script-src 'sha256-{digest}';" in html
    assert "<script>document.title = 'moons';</script>" in html
    assert '{"end": "\\u003c/script>"}' in html
    assert ".moon { color: silver }" in html


def test_terms_are_explained_unless_the_page_says_no(folder: Path) -> None:
    assert '<a class="term" href="#word-latent"' in page(folder, moons("a latent")).render()
    assert 'class="term"' not in page(folder, moons("a latent"), explains_terms=False).render()


def test_a_page_that_cannot_be_rendered_leaves_the_old_one(folder: Path) -> None:
    file = page(folder, moons()).write(folder / "page.html")
    before = file.read_bytes()
    assert before == page(folder, moons()).render().encode()
    with pytest.raises(jinja2.UndefinedError):
        page(folder, Section("stars", "", "moons.html.j2", {}, "stars")).write(file)
    assert file.read_bytes() == before


def test_a_page_is_written_atomically(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr(files, "write_text", lambda file, text: written.append(file))
    page(folder, moons()).write(folder / "page.html")
    assert written == [folder / "page.html"]
    assert not (folder / "page.html").exists()
