"""The history says what the log says, whatever the terms are called."""

from __future__ import annotations

from typing import Any

import pytest

from polariscope.core.errors import InputError
from polariscope.pages.sections.training import read_history


def line(step: int, terms: dict[str, float], weights: dict[str, float], **more: Any) -> dict[str, Any]:
    latents = {"kl": [1.0 * step, 0.0], "trace": 1.5, "active": 1, "mixed": 0, "passive": 1}
    return {"step": step, "loss": 3.0, "terms": terms, "weights": weights, **latents, **more}


def test_terms_come_from_the_log_and_may_start_late() -> None:
    history = read_history(
        [
            line(10, {"distortion": 5.0}, {"distortion": 1.0}),
            line(20, {"distortion": 4.0, "spread": 0.5}, {"distortion": 1.0, "spread": 7.0}),
        ]
    )
    assert history.names == ["distortion", "spread"]
    assert history.terms["spread"].steps.tolist() == [20]
    assert history.terms["distortion"].values.tolist() == [5.0, 4.0]
    assert history.weights == {"distortion": 1.0, "spread": 7.0}
    assert history.kl.tolist() == [[10.0, 0.0], [20.0, 0.0]]
    assert history.counts["passive"].values.tolist() == [1.0, 1.0]


def test_validation_loss_is_the_sum_weighted_as_on_its_own_line() -> None:
    history = read_history(
        [
            line(10, {"a": 1.0}, {"a": 1.0, "b": 2.0}, validation={"a": 3.0, "b": 10.0}),
            line(20, {"a": 1.0}, {"a": 1.0, "b": 4.0}),
            line(30, {"a": 1.0}, {"a": 1.0, "b": 5.0}, validation={"a": 2.0, "b": 1.0}),
        ]
    )
    assert history.validation_loss.steps.tolist() == [10, 30]
    assert history.validation_loss.values.tolist() == [23.0, 7.0]
    assert history.validation["b"].last == 1.0


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(InputError, match=r"the log has no lines"):
        read_history([])


def test_a_deterministic_encoder_has_no_kl_to_follow() -> None:
    history = read_history([line(10, {"a": 1.0}, {"a": 1.0}, kl=None)])
    assert history.kl is None
    assert history.loss.last == 3.0
