"""The page type: a title, a record and sections, rendered by one template to a self-contained HTML file."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from polariscope import __version__
from polariscope.analysis.code_view import Unit, html_in_units
from polariscope.analysis.regime.latent_types import COLOURS
from polariscope.core import files
from polariscope.core.text import percent, plural, readable
from polariscope.pages.formatting import value_of
from polariscope.pages.glossary import add_glossary


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of a page: a template and the values that it shows."""

    name: str
    """Id of its heading, which the navigation links to."""
    title: str
    """Text of the link in the navigation. If empty, there is no link."""
    template: str
    """File of the template."""
    view: Mapping[str, object]
    """Values that the template reads as ``view``."""
    block: str = ""
    """Block of the template that contains the section. If empty, the whole template is the section."""


@dataclasses.dataclass(frozen=True)
class Page:
    """A page about one record."""

    kind: str
    """Kind of page: "report", "size", "study" …"""
    name: str
    """Name of the run, search or study."""
    headline: str
    """First heading."""
    record: object
    """All results for the page; templates read it as ``record``."""
    sections: Sequence[Section]
    """Sections in their order."""
    title: str = ""
    """Title in the browser's tab; by default the headline."""
    lead: str = ""
    """First paragraph. If empty, there is none."""
    facts: Sequence[tuple[str, str]] = ()
    """Names and values below the first paragraph."""
    banner: Section | None = None
    """Section between the headline and the first paragraph."""
    context: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Values that all templates of the page read by name."""
    folders: Sequence[Path] = ()
    """Folders with templates besides ``pages/templates``."""
    explains_terms: bool = True
    """If True, terms of the glossary are explained. False for a page whose script writes text."""
    style: str = ""
    """File of additional CSS. If empty, there is none."""
    script: str = ""
    """File of the only script that the browser executes. If empty, there is none."""
    data: object = None
    """Values that the script reads as JSON, from the element ``data``."""
    unit: Unit = "latent"
    """Word of the sections for latents."""

    def render(self) -> str:
        """Return the page as HTML; equal pages are identical byte for byte."""
        templates = environment(*self.folders)
        script = _source_of(templates, self.script) if self.script else ""
        html = templates.get_template("page.html.j2").render(
            page=self,
            banner="" if self.banner is None else self._render_section(templates, self.banner),
            sections=[self._render_section(templates, section) for section in self.sections],
            colours=COLOURS,
            version=__version__,
            script=Markup(script),
            # The content security policy of the page allows this script only.
            script_hash=Markup(_hash_of(script)) if script else "",
            # "</script>" in a text would end the script element.
            data=Markup(json.dumps(self.data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")),
        )
        return add_glossary(html) if self.explains_terms else html

    def write(self, file: Path) -> Path:
        """Write the page atomically and return its path.

        :param file: path of the page.
        """
        files.write_text(file, self.render())
        return file

    def _render_section(self, templates: jinja2.Environment, section: Section) -> Markup:
        template = templates.get_template(section.template)
        names = {"record": self.record, **self.context, "view": section.view}
        if not section.block:
            html = template.render(names)
        else:
            # Only one block of the template is rendered, with the same names as a whole template.
            html = "".join(template.blocks[section.block](template.new_context(names)))
        return Markup(html_in_units(html.strip(), self.unit))


@functools.cache
def environment(*folders: Path) -> jinja2.Environment:
    """Return the Jinja environment of the templates; all values are escaped, and a missing name is an error.

    :param folders: folders with templates besides ``pages/templates``.
    """
    builtin = jinja2.PackageLoader("polariscope", "pages/templates")
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([builtin, jinja2.FileSystemLoader(folders)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": readable, "percent": percent, "plural": plural, "value": value_of}
    return made


def _source_of(templates: jinja2.Environment, file: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, file)[0]


def _hash_of(script: str) -> str:
    """Return the hash of a script for the content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
