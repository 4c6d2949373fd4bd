"""Contract of every sizing method: the answer of the linear theory, from closed forms."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from polariscope.core.options import options_of
from polariscope.sizing.checks import BOUNDS, own_options, used_by
from polariscope.sizing.goal import Goal
from polariscope.sizing.merge import merge
from polariscope.sizing.methods import family
from polariscope.sizing.result import Size
from polariscope.sizing.size import size
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.linear_candidates import LinearCandidates, exact_answer
from polariscope.training.plan import FAMILIES
from polariscope.training.settings import TrainSettings

EIGENVALUES = np.array([60.0, 50.0, 40.0, 30.0, 1e-4, 1e-4, 1e-4, 1e-4])
"""Four directions clearly dominate, so every definition of the number of latents gives 4."""


class WatchedGoal(Goal):
    """A goal that records which of its bounds are read."""

    def __getattribute__(self, name: str) -> object:
        if name in BOUNDS:
            READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()


def closed(contract: SizingContract) -> list[str]:
    """Return the members whose statistic is known for a linear model."""
    return [name for name in contract.names if name not in contract.without_closed_form]


class SizingContract(AbstractContract):
    """Contract of every sizing method."""

    without_closed_form: ClassVar[Sequence[str]] = ()
    """Members whose statistic has no closed form for a linear model."""
    chooses_steps: ClassVar[Sequence[str]] = ()
    """Members that choose the length of training themselves."""

    def answers(self, name: str) -> Sequence[int]:
        """Return the answers that a member can give if four directions dominate.

        :param name: name of the member.
        """
        return [4]

    def test_it_is_documented_and_takes_candidates_and_a_goal(self, name: str) -> None:
        assert family.summary(name).endswith((".", ")."))
        candidates, goal, *options = inspect.signature(family[name]).parameters.values()
        assert (candidates.name, goal.name) == ("candidates", "goal")
        assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
        assert isinstance(family.traits(name)["trains"], bool)

    def test_its_own_options_are_no_options_of_anything_else(self, name: str) -> None:
        """Check that a name alone identifies the owner of an option."""
        taken = {*options_of(Goal), *inspect.signature(size).parameters, *options_of(TrainSettings)}
        for others in FAMILIES.values():
            taken |= {option for other in others for option in options_of(others[other])}
        assert not own_options(name) & taken

    @each("name", closed)
    def test_it_reads_the_bounds_it_says_it_uses_and_no_others(self, name: str) -> None:
        READ.clear()
        family[name](LinearCandidates(EIGENVALUES, n_samples=300), WatchedGoal(cap=64))
        # The recipe sets the rate of published searches, and the candidates measure the time.
        declared = used_by(name) - {"learning_rate", "minutes"}
        assert READ - {"learning_rate"} == declared

    @each("name", closed)
    def test_it_finds_the_answer_of_the_linear_theory(self, name: str) -> None:
        candidates = LinearCandidates(EIGENVALUES, n_samples=800)
        steps = None if name in self.chooses_steps else 400
        result = family[name](candidates, Goal(cap=64, steps=steps))
        low, high = result.interval
        assert exact_answer(EIGENVALUES, 1.0) == 4
        assert result.value in self.answers(name)
        assert low <= result.value <= high
        assert (candidates.n_steps > 0) is family.traits(name)["trains"]

    def test_its_trials_say_what_was_trained_and_go_through_json(self, name: str) -> None:
        candidates = LinearCandidates(EIGENVALUES, n_samples=300)
        result = family[name](candidates, Goal(cap=16, steps=400))
        # A closed form has trials without steps.
        assert {trial.n_latents for trial in result.trials if trial.steps} == {n for n, _ in candidates.asked}
        assert all(np.isfinite(trial.statistic) for trial in result.trials)
        size = merge([result], name, "latents", Goal(), 10)
        assert Size.from_dict(json.loads(json.dumps(size.to_dict()))) == size
