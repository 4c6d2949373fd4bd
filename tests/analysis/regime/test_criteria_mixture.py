import numpy as np
import pytest

from polariscope.analysis.regime.criteria import mixedness, mixture
from polariscope.analysis.regime.diagnose import diagnose


@pytest.mark.parametrize(
    ("n_known", "n_unknown", "expected"),
    [
        (10, 0, "active"),
        (9, 1, "active"),
        (8, 2, "mixed"),
        (1, 8, "mixed"),
        (1, 9, "passive"),
        (0, 0, "noisy"),
        (5, 0, "noisy"),
    ],
)
def test_labels_follow_the_shares_of_samples(n_known, n_unknown, expected):
    column = np.array([0.01] * n_known + [1.0] * n_unknown + [0.5] * (10 - n_known - n_unknown))
    found = mixture(column[:, None])
    assert (found.known[0], found.unknown[0]) == (n_known / 10, n_unknown / 10)
    assert found.labels == (expected,)


def test_the_bounds_themselves_are_neither_known_nor_unknown():
    found = mixture(np.array([[0.1], [0.9]]))
    assert (found.known[0], found.unknown[0]) == (0, 0)


def of_variances(column):
    """The one latent of a diagnosis with these posterior variances."""
    variance = np.asarray(column, dtype=float)[:, None]
    mean = np.random.default_rng(0).normal(size=variance.shape)
    return diagnose(mean=mean, variance=variance).latents[0]


@pytest.mark.parametrize(
    ("column", "type_", "kind"),
    [
        ([0.01, 1.0] * 50, "mixed", "switching"),
        ([0.01] * 85 + [1.0] * 15, "mixed", "switching"),
        ([0.01] * 15 + [1.0] * 85, "mixed", "switching"),
        ([0.5] * 100, "mixed", "intermediate"),
        (np.linspace(0.2, 0.8, 100), "mixed", "intermediate"),
        (np.linspace(0, 1, 100), "mixed", "intermediate"),  # everywhere alike: a tenth at either end
        ([0.15] * 100, "mixed", "intermediate"),
        ([1.5] * 100, "mixed", "wide"),
        ([0.01] * 100, "active", None),
        ([1.0] * 100, "passive", None),
    ],
)
def test_mixed_latents_that_switch_are_told_from_those_in_between(column, type_, kind):
    latent = of_variances(column)
    assert (latent.type, latent.mixedness) == (type_, kind)
    assert latent.label == (type_ if kind is None else f"{type_} ({kind})")


@pytest.mark.parametrize(
    ("n_known", "n_unknown", "kind"),
    [
        (25, 25, "switching"),  # half of the inputs at the ends
        (25, 24, "intermediate"),
        (45, 5, "switching"),  # one input in twenty at the rarer end
        (46, 4, "intermediate"),
        (5, 45, "switching"),
        (4, 46, "intermediate"),
    ],
)
def test_the_borders_between_switching_and_intermediate(n_known, n_unknown, kind):
    column = [0.01] * n_known + [1.0] * n_unknown + [0.5] * (100 - n_known - n_unknown)
    assert mixedness("mixed", n_known / 100, n_unknown / 100, float(np.mean(column))) == kind
    latent = of_variances(column)
    assert (latent.type, latent.mixedness) == ("mixed", kind)


@pytest.mark.parametrize(("mean", "kind"), [(1.0, "intermediate"), (np.nextafter(1.0, 2), "wide")])
def test_a_posterior_as_wide_as_the_prior_on_average_is_not_wider(mean, kind):
    assert mixedness("mixed", 0.0, 0.0, float(mean)) == kind


def test_the_kinds_of_mixed_latents_are_counted_and_shown():
    variance = np.stack([np.tile([0.01, 1.0], 50), np.full(100, 0.5), np.full(100, 0.01)], axis=1)
    regime = diagnose(mean=np.random.default_rng(0).normal(size=(100, 3)), variance=variance)
    assert regime.kinds_of_mixed == {"switching": 1, "intermediate": 1}
    assert regime.counts == {"active": 1, "mixed": 2, "passive": 0}
    for shown in (str(regime), regime._repr_html_()):
        assert "mixed (switching)" in shown
        assert "mixed (intermediate)" in shown
        assert "Mixed: 1 switching, 1 intermediate." in shown
