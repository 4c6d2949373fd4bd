import numpy as np
import pytest

from analysis.regime.linear_vae import linear_vae
from polariscope.analysis.regime import criteria
from polariscope.analysis.regime.criteria import CRITERIA, compare_criteria, order_by_kl, order_by_variance
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation


def posterior(mean, variance, **prior):
    return relative_posterior(Representation(mean, variance, mean, **prior))


def two_point(std, variance):
    """Means ± std, so that every moment is exact."""
    signs = np.array([[1.0], [-1.0]])
    return posterior(signs * np.atleast_1d(std), np.tile(np.atleast_1d(variance).astype(float), (2, 1)))


@pytest.mark.parametrize(
    ("name", "std", "variance", "expected"),
    [
        ("std-of-mean", [0.5, 0.500001], [0.1, 1.0], [False, True]),
        ("mean-variance", [0.0, 0.0], [0.8, 0.799], [False, True]),
        ("std-pruning", [0.05, 0.0499], [1.0, 1.0], [True, False]),
        ("active-units", [0.1001, 0.0999], [1.0, 1.0], [True, False]),
        # KL of N(±s, 1) is s²/2.
        ("kl-udr", [0.142, 0.141], [1.0, 1.0], [True, False]),
        ("kl-threshold", [0.448, 0.447], [1.0, 1.0], [True, False]),
        ("mixture", [0.0, 0.0], [0.95, 0.85], [False, True]),
        ("kl-tail", [1.0, 0.0], [0.1, 1.0], [True, False]),
    ],
)
def test_each_criterion_turns_at_its_published_threshold(name, std, variance, expected):
    assert CRITERIA[name](two_point(std, variance)).tolist() == expected


def test_thresholds_themselves_are_on_the_side_that_the_rules_say():
    """Binary numbers, so that every comparison is exact: std ½, variance ¼, KL ⅛."""
    found = two_point([1.0, 0.5, 0.0], [0.0625, 1.0, 1.5625])
    assert criteria.std_of_mean(found, threshold=0.5).tolist() == [True, False, False]
    assert criteria.std_pruning(found, threshold=0.5).tolist() == [True, True, False]
    assert criteria.active_units(found, threshold=0.25).tolist() == [True, False, False]
    assert criteria.mean_variance(found, threshold=1.0).tolist() == [True, False, False]
    for criterion in (criteria.kl_threshold, criteria.kl_udr):
        assert criterion(found, threshold=0.125).tolist() == [True, False, False]
    # E[μ²] = ¼ of the second and |E[σ] − 1| = ¼ of the third are still of the tail.
    assert criteria.kl_tail(found, tolerance=0.25).tolist() == [True, False, False]


def test_each_rule_is_told_by_the_first_line_of_its_docstring():
    table = compare_criteria(two_point([1.0, 0.0], [0.1, 1.0]), np.array([True, False]))
    told = dict(zip(table.names, table.rules, strict=True))
    assert told["active-units"].startswith("Var(μ) > 0.01. Burda")
    assert told["kl-tail"].endswith("such a latent. mushom2020 §5.3.")
    assert all(rule and "\n" not in rule for rule in table.rules)


def test_the_tail_by_kl_is_unbroken():
    # Latent 1 looks like the prior (KL 0.045), but latent 2, of less KL, is too wide: there is no tail.
    found = two_point([1.0, 0.3, 0.0], [0.1, 1.0, 1.32])
    assert order_by_kl(found).tolist() == [0, 1, 2]
    assert criteria.kl_tail(found).tolist() == [True, True, True]
    assert criteria.kl_tail(two_point([1.0, 0.3], [0.1, 1.0])).tolist() == [True, False]


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_do_not_change_when_the_prior_is_moved_and_scaled_with_the_posterior(name):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(200, 6)) * [1, 0.6, 0.3, 0.1, 0.03, 0.001]
    variance = rng.uniform(0.92, 1.08, size=(200, 6)) * [0.01, 0.1, 0.5, 0.9, 1, 1]
    scale, shift = np.array([0.1, 3, 10, 0.5, 7, 0.2]), np.arange(6.0)
    moved = posterior(shift + scale * mean, scale**2 * variance, prior_mean=shift, prior_variance=scale**2)
    expected = CRITERIA[name](posterior(mean, variance))
    assert CRITERIA[name](moved).tolist() == expected.tolist()
    assert CRITERIA[name](posterior(mean[:, ::-1], variance[:, ::-1])).tolist() == expected.tolist()[::-1]
    assert 0 < expected.sum() < 6


def test_all_criteria_agree_on_a_clearly_polarised_model():
    found = posterior(*linear_vae([100.0, 50.0, 0.1, 0.05], noise=1.0)[:2])
    table = compare_criteria(found, np.array([True, True, False, False]))
    assert table.names == ("primary", *CRITERIA)
    assert set(table.in_use) == {(True, True, False, False)}
    assert np.min(table.agreement) == 1


def test_agreement_is_the_share_of_latents_on_which_two_rules_say_the_same():
    found = two_point([0.3, 1.0, 0.0], [0.9, 0.01, 1.0])  # the first: std 0.3, KL 0.048
    table = compare_criteria(found, np.array([True, True, False]))
    row = dict(zip(table.names, table.agreement[0], strict=True))
    assert row["primary"] == row["kl-udr"] == row["active-units"] == 1
    assert row["std-of-mean"] == row["kl-threshold"] == pytest.approx(2 / 3)
    np.testing.assert_array_equal(table.agreement, np.transpose(table.agreement))
    assert np.diag(table.agreement).tolist() == [1.0] * len(table.names)


def test_both_orders_sort_the_linear_vae_by_eigenvalue():
    found = posterior(*linear_vae([3.0, 20.0, 0.1, 5.0], noise=1.0)[:2])
    assert order_by_kl(found).tolist()[:3] == order_by_variance(found).tolist()[:3] == [1, 3, 0]


def test_infinite_kls_are_ordered_by_the_spread_of_the_mean():
    mean = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 3.0, 2.0]
    posterior = relative_posterior(Representation(mean, np.zeros((50, 3)), mean))
    assert order_by_kl(posterior).tolist() == [1, 2, 0]
