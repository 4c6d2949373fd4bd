"""The published searches start at the intrinsic dimension of the data, and raise the epochs until the answer stays."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.dimension.mle import mle
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods import family
from polariscope.sizing.result import SeedResult
from polariscope.testing.linear_candidates import LinearCandidates, exact_answer


class OnAManifold(LinearCandidates):
    """Models that put ``best`` latents to use, of data whose intrinsic dimension is another number."""

    def __init__(self, dimension: int, best: int, n_observations: int = 1500) -> None:
        super().__init__(np.full(best, 1e4), n_samples=50)
        self.dimension, self.n_observations = dimension, n_observations

    def observations(self) -> np.ndarray:
        return generator(0, "manifold").standard_normal((self.n_observations, self.dimension))


def path(found: SeedResult) -> list[int]:
    return [trial.n_latents for trial in found.trials]


@pytest.mark.parametrize(
    ("dimension", "best", "tried"),
    [
        (4, 19, [4, 8, 16, 32, 24, 20, 18, 19]),  # SymSol: 8 models, as in Tab. 8.1
        (4, 4, [4, 8, 6, 5]),
        (6, 2, [6, 3, 1, 2]),
    ],
)
def test_the_published_search_starts_at_the_dimension_of_the_data(
    dimension: int, best: int, tried: list[int]
) -> None:
    candidates = OnAManifold(dimension, best)
    assert mle(candidates.observations(), k=20).rounded == dimension
    assert exact_answer(candidates.eigenvalues, 1.0) == best
    found = family["fondue-published"](candidates, Goal(epochs=1))
    assert path(found) == tried
    assert found.value == best
    words = f"The search started at {dimension}, the intrinsic dimension of the data (maximum likelihood, k = 20)."
    assert found.notes[0] == words


def test_a_start_that_is_given_is_taken_and_not_spoken_of() -> None:
    found = family["fondue-published"](OnAManifold(4, 19), Goal(epochs=1, n_init=22))
    assert path(found) == [22, 11, 16, 19, 20]
    assert not any("Started" in note for note in found.notes)


def test_the_start_is_at_most_the_cap() -> None:
    found = family["fondue-published"](OnAManifold(6, 2), Goal(epochs=1, cap=3))
    assert path(found) == [3, 1, 2]
    assert (
        "The search started at 3, the intrinsic dimension of the data (maximum likelihood, k = 20) limited by the cap."
        in (found.notes)
    )


def test_kin_start_there_too_and_binary_searches_have_no_start() -> None:
    candidates = OnAManifold(4, 19)
    for name in family:
        uses = family.traits(name)["uses"]
        if "epochs" not in uses or "n_init" not in uses or name == "fondue-ib":
            continue
        assert path(family[name](candidates, Goal(epochs=1)))[0] == 4
    found = family["fondue-binary"](candidates, Goal(epochs=1))
    assert path(found)[0] == 100
    assert not any("Started" in note for note in found.notes)


def test_data_whose_dimension_cannot_be_told_are_refused_before_anything_is_trained() -> None:
    candidates = OnAManifold(4, 19, n_observations=12)
    with pytest.raises(InputError, match=r"starts at the intrinsic dimension .* set the start with n_init"):
        family["fondue-published"](candidates, Goal(epochs=1))
    assert candidates.n_steps == 0
    assert family["fondue-published"](candidates, Goal(epochs=1, n_init=4)).value == 19
