"""Fast FONDUE against the linear theory."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope.analysis.theory import LinearSolution, linear_vae
from polariscope.sizing.bisection import CapError
from polariscope.sizing.candidates import Curves, OutOfTimeError
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.goal import Goal
from polariscope.sizing.methods.fondue import fondue, notes_of
from polariscope.sizing.result import TRACE, Basis, Size
from polariscope.sizing.size_beta import PRECISION, largest_beta
from polariscope.sizing.trial import Cause, Trial
from polariscope.testing.linear_candidates import LinearCandidates, exact_answer

predict_module = importlib.import_module("polariscope.sizing.methods.support.predict")
verify_module = importlib.import_module("polariscope.sizing.methods.support.verify")

AS_FROM_SCRATCH = dataclasses.replace(SETTINGS, first_look_narrow=SETTINGS.first_verdict)
EIGENVALUES = np.array([90.0, 60.0, 40.0, 30.0, 20.0, 12.0, 0.6, 0.3, 0.1, 0.05])


@pytest.mark.parametrize("n_init", [None, 2, 5, 22, 74, 200])
@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.5, 1.0, 2.0, 3.3])
def test_the_answer_is_that_of_the_theory_whatever_the_guess(threshold: float, n_init: int | None) -> None:
    candidates = LinearCandidates(EIGENVALUES)
    found = fondue(candidates, Goal(threshold=threshold, n_init=n_init))
    assert found.value == exact_answer(EIGENVALUES, threshold)
    assert found.interval[0] <= found.value <= found.interval[1]


@given(
    eigenvalues=st.lists(st.floats(0.01, 300), min_size=1, max_size=40),
    threshold=st.sampled_from([0.3, 1.0, 2.0]),
    beta=st.sampled_from([0.5, 1.0, 4.0]),
)
@settings(max_examples=40, deadline=None)
def test_the_answer_is_never_off_by_more_than_its_interval(
    eigenvalues: list[float], threshold: float, beta: float
) -> None:
    # A statistic within 3 % of the threshold may end on either side of it: the curves are extrapolated one doubling.
    found = fondue(LinearCandidates(np.array(eigenvalues), beta=beta), Goal(threshold=threshold))
    lowest, highest = (
        exact_answer(np.array(eigenvalues), share * threshold, beta=beta) for share in (0.97, 1.03)
    )
    # Nothing to encode: no latents, whatever sum the threshold lets pass.
    if beta / max(eigenvalues) > SETTINGS.silent_above:
        assert found.value == 0
        return
    assert found.interval[0] <= highest
    assert lowest <= found.interval[1]


def test_the_definition_is_proved_by_two_narrow_models() -> None:
    candidates = LinearCandidates(EIGENVALUES)
    found = fondue(candidates, Goal())
    decisions = {trial.n_latents: trial.decision for trial in found.trials}
    assert decisions[6] == "fits"
    assert decisions[7] == "too many"
    assert len(found.trials) == 3
    # The published search from 10 latents would train 10, 5, 7, 6 for an epoch (1,000 steps here) at least.
    assert candidates.n_steps < 4000


class InCompany(LinearCandidates):
    """Gains by training two models at once."""

    benefits_from_parallel = True
    can_prune = True
    asked_together: tuple[object, ...] = ()

    def watch_together(self, widths: Sequence[int], steps: int, **changes: object) -> None:
        self.asked_together += ((tuple(widths), steps, changes["pruned_from"]),)
        super().watch_together(widths, steps, **changes)


def test_the_two_that_mostly_decide_are_trained_together_and_change_nothing() -> None:
    candidates = InCompany(EIGENVALUES)
    found = fondue(candidates, Goal())
    assert candidates.asked_together == (((6, 7), SETTINGS.first_look_narrow, (16, found.trials[0].steps)),)
    alone = InCompany(EIGENVALUES)
    alone.benefits_from_parallel = False
    assert found == fondue(alone, Goal())
    assert alone.asked_together == ()
    assert candidates.n_steps == alone.n_steps


def test_what_two_sure_models_measured_is_not_widened_by_what_a_wide_one_foretold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exact = fondue(LinearCandidates(EIGENVALUES), Goal())
    assert exact.interval == (6, 6)
    told = predict_module.forecast
    monkeypatch.setattr(
        predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), low=5, high=7, moves=2)
    )
    assert fondue(LinearCandidates(EIGENVALUES), Goal()).interval == (5, 7)  # it does not stand
    monkeypatch.setattr(predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), low=5))
    assert fondue(LinearCandidates(EIGENVALUES), Goal()).interval == (6, 6)
    monkeypatch.setattr(
        predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), high=8, n_activating=2)
    )
    assert fondue(LinearCandidates(EIGENVALUES), Goal()).interval == (6, 8)


@pytest.mark.parametrize(
    ("n_shared", "n_activating", "high"),
    [(0, 0, 7), (1, 0, 7), (3, 0, 9), (0, 1, 7), (0, 2, 8), (3, 1, 9), (3, 4, 10)],
)
def test_a_fresh_start_may_keep_one_more_or_what_half_awake_latents_hold_and_more_training_wake_some(
    n_shared: int, n_activating: int, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = predict_module.forecast
    monkeypatch.setattr(
        predict_module,
        "forecast",
        lambda *args: dataclasses.replace(told(*args), n_shared=n_shared, n_activating=n_activating),
    )
    monkeypatch.setattr(
        verify_module, "SETTINGS", AS_FROM_SCRATCH
    )  # the curves of the theory move until then
    assert fondue(InCompany(EIGENVALUES), Goal()).interval == (5, high)
    assert fondue(LinearCandidates(EIGENVALUES), Goal()).interval == (
        6,
        6 + n_activating,
    )  # these begin afresh


def test_a_fresh_start_is_not_added_to_what_a_wide_model_foretold_that_was_trained_afresh_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify_module, "SETTINGS", AS_FROM_SCRATCH)
    told = predict_module.forecast
    for (low, high), expected in {(6, 6): (5, 7), (5, 7): (5, 7), (4, 9): (4, 9)}.items():
        does_not_stand = {"low": low, "high": high, "moves": 2}
        monkeypatch.setattr(
            predict_module,
            "forecast",
            lambda *args, of=does_not_stand: dataclasses.replace(told(*args), **of),
        )
        assert fondue(InCompany(EIGENVALUES), Goal()).interval == expected


def test_half_awake_latents_are_those_beyond_what_the_wide_model_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # shapes3d: the wide model keeps 9 and three more would be filled, narrow models say 8.
    told = predict_module.forecast
    monkeypatch.setattr(
        predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), value=7, n_shared=3)
    )
    monkeypatch.setattr(verify_module, "SETTINGS", AS_FROM_SCRATCH)
    found = fondue(InCompany(EIGENVALUES), Goal())
    assert (found.value, found.interval) == (6, (5, 10))


@pytest.mark.parametrize(("n_needed", "models"), [(14, [16, 14, 15]), (15, [15, 16]), (16, [16, 32, 16, 17])])
def test_a_wide_model_is_widened_where_it_has_no_latent_to_spare(n_needed: int, models: list[int]) -> None:
    # Of 15, the wide model of 16 is the one with a latent too many, and is listed once; of 16 it is another model.
    eigenvalues = np.concatenate([np.full(n_needed, 1000.0), np.full(20, 0.01)])
    candidates = InCompany(eigenvalues)
    candidates.benefits_from_parallel = False
    found = fondue(candidates, Goal())
    assert found.value == n_needed
    assert [trial.n_latents for trial in found.trials] == models
    assert found.trials[-1].decision == "too many"
    assert candidates.n_models == len(models)


class Later(InCompany):
    """Without company, so that it is seen how each model is trained."""

    benefits_from_parallel = False

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        if n_latents < 16:  # falls by a quarter of the threshold with each doubling, as where γ falls
            fall = (0.5 - 0.25 * np.log2(curves.steps / 600)) / n_latents
            curves = Curves(curves.steps, curves.variances + fall[:, None].clip(0))
        return curves


@pytest.mark.parametrize(("stands", "decision"), [(True, "fits"), (False, "undecided")])
def test_models_that_begin_with_a_wide_ones_latents_have_its_descent_behind_them_if_it_has(
    stands: bool, decision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stands:
        monkeypatch.setattr(verify_module, "SETTINGS", dataclasses.replace(SETTINGS, min_steps=10_000))
    found = fondue(Later(EIGENVALUES), Goal(steps=1900))
    trials = {trial.n_latents: trial for trial in found.trials}
    assert trials[6].steps == 600 or decision == "undecided"
    assert trials[6].decision == decision


def test_a_wide_model_that_still_moves_is_asked_what_it_will_say_of_narrow_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = predict_module.forecast
    now, then = (
        tuple(np.arange(1, 17) / (n + 0.5)) for n in (6, 4)
    )  # six latents, and four after a doubling
    moving = {"moves": 5, "traces": now, "coming": then}
    monkeypatch.setattr(predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), **moving))

    def asked(can_prune: bool) -> int:
        candidates = InCompany(EIGENVALUES)
        candidates.benefits_from_parallel, candidates.can_prune = False, can_prune
        found = fondue(candidates, Goal(steps=600))
        assert found.value == 6
        return next(trial.n_latents for trial in found.trials if trial.role != "wide")

    assert asked(can_prune=True) == 4  # after as many steps again
    assert asked(can_prune=False) == 6  # which begin afresh


def test_data_that_need_more_than_the_first_width_widen_it() -> None:
    eigenvalues = np.concatenate([np.full(40, 1000.0), np.full(5, 0.01)])
    found = fondue(LinearCandidates(eigenvalues), Goal())
    assert found.value == exact_answer(eigenvalues, 1.0) == 40


def test_a_search_that_hits_its_cap_says_so() -> None:
    with pytest.raises(CapError, match="even 32 latents have no surplus, and cap is 32"):
        fondue(LinearCandidates(np.full(100, 1e4)), Goal(cap=32))


def test_data_of_which_nothing_is_learned_need_no_latents_and_it_is_said() -> None:
    found = fondue(LinearCandidates(np.full(5, 0.1)), Goal(threshold=0.5))
    assert found.value == 0
    assert any("Not even one latent fits" in note for note in found.notes)


@pytest.mark.parametrize("n_latents", [2, 4, 6])
@pytest.mark.parametrize("threshold", [0.5, 1.0])
def test_the_largest_beta_is_that_of_the_theory(n_latents: int, threshold: float) -> None:
    found = largest_beta(LinearCandidates(EIGENVALUES), Goal(threshold=threshold), n_latents)
    grid = np.geomspace(1e-3, 1e3, 200_001)
    traces = np.minimum(1, grid[:, None] / EIGENVALUES[None, :n_latents]).sum(axis=1)
    exact = grid[traces <= threshold][-1]
    assert found.value / PRECISION <= exact * 1.001
    assert exact <= found.value * PRECISION * 1.001
    assert found.interval[0] <= exact * 1.001
    assert exact <= found.interval[1] * 1.001


def test_an_open_interval_of_beta_is_said_to_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(candidates: Any, n: int, threshold: float, most: int, *, beta: float, **_: Any) -> Trial:
        return Trial(n, 0, 0.8 * beta, "undecided", most, beta=beta)

    assert not largest_beta(LinearCandidates(EIGENVALUES), Goal(), 6).notes
    monkeypatch.setattr(importlib.import_module("polariscope.sizing.size_beta"), "decide", undecided)
    found = largest_beta(LinearCandidates(EIGENVALUES), Goal(), 6)
    assert found.interval == (2.0**-12, 2.0**12)
    assert found.notes[-1].startswith(
        "No β is clearly small enough or too large, so the interval ends at the limit of the search there"
    )


def test_a_beta_that_does_not_exist_is_not_invented() -> None:
    with pytest.raises(CapError, match="stays on one side of the threshold 1e-06 for every β"):
        largest_beta(LinearCandidates(EIGENVALUES), Goal(threshold=1e-6), 2)


@pytest.mark.parametrize(("images", "careful"), [(True, 2e-4), (False, 1e-3)])
def test_all_models_learn_at_the_rate_at_which_latents_of_such_data_live(
    images: bool, careful: float
) -> None:
    candidates = LinearCandidates(EIGENVALUES)
    found = fondue(candidates, Goal(images=images))
    assert {dict(ast.literal_eval(changes))["learning_rate"] for _, changes in candidates.asked} == {careful}
    assert found.value == exact_answer(EIGENVALUES, 1.0)
    candidates = LinearCandidates(EIGENVALUES)
    fondue(candidates, Goal(images=images, learning_rate=5e-4))
    assert {dict(ast.literal_eval(changes))["learning_rate"] for _, changes in candidates.asked} == {5e-4}


class Waves(LinearCandidates):
    """Latents wake two at a time, at 1,500, 4,800 and 15,000 steps: those of later waves are silent before."""

    n_true = 6

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        self._train(n_latents, steps, changes)
        looks = np.arange(25, steps + 1, 25)
        variances = np.ones((len(looks), n_latents))
        for latent in range(min(n_latents, self.n_true)):
            wakes = 1500 * 3.2 ** (latent // 2)
            variances[:, latent] = 0.02 + 0.98 / (1 + np.exp((looks - wakes) / (0.05 * wakes)))
        return Curves(looks, variances)

    @property
    def steps_per_epoch(self) -> int:
        return 800


def test_an_interval_inside_a_plateau_takes_in_the_next_wave() -> None:
    # Four latents awake at the end of 8,000 steps, and the threshold lets one more pass.
    found = fondue(Waves(EIGENVALUES), Goal())
    assert found.value in (4, 5)
    assert found.interval[0] <= 4
    assert found.interval[1] >= 6
    # Inside the first plateau: two awake.
    found = fondue(Waves(EIGENVALUES), Goal(steps=3000))
    assert found.value in (2, 3)
    assert found.interval[1] >= 4


class LearnedVariance(LinearCandidates):
    """The decoder's variance is learned: it grows with what is discarded."""

    @property
    def n_gamma_values(self) -> int | None:
        return len(self.eigenvalues)

    def solution(self, n_latents: int, **changes: Any) -> LinearSolution:
        return linear_vae(self.eigenvalues, n_latents, gamma=None)


