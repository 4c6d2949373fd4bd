"""What metrics share: checks at the door, splits, notes about the factors, answers kept; and the Score record."""

from __future__ import annotations

import gc
import json
import math
import weakref

import numpy as np
import pytest

from analysis.metrics.known import grid, noise
from polariscope.analysis.code_table import Table, correlations, gap
from polariscope.analysis.metrics import Score, family
from polariscope.core.errors import InputError
from polariscope.numerics.information import information


def test_answers_are_kept_for_each_argument_and_go_with_the_object() -> None:
    shared = Table(noise(24, 2), grid(3, 4, repeats=2))
    assert shared.mi_table() is shared.mi_table(20)
    assert shared.mi_table(bins=20) is shared.mi_table()
    assert shared.mi_table(5) is not shared.mi_table(20)
    ghost = weakref.ref(shared)
    del shared
    gc.collect()
    assert ghost() is None


def test_a_split_covers_every_sample_once() -> None:
    train, test = Table(noise(30, 2)).split(0.8)
    assert len(train) == 24
    assert sorted([*train, *test]) == list(range(30))
    assert len(Table(noise(2, 2)).split(0.99)[1]) == 1


def test_what_is_random_depends_on_the_seed_and_not_on_the_order_of_questions() -> None:
    first, second = Table(noise(30, 2), seed=1), Table(noise(30, 2), seed=1)
    resamples = first.resamples
    assert (second.split()[0] == first.split()[0]).all()
    assert (second.resamples == resamples).all()
    assert (Table(noise(30, 2), seed=2).resamples != resamples).any()
    assert (resamples.sum(axis=1) == 30).all()


def test_shuffled_rows_keep_the_codes_and_lose_the_factors() -> None:
    shared = Table(noise(30, 2), grid(3, 2, repeats=5), np.ones((30, 2)))
    other = shared.permuted()
    assert (np.sort(other.codes, axis=0) == np.sort(shared.codes, axis=0)).all()
    assert (other.factors == shared.factors).all()
    assert (other.codes != shared.codes).any()


def test_standardised_codes_have_unit_variance_and_constants_are_zero() -> None:
    z = Table(np.hstack([5 + 3 * noise(50, 2), np.full((50, 1), 0.1)])).standardised
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), [1, 1, 0], atol=1e-12)


def test_classes_are_numbered_and_measured_factors_binned() -> None:
    factors = np.stack([np.tile([-5, 7], 50), np.linspace(0, 1, 100)], axis=1)
    shared = Table(noise(100, 2), factors, factor_kinds=["categorical", "continuous"])
    assert shared.n_classes == (2, 20)
    assert shared.factor_entropies == pytest.approx(np.log([2, 20]))
    assert "Metrics of classes put measured factors in 20 equal-width bins: 1." in shared.grid_notes


def test_a_full_grid_needs_no_note_and_a_partial_or_correlated_one_does() -> None:
    rng = np.random.default_rng(0)
    full = rng.integers(8, size=(1000, 2))
    assert Table(noise(1000, 2), full).grid_notes == ()
    partial = full[full.sum(axis=1) < 8]
    notes = Table(noise(len(partial), 2), partial, factor_names=("x", "y")).grid_notes
    assert "Only 36 of the 64 combinations" in notes[0]
    assert "x and y" in notes[1]
    skewed = rng.choice(8, p=[0.6, 0.2, 0.1, 0.05, 0.02, 0.015, 0.01, 0.005], size=(500, 2))
    assert len(np.unique(skewed, axis=0)) < 50  # rare values hardly meet, and nothing is missing
    assert Table(noise(500, 2), skewed).grid_notes == ()


