"""Checks of the test suite itself: the training steps whose shapes are checked."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from jaxtyping import TypeCheckError, config

import polariscope as ps
from long_training import CHECKED_STEPS, unchecked
from polariscope.objectives import Step, Terms, run_forward
from polariscope.objectives.vae import VaeObjective


def checked_steps(monkeypatch: pytest.MonkeyPatch, **settings: object) -> list[int]:
    """Return the steps whose terms were computed with checks enabled; a validation has no gradients."""
    seen: list[bool] = []
    terms = VaeObjective.terms

    def looked_at(self, step):
        if torch.is_grad_enabled():
            seen.append(not config.jaxtyping_disable)
        return terms(self, step)

    monkeypatch.setattr(VaeObjective, "terms", looked_at)
    ps.train(ps.load_dataset("gaussian", n_samples=100), "vae", "linear", 2, steps=100, **settings)
    assert len(seen) == 100
    return [number for number, checked in enumerate(seen, 1) if checked]


def test_the_first_steps_and_those_that_log_or_save_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked_steps(monkeypatch, log_every=30, validate_every=60, checkpoint_every=45)
    assert found == [*range(1, CHECKED_STEPS + 1), 30, 45, 60, 90, 100]
    assert not config.jaxtyping_disable


def test_none_is_checked_where_none_shall_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with unchecked():
        assert checked_steps(monkeypatch, log_every=30) == []


def test_a_shape_that_is_wrong_late_is_refused_at_the_next_step_that_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []

    def turned_from_step_25(self: VaeObjective, step: Step) -> Terms:
        begun.append(step.batch.step + 1)
        forward = run_forward(step)
        if begun[-1] >= 25:
            forward = dataclasses.replace(forward, rate=forward.rate.T)
        return forward.terms()

    monkeypatch.setattr(VaeObjective, "terms", turned_from_step_25)
    data = ps.load_dataset("gaussian", n_samples=100)
    with pytest.raises(TypeCheckError, match="rate"):
        ps.train(data, "vae", "linear", 2, steps=100, log_every=30)
    assert begun == [*range(1, 31)]  # steps 25 to 29 are not checked
    assert not config.jaxtyping_disable