@pytest.mark.parametrize(
    "eigenvalues",
    [
        10.0 / np.arange(1, 41) ** 1.5,
        10 * np.exp(-np.arange(40) / 4) + 0.02,
        np.concatenate([np.full(3, 20.0), np.full(6, 2.0), np.full(12, 0.3), np.full(19, 0.02)]),
        np.concatenate([np.full(10, 4.0), np.full(30, 0.05)]),
    ],
)
def test_with_a_learned_variance_the_answer_is_the_end_of_the_first_stretch(eigenvalues: np.ndarray) -> None:
    traces = [linear_vae(eigenvalues, n, gamma=None).trace for n in range(1, len(eigenvalues))]
    answer = next(n for n, value in enumerate(traces) if value > 1)
    found = fondue(LearnedVariance(eigenvalues), Goal())
    assert found.value == answer
    assert len([trial for trial in found.trials if trial.role != "wide"]) <= 3  # both sides, and one to spare


class ByHeart(LinearCandidates):
    """Has a loss on held-out observations, lowest after ``best`` steps. Of a wide model three latents come early."""

    best = 8000
    most_seen = 100_000

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        if n_latents < 16 and self.n_steps > self.most_seen:
            raise OutOfTimeError("The time was over.")
        held_out = tuple((int(step), 10 + abs(np.log2(step / self.best)), 9.0) for step in curves.steps[::8])
        variances = curves.variances.copy()
        if n_latents == 16:
            variances[:, 3:] = np.where(curves.steps[:, None] < 1200, 0.99, variances[:, 3:])
        return Curves(curves.steps, variances, held_out=held_out)


