"""Scores, stability, decomposition and files of codes with positions."""

import dataclasses
import json

import numpy as np
import pytest

import polariscope as ps
from polariscope.analysis import score as scoring
from polariscope.analysis.code_files import load_codes
from polariscope.analysis.decomposition import affordable_samples
from polariscope.analysis.stability import Stability
from polariscope.analysis.stability import stability as stability_of_codes
from polariscope.core.errors import InputError


def codes(n: int = 400, n_positions: int = 4, seed: int = 0) -> ps.Representation:
    """Return three channels: the first two carry one factor each at all positions, the third is passive."""
    rng = np.random.default_rng(seed)
    factors = np.random.default_rng(9).integers(3, size=(n, 2))
    mean = 0.1 * rng.normal(size=(n, 3, n_positions))
    mean[:, :2] += factors[:, :, None]
    variance = np.full_like(mean, 0.01)
    variance[:, 2] = 1.0
    flat = mean.reshape(n, -1)
    return ps.Representation(
        flat, variance.reshape(n, -1), flat, factors, code_shape=(3, n_positions, 1), ids=np.arange(n)
    )


def test_scores_use_a_row_for_each_observation_and_a_column_for_each_value():
    rep = codes()
    flat = dataclasses.replace(rep, code_shape=())
    one, two = ps.score(rep, "mig,probe"), ps.score(flat, "mig,probe")
    assert (one.n_samples, one.n_latents) == (400, 12)
    for name in ("mig", "probe"):
        assert one[name].value == two[name].value
    assert one.in_use == tuple(range(8))
    assert ps.score(rep, "probe", latents="in-use").n_latents == 8


def test_the_mean_over_positions_is_scored_with_a_column_for_each_channel():
    rep = codes()
    averaged = rep.averaged()
    scores = ps.score(rep, "mig,modularity", pool="mean")
    assert (scores.n_latents, scores.in_use) == (3, (0, 1))
    assert scores["mig"].value == ps.score(averaged, "mig")["mig"].value
    # Copies of a factor at several positions leave no gap between the two best columns.
    assert scores["mig"].value > 0.5 > ps.score(rep, "mig")["mig"].value
    by_array = ps.score(rep.mean.reshape(400, 3, 4, 1), "mig", factors=rep.factors, pool="mean")
    assert by_array["mig"].value == pytest.approx(scores["mig"].value)
    assert ps.score(rep, "mig", pool="mean", latents="in-use").n_latents == 2


def test_the_variance_of_a_mean_over_positions_is_that_of_independent_values():
    rep = codes()
    averaged = rep.averaged()
    np.testing.assert_allclose(averaged.variance[:, 0], 0.01 / 4)
    np.testing.assert_allclose(averaged.prior_variance, 1 / 4)
    covariance = np.tile(np.eye(12) * 0.5 + 0.5, (400, 1, 1))
    full = dataclasses.replace(rep, variance=np.ones((400, 12)), covariance=covariance)
    # The variance of the mean of 4 values with correlation ½ is (1 + 3/2)/4.
    np.testing.assert_allclose(full.averaged().variance, (1 + 3 * 0.5) / 4)
    np.testing.assert_allclose(full.averaged().covariance[:, 0, 1], 0.5)


def test_codes_that_are_too_large_to_score_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(scoring, "MAX_BYTES", 8 * 400 * 12)
    with pytest.raises(InputError, match=r"12 flattened columns require about .* of memory.*pool='mean'"):
        ps.score(codes(), "mig")
    assert ps.score(codes(), "mig", pool="mean").n_latents == 3


def test_channels_are_matched_between_models_and_positions_are_not():
    first = codes()
    mean = first.by_channel()[:, [1, 2, 0]]
    variance = first.by_channel("variance")[:, [1, 2, 0]]
    other = dataclasses.replace(
        first, mean=-mean.reshape(400, -1), variance=variance.reshape(400, -1), sampled=-mean.reshape(400, -1)
    )
    result = ps.stability([first, other])
    assert result.unit == "channel"
    assert result.value == pytest.approx(1)
    assert result.n_used == (2, 2)
    assert [match.partners for match in result.of(0)] == [(0, 2), (1, 0)]
    assert result.n_samples == 400
    assert "Channels of 0 that recur" in str(result)
    assert "latent" not in str(result)
    assert Stability.from_dict(json.loads(json.dumps(result.to_dict()))).unit == "channel"
    assert ps.stability([first, other], pool="mean").value == pytest.approx(1)


