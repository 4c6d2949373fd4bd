"""Rows of tables: the runs of a study, or any runs, with their settings and results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.options import completed
from polariscope.data.chain import in_words
from polariscope.runs.run import Run
from polariscope.studies.analyses import Cell, Columns
from polariscope.studies.analyses import family as analyses
from polariscope.studies.design import word
from polariscope.studies.table import Table
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from polariscope.studies.ledger import Entry, Ledger
    from polariscope.studies.planned_runs import StudyRun


def study_table(ledger: Ledger, *, details: bool = False) -> Table:
    """Return one row for each run of a study within its budget, or for each model if checkpoints are analysed.

    :param ledger: ledger of the study.
    :param details: (default False) include columns by type of latent, by factor and by number of samples.
    """
    study, rows, discarded = ledger.study, [], []
    extra = _over_cells(ledger)
    once = [
        (task, task.analysis.columns(task.search))
        for task in ledger.once_tasks()
        if task.analysis.is_kept(task.search)
    ]
    settings = tuple(ledger.runs[0].varies)
    for entry in ledger.entries():
        if entry.kind == "diverged" and study.diverged == "discard":
            discarded.append(entry.run.name)
            continue
        common = settings_of(entry.run)
        for task, cells in once:
            # A task is shared by runs that differ in other settings, such as the seed.
            if (
                task.data == entry.run.point.data
                and task.settings.items() <= entry.run.point.settings.items()
            ):
                common |= cells
        for step, cells in _models_of(ledger, entry, details):
            rows.append(
                {
                    "run": entry.run.name,
                    "state": entry.state,
                    **({"step": step} if study.checkpoints else {}),
                    **common,
                    **cells,
                    # Results over seeds are those of finished models.
                    **(extra.get(entry.run.hash, {}) if step == entry.step else {}),
                    "message": entry.message or None,
                    "folder": str(entry.run.folder),
                }
            )
    notes = []
    if discarded:
        notes.append(
            f"Left out, since their training diverged (diverged is set to discard): {', '.join(discarded)}."
        )
    return Table(rows, settings, notes)


def _models_of(ledger: Ledger, entry: Entry, details: bool) -> Iterable[tuple[int, Columns]]:
    """Return the models of a run that have a row, by step; an unfinished run has one row with the results so far."""
    if entry.state != "done":
        # A run that has not begun, or is damaged, has a row without results.
        with contextlib.suppress(PolariscopeError, OSError):
            opened = ledger.opened(entry.run)
            return [(entry.step, {**log_cells(opened.log(), None), **time_cells(opened)})]
        return [(entry.step, {})]
    opened = ledger.opened(entry.run)
    log = opened.log()
    rows = []
    for step in ledger.steps_of(opened):
        cells: Columns = {}
        for analysis in ledger.study.analyses("each").values():
            measured = analysis.measure(opened, step)
            cells |= {**analysis.columns(measured), **(analysis.details(measured) if details else {})}
        # If the run was diagnosed, counts are those of the diagnosis, not of the few samples of the log.
        logged = log_cells(log, step) if step else log_cells(opened.log_until(), None)
        rows.append((step or entry.step, {**logged, **cells, **time_cells(opened)}))
    return rows


def _over_cells(ledger: Ledger) -> dict[str, Columns]:
    """Return the results over several runs, by the hash of each run."""
    cells: dict[str, Columns] = {}
    for task in ledger.over_tasks():
        result = ledger.over_result(task)
        # Without a result there are no rows to assign.
        for run, row in zip(task.runs, (result or {}).get("rows", ()), strict=False):
            cells[run.hash] = {**cells.get(run.hash, {}), **row}
    return cells


def log_cells(log: Sequence[Mapping[str, object]], step: int | None) -> Columns:
    """Return the cells of the last line of a log, or of a step: loss, terms, validation, and counts of types.

    :param log: lines of the log.
    :param step: (default None: the last) a step.
    """
    lines: list[Any] = [line for line in log if step is None or line["step"] <= step]  # type: ignore[operator]
    if not lines:
        return {}
    validated = [line["validation"] for line in lines if "validation" in line]
    return line_cells({**lines[-1], "validation": validated[-1] if validated else {}})


def line_cells(line: Mapping[str, Any]) -> Columns:
    """Return the cells of one line of a log: loss, terms, validation if there is one, and counts of types.

    :param line: line of the log.
    """
    return {
        "loss": line["loss"],
        **{f"loss.{name}": value for name, value in line["terms"].items()},
        **{f"validation.{name}": value for name, value in line.get("validation", {}).items()},
        **{kind: line[kind] for kind in ("active", "mixed", "passive")},
    }


def settings_of(run: StudyRun) -> Columns:
    """Return the settings that vary in a study, with the values of one run.

    :param run: a run of the study.
    """
    return {name: _cell(value) for name, value in run.varies.items()}


def time_cells(run: Run) -> Columns:
    """Return the total seconds of a run, and those of its training.

    :param run: a run of a study; times of other runs are not recorded.
    """
    seconds = run.folder.seconds()
    if not seconds:
        return {}
    return {"seconds": round(sum(seconds.values()), 3), "seconds.train": seconds.get("train")}


def runs_table(folders: Sequence[str | Path], step: int | None = None) -> Table:
    """Return a table of any runs: the settings that differ, their loss, and the newest result of each kind.

    :param folders: run folders.
    :param step: (default None: the finished models) step of the checkpoints.
    """
    opened = [Run(folder, read_only=True) for folder in folders]
    if not opened:
        raise InputError("folders", "name at least one run")
    axes = [_axes(run) for run in opened]
    names = dict.fromkeys(name for axis in axes for name in axis if name != "seed")
    # repr, because values can be lists or tables, which are not hashable.
    varying = [name for name in names if len({repr(axis.get(name)) for axis in axes}) > 1]
    settings = (*varying, "seed")
    rows = []
    for folder, run, axis in zip(folders, opened, axes, strict=True):
        state = "done" if run.is_finished else "unfinished" if run.folder.diverged_at is None else "diverged"
        cells: Columns = {
            "run": str(folder),
            "state": state,
            **{name: _cell(axis.get(name)) for name in settings},
        }
        cells |= log_cells(run.log_until(step), None)
        if run.is_finished or step is not None:
            cells |= _newest(run, step)
        else:
            cells["training"] = run.training().code
        rows.append({**cells, **time_cells(run)})
    return Table(rows, settings)


def _axes(run: Run) -> dict[str, object]:
    """Return the settings of a run in a flat dictionary."""
    record = run.settings
    data = {
        f"data.{key}": in_words(value) if key == "variants" else value
        for key, value in record["data"].items()
        if key not in ("name", "fingerprint", "root_fingerprint", "shape")
    }
    options = {key: value for key, value in record["objective"].items() if key != "name"}
    model = {key: value for key, value in record["model"].items() if not isinstance(value, dict)}
    parts = {part: value["name"] for part, value in record["model"].items() if isinstance(value, dict)}
    options_of_parts = {
        f"{part}.{key}": option
        for part, value in record["model"].items()
        if isinstance(value, dict)
        for key, option in value.items()
        if key != "name"
    }
    names = {"data": record["data"]["name"], "objective": record["objective"]["name"]}
    # Runs of earlier versions lack newer options.
    training = completed(TrainSettings, record["training"])
    return {**names, **data, **options, **parts, **options_of_parts, **model, **training}


def _newest(run: Run, step: int | None) -> Columns:
    """Return the newest result of each kind."""
    cells: Columns = {}
    for name in analyses:
        analysis = analyses[name]
        if analyses.traits(name)["scope"] != "each" or analysis.record is None:
            continue
        for settings in analysis.kept_apart:
            artefact = run.newest(analysis.kind, step, **settings)
            content = None if artefact is None else run.read(artefact)
            if artefact is not None and content is not None:
                measured = analysis.record.from_dict(content)
                cells |= analysis.of_settings(artefact.key.settings).columns(measured)
    return cells


def _cell(value: object) -> Cell:
    """Convert the value of a setting to a cell of a table."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return word(value)