@pytest.mark.parametrize(("best", "low"), [(8000, 6), (625, 3), (100, 3)])
def test_where_observations_are_learned_by_heart_the_interval_begins_at_what_was_said_before(
    best: int, low: int
) -> None:
    candidates = ByHeart(EIGENVALUES)
    candidates.best = best
    found = fondue(candidates, Goal())
    assert (found.value, found.interval[0]) == (6, low)
    notes = [note for note in found.notes if "overfits" in note]
    assert len(notes) == (low < 6)
    candidates.most_seen = 1950  # the time is over at the first narrow model
    cut = fondue(candidates, Goal())
    assert "The time was over." in cut.notes
    assert [note for note in cut.notes if "overfits" in note] == notes
    assert cut.interval[0] == min(low, 5)
    if notes:
        assert f"after about {max(best, 400):,} steps, when it predicted 3 latents" in notes[0]


class NoNoise(LearnedVariance):
    """Each direction varies a tenth of the one before."""

    @property
    def max_latents(self) -> int | None:
        return len(self.eigenvalues) - 1


def test_data_without_noise_need_as_many_latents_as_leave_one_direction() -> None:
    found = fondue(NoNoise(10.0 ** -np.arange(10)), Goal())
    assert found.value == 9
    assert found.interval[1] == 9
    assert found.notes[0].startswith("Even 9 latents have no surplus. With a learned γ this is the maximum")
    (note,) = fondue(NoNoise(np.array([1.0, 0.1])), Goal()).notes
    assert note.startswith("Even 1 latent has no surplus.")


