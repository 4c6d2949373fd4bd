"""Charts are well-formed SVG that can stand beside each other in a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from polariscope.pages.record import ReportRecord
from polariscope.pages.sections.distributions import silhouette
from polariscope.pages.sections.training import Series, draw_counts, draw_term, draw_trace

FALLING = Series(np.array([1, 2, 3]), np.array([100.0, 10.0, 9.0]))
RISING = Series(np.array([1, 2, 3]), np.array([0.01, 6.0, 7.0]))


def test_a_term_may_have_any_name() -> None:
    chart = ElementTree.fromstring(draw_term("<b>&$x$", FALLING, None, "key"))
    assert "<b>&$x$" in "".join(chart.itertext())


def test_two_charts_share_no_id() -> None:
    first, second = (str(draw_term("loss", FALLING, FALLING, key)) for key in ("one", "two"))
    assert not set(re.findall(r'\bid="([^"]+)"', first)) & set(re.findall(r'\bid="([^"]+)"', second))
    for chart, key in ((first, "one"), (second, "two")):
        used = re.findall(r"(?:url\(|href=\")#([^)\"]+)", chart)
        assert used
        assert all(name.startswith(f"{key}-") for name in used)


def test_a_long_fall_has_a_logarithmic_axis_and_a_rise_does_not() -> None:
    assert "log scale" in draw_term("loss", FALLING, None, "key")
    assert "log scale" not in draw_term("rate", RISING, None, "key")


def test_the_words_of_a_chart_give_its_last_values() -> None:
    chart = str(draw_term("loss", FALLING, Series(np.array([3]), np.array([8.5])), "key"))
    assert "training ends at 9 nats, validation at 8.5 nats" in chart


def test_counts_at_the_end_are_in_the_words_of_their_chart(image_record: ReportRecord) -> None:
    last = {kind: int(series.last) for kind, series in image_record.history.counts.items()}
    assert sum(last.values()) == image_record.regime.n_latents
    words = ", ".join(f"{count} {kind}" for kind, count in last.items())
    assert words in draw_counts(image_record.history)


def test_a_silhouette_reaches_its_full_height_at_the_most_frequent_bin() -> None:
    drawn = ElementTree.fromstring(silhouette(np.array([0.1, 0.8, 0.1]), "active"))
    assert drawn[0].attrib["d"] == "M0 20V17.5H1V0.0H2V17.5H3V20Z"


def test_the_trace_of_a_passive_model_is_drawn_only_where_the_prior_is_known(
    flat_record: ReportRecord,
) -> None:
    with_line, without = (str(draw_trace(flat_record.history, value)) for value in (12.0, None))
    assert "stroke-dasharray" in with_line
    assert "stroke-dasharray" not in without


def test_what_is_only_watched_has_no_unit() -> None:
    chart = str(draw_term("accuracy", RISING, None, "key", unit=""))
    assert "nats" not in chart
    assert "training ends at 7." in chart
