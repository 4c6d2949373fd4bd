"""FONDUE's searches against their traces, and the public function with fakes for a trainer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.analysis.representation import Representation
from polariscope.core.deprecation import DeprecatedWarning
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.sizing.bisection import CapError, bisect, grow_and_bisect, search_guided
from polariscope.sizing.own_trainer import Memo, fondue
from polariscope.sizing.surplus import dimension_gap, sampled_trace, trace


def fitting_up_to(best: int) -> tuple[list[int], object]:
    tried: list[int] = []
    return tried, lambda n: tried.append(n) or n <= best


def polarised(
    n_latents: int, active: int, mixed: int = 0, share: float = 0.5, n_samples: int = 4000
) -> Representation:
    """Active latents of variance 0.01, mixed ones that are active for a share of the inputs, the rest passive."""
    draw = generator(0, "polarised", n_latents)
    variance = np.ones((n_samples, n_latents))
    variance[:, :active] = 0.01
    variance[: int(share * n_samples), active : active + mixed] = 0.01
    mean = np.sqrt(np.maximum(0, 1 - variance)) * draw.standard_normal(variance.shape)
    sampled = mean + np.sqrt(variance) * draw.standard_normal(variance.shape)
    return Representation(mean, variance, sampled)


@pytest.mark.parametrize(
    ("n_init", "best", "path"),
    [
        (4, 19, [4, 8, 16, 32, 24, 20, 18, 19]),
        (11, 11, [11, 22, 16, 13, 12]),
        (11, 10, [11, 5, 10]),
        (22, 33, [22, 44, 33, 38, 35, 34]),
        (22, 32, [22, 44, 33, 27, 30, 31, 32]),
    ],
)
def test_the_published_search_takes_the_published_path(n_init: int, best: int, path: list[int]) -> None:
    tried, fits = fitting_up_to(best)
    assert grow_and_bisect(fits, n_init) == best
    assert tried == path


def test_the_binary_search_trains_eight_models() -> None:
    tried, fits = fitting_up_to(19)
    assert bisect(fits, 1, 200) == 19
    assert len(tried) == 8


@given(best=st.integers(0, 198), n_init=st.integers(1, 200))
def test_every_search_finds_the_last_n_that_fits_and_asks_each_n_once(best: int, n_init: int) -> None:
    for search in (
        lambda fits: grow_and_bisect(fits, n_init, cap=1024),
        lambda fits: bisect(fits, 1, 200),
        lambda fits: search_guided(
            lambda n: (fits(n), n / (best + 1)), np.arange(1, 201) / n_init, 1.0, cap=300
        ),
    ):
        tried, fits = fitting_up_to(best)
        assert search(fits) == best
        assert len(tried) == len(set(tried))


@pytest.mark.parametrize(("predicted", "path"), [(11, [11, 12]), (12, [12, 11]), (10, [10, 11, 12])])
def test_a_right_prediction_takes_two_models_and_one_that_is_off_by_one_three(
    predicted: int, path: list[int]
) -> None:
    tried, fits = fitting_up_to(11)
    ramp = np.arange(1, 33) - predicted - 0.5 + 1.0  # crosses 1 between the prediction and the next
    assert search_guided(lambda n: (fits(n), n - 11.5 + 1.0), ramp, 1.0) == 11
    assert tried == path


def test_what_was_measured_corrects_the_prediction_for_all_n() -> None:
    """MNIST: predicted to cross at 6 when the answer is 11; walking took eight models."""
    tried: list[int] = []
    truth = np.concatenate([np.linspace(0.05, 0.8, 11), 0.8 + np.arange(1, 22)])

    def measured(n: int) -> tuple[bool, float]:
        tried.append(n)
        return bool(truth[n - 1] <= 1), float(truth[n - 1])

    predicted = np.concatenate([np.linspace(0.3, 0.95, 6), 0.95 + 0.4 * np.arange(1, 11)])
    assert search_guided(measured, predicted, 1.0) == 11
    assert len(tried) <= 6
    assert len(set(tried)) == len(tried)


@given(
    best=st.integers(0, 60),
    predicted=st.lists(st.floats(0, 5), min_size=1, max_size=40),
    values=st.lists(st.floats(0, 100), min_size=64, max_size=64),
)
def test_the_answer_does_not_depend_on_the_prediction(
    best: int, predicted: list[float], values: list[float]
) -> None:
    tried, fits = fitting_up_to(best)
    found = search_guided(lambda n: (fits(n), values[n - 1]), np.cumsum(predicted), 1.0, cap=64)
    assert found == best
    assert len(set(tried)) == len(tried)
    assert len(tried) <= 5 + 2 * 7 + 1


@pytest.mark.parametrize(
    "search",
    [
        lambda fits: grow_and_bisect(fits, 5, cap=64),
        lambda fits: bisect(fits, 1, 64),
        lambda fits: search_guided(lambda n: (fits(n), 0.0), np.arange(1, 33) / 5, 1.0, cap=64),
    ],
)
def test_a_search_that_hits_its_cap_says_so(search: object) -> None:
    tried: list[int] = []
    with pytest.raises(CapError, match=r"even 6[34] latents have no surplus.*raise the cap"):
        search(lambda n: tried.append(n) or True)
    assert max(tried) <= 64


def test_the_noise_free_statistic_is_the_mean_of_the_published_one() -> None:
    # Tr Var[z] − Tr Var[μ] = Σ E[σ²] + 2 Σ Cov(μ, σε) + noise of ε²; over 200 draws its error is a few 1e-3.
    rep = polarised(6, active=3, mixed=1, n_samples=1000)
    draws = []
    for seed in range(200):
        noise = generator(seed, "draw").standard_normal(rep.mean.shape)
        sampled = rep.mean + np.sqrt(rep.variance) * noise
        draws.append(sampled_trace(Representation(rep.mean, rep.variance, sampled)))
    error = np.std(draws) / np.sqrt(len(draws)) + 0.001  # and the cut to 3 decimals
    assert trace(rep) == pytest.approx(np.mean(draws), abs=4 * error)


def test_the_published_statistic_cuts_each_variance_before_it_is_added() -> None:
    """0.0021 and 0.0019 become 0.002 and 0.001: four latents give 0.004, where 4 · 0.0002 would be cut to 0."""
    unit = np.array([-1.0, 1.0])[:, None] / np.sqrt(2)  # variance 1 with ddof 1
    sampled, mean = (unit * np.sqrt(np.full(4, variance)) for variance in (0.0021, 0.0019))
    assert sampled_trace(Representation(mean, np.ones((2, 4)), sampled)) == 0.004


def test_passive_latents_add_one_active_ones_nothing_and_mixed_ones_their_passive_share() -> None:
    assert trace(polarised(10, active=4)) == pytest.approx(6 + 4 * 0.01)
    assert trace(polarised(10, active=4, mixed=2, share=0.75)) == pytest.approx(
        4 + 0.04 + 2 * (0.25 + 0.75 * 0.01)
    )


def test_the_dimension_gap_grows_with_passive_latents() -> None:
    gaps = [dimension_gap(polarised(n, active=3, n_samples=1500)) for n in (3, 5, 8)]
    assert gaps[0] < 0.5
    assert gaps[0] < gaps[1] < gaps[2]


@pytest.mark.parametrize("algorithm", ["grow", "binary"])
@pytest.mark.parametrize("n_init", [1, 5, 60])
def test_any_trainer_can_be_sized(algorithm: str, n_init: int) -> None:
    found = fondue(
        lambda n: polarised(n, active=7, n_samples=50), n_init=n_init, algorithm=algorithm, cap=200
    )
    assert found.n_latents == 7
    # With threshold 1 one passive latent would pass, were the active ones without any noise: 7 · 0.01 + 1 > 1.
    assert fondue(lambda n: polarised(n, active=7, n_samples=50), threshold=1.5).n_latents == 8
    assert str(found).startswith("7 latents (7)")


def test_several_seeds_give_the_median_and_the_range() -> None:
    found = fondue(lambda n, seed: polarised(n, active=5 + seed, n_samples=50), seeds=(0, 1, 2))
    assert found.per_seed == (5, 6, 7)
    assert found.n_latents == 6
    assert found.interval == (5, 7)


def test_a_trainer_without_seed_is_refused_for_several_seeds() -> None:
    with pytest.raises(InputError, match=r"encode_with must have an argument seed"):
        fondue(lambda n: polarised(n, active=5), seeds=(0, 1))


def test_measured_values_are_kept_and_an_interrupted_search_goes_on(tmp_path: Path) -> None:
    trained: list[int] = []

    def encode_with(n: int) -> Representation:
        if len(trained) == 3 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        trained.append(n)
        return polarised(n, active=7, n_samples=50)

    memo = tmp_path / "memo.json"
    with pytest.raises(KeyboardInterrupt):
        fondue(encode_with, n_init=3, memo=memo)
    (tmp_path / "again").touch()
    assert fondue(encode_with, n_init=3, memo=memo).n_latents == 7
    assert len(trained) == len(set(trained))
    before = len(trained)
    fondue(encode_with, n_init=3, memo=memo)
    assert len(trained) == before
    assert json.loads(memo.read_text())["content"]["statistic"] == "Σ E[σ²]"
    with pytest.raises(InputError, match=r"memo must be a file of the statistic 'ID\[z\]"):
        fondue(encode_with, "dimension", memo=memo)


def test_a_statistic_that_is_not_monotone_is_reported() -> None:
    values = {10: 0.9, 20: 5.0, 15: 0.5, 17: 3.0, 16: 0.95}

    def measure(rep: Representation) -> float:
        return values[rep.n_latents]

    found = fondue(lambda n: polarised(n, active=n, n_samples=10), measure)
    assert found.n_latents == 16
    assert any("falls from 0.90 at 10 latents to 0.50 at 15" in note for note in found.notes)


def test_no_latent_at_all_is_an_answer_that_is_explained() -> None:
    found = fondue(lambda n: polarised(n, active=0, n_samples=50), threshold=0.5)
    assert found.n_latents == 0
    assert "Not even one latent fits" in found.notes[-1]


@pytest.mark.parametrize(
    ("encode_with", "message"),
    [
        (
            lambda n: polarised(n + 1, active=2, n_samples=10),
            r"encode_with\(10\) must return 10 latents, got 11",
        ),
        (lambda n: np.zeros((3, n)), "must return a Representation, got ndarray"),
    ],
)
def test_a_trainer_that_returns_something_else_is_refused(encode_with: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fondue(encode_with)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), True, "1", 0.0, -1.0])
def test_impossible_thresholds_are_refused(threshold: object) -> None:
    with pytest.raises((InputError, TypeError), match=r"threshold"):
        fondue(lambda n: polarised(n, active=2), threshold=threshold)


@pytest.mark.parametrize(("n_init", "cap"), [(0, 10), (11, 10), (True, 10), (5, 0)])
def test_impossible_ranges_are_refused(n_init: int, cap: int) -> None:
    with pytest.raises(InputError, match=r"n_init must|cap must"):
        fondue(lambda n: polarised(n, active=2), n_init=n_init, cap=cap)


def test_unknown_statistics_are_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'trace'"):
        fondue(lambda n: polarised(n, active=2), "tracee")


def test_a_statistic_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="statistic must be finite, got nan for 10 latents"):
        fondue(lambda n: polarised(n, active=2, n_samples=10), lambda rep: float("nan"))


def test_a_memo_without_a_file_is_forgotten() -> None:
    memo = Memo(None, "Σ E[σ²]")
    memo.put(3, 0, 0.5)
    assert memo.get(3, 0) == 0.5
    assert Memo(None, "Σ E[σ²]").get(3, 0) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "grwo"}, "Did you mean 'grow'"),
        ({"seeds": ()}, "seeds must be one or more"),
        ({"seeds": 3}, "seeds must be one or more"),
        ({"statistic": lambda rep: None}, "statistic must be finite, got None"),
    ],
)
def test_other_wrong_calls_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fondue(lambda n: polarised(n, active=2, n_samples=10), **options)


def test_variances_count_relative_to_the_prior() -> None:
    rep = polarised(10, active=3, n_samples=20)
    wide = Representation(rep.mean, 4 * rep.variance, rep.sampled, prior_variance=np.full(10, 4.0))
    assert trace(wide) == pytest.approx(trace(rep))


def test_a_memo_needs_a_statistic_with_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a lambda has no name; define it with def"):
        fondue(lambda n: None, lambda r: 0.0, memo=tmp_path / "memo.json")


def test_a_model_with_too_many_sends_the_search_no_farther_down_than_its_surplus() -> None:
    asked = []

    def measured(n: int) -> tuple[bool, float]:  # undertrained at 12: 2.2, where 0.9 was predicted
        asked.append(n)
        return n <= 11, 2.2 if n == 12 else 0.5

    assert search_guided(measured, np.arange(1, 17) / 12.5, 1.0) == 11
    assert asked == [12, 10, 11]


def test_models_that_measure_alike_send_the_search_up_step_by_step() -> None:
    # Digits: 13 and 14 latents measure 0.75 and 0.74, since the second was trained longer; 15 have too many.
    asked = []

    def measured(n: int) -> tuple[bool, float]:
        asked.append(n)
        return n <= 14, {11: 0.51, 13: 0.75, 14: 0.74}.get(n, 2.0)

    predicted = np.array([0.3] * 8 + [0.67, 0.74, 0.86, 1.02, 1.16, 1.71, 2.41, 3.23])
    assert search_guided(measured, predicted, 1.0) == 14
    assert asked == [11, 13, 14, 15]


def test_the_former_location_of_fondue_works_and_warns() -> None:
    with pytest.warns(DeprecatedWarning, match="use polariscope.sizing.own_trainer.fondue instead"):
        from polariscope.sizing.support.search import fondue as former
    assert former is fondue