class OverfittedTable(ByHeart):
    """A table whose decoder variance is learned, and which a wide model overfits."""

    best = 625

    @property
    def n_gamma_values(self) -> int | None:
        return 40


def test_of_a_table_that_a_wide_model_overfits_the_answer_is_that_of_its_lowest_held_out_loss() -> None:
    candidates = OverfittedTable(EIGENVALUES)
    found = fondue(candidates, Goal())
    assert (found.value, found.basis) == (3, Basis("early-stopped", step=625))
    assert found.interval[0] == 2
    wide, narrow = found.trials
    assert wide.steps < 8000  # it is stopped when it overfits
    assert (narrow.n_latents, narrow.steps) == (3, SETTINGS.first_verdict)
    assert "lowest held-out loss, after 625 steps" in found.basis.in_words


def test_early_stopping_is_for_tables_with_a_learned_variance_only() -> None:
    images = fondue(OverfittedTable(EIGENVALUES), Goal(images=True))
    assert images.basis == Basis()
    assert {trial.n_latents for trial in images.trials if trial.role == "narrow"} >= {6, 7}
    assert fondue(ByHeart(EIGENVALUES), Goal()).basis == Basis()


class Rows(LearnedVariance):
    """Has observations of a given rank, and a wide model that uses two latents at a given held-out loss."""

    def __init__(self, rank: int, loss: float) -> None:
        super().__init__(np.concatenate([np.full(2, 20.0), np.ones(18)]))
        draw = np.random.default_rng(0)
        signal = 4 * draw.normal(size=(200, rank)) @ np.linalg.qr(draw.normal(size=(20, rank)))[0].T
        self.rows, self.loss, self.n_asked = signal + draw.normal(size=(200, 20)), loss, 0

    def observations(self) -> np.ndarray:
        return self.rows

    def split_rows(self) -> tuple[np.ndarray, np.ndarray]:
        self.n_asked += 1
        return self.rows[:180], self.rows[180:]

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        return dataclasses.replace(curves, held_out=((steps, self.loss, self.loss),), is_elbo=True)


