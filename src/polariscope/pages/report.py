"""Report on a run, a model or codes: a self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from polariscope.analysis.code_view import Per, in_units
from polariscope.analysis.regime.rule import POLARISED
from polariscope.analysis.regime.sentences import stability
from polariscope.analysis.representation import Representation
from polariscope.core.errors import Argument, InputError
from polariscope.core.paths import existing_path, user_path
from polariscope.core.text import percent, readable
from polariscope.data.data_like import DataLike
from polariscope.models.protocol import AbstractModel
from polariscope.pages import sections
from polariscope.pages.calls import commands, repeat_call
from polariscope.pages.explanation import explanation, headline, meanings
from polariscope.pages.formatting import value_of
from polariscope.pages.page import Page, Section
from polariscope.pages.record import Newest, ReportRecord, make_record, record_of_codes, record_of_model
from polariscope.pages.sections.training import History
from polariscope.pages.settings_groups import settings_groups
from polariscope.runs.run import Run
from polariscope.runs.run_like import RunLike
from polariscope.storage import is_run, report_file
from polariscope.storage.outputs import check_output

TEMPLATE = "report.html.j2"


def report_page(record: ReportRecord) -> Page:
    """Return the page of a run, a model or codes.

    :param record: all results.
    """
    regime, settings = record.regime, record.settings
    glance = {
        "cards": _cards(record),
        "meanings": meanings(regime),
        "stability": stability(regime) if record.has_rate else "",
    }
    shown = [Section("glance", "", TEMPLATE, glance, "glance")]
    shown += [
        Section(
            name,
            in_units(sections.family.traits(name)["title"], regime.unit),
            sections.template_of(name),
            section.view(record),
        )
        for name, section in sections.in_order().items()
        if section.applies(record)
    ]
    if settings is not None:
        view = {"groups": _groups(record, settings), "repeat": repeat_call(settings, record.name)}
        shown.append(Section("settings", "Settings", TEMPLATE, view, "settings"))
    return Page(
        kind="report",
        name=record.name,
        headline=headline(regime),
        lead=explanation(regime, record.has_rate, record.parts.get("size")),
        facts=_facts(record),
        record=record,
        sections=shown,
        banner=Section("strip", "", TEMPLATE, {}, "strip"),
        context={
            "regime": regime,
            "settings": settings,
            "sorting": "KL" if record.has_rate else "spread",
            "commands": commands(record.target or record.name),
        },
        folders=sections.folders(),
        unit=regime.unit,
    )


def _facts(record: ReportRecord) -> list[tuple[str, str]]:
    """Return the facts of the header; for a run, with the diagnosed observations."""
    if record.settings is None:
        return [*record.facts]
    part = "" if record.part == "all" else f" of the {record.part} part"
    regime = record.regime
    observations = f"{value_of(regime.n_samples)} observations{part}, α = {value_of(regime.alpha)}"
    return [*record.facts, ("diagnosed on", observations)]


def _groups(record: ReportRecord, settings: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings as titled lists; the factors are listed with the settings of the data."""
    factors = ", ".join(f"{name} ({size or 'continuous'})" for name, size in record.factors)
    return [
        (title, [*rows, ("factors", factors)] if title == "data" and factors else rows)
        for title, rows in settings_groups(settings)
    ]


def _cards(record: ReportRecord) -> list[dict[str, str]]:
    """Return the key numbers: the loss and its terms on validation samples, the trace, Δ_KL, the reconstruction."""
    regime = record.regime
    cards = [] if record.history is None else _losses(record.history)
    if record.views is not None:
        r_squared = readable(record.views.reconstructions.r_squared)
        trained_on = record.judged_on == "train"
        held_out = "on training data" if trained_on else "on held-out data"
        held_out = "on these data" if record.settings is None else held_out
        quality = [{"name": "R²", "value": r_squared, "unit": "", "about": held_out}]
    else:
        quality = []
    if not record.has_rate:
        return [*cards, *quality]
    delta = regime.polarisation.delta
    total = "1 latent" if regime.n_latents == 1 else f"{regime.n_latents} latents"
    state = "polarised" if delta is not None and delta < POLARISED else "not fully polarised"
    return [
        *cards,
        {"name": "Σ E[σ²]", "value": readable(regime.trace), "unit": "", "about": f"of {total}"},
        {"name": Markup("Δ<sub>KL</sub>"), "value": percent(delta), "unit": "", "about": state},
        *quality,
    ]


def _losses(history: History) -> list[dict[str, str]]:
    """Return the training loss, and the loss and its terms on validation samples if there are any."""
    cards = [
        {"name": name, "value": readable(series.last), "unit": "nats", "about": about}
        for name, series, about in (
            ("held-out loss", history.validation_loss, "on validation samples"),
            ("training loss", history.loss, "mean over the last steps"),
        )
        if series is not None
    ]
    for name, series in history.validation.items():
        weight = history.weights.get(name, 1.0)
        about = "validation" if weight == 1 else f"validation, weight {weight:g}"
        about = about if weight else "validation, not in the loss"
        unit = "nats" if weight else ""
        cards.append({"name": name, "value": readable(series.last), "unit": unit, "about": about})
    return cards


