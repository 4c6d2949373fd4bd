"""Every sizing method keeps the contract of its family, and trained models give the same answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.sizing.goal import Goal
from polariscope.sizing.merge import merge
from polariscope.sizing.methods import family
from polariscope.sizing.result import SeedResult
from polariscope.testing import SizingContract
from polariscope.testing.linear_candidates import LinearCandidates
from polariscope.testing.sizing import EIGENVALUES


class TestSizing(SizingContract):
    names = list(family)
    # The threshold of the information bottleneck has no closed form, even here; its search is tested with fakes.
    without_closed_form = ("ib", "fondue-ib")
    chooses_steps = ("fondue",)

    def answers(self, name: str) -> Sequence[int]:
        # One latent of noise adds at most 1 to an intrinsic dimension, which its threshold of 1 lets pass.
        return [4, 5] if name == "fondue-ide" else super().answers(name)


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