def test_if_linear_models_generalise_better_the_answer_is_their_cross_validated_number() -> None:
    found = fondue(Rows(rank=6, loss=60.0), Goal())
    assert found.value == 6
    assert found.basis == Basis("closed-form", closed_form=6)
    assert found.interval[0] <= 5
    assert found.interval[1] >= 7
    assert [trial.n_latents for trial in found.trials] == [16, 6]  # one model with so many latents is trained


def test_a_trained_model_that_generalises_as_well_as_linear_ones_decides_itself() -> None:
    found = fondue(Rows(rank=6, loss=20.0), Goal())
    assert found.value == 2
    assert found.basis == Basis(closed_form=6)
    assert found.basis.in_words == ""


def test_without_a_noise_floor_an_answer_below_that_of_linear_models_is_kept_and_said() -> None:
    candidates = Rows(rank=6, loss=60.0)
    draw = np.random.default_rng(1)
    candidates.rows = draw.normal(size=(2000, 20)) * np.sqrt(100 * 0.7 ** np.arange(20))
    found = fondue(candidates, Goal())
    assert found.value == 2
    assert found.basis.is_below
    assert found.basis.closed_form is not None
    assert f"up to {found.basis.closed_form} latents can carry information" in found.basis.in_words
    assert found.basis.closed_form is not None
    assert found.interval[1] >= found.basis.closed_form
    assert "linear models" in found.basis.meaning_of_interval("")


