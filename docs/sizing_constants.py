"""Writes the table of constants in docs/sizing.md from the settings of FONDUE: ``python docs/sizing_constants.py``."""

from __future__ import annotations

from pathlib import Path

from polariscope.core import files
from polariscope.sizing.fondue_settings import constants_table

TARGET = Path(__file__).with_name("sizing.md")
BEGIN, END = (
    "<!-- constants: written by `make docs` from `sizing/fondue_settings.py` -->",
    "<!-- end of constants -->",
)


def page() -> str:
    """Return the page with the present table."""
    before, _, rest = TARGET.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{constants_table()}\n{END}{after}"


if __name__ == "__main__":
    files.write_text(TARGET, page())
    print(f"wrote {TARGET}")
