"""Page of a manipulation: images before and after, the gap between the losses, and the variance by factor."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from polariscope.core.errors import InputError
from polariscope.core.figure_style import STYLE, TRAIN, VALIDATION
from polariscope.core.figures import PANEL, single_axes, to_svg
from polariscope.core.pictures import data_uri, sheet
from polariscope.core.seeds import generator
from polariscope.data.chain import apply_variants
from polariscope.data.sources import load_recorded
from polariscope.data.variance import VarianceShares, variance_shares
from polariscope.manipulation.manipulation import Manipulation, open_manipulation
from polariscope.pages.formatting import value_of
from polariscope.pages.page import Page, Section
from polariscope.storage import report_file

TEMPLATE = "manipulation.html.j2"
TIMES = 10
"""Factor by which differences between images are magnified."""


@dataclasses.dataclass(frozen=True, eq=False)
class ManipulationRecord:
    """Results that the page shows."""

    manipulation: Manipulation
    before: Float[np.ndarray, "image *shape"]
    """Some original observations."""
    after: Float[np.ndarray, "image *shape"]
    """The same observations, manipulated."""
    largest: float
    """Largest absolute difference of a value, over ``n_samples`` observations."""
    n_samples: int
    """Number of observations that were compared."""
    shares: tuple[VarianceShares, VarianceShares] | None
    """Variance by factor, before and after; None if the factors are not a grid."""


def measure_manipulation(
    manipulation: Manipulation, n_images: int = 8, n_samples: int = 1000, seed: int = 0
) -> ManipulationRecord:
    """Compare original and manipulated data.

    :param manipulation: a finished manipulation whose data can be loaded again.
    :param n_images: (default 8) number of observations to show.
    :param n_samples: (default 1,000) number of observations to compute results from.
    :param seed: (default 0) seed of the random choice of observations.
    """
    original = load_recorded(manipulation.settings["data"])
    changed = apply_variants(original, manipulation.variant)
    n_samples = min(n_samples, len(original))
    indices = generator(seed, "page").choice(len(original), size=n_samples, replace=False)
    largest = 0.0
    # In parts, to bound the memory.
    for part in np.array_split(indices, -(-n_samples // 256)):
        difference = changed.values(part).astype(np.float64) - original.values(part)
        largest = max(largest, float(np.abs(difference).max()))
    try:
        shares = (variance_shares(original, n_samples, seed), variance_shares(changed, n_samples, seed))
    except InputError:  # the factors are not a grid
        shares = None
    shown = indices[:n_images]
    return ManipulationRecord(
        manipulation, original.values(shown), changed.values(shown), largest, n_samples, shares
    )


def write_manipulation_page(folder: str | Path) -> Path:
    """Write one self-contained page to the folder of a finished manipulation, and return its path.

    :param folder: folder of the manipulation.
    """
    record = measure_manipulation(open_manipulation(folder))
    return manipulation_page(record).write(report_file(folder))


def manipulation_page(record: ManipulationRecord) -> Page:
    """Return the page of a manipulation.

    :param record: result of :func:`measure_manipulation`.
    """
    manipulation, pictures = record.manipulation, _pictures(record)
    data = manipulation.settings["data"]["name"]
    *details, conclusion = manipulation.in_words()
    settings = [
        (key.replace("_", " "), value_of(value)) for key, value in manipulation.settings["training"].items()
    ]
    sections = [Section("glance", "", TEMPLATE, {"cards": _cards(record)}, "glance")]
    if pictures is not None:
        sections.append(Section("images", "Images", TEMPLATE, {"pictures": pictures}, "images"))
    sections += [
        Section("gap", "Attack", TEMPLATE, {"chart": _draw_gap(manipulation)}, "gap"),
        Section("shares", "Variance", TEMPLATE, {"shares": share_rows(record.shares)}, "shares"),
        Section("settings", "Settings", TEMPLATE, {"settings": settings}, "settings"),
    ]
    return Page(
        kind="manipulate",
        name=manipulation.folder.resolve().name,
        headline=f"Manipulated {data}, ε = {manipulation.epsilon:g}",
        title=f"manipulated {data}",
        lead=conclusion,
        facts=[_fact(sentence) for sentence in details],
        record=record,
        sections=sections,
    )


def _fact(sentence: str) -> tuple[str, str]:
    """Return the name and the value of a fact in the form "Name: value"."""
    name, _, value = sentence.partition(": ")
    return name.lower(), value


def share_rows(shares: tuple[VarianceShares, VarianceShares] | None) -> list[dict[str, Any]] | None:
    """Return the share of each factor in local and global variance, before and after, and the change.

    :param shares: shares before and after, or None.
    """
    if shares is None:
        return None
    before, after = shares
    columns = zip(
        before.factor_names,
        before.local_share.tolist(),
        after.local_share.tolist(),
        before.global_share.tolist(),
        after.global_share.tolist(),
        strict=True,
    )
    return [
        {
            "factor": factor,
            "local": (local, local_after, local_after - local),
            "global": (overall, overall_after, overall_after - overall),
        }
        for factor, local, local_after, overall, overall_after in columns
    ]


def _cards(record: ManipulationRecord) -> list[dict[str, str]]:
    manipulation = record.manipulation
    gap = manipulation.gap[:, 1]
    shown = [
        ("largest difference", f"{record.largest:.3g}", f"of a value; ε = {manipulation.epsilon:g}"),
        ("gap before", f"{gap[0]:+.2f}", "nats, entangled minus disentangled loss"),
        ("gap at the end", f"{gap[-1]:+.2f}", f"nats, after {manipulation.gap[-1, 0]:,.0f} steps"),
    ]
    rows = share_rows(record.shares)
    if rows is not None:
        moved = max(rows, key=lambda row: abs(row["local"][2]))
        shown.append(
            (
                "largest change of a local share",
                f"{100 * moved['local'][2]:+.1f} %",
                f"{moved['factor']}; its global share {100 * moved['global'][2]:+.1f} %",
            )
        )
    return [dict(zip(("name", "value", "about"), card, strict=True)) for card in shown]


def _pictures(record: ManipulationRecord) -> list[tuple[str, str]] | None:
    """Return rows of original images, manipulated images and their differences; None for flat data."""
    if record.before.ndim != 4:
        return None
    # Equal values are grey, and differences of 1 / TIMES black or white.
    difference = np.clip(0.5 + TIMES * (record.after - record.before) / 2, 0, 1)
    rows = {
        "original": record.before,
        "manipulated": record.after,
        f"difference × {TIMES} (grey: no difference)": difference,
    }
    return [(title, data_uri(sheet(images[None], (0.0, 1.0)))) for title, images in rows.items()]


def _draw_gap(manipulation: Manipulation) -> Markup:
    from matplotlib import rc_context

    steps = manipulation.gap[:, 0]
    with rc_context(STYLE):
        figure, axes = single_axes((2 * PANEL[0], PANEL[1]), "Losses and their gap")
        for side, colour in (("entangled", VALIDATION), ("disentangled", TRAIN)):
            axes.plot(steps, [line[side] for line in manipulation.log], color=colour, label=side)
        axes.set_xlabel("step")
        axes.set_ylabel("nats")
        axes.legend()
        gap_axes = axes.twinx()
        gap_axes.plot(steps, manipulation.gap[:, 1], color="black", lw=0.8, ls=":", label="gap")
        gap_axes.set_ylabel("gap (dotted)")
        return to_svg(
            figure,
            "gap",
            f"Losses of both sides by step; the gap changes from {manipulation.gap[0, 1]:.2f} to "
            f"{manipulation.gap[-1, 1]:.2f} nats",
        )
