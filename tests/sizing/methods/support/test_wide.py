"""One wide model, doubled until it has latents to spare, against the linear theory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polariscope.analysis.representation import Representation
from polariscope.sizing.bisection import CapError
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods.active_units import count_in_use
from polariscope.sizing.methods.support.wide import N_RESAMPLES, WIDTH, count_in_wide_model
from polariscope.testing.linear_candidates import LinearCandidates


def data_with(n_active: int) -> LinearCandidates:
    """So many directions of large variance, which theory makes active, and five of almost none."""
    return LinearCandidates(np.concatenate([np.full(n_active, 100.0), np.full(5, 1e-3)]), n_samples=200)


@pytest.mark.parametrize(
    ("n_active", "n_init", "cap", "widths"),
    [
        (4, None, 512, [32]),
        (WIDTH - 1, None, 512, [32]),
        (WIDTH, None, 512, [32, 64]),  # none to spare, although just enough
        (40, None, 512, [32, 64]),
        (64, None, 512, [32, 64, 128]),
        (40, 41, 512, [41]),  # a guess above the usual width begins there
        (40, 5, 512, [32, 64]),
        (40, None, 50, [32, 50]),  # the last doubling stops at the cap
        (4, None, 8, [8]),
    ],
)
def test_the_width_is_doubled_until_a_latent_is_to_spare(
    n_active: int, n_init: int | None, cap: int, widths: list[int]
) -> None:
    found = count_in_wide_model(data_with(n_active), Goal(cap=cap, n_init=n_init), count_in_use)
    assert found.value == n_active
    assert found.interval == (n_active, n_active)
    assert [trial.n_latents for trial in found.trials] == widths
    assert [trial.decision for trial in found.trials] == ["fits"] * (len(widths) - 1) + ["too many"]
    assert [trial.statistic for trial in found.trials] == [min(width, n_active) for width in widths]


@pytest.mark.parametrize("cap", [8, 32, 40])
def test_a_cap_without_a_latent_to_spare_is_no_answer(cap: int) -> None:
    with pytest.raises(CapError, match=f"all {cap} latents are in use, and cap is {cap}; raise the cap"):
        count_in_wide_model(data_with(40), Goal(cap=cap), count_in_use)


def test_every_width_is_trained_alike_and_as_asked() -> None:
    candidates = data_with(40)
    count_in_wide_model(candidates, Goal(steps=700), count_in_use, beta=2.0)
    assert candidates.n_steps == 2 * 700
    assert all("beta" in changes and "learning_rate" in changes for _, changes in candidates.asked)


class DoubtfulCandidates(LinearCandidates):
    """A conditional prior: the prior of each sample must be resampled with it."""

    def representation(self, n_latents: int, steps: int, **changes: Any) -> Representation:
        self._train(n_latents, steps, changes)
        rows = np.random.default_rng(0).permutation(self.n_samples)[:, None].repeat(n_latents, axis=1)
        return Representation(rows + 0.0, rows + 1.0, rows + 0.0, prior_variance=rows + 1.0)


def test_the_interval_is_over_resamples_in_which_rows_stay_together() -> None:
    calls = []

    def count(representation: Representation) -> int:
        assert (representation.variance == representation.prior_variance).all()
        assert (representation.mean + 1 == representation.variance).all()
        calls.append(len(np.unique(representation.mean[:, 0])))
        return 3 + len(calls) % 2  # 4 on the whole, then 3 and 4 in turn

    found = count_in_wide_model(DoubtfulCandidates(np.ones(3), n_samples=200), Goal(), count)
    assert (found.value, found.interval) == (4, (3, 4))
    assert len(calls) == 1 + N_RESAMPLES
    assert calls[0] == 200
    assert max(calls[1:]) < 200  # drawn with replacement