def test_equal_positions_add_no_certainty_to_the_agreement():
    """Models of unrelated codes: 25 equal positions must not shrink the chance level of 200 samples."""
    rng = np.random.default_rng(0)
    plain = [rng.normal(size=(200, 2)) for _ in range(2)]
    reps = [
        ps.Representation(
            np.repeat(mean, 25, axis=1),
            np.full((200, 50), 0.1),
            np.repeat(mean, 25, axis=1),
            code_shape=(2, 5, 5),
        )
        for mean in plain
    ]
    variance = [np.full((200, 2), 0.1)] * 2
    repeated, once = stability_of_codes(reps), stability_of_codes(plain, variance=variance)
    for name in ("value", "chance", "chance_high", "p_value", "space"):
        assert getattr(repeated, name) == pytest.approx(getattr(once, name), abs=1e-9)
    assert repeated.interval == pytest.approx(once.interval, abs=1e-9)


def test_models_with_other_positions_are_compared_by_their_means_only():
    small, large = codes(n_positions=4), codes(n_positions=9)
    with pytest.raises(InputError, match=r"have the same positions.*4 × 1 and 9 × 1.*pool='mean'"):
        ps.stability([small, large])
    assert ps.stability([small, large], pool="mean").value > 0.8
    plain = dataclasses.replace(codes().averaged(), ids=np.arange(400))
    with pytest.raises(InputError, match="some models have codes with channels"):
        ps.stability([small, plain])


def test_flattened_codes_are_decomposed_with_fewer_samples_if_they_are_large():
    assert affordable_samples(codes()) == 5000
    large = ps.Representation(*[np.ones((2, 1024))] * 3, code_shape=(4, 16, 16))
    assert affordable_samples(large) == 1250
    assert affordable_samples(dataclasses.replace(large, code_shape=())) == 5000
    rep = dataclasses.replace(codes(), sampled_was_drawn=True)
    parts, flat = ps.decompose(rep), ps.decompose(dataclasses.replace(rep, code_shape=()))
    assert parts == flat
    assert parts.n_latents == 12


def test_files_of_codes_can_have_positions(tmp_path):
    rep = codes()
    arrays = {name: getattr(rep, name).reshape(400, 3, 2, 2) for name in ("mean", "variance", "sampled")}
    np.savez(tmp_path / "codes.npz", **arrays, prior_variance=np.array([1.0, 1.0, 2.0]))
    loaded = load_codes(tmp_path / "codes.npz")
    assert loaded.code_shape == (3, 2, 2)
    np.testing.assert_array_equal(loaded.mean, rep.mean)
    assert loaded.prior_variance.tolist() == [1.0] * 8 + [2.0] * 4
    np.savez(tmp_path / "drawn.npz", mean=arrays["mean"], log_variance=np.log(arrays["variance"]))
    assert load_codes(tmp_path / "drawn.npz").sampled_was_drawn
    np.savez(tmp_path / "wrong.npz", mean=arrays["mean"], variance=arrays["variance"][:, :, :1])
    with pytest.raises(InputError, match=r"mean and variance must have the same shape"):
        load_codes(tmp_path / "wrong.npz")


def test_the_shape_of_a_code_is_stored_and_older_files_have_latents():
    rep = codes()
    arrays, metadata = rep.to_arrays()
    again = ps.Representation.from_arrays(arrays, json.loads(json.dumps(metadata)))
    assert (again.code_shape, again.per, again.unit) == ((3, 4, 1), "channel", "channel")
    plain_arrays, plain = dataclasses.replace(rep, code_shape=()).to_arrays()
    assert not {"code_shape", "per"} & set(plain)
    assert ps.Representation.from_arrays(plain_arrays, plain).code_shape == (12,)
    assert "3 × 4 × 1, per channel" in repr(rep)


def test_views_and_columns_of_a_representation():
    rep = codes()
    assert rep.by_channel("variance").shape == (400, 3, 4)
    assert rep.viewed("value").by_channel().shape == (400, 12, 1)
    assert rep.columns_of([0, 2]) == [0, 1, 2, 3, 8, 9, 10, 11]
    plain = dataclasses.replace(rep, code_shape=())
    assert plain.viewed("value") is plain
    with pytest.raises(InputError, match="no array named 'effect'"):
        rep.by_channel("effect")
    with pytest.raises(InputError, match="has no rate"):
        rep.by_channel("rate")
