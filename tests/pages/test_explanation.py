"""What the report says in words is so."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.text import percent
from polariscope.pages.explanation import explanation, headline, meanings
from polariscope.sizing.result import Size


def regime_with(variances: list[float]) -> Regime:
    rng = np.random.default_rng(0)
    variance = np.full((200, len(variances)), variances)
    return diagnose(
        mean=rng.normal(size=variance.shape) * np.sqrt(np.maximum(1 - variance, 0)), variance=variance
    )


def test_the_headline_is_the_verdict() -> None:
    for variances, count in (([0.01, 0.5, 1.0, 1.0], "2 of 4 latents"), ([1.0], "0 of 1 latent")):
        regime = regime_with(variances)
        assert headline(regime) == regime.verdict.short == f"{count} in use, convergence unknown"


@pytest.mark.parametrize(
    ("variances", "says"),
    [
        ([0.01, 0.02, 1.0, 1.0], "2 of 4 latents are in use. Latents 0, 1 carry"),
        ([0.01, 1.0], "1 of 2 latents is in use. Latent 0 carries"),
        ([0.01, 0.02], "No latent is unused"),
        ([1e-6, 1e-6, 1e-6, 0.75], "Latent 3 carries almost no information"),  # −½ ln 0.75 = 0.14 of 21 nats
        ([0.01], "1 of 1 latent is in use. Latent 0 carries"),
        ([1.0, 1.0], "0 of 2 latents are in use. Posterior collapse"),
    ],
)
def test_the_explanation_fits_the_counts(variances: list[float], says: str) -> None:
    assert says in explanation(regime_with(variances))


def test_the_share_in_the_explanation_is_that_of_the_kl() -> None:
    regime = regime_with([0.001, 0.01, 0.02, 0.05, 0.08])
    share = sum(sorted((latent.kl for latent in regime.latents), reverse=True)[:3]) / regime.kl
    assert percent(share) in explanation(regime)


def test_whether_more_latents_are_needed_is_said_once_and_the_search_comes_first() -> None:
    full = regime_with([0.01, 0.02])
    assert "with more latents might use them" in explanation(full)
    for size, says in (
        (Size(2, (2, 3), "fondue"), "The search for the number of latents agrees: 2 latents (2–3)."),
        (Size(5, (4, 6), "fondue"), "gave 5 latents (4–6), more than this model has."),
        (Size(1, (1, 1), "fondue"), "gave 1 latent (1), fewer than this model has."),
    ):
        found = explanation(full, size=size)
        assert says in found
        assert "with more latents might use" not in found
    assert "with more latents might use" in explanation(
        full, size=Size(2.0, (1.0, 3.0), "fondue", target="beta")
    )


def test_an_over_pruned_model_is_not_offered_more_latents() -> None:
    rng = np.random.default_rng(0)
    variance = np.full((500, 3), [0.01, 0.02, 0.88])
    mean = rng.normal(size=variance.shape) * np.sqrt(1 - variance) * [1.0, 1.0, 1.8]  # in use: 0.18 nats
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    pruned = diagnose(Representation(mean, variance, sampled, factors=rng.integers(3, size=(500, 3))))
    assert any(note.startswith("Over-pruned") for note in pruned.notes)
    assert "lower the weight of the rate before adding latents" in explanation(pruned)
    few = diagnose(Representation(mean, variance, sampled, factors=rng.integers(3, size=(500, 4))))
    assert any(note.startswith("Fewer latents than factors") for note in few.notes)
    assert "There are more factors than latents" in explanation(few)
    for regime in (pruned, few):
        assert "are unlikely to help" not in explanation(regime)


def test_a_latent_whose_mean_never_moves_is_not_counted_as_used() -> None:
    mean = np.random.default_rng(0).normal(size=(300, 2)) * [1.0, 0.0]
    regime = diagnose(mean=mean, variance=np.full((300, 2), [0.01, 0.5]))
    assert headline(regime).startswith("1 of 2 latents in use")
    clause = "Latent 1 is not passive by its variance, but carries almost no information."
    assert f"1 of 2 latents is in use. {clause}" in explanation(regime)


def test_the_meaning_of_mixed_says_which_kinds_there_are() -> None:
    variance = np.stack([np.tile([0.01, 1.0], 50), np.full(100, 0.5)], axis=1)
    regime = diagnose(mean=np.random.default_rng(0).normal(size=(100, 2)), variance=variance)
    assert meanings(regime)["mixed"] == (
        "neither active nor passive. 1 switching: active for some inputs and passive for others; "
        "1 intermediate: intermediate variance for most inputs"
    )
    assert meanings(regime_with([0.01, 1.0]))["mixed"] == "neither active nor passive"


def test_a_passive_latent_whose_mean_moves_counts_as_used_and_its_meaning_says_so() -> None:
    """Its KL, ½·9 = 4.5 nats, is the largest of all, although its variance is the prior's."""
    mean = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 3.0, 0.0]
    regime = diagnose(mean=mean, variance=np.full((500, 3), [0.01, 0.98, 1.0]))
    assert regime.types == ["active", "passive", "passive"]
    assert regime.in_use == [1, 0]
    said = explanation(regime)
    assert "2 of 3 latents are in use. Latents 1, 0 carry 100" in said
    assert "latent 1 is passive by that rule, yet in use" in meanings(regime)["passive"]
    assert "latent 1 is passive by that rule, yet in use" in str(regime)
    # A mean that is away from the prior's and stays there costs as much and says nothing.
    away = diagnose(mean=np.tile([0.0, 3.0], (500, 1)), variance=np.ones((500, 2)))
    assert away.in_use == []
    assert "Posterior collapse" in explanation(away)
