"""Sizing with the caller's own trainer, on linear VAEs whose posterior variances are known exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.sizing.bisection import CapError

EIGENVALUES = np.array([9.0, 6.0, 4.0, 2.5, 0.1, 0.05])
ROWS = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32) * np.sqrt(
    EIGENVALUES, dtype=np.float32
)


class Linear:
    """The optimal linear VAE with decoder variance 1 on axis-aligned data: posterior variances min(1, 1/λ)."""

    def __init__(self) -> None:
        self.trained: list[tuple[int, int]] = []

    def __call__(self, n_latents: int, seed: int = 0):
        self.trained.append((n_latents, seed))
        padded = np.concatenate([EIGENVALUES, np.full(max(0, n_latents - 6), 1e-9)])[:n_latents]
        variance = np.minimum(1.0, 1.0 / padded)
        gain = torch.tensor(np.sqrt(1 - variance) / np.sqrt(padded), dtype=torch.float32)
        log_variance = torch.tensor(np.log(variance), dtype=torch.float32)

        def encoder(x):
            kept = torch.nn.functional.pad(x, (0, max(0, n_latents - 6)))[:, :n_latents]
            return kept * gain, log_variance.expand(len(x), -1)

        return encoder


EXPECTED = int((np.cumsum(np.minimum(1, 1 / EIGENVALUES)) <= 1).sum())
"""The largest n with Σ min(1, 1/λ) ≤ 1, in closed form: 4."""


def test_the_closed_form_is_found_with_one_wide_model_and_both_neighbours():
    trainer = Linear()
    size = ps.size(ROWS, trainer=trainer)
    assert size.n_latents == EXPECTED
    assert [n for n, _ in trainer.trained] == [16, EXPECTED, EXPECTED + 1]
    assert size.interval == (EXPECTED - 1, EXPECTED + 1)
    assert "another seed can differ by one" in size.meaning_of_interval
    assert size.verdict.n_in_use == EXPECTED
    assert size.dimension is not None
    assert "4 latents (3–5) by fondue, 3 models." in str(size)
    assert "steps" not in str(size).partition("Σ E[σ²]")[2]


@pytest.mark.parametrize(("n_init", "widths"), [(1, [1, 2, 4, 8, 5]), (2, [2, 4, 8, 5]), (6, [6, 4, 5])])
def test_the_first_model_is_widened_until_it_has_surplus_latents(n_init, widths):
    trainer = Linear()
    assert ps.size(ROWS, trainer=trainer, n_init=n_init).n_latents == EXPECTED
    assert [n for n, _ in trainer.trained] == widths


@pytest.mark.parametrize("method", ["fondue-published", "fondue-binary"])
def test_the_published_searches_have_the_same_answer(method):
    size = ps.size(ROWS, method, trainer=Linear())
    assert (size.n_latents, size.method) == (EXPECTED, method)


def test_the_threshold_counts():
    # Two surplus latents add 2 to the sum.
    assert ps.size(ROWS, trainer=Linear(), threshold=3.0).n_latents == EXPECTED + 2


def test_no_model_is_trained_twice_and_the_answer_is_stored(tmp_path):
    trainer = Linear()
    size = ps.size(ROWS, trainer=trainer, seeds=2, out=tmp_path)
    assert {seed for _, seed in trainer.trained} == {0, 1}
    assert size.per_seed == (EXPECTED, EXPECTED)
    assert size.interval == (EXPECTED - 1, EXPECTED + 1)
    assert "than the answers of 2 seeds" in size.meaning_of_interval
    n_models = len(trainer.trained)
    assert ps.size(ROWS, trainer=trainer, seeds=2, out=tmp_path).to_dict() == size.to_dict()
    assert len(trainer.trained) == n_models
    from polariscope.sizing.size import read_size

    assert read_size(tmp_path).to_dict() == size.to_dict()


def test_an_interrupted_search_keeps_its_finished_models(tmp_path):
    trainer = Linear()

    def interrupted(n_latents, inner=trainer):
        if n_latents == EXPECTED + 1 and stop:
            raise KeyboardInterrupt
        return inner(n_latents)

    stop = [True]
    with pytest.raises(KeyboardInterrupt):
        ps.size(ROWS, trainer=interrupted, out=tmp_path)
    stop.clear()
    assert ps.size(ROWS, trainer=interrupted, out=tmp_path).n_latents == EXPECTED
    assert [n for n, _ in trainer.trained] == [16, EXPECTED, EXPECTED + 1]


def test_models_of_another_trainer_or_of_other_data_are_not_reused(tmp_path):
    ps.size(ROWS, trainer=lambda n_latents: Linear()(n_latents), out=tmp_path)
    with pytest.raises(InputError, match="contains models of other data or other settings"):
        ps.size(ROWS, trainer=lambda n_latents: Linear()(n_latents, seed=1), out=tmp_path)
    with pytest.raises(InputError, match="contains models of other data or other settings"):
        ps.size(2 * ROWS, trainer=lambda n_latents: Linear()(n_latents), out=tmp_path)


def test_a_representation_is_taken_as_it_is():
    def trainer(n_latents):
        return ps.encode(Linear()(n_latents), ROWS, n_samples=100)

    assert ps.size(ROWS, trainer=trainer).n_latents == EXPECTED


def test_progress_is_reported_before_a_model_is_trained():
    seen = []
    ps.size(ROWS, trainer=Linear(), progress=lambda seed, n_latents, step, trace: seen.append(n_latents))
    assert seen == [16, EXPECTED, EXPECTED + 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"net": "mlp"},
            "net is for models that Polariscope trains; leave it out, and set it inside trainer",
        ),
        ({"standardise": True}, "standardise is for models that Polariscope trains"),
        ({"method": "elbow"}, "method 'elbow' trains its own models; leave trainer out, or use one of"),
        ({"trainer": lambda n: Linear()(n + 1)}, r"trainer\(16\) must return 16 latents, got 17"),
        ({"trainer": lambda n: Linear()(n), "seeds": 2}, r"write trainer\(n_latents, seed\)"),
        ({"trainer": lambda n: None}, r"the result of trainer\(16\) cannot be encoded: model must be"),
        (
            {
                "trainer": lambda n: ps.Representation(
                    ROWS[:, [0] * n], ROWS[:, [0] * n] * 0, ROWS[:, [0] * n]
                )
            },
            r"trainer\(16\) must return a model with posterior variances.*got a deterministic encoder",
        ),
        ({"threshold": 0}, "threshold must be positive"),
        ({"target": "beta", "n_latents": 2}, "trainer is for the number of latents, got target='beta'"),
        ({"n_init": 8, "cap": 4}, "n_init must be at most cap"),
    ],
)
def test_calls_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ps.size(ROWS, **{"trainer": Linear(), **options})


def test_a_cap_without_surplus_is_an_error():
    with pytest.raises(CapError, match="even 3 latents have no surplus, and cap is 3"):
        ps.size(ROWS, trainer=Linear(), cap=3)
