"""Codes of other libraries: read what is there, refuse what cannot be right."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.analysis.code_files import load_codes
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.core.errors import InputError

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(50, 3))
VARIANCE = RNG.uniform(0.1, 1, size=(50, 3))
COVARIANCE = VARIANCE[:, :, None] * np.eye(3) + 0.01 * (1 - np.eye(3))


def save(path, **arrays):
    np.savez(path / "codes.npz", **arrays)
    return path / "codes.npz"


def test_variance_and_log_variance_give_the_same_codes(tmp_path):
    plain = load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE))
    logarithmic = load_codes(save(tmp_path, mean=MEAN, log_variance=np.log(VARIANCE)))
    np.testing.assert_allclose(plain.variance, logarithmic.variance, rtol=1e-12)
    np.testing.assert_allclose(plain.sampled, logarithmic.sampled, rtol=1e-10)


def test_sampled_is_kept_when_given_and_drawn_with_the_seed_otherwise(tmp_path):
    given = load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE, sampled=MEAN + 1))
    np.testing.assert_array_equal(given.sampled, MEAN + 1)
    file = save(tmp_path, mean=MEAN, variance=VARIANCE)
    assert (load_codes(file, seed=0).sampled != load_codes(file, seed=1).sampled).all()


def test_factors_and_priors_are_read(tmp_path):
    factors = RNG.integers(0, 3, size=(50, 2))
    codes = load_codes(
        save(
            tmp_path,
            mean=MEAN,
            variance=VARIANCE,
            factors=factors,
            factor_names=["a", "b"],
            prior_variance=np.ones(3) * 2,
        )
    )
    np.testing.assert_array_equal(codes.factors, factors)
    assert codes.factor_names == ("a", "b")
    np.testing.assert_array_equal(codes.prior_variance, [2, 2, 2])


def test_a_covariance_is_read_with_its_draws(tmp_path):
    file = save(tmp_path, mean=MEAN, variance=VARIANCE, sampled=MEAN + 1, covariance=COVARIANCE)
    np.testing.assert_array_equal(load_codes(file).covariance, COVARIANCE)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"mean": MEAN}, r"must contain 'mean' and 'variance' \(or 'log_variance'\), got mean"),
        (
            {"mean": MEAN, "variance": VARIANCE, "log_variance": VARIANCE},
            "'variance' and 'log_variance' are both in",
        ),
        ({"mean": MEAN, "variance": np.log(VARIANCE)}, "this looks like a log-variance"),
        ({"mean": MEAN, "log_variance": VARIANCE + 100}, "if it is a variance"),
        ({"mean": MEAN, "variance": VARIANCE, "sigma": VARIANCE}, "'variance' and 'sigma' are both in"),
        ({"mean": MEAN, "variance": VARIANCE, "beta": VARIANCE}, "unknown array 'beta'"),
        ({"mu": MEAN, "mean": MEAN, "variance": VARIANCE}, "'mu' and 'mean' are both in"),
        ({"mu": MEAN, "std": VARIANCE - 5}, "'std' in .* must not be negative"),
        ({"mean": MEAN.astype(str), "variance": VARIANCE}, "mean must be numbers"),
        ({"mean": MEAN * np.nan, "variance": VARIANCE}, "mean must be finite, got 150 NaN"),
        ({"mean": np.array([{}] * 3), "variance": VARIANCE}, "must be an npz file of plain arrays"),
        (
            {"mean": MEAN, "variance": VARIANCE, "covariance": COVARIANCE},
            "'covariance' is in .* without 'sampled'",
        ),
        (
            {"mean": MEAN, "variance": VARIANCE + 1, "sampled": MEAN, "covariance": COVARIANCE},
            "variance must be the diagonal of covariance",
        ),
    ],
)
def test_what_cannot_be_codes_is_refused(tmp_path, arrays, words):
    with pytest.raises(InputError, match=words):
        load_codes(save(tmp_path, **arrays))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        load_codes(tmp_path / "missing.npz")
    (tmp_path / "notes.npz").write_text("hello")
    with pytest.raises(InputError, match="must be an npz file"):
        load_codes(tmp_path / "notes.npz")
    np.save(tmp_path / "single.npy", MEAN)
    with pytest.raises(InputError, match=r"must contain 'mean' and 'variance'"):
        load_codes(tmp_path / "single.npy")


def test_shapes_that_differ_are_refused_in_words(tmp_path, monkeypatch):
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as outside the tests
    with pytest.raises(
        InputError, match=r"same shape, got \(50, 3\) and \(50, 2\); encode both with the same model"
    ):
        load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE[:, :2]))
    with pytest.raises(
        InputError, match=r"covariance must have shape .* that is \(50, 3, 3\), got \(50, 3\)"
    ):
        load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE, sampled=MEAN, covariance=VARIANCE))


def test_codes_from_a_file_and_from_arrays_are_diagnosed_alike(tmp_path):
    from_file = diagnose(load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE)))
    assert from_file == diagnose(mean=MEAN, variance=VARIANCE)
    assert "sampled was not passed" in from_file.notes[0]


def test_kinds_of_factors_and_ids_are_read(tmp_path: Path) -> None:
    file = tmp_path / "kinds.npz"
    np.savez(
        file,
        mean=np.zeros((3, 2)),
        variance=np.ones((3, 2)),
        factors=np.arange(6).reshape(3, 2),
        factor_kinds=["ordinal", "cyclic"],
        ids=["a", "b", "c"],
    )
    rep = load_codes(file)
    assert rep.factor_kinds == ("ordinal", "cyclic")
    assert rep.ids.tolist() == ["a", "b", "c"]  # type: ignore[union-attr]


def test_names_of_other_libraries_are_known(tmp_path):
    expected = load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE))
    for mean, name, second in (
        ("mu", "logvar", np.log(VARIANCE)),
        ("z_mean", "z_log_var", np.log(VARIANCE)),
        ("mu", "std", np.sqrt(VARIANCE)),
        ("loc", "log_sigma", np.log(VARIANCE) / 2),
        ("qz_m", "qz_v", VARIANCE),
    ):
        codes = load_codes(save(tmp_path, **{mean: MEAN, name: second}))
        np.testing.assert_array_equal(codes.mean, expected.mean)
        np.testing.assert_allclose(codes.variance, expected.variance, rtol=1e-5)


def test_a_column_of_factors_is_one_factor(tmp_path):
    codes = load_codes(save(tmp_path, mean=MEAN, variance=VARIANCE, factors=np.arange(len(MEAN)) % 3))
    assert codes.factors.shape == (len(MEAN), 1)
