"""Where the templates of all pages are, and the filters they use."""

from __future__ import annotations

import jinja2

from polariscope.pages import words


def environment() -> jinja2.Environment:
    """Everything is escaped, and a name that is missing is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("polariscope", "pages/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": words.number, "percent": words.percent, "value": words.value_of}
    return made