def report(
    run: RunLike,
    data: DataLike | None = None,
    *,
    out: str | Path | None = None,
    n_samples: int | Newest | None = "newest",
    seed: int | Newest = "newest",
    alpha: float | Newest = "newest",
    part: str = "newest",
    step: int | None = None,
    show: Sequence[str] = (),
    per: Per | None = None,
) -> Path:
    """Write one self-contained page about a run, a model or codes, and return its path.

    The page of a run shows its newest diagnosis, decomposition, scores, comparison and course; the newest is the most
    recently used one. If there is no diagnosis with the requested settings, it is computed and cached first. Other
    results of the run are listed at the end. The page of a model from another library has no training curves, and the
    page of codes has only the sections that do not require a model. The same arguments give the same page, byte for
    byte. The page is written atomically.

    :param run: a run or its folder, a Representation, an .npz file of codes, or a model of any library or its path, as
        in :func:`polariscope.encode`.
    :param data: required for a model, and for a run that was trained on arrays in memory: the same dataset or arrays.
    :param out: (default: in the run's folder, next to the file of codes, or named after a model in the working folder)
        path of the page.
    :param n_samples: (default: that of the newest diagnosis, otherwise 10,000) observations to diagnose; None for all.
    :param seed: (default: that of the newest diagnosis, otherwise 0) seed of their choice and of the noise.
    :param alpha: (default: that of the newest diagnosis, otherwise that of ``TypeRule``) tolerance of the rule that
        names the types.
    :param part: (default: that of the newest diagnosis, otherwise "all") part of a run's split to diagnose: "train",
        "validation", "test" or "all". Scores and decomposition of the same part are preferred.
    :param step: (default None: the finished model) step of the checkpoint to report on.
    :param show: (default: the newest of each kind) file names of results of a run, or their beginnings, to show
        instead: ``show=["scores-61e6"]``.
    :param per: (default: that of the codes, "channel") unit of codes with several axes, (channel, height, width):
        "channel" or "value". Models of runs have no such codes.
    """
    settings = {"n_samples": n_samples, "seed": seed, "alpha": alpha, "part": part}
    options: dict[str, Any] = {name: value for name, value in settings.items() if value != "newest"}
    if out is not None:
        out = user_path(out, "out")
        check_output(out, "out", [run] if isinstance(run, str | Path) else [])
    if isinstance(run, str | Path) and _is_model(existing_path(run)):
        record, path = _of_model(user_path(run), data, out, step, options)
        return report_page(record).write(path)
    if isinstance(run, AbstractModel) and run.folder is not None and data is None:
        step = step or run.step
        run = run.folder
    if isinstance(run, Run) or (isinstance(run, (str, Path)) and not user_path(run).is_file()):
        record = make_record(run, data, step=step, show=show, **options)
        folder = run.path if isinstance(run, Run) else run
        path = report_file(folder, step) if out is None else out
    else:
        # Runs have codes with one axis, for which both views are the same.
        view = {} if per is None else {"per": per}
        record, path = _of_something_else(run, data, out, step, {**options, **view})
    return report_page(record).write(path)


def _of_something_else(
    subject: Any, data: Any, out: Path | None, step: int | None, options: dict[str, Any]
) -> tuple[ReportRecord, Path]:
    """Return the record of a model or of codes, and the path of the page."""
    if not isinstance(subject, (str, Path, Representation)):
        return _of_model(subject, data, out, step, options)
    _refuse_run_options(step, options)
    if "n_samples" in options or data is not None:
        raise InputError(
            problem="all rows of codes are used",
            remedy=("leave ", Argument("data"), " and ", Argument("n_samples"), " out"),
        )
    if isinstance(subject, (str, Path)):
        from polariscope.data.codes import open_codes

        file = Path(subject)
        codes = open_codes(file, options.get("seed", 0))
        path = file.with_suffix(".html") if out is None else out
        return record_of_codes(codes, file.name, **options), path
    if out is None:
        raise InputError(problem="the page of codes requires the path of the page (out)")
    return record_of_codes(subject, "codes", **options), out


def _is_model(path: Path) -> bool:
    """Return True for the path of a model of another library; adapters are not imported for runs and codes."""
    if is_run(path):
        return False
    from polariscope.data.codes import ENDINGS
    from polariscope.models.open_model import is_openable

    return path.suffix not in ENDINGS and is_openable(path)


def _of_model(
    subject: Any, data: Any, out: Path | None, step: int | None, options: dict[str, Any]
) -> tuple[ReportRecord, Path]:
    """Return the record of a model of any library, and the path of the page: its name in the working folder."""
    from polariscope.models.open_model import open_model

    _refuse_run_options(step, options)
    model, dataset = open_model(subject, data)
    if dataset is None:
        raise InputError("data", "be given for the page of a model that does not belong to a run")
    name = str(getattr(model, "name", type(subject).__name__))
    if out is None:
        stem = subject.stem if isinstance(subject, Path) else re.sub(r"\W+", "-", name).strip("-")
        out = Path(f"{stem or 'model'}.html")
        check_output(out, "out", [subject] if isinstance(subject, Path) else [])
    return record_of_model(model, dataset, **options), out


def _refuse_run_options(step: int | None, options: dict[str, Any]) -> None:
    """Raise an error for options of runs."""
    if step is not None:
        raise InputError(
            problem=(Argument("step"), " requires a run folder"),
            remedy="models and codes have no checkpoints. Leave it out",
        )
    if "part" in options:
        raise InputError(
            problem=(Argument("part"), " requires a run folder"),
            remedy="models and codes have no split. Leave it out",
        )
