"""The section of the course: from the log what it has, from the checkpoints what was asked for."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from polariscope.analysis.course import Course, LayerCourse, LayerSimilarity, snapshot
from polariscope.analysis.representation import Representation
from polariscope.pages.record import ReportRecord, record_of_codes
from polariscope.pages.sections.course import CourseSection, draw_codes, draw_layers
from polariscope.pages.sections.training import read_history


def line(step: int, **more: Any) -> dict[str, Any]:
    shared = {"loss": 2.0, "terms": {"rate": 1.0}, "weights": {"rate": 1.0}, "kl": [1.0, 0.0], "trace": 1.5}
    return {"step": step, **shared, "active": 1, "mixed": 0, "passive": 1, **more}


@pytest.fixture(scope="module")
def codes() -> Representation:
    """Two active latents and a passive one."""
    mean = np.random.default_rng(0).normal(size=(200, 3)) * [1, 1, 0.01]
    return Representation(mean, np.tile([0.01, 0.02, 1.0], (200, 1)), mean)


@pytest.fixture(scope="module")
def record(codes: Representation) -> ReportRecord:
    """A page about these codes, which has no log; tests give it one."""
    return record_of_codes(codes, "codes")


@pytest.fixture(scope="module")
def course(codes: Representation) -> Course:
    snapshots = tuple(snapshot(codes, step) for step in (10, 20))
    layers = LayerCourse(
        names=("input", "variance"),
        n_samples=50,
        k=20,
        dimension=np.array([[3.0, np.nan], [3.0, np.nan]]),
        low=np.full((2, 2), np.nan),
        high=np.full((2, 2), np.nan),
        similarities=(LayerSimilarity("<b>", "cka", "CKA", np.array([[1.0, np.nan], [1.0, np.nan]])),),
    )
    return Course("run", snapshots, latent=1, n_samples=200, seed=0, alpha=0.1, layers=layers)


def test_logs_without_delta_are_read_and_have_no_such_curve() -> None:
    old = read_history([line(10), line(20)])
    assert old.delta is None
    assert old.std is None
    resumed = read_history([line(10), line(20, delta_kl=0.1, std=[1.0, 0.0])])  # begun by an older version
    assert resumed.delta is None
    new = read_history([line(10, delta_kl=None, std=[1.0, None]), line(20, delta_kl=0.1, std=[1.0, 0.0])])
    assert new.delta is not None
    assert new.std is not None
    np.testing.assert_array_equal(new.delta.values, [np.nan, 0.1])
    np.testing.assert_array_equal(new.std, [[1.0, np.nan], [1.0, 0.0]])


def test_the_section_is_there_when_the_log_or_a_course_has_something_to_show(
    record: ReportRecord, course: Course
) -> None:
    section = CourseSection()
    assert not section.applies(record)
    old = dataclasses.replace(record, history=read_history([line(10)]), parts={})
    assert not section.applies(old)
    logged = read_history([line(10, delta_kl=0.1, std=[1.0, 0.0])])
    assert section.applies(dataclasses.replace(record, history=logged, parts={}))
    undefined = read_history([line(10, delta_kl=None, std=[0.0, 0.0])])
    assert not section.applies(dataclasses.replace(record, history=undefined, parts={}))
    assert section.applies(dataclasses.replace(old, parts={"course": course}))


def test_the_share_on_the_page_is_that_of_the_log(record: ReportRecord) -> None:
    deltas = [0.5, 0.01, 0.02, 0.01]
    lines = [
        line(10 * n, delta_kl=delta, std=[1.0, 0.1, 0.1], kl=[1.0, 0.0, 0.0])
        for n, delta in enumerate(deltas, start=1)
    ]
    view = CourseSection().view(dataclasses.replace(record, history=read_history(lines), parts={}))
    assert (view["polarised"].since, view["polarised"].share) == (20, 0.5)
    assert len(view["logged"]) == 2
    assert view["course"] is None
    assert view["codes"] == view["layers"] == []


def test_figures_say_in_words_what_they_show_and_leave_out_what_is_not_defined(course: Course) -> None:
    words = [str(chart) for chart in draw_codes(course)]
    assert len(words) == 5
    assert "at the end 2 active, 0 mixed, 1 passive" in words[0]
    assert f"up to {np.abs(course.correlations()[-1, [0, 2]]).max():.2f}" in words[1]
    assert course.layers is not None
    dimension, similarity = map(str, draw_layers(course, course.layers))
    assert "at the end input 3.00, variance nan" in dimension
    assert "CKA with &lt;b&gt;" in similarity
    assert "<b>" not in similarity


def test_a_single_latent_has_no_correlations(course: Course) -> None:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(50, 1))
    alone = Course("run", (snapshot(Representation(mean, mean**2, mean), 5),), 0, 50, 0, 0.1)
    assert len(draw_codes(alone)) == 1
