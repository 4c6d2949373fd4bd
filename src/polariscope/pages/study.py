"""Page of a study: interactive plots and table of the runs, failures, and the design."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polariscope.core.records import to_plain
from polariscope.core.text import assigned, cell_text, interval, plural
from polariscope.pages.formatting import value_of
from polariscope.pages.page import Page, Section
from polariscope.storage import report_file
from polariscope.studies.ledger import STATES, Ledger
from polariscope.studies.over_seeds import Aggregate
from polariscope.studies.table import Table
from polariscope.studies.table_rows import study_table

TEMPLATE = "study.html.j2"
MORE = (".low", ".high", ".error", ".random")
"""Endings of the names of columns that are hidden by default."""
LAST = ("folder", "message", "seconds.train")
FIRST_CHOICE = ("mig", "dci", "tc.mean", "kl", "loss")
"""Columns to plot first, in order of preference."""


@dataclasses.dataclass(frozen=True)
class StudyRecord:
    """Results that the page of a study shows."""

    name: str
    design: Mapping[str, object]
    """The design of the study, as plain JSON values."""
    counts: Mapping[str, int]
    """Number of runs in each state."""
    table: Table
    aggregates: tuple[Aggregate, ...]
    failures: tuple[tuple[str, str, str], ...]
    """Run, kind and message of each failure."""
    reports: Mapping[str, str]
    """Paths of the reports by name of the run, relative to the page."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on runs and columns that are not in the table."""
        return self.table.notes

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the header."""
        seeds: Any = self.design["seeds"]
        varying = [name for name in self.table.settings if name != "seed"]
        return [
            ("data", _names(self.design["data"])),
            ("objectives", _names(self.design["objective"])),
            ("seeds", str(len(seeds))),
            ("varies", ", ".join(varying) or "the seed only"),
        ]


def study_record(ledger: Ledger, page: Path) -> StudyRecord:
    """Collect the results that the page of a study shows.

    :param ledger: ledger of the study.
    :param page: path of the page, which links are relative to.
    """
    table, entries = study_table(ledger), ledger.entries()
    reports = {
        run.name: os.path.relpath(report_file(run.folder).resolve(), page.resolve().parent)
        for run in ledger.runs
        if report_file(run.folder).is_file()
    }
    return StudyRecord(
        name=ledger.study.name,
        design=ledger.study.to_dict(),
        counts={state: sum(entry.state == state for entry in entries) for state in STATES},
        table=table,
        aggregates=tuple(table.aggregate()),
        failures=tuple((e.run.name, e.kind, e.message) for e in entries if e.state == "failed"),
        reports=reports,
    )


def write_study_page(ledger: Ledger, out: Path | None = None) -> Path:
    """Write one self-contained page, and return its path.

    :param ledger: ledger of the study.
    :param out: (default: in the study's folder) path of the page.
    """
    page = ledger.page if out is None else out
    return study_page(study_record(ledger, page)).write(page)


def study_page(record: StudyRecord) -> Page:
    """Return the page of a study.

    :param record: the results.
    """
    table, aggregates = record.table, [_cells_of(aggregate) for aggregate in record.aggregates]
    classes = {name: _classes(table, name) for name in table.columns}
    sections = [
        Section(
            "runs",
            "Runs",
            TEMPLATE,
            {
                "columns": [{"name": name, "classes": names} for name, names in classes.items()],
                "rows": [_cells(row, classes, record.reports) for row in table.rows],
            },
            "runs",
        )
    ]
    if table.measured:
        sections.insert(0, Section("plots", "Plots", TEMPLATE, _plots_view(table, aggregates), "plots"))
    if record.failures:
        names = ("name", "kind", "message")
        failures = [dict(zip(names, failure, strict=True)) for failure in record.failures]
        sections.append(Section("failed", "Failed", TEMPLATE, {"failures": failures}, "failed"))
    design = {"groups": _groups(record.design), "repeat": _repeat(record)}
    sections.append(Section("design", "Design", TEMPLATE, design, "design"))
    return Page(
        kind="study",
        name=record.name,
        headline=_headline(record.counts),
        facts=record.facts,
        record=record,
        sections=sections,
        # The script of the page writes text, which the glossary would not reach.
        explains_terms=False,
        style="study.css",
        script="study.js",
        data={
            "columns": table.columns,
            "settings": list(table.settings),
            "rows": [
                {name: _plain(cell) for name, cell in row.items() if cell is not None} for row in table.rows
            ],
            "aggregates": aggregates,
        },
    )


def _plots_view(table: Table, aggregates: list[dict[str, object]]) -> dict[str, Any]:
    """Return the choices of the plot, and those that are selected first."""
    measured = table.measured
    varying = [name for name in table.settings if name != "seed"]
    numeric = [name for name in varying if all(isinstance(row.get(name), int | float) for row in table.rows)]
    first = next(iter([*numeric, *varying]), "seed")
    return {
        "measured": measured,
        "settings": list(table.settings),
        "across": [*table.settings, *measured],
        "start": {
            "y": next((name for name in FIRST_CHOICE if name in measured), measured[0]),
            "x": first,
            "colour": next((name for name in varying if name != first), ""),
        },
        "aggregates": aggregates,
    }


def _headline(counts: Mapping[str, int]) -> str:
    """Return the number of runs, in all and by state.

    >>> _headline({"waiting": 0, "running": 0, "done": 4, "failed": 0})
    '4 runs, all done'
    >>> _headline({"waiting": 1, "running": 0, "done": 3, "failed": 0})
    '4 runs: 1 waiting, 3 done'
    """
    total = sum(counts.values())
    runs = plural(total, "run")
    if counts["done"] == total:
        return f"{runs}, all done" if total != 1 else f"{runs}, done"
    return f"{runs}: {', '.join(f'{count:,} {state}' for state, count in counts.items() if count)}"


def _classes(table: Table, name: str) -> str:
    """Return the CSS classes of a column: text is aligned to the left, and secondary columns are hidden."""
    is_numeric = all(isinstance(row.get(name), int | float | None) for row in table.rows)
    hidden = name.endswith(MORE) or name in LAST or name.startswith("validation.")
    return " ".join([*([] if is_numeric else ["left"]), *(["more"] if hidden else [])])


def _cells(
    row: Mapping[str, object], classes: Mapping[str, str], reports: Mapping[str, str]
) -> list[dict[str, str]]:
    return [
        {
            "text": cell_text(cell),
            "classes": classes[name],
            "link": reports.get(str(cell), "") if name == "run" else "",
        }
        for name, cell in row.items()
    ]


def _plain(cell: object) -> object:
    """Return a cell for JSON; infinity and NaN become None, because they cannot be drawn."""
    # inf − inf and NaN − NaN are NaN, which is not equal to 0.
    return None if isinstance(cell, float) and cell - cell != 0 else cell


def _cells_of(aggregate: Aggregate) -> dict[str, object]:
    return {
        "settings": assigned(aggregate.settings) or "all",
        "column": aggregate.column,
        "n": aggregate.n,
        "mean": cell_text(aggregate.mean),
        "sd": cell_text(aggregate.sd),
        "t": interval(aggregate.t, between=" to "),
        "bootstrap": interval(aggregate.bootstrap, between=" to "),
        "lowest": aggregate.lowest,
        "median": aggregate.median,
        "highest": aggregate.highest,
    }


def _names(entries: Any) -> str:
    return ", ".join(dict.fromkeys(entry["name"] for entry in entries))


def _groups(design: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the design as titled lists of names and values."""
    tables = [(part, entry) for part in ("data", "objective", "zipped", "listed") for entry in design[part]]
    tables += [(part, design[part]) for part in ("settings", "grid", "each", "once", "over", "budget")]
    rest = {name: design[name] for name in ("seeds", "diverged", "checkpoints", "device", "threads")}
    return [(part, _entries(table)) for part, table in [*tables, ("study", rest)] if table]


def _entries(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _text(value)) for key, value in table.items()]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items()) or "defaults"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return value_of(value)


def _repeat(record: StudyRecord) -> str:
    """Return Python code that repeats the study."""
    fields = {
        name: value for name, value in to_plain(record.design).items() if value not in ({}, [], None, "")
    }
    fields.pop("runs")
    lines = [f"    {name}={value!r}," for name, value in fields.items()]
    imports = any("import" in model for model in fields.get("models", ()))
    call = "study.run(workers=2, allow_import=True)" if imports else "study.run(workers=2)"
    return "\n".join(["import polariscope as ps", "", "study = ps.Study(", *lines, ")", call])