def test_images_are_not_compared_with_linear_models() -> None:
    candidates = Rows(rank=6, loss=60.0)
    assert fondue(candidates, Goal(images=True)).basis == Basis()
    assert candidates.n_asked == 0


def test_learning_by_heart_is_told_where_all_latents_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    told = predict_module.forecast
    early = told(np.arange(25, 401, 25), np.tile([0.1, 0.1, 1.0], (16, 1)), 1.0)
    monkeypatch.setattr(
        predict_module, "forecast", lambda *args: dataclasses.replace(told(*args), best=early)
    )
    found = fondue(NoNoise(10.0 ** -np.arange(10)), Goal(images=True))  # tables are stopped early
    assert (found.value, found.interval) == (9, (2, 9))
    assert "lowest after about 400 steps, when it predicted 2 latents" in found.notes[1]


class TrainedFurther(InCompany):
    """An earlier search in the same folder gave the wide model 8,000 steps."""

    benefits_from_parallel = False
    pruned: tuple[object, ...] = ()

    def nearest_steps(self, n_latents: int, steps: int, **changes: object) -> int:
        return 8000

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        self.pruned += (changes["pruned_from"],) if "pruned_from" in changes else ()
        return super().watch(n_latents, steps, **changes)


def test_a_wide_model_that_an_earlier_search_has_trained_further_is_told() -> None:
    candidates = TrainedFurther(EIGENVALUES)
    found = fondue(candidates, Goal(steps=2000))
    assert set(candidates.pruned) == {(16, 8000)}
    assert any("The wide model in this folder already has 8,000 steps" in note for note in found.notes)
    assert not any(
        "in this folder already has" in note
        for note in fondue(InCompany(EIGENVALUES), Goal(steps=2000)).notes
    )


class Pruned(NoNoise):
    can_prune = True


def test_an_interval_that_a_fresh_start_brings_to_its_end_is_not_called_open() -> None:
    # γ = 0.2 is learned: Σ E[σ²] = 0.4 of two latents, 1.4 of three, and no model may have more than three.
    found = fondue(Pruned(np.array([1.0, 1.0, 0.2, 0.2])), Goal())
    assert (found.value, found.interval) == (2, (1, 3))
    assert not any("no model has clearly" in note.lower() for note in found.notes)


class OutOfTime(LinearCandidates):
    """The time ends after so many steps in all."""

    most = 0

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        if self.n_steps > self.most:
            raise OutOfTimeError("The time was over.")
        return curves


