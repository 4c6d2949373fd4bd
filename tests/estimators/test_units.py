from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.chain import apply_variants
from polariscope.estimators.units import Units


def rows(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(50, 3)) * [1.0, 10.0, 0.1] + [5.0, -3.0, 0.0]


def learn(
    X: np.ndarray, standardise: bool = False, unit_interval: bool = False, layout: str | None = None
) -> Units:
    return Units.learn(X, standardise=standardise, unit_interval=unit_interval, layout=layout)  # type: ignore[arg-type]


def test_a_table_is_centred_and_its_mean_variance_is_one_while_ratios_of_variances_stay() -> None:
    X = rows()
    seen = learn(X).values(X)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-12)
    assert seen.var(axis=0).mean() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(
        seen.var(axis=0) / seen.var(axis=0)[0], X.var(axis=0) / X.var(axis=0)[0], rtol=1e-10
    )


def test_standardised_features_have_variance_one_each() -> None:
    X = rows()
    np.testing.assert_allclose(learn(X, standardise=True).values(X).var(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 1e8 / 3])
@pytest.mark.parametrize("standardise", [False, True])
def test_a_feature_that_never_varies_keeps_its_unit_and_comes_back(
    constant: float, standardise: bool
) -> None:
    X = np.column_stack([rows(), np.full(50, constant)])
    units = learn(X, standardise=standardise)
    seen = units.values(X)
    assert np.abs(seen[:, 3]).max() < 1e-7
    if standardise:
        assert units.scale[3] == 1
    np.testing.assert_allclose(units.restore(seen, np.float64), X, rtol=1e-12, atol=1e-12)


def test_a_table_that_never_varies_is_only_shifted() -> None:
    units = learn(np.full((4, 2), 7.0))
    assert units.offset.tolist() == [7, 7]
    assert units.scale.tolist() == [1, 1]


def test_the_log_scale_is_the_logarithm_of_the_change_of_volume() -> None:
    units = learn(rows(), standardise=True)
    jacobian = units.values(np.vstack([np.zeros(3), np.eye(3)]))
    assert units.log_scale == pytest.approx(-np.linalg.slogdet(jacobian[1:] - jacobian[0])[1], rel=1e-10)
    assert learn(np.zeros((2, 4, 4), np.uint8)).log_scale == 0


@pytest.mark.parametrize(
    ("shape", "layout", "seen"),
    [
        ((4, 6), None, (1, 4, 6)),
        ((1, 4, 6), None, (1, 4, 6)),
        ((4, 6, 3), None, (3, 4, 6)),
        ((3, 4, 3), "channels-first", (3, 4, 3)),
        ((3, 4, 3), "channels-last", (3, 3, 4)),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_images_come_back_in_the_layout_and_type_they_were_given_in(
    shape: tuple[int, ...], layout: str | None, seen: tuple[int, ...], kind: type
) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, size=(5, *shape))
    X = drawn.astype(np.uint8) if kind is np.uint8 else (drawn / 255).astype(np.float32)
    units = learn(X, layout=layout)
    values = units.values(X)
    assert values.shape == (5, *seen)
    assert values.min() >= 0
    assert values.max() <= 1
    back = units.restore(values, np.float32)
    assert back.dtype == kind
    np.testing.assert_array_equal(back, X)


def test_images_whose_channels_may_be_first_or_last_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match="choose with layout='channels-first'"):
        learn(np.zeros((5, 3, 4, 3), np.uint8))


def test_standardising_what_lies_in_the_unit_interval_is_refused() -> None:
    with pytest.raises(InputError, match="standardise must be False for images"):
        learn(np.zeros((5, 4, 4), np.uint8), standardise=True)
    with pytest.raises(InputError, match="standardise must be False for rows in"):
        learn(np.zeros((5, 4)), standardise=True, unit_interval=True)


def test_observations_of_another_shape_are_refused() -> None:
    units = learn(np.zeros((5, 4, 4), np.uint8))
    with pytest.raises(InputError, match=r"X must have shape \(sample, 4, 4\) as in fit, got \(sample, 16\)"):
        units.values(np.zeros((2, 16)))


def test_bytes_of_0_and_1_are_black_and_white_in_every_part_of_the_data() -> None:
    X = (np.random.default_rng(0).random((6, 4, 6)) < 0.5).astype(np.uint8)
    units = learn(X)
    np.testing.assert_array_equal(units.values(X)[:, 0], X)
    grey = units.restore(np.full((2, 1, 4, 6), 0.3), np.float64)
    np.testing.assert_array_equal(grey, np.full((2, 4, 6), 0.3))  # floats: neither byte is near
    with pytest.raises(InputError, match="white=1 requires bytes that are 0 or 1, got bytes up to 255"):
        units.values(255 * X)
    # Where fit saw 0 … 255, dark images stay dark, even if all that transform is given are 0 and 1.
    bright = np.concatenate([X, 255 * X])
    np.testing.assert_allclose(learn(bright).values(X)[:, 0], X / 255, atol=1e-7)


def test_scaled_features_go_from_0_to_1_and_come_back() -> None:
    X = np.random.default_rng(0).normal([0, 5, -300], [1, 0, 50], size=(50, 3))
    units = Units.learn(X, standardise=False, scale=True, unit_interval=False, layout=None)
    values = units.values(X)
    assert values.min(axis=0).tolist() == [0, 0, 0]
    assert values.max(axis=0).tolist() == [1, 0, 1]
    assert units.dataset(X).is_unit_interval
    np.testing.assert_allclose(units.restore(values, np.float64), X, rtol=1e-12)
    assert units.log_scale == pytest.approx(np.log(np.ptp(X[:, [0, 2]], axis=0)).sum())


def test_images_are_not_scaled() -> None:
    with pytest.raises(InputError, match="scale must be False for images"):
        Units.learn(np.zeros((3, 4, 4)), standardise=False, scale=True, unit_interval=False, layout=None)


@pytest.mark.parametrize("kind", ["centred", "standardised", "scaled"])
def test_units_are_those_of_the_variant_that_train_takes(kind: str) -> None:
    X = rows().astype(np.float32)
    standardise, scale = kind == "standardised", kind == "scaled"
    units = Units.learn(X, standardise=standardise, scale=scale, unit_interval=False, layout=None)
    data = apply_variants(X, kind)
    np.testing.assert_array_equal(units.values(X), data.values(np.arange(50)))
    np.testing.assert_array_equal(units.restore(units.values(X), np.float32), data.inverse(units.values(X)))


def test_rows_of_double_precision_keep_their_digits() -> None:
    X = rows() + 1e8  # single precision would round them to multiples of 8
    np.testing.assert_allclose(
        learn(X, standardise=True).values(X), learn(rows(), standardise=True).values(rows()), atol=1e-6
    )
