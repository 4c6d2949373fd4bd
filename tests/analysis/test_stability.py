"""Stability over models: copies agree fully, unrelated codes at chance, a spoiled model is never the central one."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from polariscope.analysis.representation import Representation
from polariscope.analysis.stability import Relation, Stability, stability
from polariscope.core.errors import InputError

QUICK = 19  # shuffles, where the chance level is not what is tested


def draw(seed: int, n: int = 500, d: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def noisy(x: np.ndarray, noise: float, seed: int) -> np.ndarray:
    return x + noise * np.random.default_rng([seed, 1]).normal(size=x.shape)


def representation(mean: np.ndarray, variance: float | np.ndarray = 0.01) -> Representation:
    whole = np.broadcast_to(variance, mean.shape).astype(float)
    return Representation(mean, whole, mean)


@pytest.mark.parametrize("relation", ["spearman", "pearson"])
def test_copies_in_another_order_and_with_other_signs_agree_fully(relation: Relation) -> None:
    x = draw(0)
    copies = [x, x[:, [2, 0, 3, 1]], x * [1, -1, -1, 1] + 5, 3 * x[:, ::-1]]
    found = stability(copies, relation=relation, n_permutations=QUICK)
    assert found.value == pytest.approx(1, abs=1e-12)
    assert found.space == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(found.agreement, 1, atol=1e-12)
    assert all(one.returns for one in found.latents)
    assert found.of(0)[2].partners == (2, 0, 2, 1)
    assert found.of(1)[0].partners == (2, 0, 2, 1)  # the same latent, seen from another model
    assert found.p_value == 1 / (1 + QUICK)


def test_a_monotone_map_of_each_latent_is_the_same_latent_by_rank_and_not_by_shape() -> None:
    x = draw(0)
    copies = [x, np.exp(2 * x)]
    assert stability(copies, n_permutations=QUICK).value == pytest.approx(1, abs=1e-12)
    assert stability(copies, relation="pearson", n_permutations=QUICK).value < 0.8


def test_a_rotation_is_the_same_space_and_not_the_same_latents() -> None:
    """By 45° each latent is (a ± b)/√2: |r| = √½ with either of the two, and R² = 1 on both."""
    x, turn = draw(0, n=4000, d=2), np.array([[1.0, 1.0], [-1.0, 1.0]]) / math.sqrt(2)
    found = stability([x, x @ turn], relation="pearson", n_permutations=QUICK)
    assert found.space == pytest.approx(1, abs=1e-9)
    assert found.value == pytest.approx(math.sqrt(0.5), abs=0.03)
    assert any("rotation" in note for note in found.notes)
    same = stability([x, -x], relation="pearson", n_permutations=QUICK)
    assert not any("rotation" in note for note in same.notes)


@pytest.mark.parametrize("relation", ["spearman", "pearson"])
def test_the_agreement_of_noisy_copies_is_their_correlation(relation: Relation) -> None:
    """x + e with e of variance 1/4 in each model: r = 1/(1 + 1/4) = 0.8, and by rank (6/π) asin(r/2)."""
    x = draw(0, n=20_000)
    found = stability([noisy(x, 0.5, 1), noisy(x, 0.5, 2)[:, ::-1]], relation=relation, n_permutations=QUICK)
    expected = 0.8 if relation == "pearson" else 6 / math.pi * math.asin(0.4)
    assert found.value == pytest.approx(expected, abs=4 * (1 - 0.8**2) / math.sqrt(20_000 * 4))
    low, high = found.interval
    assert low < found.value < high
    assert found.space == pytest.approx(0.8**2, abs=0.01)


def test_a_latent_without_a_partner_counts_zero() -> None:
    """Three latents and two of them: 2 · 2 / (3 + 2)."""
    x = draw(0, d=3)
    found = stability([x, x[:, :2]], n_permutations=QUICK)
    assert found.value == pytest.approx(0.8, abs=1e-12)
    assert found.of(0)[2].partners == (2, None)
    assert found.of(0)[2].lowest == 0
    assert found.returning == (0, 1)


def test_passive_latents_do_not_count_where_variances_are_known() -> None:
    x = draw(0, d=3)
    models = []
    for seed in range(3):
        mean = np.column_stack([x, 0.001 * draw(seed + 1, d=2)])
        models.append(representation(mean, np.array([0.01, 0.01, 0.01, 1.0, 1.0])))
    found = stability(models, n_permutations=QUICK)
    assert found.n_used == (3, 3, 3)
    assert found.value == pytest.approx(1, abs=1e-12)
    arrays, variances = [one.mean for one in models], [one.variance for one in models]
    assert stability(arrays, variance=variances, n_permutations=QUICK).to_dict() == found.to_dict()
    unknown = stability(arrays, n_permutations=QUICK)
    assert unknown.value < 0.8
    assert any("including passive ones" in note for note in unknown.notes)


def test_the_kl_of_a_latent_is_that_to_its_own_prior() -> None:
    """A latent that is its prior N(0, 4) says nothing, whatever its KL to N(0, 1) would be."""
    x = np.column_stack([draw(0, d=2), 1e-6 * draw(1, d=1)])
    variance = np.tile([0.01, 0.01, 4.0], (500, 1))
    own = Representation(x, variance, x, prior_mean=np.zeros(3), prior_variance=np.full(3, 4.0))
    assert stability([own, own], n_permutations=QUICK).n_used == (2, 2)


@pytest.mark.parametrize("kind", ["noise", "collapsed", "one", "mixed", "copied"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_spoiled_model_is_never_the_central_one(kind: str, place: int) -> None:
    x = draw(0)
    one = noisy(x, 0.3, 9)
    spoiled = {
        "noise": draw(7),
        "collapsed": 1e-9 * draw(7),  # passive in every latent
        "one": np.column_stack([x[:, :1], 1e-9 * draw(7, d=3)]),  # one perfect latent, the others passive
        "mixed": one @ np.linalg.qr(draw(8, n=4))[0],
        "copied": np.repeat(x[:, :1], 4, axis=1) + 1e-3 * draw(7),  # the same latent four times
    }[kind]
    variance = np.full_like(spoiled, 0.01)
    variance[:, spoiled.std(axis=0) < 1e-6] = 1.0
    models = [representation(noisy(x, 0.3, seed)) for seed in range(4)]
    models.insert(place, Representation(spoiled, variance, spoiled))
    found = stability(models, n_permutations=QUICK)
    assert found.central != place
    assert int(np.argmin(found.centrality)) == place
    assert found.centrality[place] < min(c for i, c in enumerate(found.centrality) if i != place) - 0.05


def test_the_cleanest_copy_is_the_most_central() -> None:
    """r of copies with noise s and t is 1/√((1 + s²)(1 + t²)): the one of least noise is nearest to all."""
    x = draw(0, n=3000)
    found = stability(
        [noisy(x, s, seed) for seed, s in enumerate((0.8, 0.6, 0.1, 0.7))], n_permutations=QUICK
    )
    assert found.central == 2
    assert found.runner_up == 1
    assert found.lead is not None
    assert found.lead[0] > 0
    assert not any("told apart" in note for note in found.notes)


def test_equal_models_cannot_be_told_apart_and_two_have_no_centre() -> None:
    x = draw(0)
    same = stability([noisy(x, 0.5, seed) for seed in range(5)], n_permutations=QUICK)
    assert any("is not significant" in note for note in same.notes)
    two = stability([x, x], n_permutations=QUICK)
    assert two.central is None
    assert "Train a third" in two.answer
    assert two.shown == 0


def test_unrelated_codes_have_the_consistency_of_chance() -> None:
    found = stability([draw(seed, n=2000) for seed in range(4)], n_permutations=200)
    # The spread of the consistency of unrelated codes, from the shuffles: 95 % lie within 1.645 of it above the mean.
    spread = (found.chance_high - found.chance) / 1.645
    assert abs(found.value - found.chance) < 4 * spread
    assert found.chance < 0.05
    assert found.space == pytest.approx(found.space_chance, abs=0.002)
    assert found.space_chance == pytest.approx(
        4 / 1999, rel=0.1
    )  # R² of d regressors on n samples: d/(n − 1)
    assert found.returning == ()


def test_codes_that_depend_within_a_model_are_judged_by_a_chance_that_keeps_it(unannotated: None) -> None:
    """Few samples, and latents that repeat each other: shuffling rows, not columns, keeps that."""
    values = [
        stability(
            [np.repeat(draw(2 * seed + k, n=30, d=1), 3, axis=1) for k in range(2)], n_permutations=QUICK
        )
        for seed in range(30)
    ]
    differences = [found.value - found.chance for found in values]
    assert abs(np.mean(differences)) < 4 * np.std(differences) / math.sqrt(30)


def test_chance_is_exceeded_by_unrelated_codes_as_often_as_it_says(unannotated: None) -> None:
    """p ≤ 0.05 in one case of twenty: 10 ± 3.1 of 200; four standard deviations are allowed."""
    n = 200
    low = sum(
        stability([draw(2 * seed + k, n=30, d=2) for k in range(2)], n_permutations=QUICK).p_value <= 0.05
        for seed in range(n)
    )
    assert abs(low - 0.05 * n) < 4 * math.sqrt(n * 0.05 * 0.95)


@pytest.mark.parametrize("relation", ["spearman", "pearson"])
def test_the_interval_holds_the_true_agreement(relation: Relation, unannotated: None) -> None:
    """True r = 0.8 as above, in 95 % of 100 draws; four standard deviations below would be 0.86."""
    truth = 0.8 if relation == "pearson" else 6 / math.pi * math.asin(0.4)
    hits = 0
    for seed in range(100):
        x = draw(10 * seed, n=300, d=2)
        models = [noisy(x, 0.5, 10 * seed + 1), noisy(x, 0.5, 10 * seed + 2)]
        low, high = stability(models, relation=relation, n_permutations=QUICK).interval
        hits += low <= truth <= high
    assert hits / 100 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 100)


def test_with_few_samples_chance_raises_what_a_latent_must_reach() -> None:
    found = stability([draw(seed, n=6, d=3) for seed in range(2)], n_permutations=50)
    assert found.threshold > math.sqrt(0.5)
    assert any("occur by chance" in note for note in found.notes)


def test_the_order_of_models_and_of_samples_does_not_matter() -> None:
    models = [noisy(draw(0), 0.4, seed) for seed in range(4)]
    found = stability(models, n_permutations=QUICK)
    order = np.random.default_rng(1).permutation(500)
    turned = stability([models[place][order] for place in (2, 0, 3, 1)], n_permutations=QUICK)
    assert turned.value == pytest.approx(found.value, abs=1e-12)
    assert turned.centrality == pytest.approx([found.centrality[place] for place in (2, 0, 3, 1)], abs=1e-12)


def test_it_comes_back_from_json_and_as_a_table() -> None:
    x = draw(0, d=2)
    found = stability({"a": x, "b": -x[:, ::-1], "c": x}, n_permutations=QUICK)
    assert Stability.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [(row["model"], row["latent"]) for row in rows] == [(m, j) for m in "abc" for j in "01"]
    assert (rows[0]["partner.b"], rows[0]["returns"]) == ("1", "True")
    text = str(found)
    assert "Latents of a that recur in every model: 0, 1 (of 2 in use)." in text
    assert "Most central: a" in text


def test_models_without_a_latent_in_use_agree_with_none() -> None:
    still = np.zeros((50, 2))
    found = stability([draw(0, n=50, d=2), still, still], n_permutations=QUICK)
    assert found.value == 0
    assert found.n_used == (2, 0, 0)
    assert any("No latent is in use in 1, 2" in note for note in found.notes)
    assert stability([still, still], n_permutations=QUICK).to_csv() == "model,latent,returns\n"


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ([np.eye(3)], {}, "models must contain at least two models"),
        (np.eye(3), {}, "models must be a list or a mapping of at least 2"),
        ([np.eye(3), np.eye(4)], {}, "encode the same samples"),
        ({"a": np.eye(3), "b": np.eye(3)}, {"names": ["a", "b"]}, "names must be omitted"),
        ([np.eye(3), np.eye(3)], {"names": ["a", "a"]}, "names must be unique"),
        ([np.eye(3), np.eye(3)], {"relation": "kendall"}, "no relation named 'kendall'"),
        ([np.eye(3), np.eye(3)], {"threshold": 1.5}, "threshold must lie between 0 and 1"),
        ([np.eye(3), np.eye(3)], {"n_permutations": 10}, "at least 19"),
    ],
)
def test_a_wrong_call_is_refused(models: object, options: dict, words: str, unannotated: None) -> None:
    with pytest.raises(InputError, match=words):
        stability(models, **options)


def test_samples_whose_ids_differ_are_refused() -> None:
    x = draw(0, n=5)
    one, other = (Representation(x, x**2, x, ids=np.arange(5) + shift) for shift in (0, 1))
    with pytest.raises(InputError, match="be of the same samples"):
        stability([one, other])


def test_the_lead_has_the_bounds_of_a_difference_of_two_agreements(monkeypatch: pytest.MonkeyPatch) -> None:
    module, asked = "polariscope.analysis.stability", []

    def recorded(value: float, left_out: np.ndarray, bounds: tuple[float, float]) -> tuple[float, float]:
        asked.append(bounds)
        return value, value

    monkeypatch.setattr(f"{module}.jackknife_interval", recorded)
    stability([noisy(draw(0), 0.3, seed) for seed in range(3)], n_permutations=QUICK)
    assert sorted(asked) == [(-1.0, 1.0), (0.0, 1.0)]