@pytest.mark.parametrize("most", [450, 600, 1000, 1500, 1700])
def test_when_the_time_is_over_there_is_an_answer_with_the_interval_it_allows(most: int) -> None:
    candidates = OutOfTime(EIGENVALUES)
    candidates.most = most
    found = fondue(candidates, Goal())
    assert found.interval[0] <= exact_answer(EIGENVALUES, 1.0) <= found.interval[1]
    assert "The time was over." in found.notes
    assert any("the data might need more" in note for note in found.notes) == (found.interval[1] == 16)
    wide, *narrow = found.trials  # how far the models came by then
    assert (wide.n_latents, wide.role) == (16, "wide")
    assert 400 <= wide.steps + sum(trial.steps for trial in narrow) <= most
    with pytest.raises(
        OutOfTimeError, match=r"no answer yet: the first one requires 400 steps .* time was over"
    ):
        fondue(OutOfTime(EIGENVALUES), Goal())


@pytest.mark.parametrize("most", [1900, 2200, 2500])
def test_a_time_that_ends_before_a_wider_model_was_asked_leaves_the_upper_end_open(most: int) -> None:
    eigenvalues = np.concatenate([np.full(40, 1000.0), np.full(5, 0.01)])
    candidates = OutOfTime(eigenvalues)
    candidates.most = most
    found = fondue(candidates, Goal(cap=100))
    assert found.value >= 16
    assert found.interval[1] == 100
    assert any("latents had no surplus" in note for note in found.notes)


def test_a_model_without_surplus_counts_where_a_wider_one_has_only_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = predict_module.forecast

    def early(*args: Any) -> Any:  # of 32 latents, after 400 or 500 steps, only three are awake
        found = told(*args)
        begun = {"value": 3, "low": 2, "high": 9, "moves": 9}
        return dataclasses.replace(found, **begun) if len(found.traces) == 32 else found

    monkeypatch.setattr(predict_module, "forecast", early)
    candidates = OutOfTime(np.concatenate([np.full(40, 1000.0), np.full(5, 0.01)]))
    candidates.most = 2500
    found = fondue(candidates, Goal(cap=100))
    assert (found.value, found.interval) == (16, (1, 100))
    assert any("a model with 16 latents had no surplus" in note for note in found.notes)
    assert [(trial.n_latents, trial.decision) for trial in found.trials] == [(16, "fits"), (32, "too many")]


def test_a_wide_model_that_was_stopped_while_it_changed_is_told() -> None:
    found = fondue(LinearCandidates(EIGENVALUES), Goal(steps=1000))  # none stands before 1,800 steps
    assert "with 16 latents had not converged after 1,000 steps" in found.notes[-1]
    assert not any(
        "had not converged" in note for note in fondue(LinearCandidates(EIGENVALUES), Goal()).notes
    )


class SlowlyGivenUp(LinearCandidates):
    """The last of six latents rises for the whole training, and no end of it."""

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        if n_latents == 6:
            curves.variances[:, -1] = np.maximum(
                curves.variances[:, -1], 0.3 + 0.3 * np.log2(curves.steps / 900)
            )
        return curves


def test_a_model_in_doubt_is_in_the_interval() -> None:
    # Six latents: 0.11 of five, and a sixth that stands at 0.82 after 3,000 steps and rises: above 1 together soon.
    found = fondue(SlowlyGivenUp(EIGENVALUES), Goal(steps=3000))
    assert (found.value, found.interval) == (5, (5, 6))
    (doubtful,) = [trial for trial in found.trials if trial.n_latents == 6]
    assert doubtful.projected[0] <= 1.01 <= doubtful.projected[1]
    assert doubtful.keeps == 5


class NeverBegins(LinearCandidates):
    """Narrow models learn nothing, as wide ones do; or none does."""

    wide_learns = True

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        return (
            curves
            if self.wide_learns and n_latents >= 16
            else Curves(curves.steps, 0 * curves.variances + 0.99)
        )


def test_models_that_have_not_begun_prove_nothing_where_a_wide_one_has() -> None:
    found = fondue(NeverBegins(EIGENVALUES), Goal())
    assert found.value == 0
    assert found.interval[1] >= 6  # the right answer
    silent = NeverBegins(EIGENVALUES)
    silent.wide_learns = False
    found = fondue(silent, Goal())
    assert (found.value, found.interval) == (0, (0, 0))


