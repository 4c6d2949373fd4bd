"""A section is a file and its template; the folder is the list."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from polariscope.pages import sections
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report_page

MOONS = '''
    """How many moons the codes have."""

    from polariscope.pages.sections import AbstractSection, section


    @section("moons", title="Moons & stars", order=35)
    class MoonsSection(AbstractSection):
        """Moons."""

        def measure(self, subject):
            """As many as there are samples."""
            return subject.representation.n_samples if subject.run is not None else None

        def view(self, record):
            """The number twice."""
            return {"twice": 2 * self.part(record)}
'''
TEMPLATE = """
<section aria-labelledby="moons">
<h2 id="moons">Moons of {{ record.name }}</h2>
<p>{{ view.twice|value }} moons, {{ "<b>escaped</b>" }}</p>
</section>
"""


@pytest.fixture
def moons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two files in a folder that the package of sections reads as its own; nothing else is touched."""
    (tmp_path / "moons.py").write_text(textwrap.dedent(MOONS))
    (tmp_path / "moons.html.j2").write_text(TEMPLATE)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    monkeypatch.setattr(sections.family, "_members", dict(sections.family._members))
    monkeypatch.setattr(sections.family, "_traits", dict(sections.family._traits))
    monkeypatch.setattr(sections.family, "_read", False)
    yield tmp_path
    sys.modules.pop(f"{sections.__name__}.moons", None)
    vars(sections).pop("moons", None)


def headings(page: str) -> list[str]:
    return re.findall(r'<h2 id="([^"]+)"', page)


@pytest.mark.usefixtures("moons", "undrawn")
def test_two_files_are_a_section_in_its_order_with_what_it_measured(flat_run: Path) -> None:
    record = make_record(flat_run, n_samples=1000)
    assert record.parts["moons"] == 1000
    page = report_page(record).render()
    names = headings(page)
    assert names[names.index("moons") - 1 : names.index("moons") + 2] == [
        "course",
        "moons",
        "distributions",
    ]
    assert '<a href="#moons">Moons &amp; stars</a>' in page
    assert "<p>2,000 moons, &lt;b&gt;escaped&lt;/b&gt;</p>" in page


@pytest.mark.usefixtures("moons", "undrawn")
def test_a_section_without_its_part_is_left_out(flat_record: ReportRecord) -> None:
    page = report_page(flat_record).render()  # was made before
    assert "moons" not in headings(page)
    assert "Moons" not in page


def test_every_section_has_a_template_beside_it_and_an_order_of_its_own() -> None:
    files = {
        path.name.removesuffix(sections.TEMPLATE) for path in Path(sections.__file__).parent.glob("*.j2")
    }
    assert files == {name.replace("-", "_") for name in sections.family}
    orders = [sections.family.traits(name)["order"] for name in sections.family]
    assert len(set(orders)) == len(orders)


@pytest.mark.usefixtures("undrawn")
def test_sections_are_in_their_order_and_the_navigation_leads_to_each(flat_record: ReportRecord) -> None:
    page = report_page(flat_record).render()
    shown = [name for name, one in sections.in_order().items() if one.applies(flat_record)]
    assert headings(page) == ["glance", *shown, "settings"]
    assert re.findall(r'<a href="#([^"]+)"', page) == [*shown, "settings"]
    assert shown[:2] == ["latents", "decoder"]
