"""A batch holds what the objective needs, the same for the same seed, step and stream."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.sources import load_dataset
from polariscope.models.inference import auxiliary_values
from polariscope.training.feed import Feed, class_labels
from polariscope.training.plan import plan

INDICES = np.array([0, 5, 100_000, 700_000])


@pytest.fixture(scope="module")
def sprites():
    return load_dataset("sprites", image_size=16)


def feed(data, objective: str, seed: int = 0, **options) -> Feed:
    job = plan(data, objective=objective, net="mlp", n_latents=6, **options)
    return Feed(job.data, job.objective, job.blueprint.build(0).double(), n_data=77, seed=seed)


def test_a_plain_objective_gets_observations_only(sprites):
    batch = feed(sprites, "vae").batch(INDICES, step=3)
    torch.testing.assert_close(batch.x, torch.from_numpy(sprites.values(INDICES)).double())
    assert (batch.step, batch.n_data) == (3, 77)
    assert batch.auxiliary is batch.pair is batch.shared is batch.labels is None


def test_pairs_are_those_of_the_objectives_transition_and_share_what_the_batch_says(sprites):
    batch = feed(sprites, "slow", transition_kind="uniform").batch(INDICES, step=4)
    partners, _ = Transition("uniform").draw(sprites, INDICES, generator(0, "pairs", "train", 4))
    torch.testing.assert_close(batch.pair, torch.from_numpy(sprites.values(partners)).double())
    same = sprites.factors(INDICES) == sprites.factors(partners)
    torch.testing.assert_close(batch.shared, torch.from_numpy(same).double())
    assert 0 < same.mean() < 1


def test_pairs_are_a_function_of_seed_step_and_stream(sprites):
    made = feed(sprites, "slow")
    first = made.batch(INDICES, step=7)
    again = feed(sprites, "slow").batch(INDICES, step=7)
    assert torch.equal(first.pair, again.pair)
    others = [
        made.batch(INDICES, step=8),
        made.batch(INDICES, step=7, stream="probe"),
        feed(sprites, "slow", seed=1).batch(INDICES, step=7),
    ]
    assert not any(torch.equal(first.pair, other.pair) for other in others)
    assert all(torch.equal(first.x, other.x) for other in others)


def test_auxiliary_values_are_the_factors_between_0_and_1(sprites):
    batch = feed(sprites, "ivae").batch(np.array([0, len(sprites) - 1]), step=0)
    torch.testing.assert_close(batch.auxiliary, torch.tensor([[0.0] * 5, [1.0] * 5]).double())
    continuous = from_arrays(np.zeros((3, 2)), np.array([[0.5], [-2.0], [7.0]]))
    torch.testing.assert_close(
        auxiliary_values(continuous, np.arange(3)), torch.tensor([[0.5], [-2.0], [7.0]])
    )


def test_labels_are_the_discrete_factors_only():
    factors = np.array([[0.1, 1.0, 2.0], [0.2, 0.0, 1.0], [0.3, 1.0, 0.0]])
    kinds = ["continuous", "categorical", "ordinal"]
    data = from_arrays(np.zeros((3, 2)), factors, factor_kinds=kinds)
    np.testing.assert_array_equal(class_labels(data, np.array([2, 0])), [[1, 0], [1, 2]])
    batch = feed(data, "classifier").batch(np.array([2, 0]), step=0)
    assert batch.labels is not None
    assert batch.labels.tolist() == [[1, 0], [1, 2]]


def test_data_without_factors_have_neither_labels_nor_auxiliary_values():
    data = from_arrays(np.zeros((3, 2)))
    with pytest.raises(InputError, match="no discrete factors or labels to classify"):
        class_labels(data, np.zeros(1, dtype=np.int64))
    with pytest.raises(InputError, match="no factors or labels to condition on"):
        auxiliary_values(data, np.zeros(1, dtype=np.int64))


def test_small_data_are_asked_for_their_values_once_and_batches_stay_the_same(monkeypatch):
    data = from_arrays(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    made, asked = feed(data, "vae"), []
    values = type(made.data).values

    def counted(self, indices):
        asked.append(indices)
        return values(self, indices)

    monkeypatch.setattr(type(made.data), "values", counted)
    chosen = np.array([3, 3, 49, 0])
    seen = [made.batch(chosen, step=step).x for step in range(2)]
    assert [len(indices) for indices in asked] == [50]
    monkeypatch.setattr("polariscope.training.feed.MAX_CACHED", 50 * 3 - 1)
    large = feed(data, "vae")
    assert all(torch.equal(large.batch(chosen, step=0).x, x) for x in seen)
    assert [len(indices) for indices in asked[-2:]] == [len(chosen)] * 2
