"""What metrics share: checks at the door, splits, notes about the factors, answers kept; and the Score record."""

from __future__ import annotations

import gc
import json
import math
import weakref

import numpy as np
import pytest

from analysis.metrics.known import grid, noise
from polariscope.analysis.metrics import Score, family
from polariscope.analysis.metrics.support.table import Table, gap
from polariscope.core.errors import InputError


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
    assert "Measured factors in 20 equal-width bins wherever classes are needed: 1." in shared.grid_notes


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


def test_a_gap_is_best_minus_second() -> None:
    assert gap(np.array([[[1.0], [5.0], [3.0]], [[2.0], [2.0], [0.0]]])).tolist() == [[2.0], [0.0]]


CODES, FACTORS = noise(24, 2), grid(3, 4, repeats=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variance": np.ones((24, 3))}, r"same shape, got \(24, 2\) and \(24, 3\)"),
        ({"variance": -np.ones((24, 2))}, "this looks like a log-variance"),
        ({"factor_names": ("shape",)}, "must name each of the 2 factors, got 1 names"),
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
    with pytest.raises(InputError, match="factors must be below 2⁵³, beyond which whole numbers merge"):
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
    with pytest.raises(InputError, match=r"needed: draw more\.$"):
        Table(values, np.arange(60)[:, None], factor_kinds=["ordinal"])


def test_a_metric_that_does_not_apply_to_arrays_is_named():
    codes = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InputError, match="metric 'dci' does not apply: its disentanglement"):
        family["dci"](codes, np.arange(60)[:, None] % 3)
