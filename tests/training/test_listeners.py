"""Events of a training: steps, time left and the last line of the log."""

from __future__ import annotations

import re

import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.core.progress import ProgressEvent
from polariscope.training.listeners import step_events

LINE = {"step": 2, "loss": 31.42, "terms": {"rate": 12.0}, "active": 5, "mixed": 1, "passive": 4}


def test_an_event_has_the_step_the_time_left_and_the_last_line() -> None:
    events: list[ProgressEvent] = []
    seconds = iter((0.0, 10.0, 10.1, 30.0))
    listen = step_events(events.append, 4, clock=lambda: next(seconds))
    listen(1, None)
    listen(2, LINE)
    listen(3, None)  # too soon after the last event
    listen(4, None)
    assert [event.done for event in events] == [1, 2, 4]
    # One step in 10 seconds, and two are left.
    assert (
        events[1].message == "step 2 of 4, 20 s left: loss 31.42 · rate 12.00 · 5 active, 1 mixed, 4 passive"
    )
    assert events[1].facts == {"step": 2, "loss": 31.42, "active": 5, "mixed": 1, "passive": 4}
    assert events[2].is_done
    assert events[2].message.startswith("step 4 of 4: loss 31.42")


def test_training_sends_events_to_a_function_of_events_and_lines_to_others() -> None:
    data = ps.load_dataset("gaussian", n_samples=100)
    events: list[ProgressEvent] = []
    lines: list[object] = []

    def hear(event: ProgressEvent) -> None:
        events.append(event)

    for progress in (hear, lambda step, line: lines.append((step, line is not None))):
        ps.train(data, net="linear", n_latents=2, steps=4, log_every=2, progress=progress)
    assert {(event.task, event.total, event.unit) for event in events} == {("training", 4, "step")}
    assert events[-1].is_done
    assert lines == [(1, False), (2, True), (3, False), (4, True)]


def test_the_display_prints_the_last_step_to_a_log(capsys) -> None:
    data = ps.load_dataset("gaussian", n_samples=100)
    ps.train(data, net="linear", n_latents=2, steps=4, log_every=2, progress=True)
    assert re.search(r"^step 4 of 4: loss -?[\d.]+ · ", capsys.readouterr().err, flags=re.MULTILINE)


def test_a_function_of_one_argument_hears_events_and_other_values_are_refused() -> None:
    data = ps.load_dataset("gaussian", n_samples=100)
    events: list[object] = []
    ps.train(data, net="linear", n_latents=2, steps=2, progress=lambda event: events.append(event))
    assert all(isinstance(event, ProgressEvent) for event in events)
    with (
        unchecked(),
        pytest.raises(ps.InputError, match="progress must be True, False or a function, got 'yes'"),
    ):
        ps.train(data, net="linear", n_latents=2, steps=2, progress="yes")  # type: ignore[arg-type]