def dependent(counts: list[list[int]]) -> bool:
    """Whether two factors with these numbers of samples in each combination are said to depend on each other."""
    rows = [(i, j) for i, row in enumerate(counts) for j, count in enumerate(row) for _ in range(count)]
    notes = Table(noise(len(rows), 1), np.array(rows)).grid_notes
    return any("depend on each other in these samples (0 and 1)" in note for note in notes)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Information in nats of two halves: beyond chance if 2nI exceeds 10.8, worth a note if over 5 % of log 2.
        ([[7, 3], [3, 7]], False),  # 2nI = 3.3 may be chance, though I = 0.08
        ([[2600, 2400], [2400, 2600]], False),  # 2nI = 16, of little consequence: I = 0.0008
        ([[52, 30], [30, 52]], False),  # 2nI = 12 and I = 0.036, of which chance gives 0.003
        ([[48, 27], [27, 48]], True),  # 2nI = 11.9, I − 0.003 = 0.0364 > 0.0347
        # Two degrees of freedom: 13.8. It is 15.2, so three would not let it pass; I is 11 % of the smaller entropy.
        ([[5, 28], [18, 15], [6, 28]], True),
        ([[5, 18, 6], [28, 15, 28]], True),
        ([[70, 30], [30, 70]] * 6, True),  # 11 % of log 2, 3 % of log 12
    ],
)
def test_factors_depend_on_each_other_beyond_chance_and_by_5_percent_of_an_entropy(
    counts: list[list[int]], expected: bool
) -> None:
    assert dependent(counts) == expected


def test_many_classes_of_few_samples_do_not_depend_on_each_other_by_chance() -> None:
    rng = np.random.default_rng(0)
    factors = rng.permuted(np.tile(np.arange(8), 5)[:, None].repeat(2, axis=1), axis=0)
    assert not any("depend" in note for note in Table(noise(40, 1), factors).grid_notes)


def test_combinations_are_missing_where_a_tenth_of_those_expected_is() -> None:
    factors, order = grid(10, 10, repeats=10), np.random.default_rng(0).permutation(100)
    for left_out, said in ((9, False), (11, True)):
        kept = factors[order[factors @ [10, 1]] >= left_out]
        notes = Table(noise(len(kept), 1), kept).grid_notes
        assert any(f"Only {100 - left_out} of the 100 combinations" in note for note in notes) == said


def test_angles_go_round_from_the_least_value_to_the_largest() -> None:
    factors = np.array([3, 4, 6, 3, 4, 6])[:, None]
    found = Table(noise(6, 1), factors, factor_kinds=["cyclic"]).angles(0)
    np.testing.assert_allclose(found, 2 * np.pi * np.array([0, 1, 3, 0, 1, 3]) / 4)


def test_types_are_those_given_or_those_of_the_variances() -> None:
    variance = np.tile([0.01, 1.0], (24, 1))
    assert Table(CODES, FACTORS).types is None
    assert Table(CODES, FACTORS, variance).types == ("active", "passive")
    assert Table(CODES, FACTORS, types=["mixed", "active"]).types == ("mixed", "active")
    assert Table(CODES, FACTORS, variance, types=["mixed", "active"]).types == ("mixed", "active")


def test_a_split_has_the_fraction_asked_for_and_at_least_one_sample_in_each_part() -> None:
    table = Table(noise(10, 1))
    assert (table.n_factors, table.factor_names, table.factor_kinds) == (0, (), ())
    sizes = {fraction: len(table.split(fraction)[0]) for fraction in (0.01, 0.26, 0.5, 0.8, 0.99)}
    assert sizes == {0.01: 1, 0.26: 3, 0.5: 5, 0.8: 8, 0.99: 9}
    assert len(table.split()[0]) == 7


