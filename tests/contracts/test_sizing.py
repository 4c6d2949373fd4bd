"""What every sizing method promises: the answer of the linear theory, from closed forms and from trained models."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.core.options import options_of
from polariscope.sizing.checks import BOUNDS, own_options, used_by
from polariscope.sizing.goal import Goal
from polariscope.sizing.merge import merge
from polariscope.sizing.methods import family
from polariscope.sizing.result import SeedResult, Size
from polariscope.training.plan import FAMILIES
from polariscope.training.settings import TrainSettings
from sizing.linear_candidates import LinearCandidates, exact_answer

EIGENVALUES = np.array([60.0, 50.0, 40.0, 30.0, 1e-4, 1e-4, 1e-4, 1e-4])
"""Four directions stand out by far, so that every idea of "how many" has the same answer: 4."""
CLOSED = {name: name for name in family if name not in ("ib", "fondue-ib")}
"""The information bottleneck's threshold has no closed form, even here; its search is tested with fakes."""


@pytest.mark.parametrize("name", list(family))
def test_it_is_documented_and_takes_candidates_and_a_goal(name: str) -> None:
    assert family.summary(name).endswith((".", ")."))
    candidates, goal, *own = inspect.signature(family[name]).parameters.values()
    assert (candidates.name, goal.name) == ("candidates", "goal")
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in own)
    assert isinstance(family.traits(name)["trains"], bool)


@pytest.mark.parametrize("name", [name for name in family if own_options(name)])
def test_its_own_options_are_no_options_of_anything_else(name: str) -> None:
    """So that a name alone says whose option it is."""
    taken = {*options_of(Goal), *inspect.signature(ps.size).parameters, *options_of(TrainSettings)}
    for others in FAMILIES.values():
        taken |= {option for other in others for option in options_of(others[other])}
    assert not own_options(name) & taken


class WatchedGoal(Goal):
    """Notes which of its bounds are read."""

    def __getattribute__(self, name: str) -> object:
        if name in BOUNDS:
            READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()


@pytest.mark.parametrize("name", CLOSED)
def test_it_reads_the_bounds_it_says_it_uses_and_no_others(name: str) -> None:
    READ.clear()
    family[name](LinearCandidates(EIGENVALUES, n_samples=300), WatchedGoal(cap=64))
    # Published searches are given the rate by the recipe, and the time is kept by the candidates.
    own = used_by(name) - {"learning_rate", "minutes"}
    assert READ - {"learning_rate"} == own


@pytest.mark.parametrize("name", CLOSED)
def test_it_finds_the_answer_of_the_linear_theory(name: str) -> None:
    candidates = LinearCandidates(EIGENVALUES, n_samples=800)
    found = family[name](candidates, Goal(cap=64, steps=None if name == "fondue" else 400))
    low, high = found.interval
    assert exact_answer(EIGENVALUES, 1.0) == 4
    # One latent of noise adds at most 1 to an intrinsic dimension, which its threshold of 1 lets pass.
    assert found.value in ([4, 5] if name == "fondue-ide" else [4])
    assert low <= found.value <= high
    assert (candidates.n_steps > 0) is family.traits(name)["trains"]


@pytest.mark.parametrize("name", ["ib", "fondue-ib"])
def test_the_information_bottleneck_stops_where_its_statistic_crosses(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # H(z) − I(x, x̂) in hundredths that rise with n: the last n at most −0.01 is 7.
    monkeypatch.setattr(
        "polariscope.numerics.renyi.information_gap", lambda z, x, y, **_: (z.shape[1] - 8) / 100
    )
    found = family[name](LinearCandidates(EIGENVALUES, n_samples=40), Goal(cap=64))
    assert found.value == 7


@pytest.mark.parametrize("name", list(family))
def test_its_trials_say_what_was_trained_and_go_through_json(name: str) -> None:
    candidates = LinearCandidates(EIGENVALUES, n_samples=300)
    found = family[name](candidates, Goal(cap=16, steps=400))
    # A closed form has trials of no steps.
    assert {trial.n_latents for trial in found.trials if trial.steps} == {n for n, _ in candidates.asked}
    assert all(np.isfinite(trial.statistic) for trial in found.trials)
    size = merge([found], name, "latents", Goal(), 10)
    assert Size.from_dict(json.loads(json.dumps(size.to_dict()))) == size


def test_the_answer_of_several_seeds_is_their_median_with_the_whole_range() -> None:
    found = [SeedResult(4, (4, 5)), SeedResult(6, (5, 6)), SeedResult(5, (5, 5))]
    size = merge(found, "fondue", "latents", Goal(), 10)
    assert (size.n_latents, size.interval, size.per_seed) == (5, (4, 6), (4, 6, 5))
    assert "3 seeds" in size.meaning_of_interval
    assert merge([*found, SeedResult(None, None)], "fondue", "latents", Goal(), 10).notes == (
        "1 of 4 seeds have no answer.",
    )
    assert merge([SeedResult(None, None, notes=("No knee.",))], "elbow", "latents", Goal(), 10).notes == (
        "No knee.",
    )


@pytest.mark.parametrize("name", ["fondue-published", "ard"])
@unchecked()
def test_trained_linear_models_give_the_same_answer(name: str) -> None:
    """And ``fondue`` in tests/sizing/test_size.py; the rest need more steps than a test has."""
    data = ps.load_dataset("gaussian", eigenvalues=(4.0, 3.0, 1e-4, 1e-4, 1e-4), n_samples=1000)
    (found,) = ps.compare_sizes(
        data,
        [name],
        net="linear",
        likelihood="gaussian",
        variance=0.05,
        keep_units=True,
        learning_rate=0.01,
        threshold=0.5,  # far from what Adam's noise takes away from a passive latent's 1
        steps=1000,
        cap=64,
        n_init=3,
    )
    assert found.n_latents == 2
    assert found.n_steps > 0
