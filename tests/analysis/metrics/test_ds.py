"""The disentanglement score: neighbours, printed and corrected forms, known representations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from analysis.metrics.known import grid, noise, rotated
from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics.ds import _nearest, ds
from polariscope.core.errors import InputError
from polariscope.numerics.intervals import recentred_interval


def test_the_neighbours_are_the_nearest() -> None:
    rng = np.random.default_rng(0)
    for n in (5, 6, 50):
        train, test = rng.normal(size=n), 2 * rng.normal(size=40)
        distances = np.abs(train - test[:, None])
        found = np.sort(np.take_along_axis(distances, _nearest(train, test), axis=1), axis=1)
        np.testing.assert_array_equal(found, np.sort(distances, axis=1)[:, :5])


def test_equal_distances_go_to_the_smaller_value() -> None:
    train = np.arange(8.0)[::-1]
    assert np.sort(train[_nearest(train, np.array([3.5, 4.0]))], axis=1).tolist() == [
        [1, 2, 3, 4, 5],
        [2, 3, 4, 5, 6],
    ]


def by_definition(table: Table, kind: str, variant: str, rows: np.ndarray) -> float | None:
    """The score of these test samples, one after the other; None where there is nothing to say of a factor."""
    train = table.split(0.8)[0]
    gaps = []
    for k, w in enumerate(table.factors.T):
        if len(np.unique(w[rows])) == 1 and (kind, variant) != ("categorical", "printed"):
            return None  # a constant is right about a single value, which is the unit of printed classes only
        near = [[train[np.argsort(np.abs(z[train] - z[row]))[:5]] for row in rows] for z in table.codes.T]
        if kind == "categorical":
            constant = np.bincount(table.classes[rows, k]).max() / len(rows)
            votes = [[np.bincount(table.classes[each, k]).argmax() for each in latent] for latent in near]
            advantage = [float((np.array(vote) == table.classes[rows, k]).mean()) for vote in votes]
            most = constant if variant == "printed" else 1 - constant
            if variant == "corrected":
                advantage = [each - constant for each in advantage]
        else:
            points = np.exp(1j * table.angles(k)) if kind == "cyclic" else w
            middle = points[rows].mean()
            guesses = [np.array([points[each].mean() for each in latent]) for latent in near]
            if kind == "cyclic":
                middle, guesses = middle / abs(middle), [guess / np.abs(guess) for guess in guesses]
            most = np.sqrt((np.abs(points[rows] - middle) ** 2).mean())
            advantage = [most - np.sqrt((np.abs(points[rows] - guess) ** 2).mean()) for guess in guesses]
        if variant == "corrected":
            advantage = [max(each, 0.0) for each in advantage]
        best, second = sorted(advantage)[:-3:-1]
        gaps.append((best - second) / most)
    return float(np.mean(gaps))


@pytest.mark.parametrize("variant", ["printed", "corrected"])
@pytest.mark.parametrize("kind", ["categorical", "continuous", "cyclic"])
@pytest.mark.parametrize("n", [10, 20, 40])
def test_interval_and_chance_are_those_of_resampled_and_shuffled_samples(
    kind: str, variant: str, n: int
) -> None:
    # Of few test samples many resamples have a single value, or no sample: then each counts once.
    rng = np.random.default_rng(1)
    factors = rng.permuted(np.tile([[0, 1], [1, 2], [2, 0]], (n, 1))[:n], axis=0)
    test = Table(factors.astype(float), factors).split(0.8)[1]
    factors[test] = (np.arange(len(test))[:, None] + 2) // 3 % 3  # 0, 1, 1, 1, 2, …
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(n, 3))
    if kind == "continuous":
        factors = np.array([1.7, 0.3, 2.9])[factors]  # numbers whose mean is not exact
    table = Table(codes, factors, factor_kinds=[kind] * 2)
    score = ds(codes, factors, variant=variant, factor_kinds=[kind] * 2)
    assert score.value == pytest.approx(by_definition(table, kind, variant, test))
    chosen = [np.repeat(test, times[test]) for times in table.resamples]
    assert n > 10 or any(len(rows) == 0 for rows in chosen)
    replicates = [by_definition(table, kind, variant, rows if len(rows) else test) for rows in chosen]
    assert n == 40 or (None in replicates) == ((kind, variant) != ("categorical", "printed"))
    replicates = np.array([each for each in replicates if each is not None])
    high = 1 if variant == "corrected" else np.inf
    assert score.interval == pytest.approx(recentred_interval(score.value, replicates, (0, high)), abs=1e-6)
    assert score.chance == pytest.approx(by_definition(table.permuted(), kind, variant, test), abs=1e-6)


@pytest.mark.parametrize("variant", ["printed", "corrected"])
def test_it_is_the_definition_with_the_neighbours_of_scikit_learn(variant: str) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers([3, 20], size=(500, 2))
    codes = factors @ rng.normal(size=(2, 3)) + rng.normal(size=(500, 3))
    kinds = ("categorical", "continuous")
    train, test = Table(codes, factors).split(0.8)
    expected = []
    for w, kind in zip(factors.T, kinds, strict=True):
        found = []
        for z in codes.T[:, :, None]:
            if kind == "continuous":
                predicted = KNeighborsRegressor(5).fit(z[train], w[train]).predict(z[test])
                most = w[test].std()
                found.append(most - np.sqrt(((predicted - w[test]) ** 2).mean()))
            else:
                accuracy = KNeighborsClassifier(5).fit(z[train], w[train]).score(z[test], w[test])
                constant = np.bincount(w[test]).max() / len(test)
                most = constant if variant == "printed" else 1 - constant
                found.append(accuracy if variant == "printed" else accuracy - constant)
        if variant == "corrected":
            found = [max(0.0, a) for a in found]
        best, second = sorted(found)[:-3:-1]
        expected.append((best - second) / most)
    score = ds(codes, factors, variant=variant, factor_kinds=kinds)
    assert score.per_factor == pytest.approx(expected, abs=1e-12)


def test_the_printed_form_exceeds_one_and_the_corrected_does_not() -> None:
    factors = grid(3, repeats=400)
    codes = np.hstack([factors.astype(float), noise(1200, 1)])
    printed, corrected = ds(codes, factors, variant="printed"), ds(codes, factors)
    # (1 − about ⅓) / about ⅓.
    assert printed.value == pytest.approx(2, abs=0.3)
    assert printed.bounds == (0, np.inf)
    assert corrected.value == pytest.approx(1, abs=0.1)
    assert corrected.value <= 1
    assert corrected.bounds == (0, 1)


def test_even_a_continuous_factor_exceeds_one_as_printed() -> None:
    # Five neighbours of noise have mse = 1.2 var, an advantage of 1 − √1.2 = −0.095.
    # Roots of 4000 squares are known to 1/√8000 = 1.1 %.
    factors = np.random.default_rng(0).normal(size=(20_000, 1))
    codes = np.hstack([factors, noise(20_000, 1, seed=1)])
    printed = ds(codes, factors, variant="printed", factor_kinds=["continuous"])
    assert printed.value == pytest.approx(np.sqrt(1.2), abs=0.055)
    assert ds(codes, factors, factor_kinds=["continuous"]).value == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("kind", ["categorical", "continuous"])
def test_known_representations(kind: str) -> None:
    factors = grid(4, 4, repeats=30)
    kinds = [kind, kind]
    codes = factors.astype(float)

    def value(codes: np.ndarray) -> float:
        return ds(codes, factors, factor_kinds=kinds).value

    assert value(codes) == pytest.approx(1, abs=0.05)
    assert value(np.sin(codes) + codes**3) == pytest.approx(1, abs=0.05)
    assert value(np.hstack([codes, codes])) == pytest.approx(0, abs=1e-12)
    assert value(np.ones_like(codes)) == pytest.approx(0, abs=1e-12)
    # Turned by 45 degrees both latents say about as much; the accuracies spread by √(¼/96) over 96 test samples.
    assert value(rotated(codes - 1.5)) < 0.25
    both = np.stack([codes @ [4.0, 1.0], np.zeros(480)], axis=1)
    assert value(both) == pytest.approx(1, abs=0.05)


def test_an_ordinal_factor_is_a_number_unless_it_is_taken_as_classes() -> None:
    factors = grid(8, 5, repeats=20)
    codes = np.hstack([factors + 0.5 * noise(800, 2), noise(800, 1, seed=1)])
    ordinal, number, classes = (
        ds(codes, factors, factor_kinds=[kind] * 2) for kind in ("ordinal", "continuous", "categorical")
    )
    assert ordinal.per_factor.tolist() == number.per_factor.tolist()
    as_classes = ds(codes, factors, factor_kinds=["ordinal", "cyclic"], kinds="classes")
    assert as_classes.per_factor.tolist() == classes.per_factor.tolist()
    as_numbers = ds(codes, factors, factor_kinds=["ordinal", "cyclic"], kinds="numbers")
    assert as_numbers.per_factor.tolist() == number.per_factor.tolist()


def test_a_cyclic_factor_is_predicted_by_the_mean_direction_of_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(10, size=(400, 1))
    codes = np.hstack([np.cos(2 * np.pi * factors / 10 - 0.3), factors]) + 0.4 * rng.normal(size=(400, 2))
    train, test = Table(codes, factors).split(0.8)
    points = np.exp(2j * np.pi * factors[:, 0] / 10)
    constants = [
        np.abs(points[test] - np.exp(1j * angle)) ** 2 for angle in np.linspace(0, 2 * np.pi, 10_001)
    ]
    most = np.sqrt(np.min([chords.mean() for chords in constants]))
    found = []
    for column in codes.T:
        near = [train[np.argsort(np.abs(column[train] - column[row]), kind="stable")[:5]] for row in test]
        means = np.array([points[rows].mean() for rows in near])
        assert np.abs(means).min() > 1e-6  # none cancels out
        chords = np.abs(points[test] - means / np.abs(means)) ** 2
        found.append(max(0.0, most - np.sqrt(chords.mean())))
    score = ds(codes, factors, factor_kinds=["cyclic"])
    assert score.matrix[:, 0] == pytest.approx(np.array(found) / most, abs=1e-6)  # type: ignore[index]
    assert score.value == pytest.approx(abs(found[0] - found[1]) / most, abs=1e-6)


def test_on_the_circle_the_ends_of_a_cyclic_factor_are_neighbours() -> None:
    """A latent that starts to count elsewhere on the circle knows as much; as numbers, its cut costs."""
    factors = np.random.default_rng(0).integers(40, size=(2000, 1))
    codes = np.hstack([(factors + 13) % 40 + 0.6 * noise(2000, 1), noise(2000, 1, seed=1)])
    circle = ds(codes, factors, factor_kinds=["cyclic"])
    assert circle.value > 0.85
    assert ds(codes, factors, factor_kinds=["cyclic"], kinds="numbers").value < circle.value
    turned = ds(codes, (factors + 7) % 40, factor_kinds=["cyclic"])
    assert turned.value == pytest.approx(circle.value, abs=1e-6)  # the circle has no beginning


def test_noise_scores_near_its_chance() -> None:
    factors = np.random.default_rng(1).integers(3, size=(2000, 2))
    score = ds(noise(2000, 4), factors)
    # Accuracies of 400 test samples spread by 0.024, in units of 1 − ⅓.
    assert score.value < 5 * 0.035
    assert score.chance < 5 * 0.035  # type: ignore[operator]


def test_numbers_may_have_any_origin() -> None:
    # Squares of 1e9 would have an error of 100; values themselves have one of 1e-7.
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 1))
    codes = np.hstack([values + 0.3 * rng.normal(size=(60, 1)), noise(60, 1)])
    near, far = (ds(codes, values + origin, factor_kinds=["continuous"]) for origin in (0.0, 1e9))
    assert far.value == pytest.approx(near.value, abs=1e-5)
    assert far.interval == pytest.approx(near.interval, abs=1e-5)


def test_a_single_value_is_named_whatever_the_resamples_hold() -> None:
    for seed in range(8):
        factors = grid(2, 2, repeats=3)[:10]
        test = Table(noise(10, 2), factors, seed=seed).split(0.8)[1]
        factors[test] = [[0, 1], [1, 1]]
        with pytest.raises(InputError, match="factor '1' has a single value in the 2 test samples"):
            ds(noise(10, 2), factors, seed=seed)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(
        InputError, match="5 neighbours require at least as many training samples, got 4 of 5"
    ):
        ds(noise(5, 2), np.array([[0], [0], [1], [1], [1]]))
    rare = np.zeros((100, 1), dtype=int)
    rare[Table(noise(100, 2), grid(2, repeats=50)).split(0.8)[0][:2]] = 1
    for kind in ("categorical", "ordinal", "cyclic"):
        for column, both in enumerate(([rare, grid(2, repeats=50)], [grid(2, repeats=50), rare])):
            with pytest.raises(
                InputError, match=f"factor '{column}' has a single value in the 20 test samples"
            ):
                ds(noise(100, 2), np.hstack(both), factor_kinds=[kind] * 2)
    with pytest.raises(InputError, match="has a single value in the 1 test samples"):
        ds(noise(6, 2), grid(2, repeats=3))  # five to train on are enough