def test_two_samples_of_each_class_are_enough() -> None:
    table = Table(noise(6, 1), np.array([0, 0, 4, 4, 10**9, 10**9])[:, None])
    assert table.classes[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert table.n_classes == (3,)
    measured = Table(noise(4, 1), np.array([0.0, 0.5, 0.51, 1.0])[:, None], factor_kinds=["continuous"])
    assert measured.classes[:, 0].tolist() == [0, 1, 1, 2]  # bins with a single sample are classes too
    with pytest.raises(InputError, match="factor '0' has a single value in these 4 samples"):
        Table(noise(4, 1), np.full((4, 1), 3))
    with pytest.raises(InputError, match="has 3 classes in 5 samples"):
        Table(noise(5, 1), np.array([0, 0, 1, 1, 2])[:, None])


def test_informations_of_resampled_and_shuffled_rows_are_those_of_the_rows() -> None:
    table = Table(CODES, FACTORS)
    bins = table.discretised(3)
    tables, entropies = table.mi_replicates(3)
    for times, known, of_factors in zip(table.resamples, tables, entropies, strict=True):
        rows = np.repeat(np.arange(24), times)
        expected = information(bins[rows], FACTORS[rows])
        np.testing.assert_allclose(known, expected[0], atol=1e-12)
        np.testing.assert_allclose(of_factors, expected[1], atol=1e-12)
    for order, known in zip(table.permutations, table.mi_permuted(3), strict=True):
        np.testing.assert_allclose(known, information(bins[order], FACTORS)[0], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_correlations_do_not_depend_on_scale(scale: float) -> None:
    x, y = noise(30, 2), noise(30, 3, 1)
    x[:, 1] += y[:, 0]
    once = np.ones((1, 30), dtype=np.uint8)
    expected = np.corrcoef(x.T, y.T)[:2, 2:]
    np.testing.assert_allclose(correlations(scale * x, y, once)[0], expected, atol=1e-12)
    np.testing.assert_allclose(correlations(x, scale * y, once)[0], expected, atol=1e-12)
    assert (correlations(0.1 + 0 * x, y, once) == 0).all()


def test_a_gap_is_best_minus_second() -> None:
    assert gap(np.array([[[1.0], [5.0], [3.0]], [[2.0], [2.0], [0.0]]])).tolist() == [[2.0], [0.0]]


CODES, FACTORS = noise(24, 2), grid(3, 4, repeats=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variance": np.ones((24, 3))}, r"same shape, got \(24, 2\) and \(24, 3\)"),
        ({"variance": -np.ones((24, 2))}, "this looks like a log-variance"),
        ({"factor_names": ("shape",)}, "must have a name for each of the 2 factors, got 1 names"),
        ({"factor_kinds": ("continuous",)}, "for each of the 2 factors"),
        (
            {"factor_kinds": ("continuous", "discrete")},
            "'categorical' or 'ordinal' or 'cyclic' or 'continuous' for each",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Table(CODES, FACTORS, **options)


def test_labels_that_floats_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(InputError, match="factors must be below 2⁵³, because larger integers are not exact"):
        Table(CODES, FACTORS.astype(np.int64) + 2**53)


def test_a_score_prints_its_number_its_interval_and_its_chance() -> None:
    score = Score(0.5, (0.4, 0.6), 0.1, (0.0, 1.0), True, "plain", metric="mig", notes=("take care.",))
    assert (
        str(score)
        == "mig (plain): 0.5 (0.4 to 0.6); higher is better, in [0, 1], chance 0.1\nNote: take care."
    )


def test_a_score_is_kept_as_json_whatever_it_holds() -> None:
    score = Score(
        math.inf,
        None,
        None,
        (0.0, math.inf),
        False,
        "plain",
        per_latent=np.array([1.0, math.nan]),
        matrix=np.eye(2),
        details={"a": np.int64(3), "b": np.array([True]), 4: ("x", None)},
    )
    record = json.loads(json.dumps(score.to_dict(), allow_nan=False))
    assert record["value"] == "Infinity"
    assert record["bounds"] == [0, "Infinity"]
    assert record["per_latent"] == [1, None]
    assert record["matrix"] == [[1, 0], [0, 1]]
    assert record["details"] == {"a": 3, "b": [True], "4": ["x", None]}


def test_a_score_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="its value is nan"):
        Score.of("mig", math.nan, interval=None, chance=None, variant="locatello")


def test_a_kind_that_was_declared_is_not_asked_for_again():
    values = np.random.default_rng(0).normal(size=(60, 1))
    with pytest.raises(InputError, match="it is declared cyclic, which is for classes"):
        Table(values, values, factor_kinds=["cyclic"])
    with pytest.raises(InputError, match="declare it in factor_kinds"):
        Table(values, values)
    with pytest.raises(InputError, match=r"required: draw more\.$"):
        Table(values, np.arange(60)[:, None], factor_kinds=["ordinal"])


def test_a_metric_that_does_not_apply_to_arrays_is_named():
    codes = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InputError, match="metric 'dci' does not apply: disentanglement"):
        family["dci"](codes, np.arange(60)[:, None] % 3)