class Unsettled(LinearCandidates):
    """Posteriors stay far wider than the prior, as those of data in other units do."""

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        return Curves(curves.steps, 1000 * (1 + curves.variances)) if n_latents > 3 else curves


def test_a_wide_model_that_has_not_settled_bounds_nothing() -> None:
    found = fondue(Unsettled(EIGENVALUES), Goal(cap=20))
    assert found.value == 3
    assert found.interval == (3, 20)
    assert any("the interval ends at the cap, 20" in note for note in found.notes)


def test_latents_that_the_threshold_lets_pass_are_told() -> None:
    eigenvalues = np.array([100.0, 100.0, 1.25, 0.1])  # Σ = 0.02 + 0.8
    found = fondue(LinearCandidates(eigenvalues), Goal())
    assert found.value == 3
    assert any(
        "1 of the 3 latents carries little information (E[σ²] above one half)" in note for note in found.notes
    )
    assert not any(
        "little information" in note for note in fondue(LinearCandidates(EIGENVALUES), Goal()).notes
    )


class SpreadOut(LinearCandidates):
    """Models of more than 100 latents give a little of everything to each of them."""

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        curves = super().watch(n_latents, steps, **changes)
        return Curves(curves.steps, np.full_like(curves.variances, 0.45)) if n_latents > 100 else curves


def test_a_model_that_is_far_too_wide_is_not_believed() -> None:
    found = fondue(SpreadOut(EIGENVALUES), Goal(n_init=200))
    assert found.value == exact_answer(EIGENVALUES, 1.0) == 6
    assert [trial.n_latents for trial in found.trials][:2] == [200, 16]
    assert {trial.n_latents for trial in found.trials[2:]} == {6, 7}


@pytest.mark.parametrize("high", [5, 8, 20])
@pytest.mark.parametrize("n_faint", [0, 1, 2])
@pytest.mark.parametrize("cause", [None, "below"])
def test_notes_name_at_most_one_other_answer(high: int, n_faint: int, cause: Cause | None) -> None:
    trials = [Trial(5, 0, 0.9, "fits", 900, cause=cause), Trial(6, 0, 1.4, "too many", 900)]
    notes = notes_of(trials, 5, "the cap, 20" if high == 20 else "", n_faint, 1.0)
    about = [words for words in notes if "cap" in words or "Choose" in words]
    assert len(about) == (n_faint > 0 or high == 20)
    assert ("Choose" in " ".join(notes)) == (n_faint > 0)
    assert ("ends at the cap, 20" in " ".join(notes)) == (high == 20)
    if n_faint:
        assert f"the answer counts {'it' if n_faint == 1 else 'them'}" in about[0]
        assert f"Choose {5 - n_faint} if every latent must be informative." in about[0]


def test_what_is_beyond_the_answer_is_said_only_of_what_was_trained() -> None:
    def words(*trained: int, threshold: float = 1.0) -> str:
        trials = tuple(Trial(n, 0, 1.0, "fits", 100) for n in trained)
        return Size(
            9, (8, 10), "fondue", statistic=TRACE, threshold=threshold, per_seed=(9,), trials=trials
        ).in_words

    assert "with 10, about one would be unused" in words(9, 10)
    for statistic, count in ((1.2, "one"), (1.91, "two"), (2.12, "two"), (8.7, "9")):
        trials = (Trial(9, 0, 0.8, "fits", 100), Trial(10, 0, statistic, "too many", 100))
        size = Size(9, (8, 10), "fondue", statistic=TRACE, threshold=1.0, per_seed=(9,), trials=trials)
        assert f"with 10, about {count} would be unused" in size.in_words
    assert "with 10, more would be unused than the threshold allows" in words(9, 10, threshold=2.0)
    assert "a model with 10 was not trained" in words(9, 16)
