"""One page about a run, a model or codes: from a record to an HTML file that needs nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from polariscope import __version__
from polariscope.analysis.regime.criteria import POLARISED
from polariscope.analysis.regime.printing import about_passive_means, alphas, stability
from polariscope.analysis.regime.types import TYPES
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.errors import Argument, InputError
from polariscope.models.protocol import AbstractModel
from polariscope.pages import words
from polariscope.pages.figures import COLOURS, curves, grids
from polariscope.pages.figures import regime as figures
from polariscope.pages.record import Newest, ReportRecord, make_record, record_of_codes, record_of_model
from polariscope.pages.series import History
from polariscope.pages.views import N_SHOWN, Views
from polariscope.storage import report_file

MOST_FEATURES = 256
ROWS_UNFOLDED = 12
UNMATCHED = (
    " The encoder is deterministic: unless its objective matches the codes with the prior, these are not draws from "
    "what it learned."
)


def render(record: ReportRecord) -> str:
    """The page of a record; the same record gives the same bytes."""
    template = words.environment().get_template("page.html.j2")
    return template.render(
        record=record,
        regime=record.regime,
        settings=record.settings,
        colours=COLOURS,
        types=TYPES,
        polarised=POLARISED,
        rows_unfolded=ROWS_UNFOLDED,
        sorting="KL" if record.has_rate else "spread",
        unmatched="" if record.has_rate else UNMATCHED,
        headline=words.headline(record.regime),
        explanation=words.explanation(record.regime, record.has_rate, record.size),
        meanings=words.meanings(record.regime),
        stability=stability(record.regime) if record.has_rate else "",
        passive_means=about_passive_means(record.regime) if record.has_rate else "",
        groups=[] if record.settings is None else words.settings_groups(record.settings),
        repeat=None if record.settings is None else words.repeat_call(record.settings, record.name),
        version=__version__,
        cards=_cards(record),
        latents=_latents(record),
        traversals=None if record.views is None else _traversals(record, record.views),
        decoder=None if record.views is None else _decoder(record, record.views),
        curves=None if record.history is None else _curves(record, record.history),
        histograms=_histograms(record),
        silhouettes=_silhouettes(record),
        correlations=_correlations(record),
        sizing=_section("size.size_view", record.size, "size"),
        commands=words.commands(record.name),
        decomposition=_section("sections.decomposition.decomposition_view", record.decomposition),
        scoring=_section("sections.scores.scores_view", record.scores, record.regime, record.sampled_scores),
        geometry=_section("sections.geometry.geometry_view", record.geometry, record.views),
        similarity=_section("sections.similarity.similarity_view", record.similarity),
    )


def _section(view: str, part: Any, *arguments: Any) -> dict[str, Any] | None:
    """What the template shows of a part of the record; a section is opened only when its part is there."""
    if part is None:
        return None
    module, _, name = view.rpartition(".")
    return getattr(importlib.import_module(f"polariscope.pages.{module}"), name)(part, *arguments)


def _cards(record: ReportRecord) -> list[dict[str, str]]:
    """Key numbers: the loss and its terms on validation samples, the trace, Δ_KL, the reconstruction."""
    regime = record.regime
    cards = [] if record.history is None else _losses(record.history)
    if record.views is not None:
        r_squared = words.number(record.views.reconstructions.r_squared)
        held_out = "on the data given" if record.settings is None else "on held-out data"
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
        {"name": "Σ E[σ²]", "value": words.number(regime.trace), "unit": "", "about": f"of {total}"},
        {"name": Markup("Δ<sub>KL</sub>"), "value": words.percent(delta), "unit": "", "about": state},
        *quality,
    ]


def _losses(history: History) -> list[dict[str, str]]:
    """The loss and its terms on validation samples, where there was a validation."""
    series, where = history.validation_loss, "validation"
    if series is None:
        series, where = history.loss, "training"
    cards = [{"name": "loss", "value": words.number(series.last), "unit": "nats", "about": where}]
    for name, series in history.validation.items():
        weight = history.weights.get(name, 1.0)
        about = "validation" if weight == 1 else f"validation, weight {weight:g}"
        about = about if weight else "validation, not in the loss"
        unit = "nats" if weight else ""
        cards.append({"name": name, "value": words.number(series.last), "unit": unit, "about": about})
    return cards


def _latents(record: ReportRecord) -> list[dict[str, Any]]:
    """Rows of the table of latents, by KL."""
    regime = record.regime
    sizes = [latent.kl if record.has_rate else latent.std_of_mean for latent in regime.latents]
    # at least a nat: the bar of a collapsed latent stays short
    longest = max([*(size for size in sizes if np.isfinite(size)), 1.0 if record.has_rate else 1e-12])
    primary, *others = regime.criteria.in_use
    return [
        {
            "latent": regime.latents[j],
            "kl": words.number(regime.latents[j].kl) if record.has_rate else "–",
            "alphas": alphas(regime.latents[j]),
            "bar": round(100 * min(max(sizes[j], 0.0) / longest, 1.0), 1),
            "agree": sum(rule[j] == primary[j] for rule in others),
            "of": len(others),
            "against": ", ".join(
                name
                for name, rule in zip(regime.criteria.names[1:], others, strict=True)
                if rule[j] != primary[j]
            ),
        }
        for j in regime.order
    ]


def _traversals(record: ReportRecord, views: Views) -> dict[str, Any]:
    shown = views.traversals
    features: Any = slice(None)
    if record.is_image:
        pictures = [grids.strip(row, views.display_range) for row in shown.outputs]
    else:
        moves = shown.outputs - shown.original
        movement = np.abs(moves).max(axis=(0, 1))
        if movement.size > MOST_FEATURES:
            features = np.sort(np.argsort(-movement, kind="stable")[:MOST_FEATURES])
        # the highest value of the latent on top, as on an axis
        pictures = [grids.diverging(row[::-1, features], float(movement.max())) for row in moves]
    rows: list[dict[str, Any]] = [
        {
            "latent": record.regime.latents[latent],
            "kl": words.number(record.regime.latents[latent].kl) if record.has_rate else None,
            "effect": None if shown.effects is None else float(shown.effects[place]),
            "uri": grids.data_uri(picture),
        }
        for place, (latent, picture) in enumerate(zip(shown.latents, pictures, strict=True))
    ]
    n_features = shown.original.size
    counts = record.regime.counts
    in_use = [row for row in rows if row["latent"].type != "passive"]
    passive = [row for row in rows if row["latent"].type == "passive"]
    return {
        "in_use": in_use,
        "passive": passive,
        "more_in_use": counts["active"] + counts["mixed"] - len(in_use),
        "more_passive": counts["passive"] - len(passive),
        "values": [f"{value:.1f}".replace("-", "−") for value in shown.values],
        "start": shown.start,
        "unit": {"codes": "its own spread over the data"}.get(shown.scale, f"the {shown.scale}"),
        "n_features": n_features,
        "features_shown": min(n_features, MOST_FEATURES),
        "scale": float(np.abs(shown.outputs - shown.original).max()),
    }


def _decoder(record: ReportRecord, views: Views) -> dict[str, Any]:
    return _images(views) if record.is_image else _features(views)


def _images(views: Views) -> dict[str, Any]:
    seen, span = views.reconstructions, views.display_range
    inputs, outputs = seen.inputs[:N_SHOWN], seen.outputs[:N_SHOWN]
    scale = float(np.abs(outputs - inputs).mean(axis=1).max())
    means = views.prior_samples.means
    return {
        "scale": scale,
        "rows": [
            ("input", grids.data_uri(grids.strip(inputs, span))),
            ("reconstruction", grids.data_uri(grids.strip(outputs, span))),
            ("difference", grids.data_uri(grids.difference_strip(outputs - inputs, scale))),
        ],
        "samples": [
            grids.data_uri(grids.strip(means[first : first + N_SHOWN], span))
            for first in range(0, len(means), N_SHOWN)
        ],
    }


def _features(views: Views) -> dict[str, Any]:
    seen, deviations = views.reconstructions, views.prior_samples.deviations
    assert deviations is not None
    return {
        "r_squared": figures.draw_r_squared(seen),
        "deviations": figures.draw_deviations(seen, deviations),
        "constant": seen.inputs[0].size - seen.r_squared_by_value.size,
    }


def _curves(record: ReportRecord, history: History) -> dict[str, Any]:
    terms = [curves.draw_term("loss", history.loss, history.validation_loss, "curve-loss")]
    terms += [
        curves.draw_term(
            name,
            series,
            history.validation.get(name),
            f"curve-term-{place}",
            unit="nats" if history.weights.get(name, 1.0) else "",
        )
        for place, (name, series) in enumerate(history.terms.items())
    ]
    if history.kl is None:
        return {"terms": terms, "regime": []}
    regime = [
        curves.draw_counts(history),
        curves.draw_kl(history.steps, history.kl, record.regime),
        curves.draw_trace(history, None if record.prior is None else float(record.prior[:, 1].sum())),
    ]
    return {"terms": terms, "regime": regime}


def _histograms(record: ReportRecord) -> list[dict[str, Any]]:
    """The clearest latent of each type, three panels each."""
    return [
        {
            "latent": record.regime.latents[latent],
            "panels": [
                figures.draw_histogram(
                    record.histograms[source],
                    source,
                    latent,
                    kind,
                    record.prior_of(latent),
                    record.regime.alpha,
                )
                for source in record.histograms
            ],
        }
        for kind, latent in record.representatives.items()
    ]


def _silhouettes(record: ReportRecord) -> dict[str, Any]:
    rows = [
        {
            "latent": record.regime.latents[j],
            "shapes": [
                figures.silhouette(histogram.shares[j], record.regime.latents[j].type)
                for histogram in record.histograms.values()
            ],
        }
        for j in record.regime.order
    ]
    ranges = [
        (source.replace("_", " "), float(histogram.edges[0]), float(histogram.edges[-1]))
        for source, histogram in record.histograms.items()
    ]
    return {"rows": rows, "ranges": ranges}


def _correlations(record: ReportRecord) -> list[Any]:
    regime = record.regime
    order = [j for kind in TYPES for j in regime.order if regime.latents[j].type == kind]
    # Draws of a deterministic encoder are its means.
    shown = {"mean": regime.mean, "sampled": regime.sampled} if record.has_rate else {"mean": regime.mean}
    return [
        figures.draw_correlation(np.array(structure.correlation), regime, order, name)
        for name, structure in shown.items()
    ]


def report(
    run: Any,
    data: Any = None,
    *,
    out: str | Path | None = None,
    n_samples: int | Newest | None = "newest",
    seed: int | Newest = "newest",
    alpha: float | Newest = "newest",
    step: int | None = None,
    show: Sequence[str] = (),
) -> Path:
    """Write one self-contained page about a run, a model or codes, and return its path.

    The page of a run shows the newest of each thing that was measured of the model: diagnosis, decomposition, scores,
    comparison. Without a diagnosis, or without the one asked for, it is made first and kept. What else is kept with
    the run is listed at the end. A model of another library (:func:`polariscope.wrap`) has all but the training
    curves, codes what arrays allow. The same arguments give the same bytes; nothing half-written is left when it
    fails.

    :param run: a run's folder; a model, with ``data`` and ``out``; a Representation or an .npz file of codes.
    :param data: needed for a model, and when a run was trained on arrays in memory: the same dataset or arrays.
    :param out: (default: in the run's folder, or beside the file of codes) where to write the page.
    :param n_samples: (default: those of the newest diagnosis, else 10,000) observations to diagnose; None for all.
    :param seed: (default: likewise, else 0) seed of their choice and of the noise.
    :param alpha: (default: likewise, else 0.1) tolerance of the rule that names the types.
    :param step: (default None: the finished model) report on the checkpoint of this step of a run.
    :param show: (default: the newest of each kind) names of files kept with a run, or their beginnings, to show
        instead: ``show=["scores-61e6"]``.
    """
    asked = {"n_samples": n_samples, "seed": seed, "alpha": alpha}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value != "newest"}
    if isinstance(run, AbstractModel) and run.folder is not None and data is None:
        run, step = run.folder, step or run.step
    if isinstance(run, (str, Path)) and not Path(run).is_file():
        record = make_record(run, data, step=step, show=show, **given)
        path = report_file(run, step) if out is None else Path(out)
    else:
        record, path = _of_something_else(run, data, out, step, given)
    files.write_text(path, render(record))
    return path


def _of_something_else(
    subject: Any, data: Any, out: str | Path | None, step: int | None, given: dict[str, Any]
) -> tuple[ReportRecord, Path]:
    """The page of a model or of codes, and where it goes."""
    if step is not None:
        raise InputError(
            problem=(Argument("step"), " is for run folders"), remedy="a model has the weights it has"
        )
    if isinstance(subject, AbstractModel):
        if data is None or out is None:
            raise InputError(
                problem="the page of a model needs data to look at and a place to be written to (out)"
            )
        return record_of_model(subject, data, **given), Path(out)
    if not isinstance(subject, (str, Path, Representation)):
        raise InputError(
            problem="report takes a run folder, a model, a Representation or a file of codes",
            got=type(subject).__name__,
            remedy="wrap a model of another library with polariscope.wrap",
        )
    if "n_samples" in given or data is not None:
        raise InputError(
            problem="of codes every row is used",
            remedy=("leave ", Argument("data"), " and ", Argument("n_samples"), " out"),
        )
    if isinstance(subject, (str, Path)):
        from polariscope.analysis.codes import load_codes

        file = Path(subject)
        codes = load_codes(file, given.get("seed", 0))
        return record_of_codes(codes, file.name, **given), file.with_suffix(".html") if out is None else Path(
            out
        )
    if isinstance(subject, Representation):
        if out is None:
            raise InputError(problem="the page of codes needs a place to be written to (out)")
        return record_of_codes(subject, "codes", **given), Path(out)
    raise InputError(
        problem="report takes a run folder, a model, a Representation or a file of codes",
        got=type(subject).__name__,
        remedy="wrap a model of another library with polariscope.wrap",
    )
