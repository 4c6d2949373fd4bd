"""A model with some of the latents of a wider one."""

from __future__ import annotations

import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.models.model import Model
from polariscope.models.narrowing import take_latents
from polariscope.training.plan import plan


def model_of(net: str, n_latents: int, seed: int, **options: object) -> Model:
    size = {"image_size": 16} if net == "conv" else {}
    data = ps.load_dataset("sprites" if net == "conv" else "gaussian", **size)
    job = plan(data, net=net, n_latents=n_latents, steps=1, **options)
    return job.blueprint.build(seed, job.data).eval()


@pytest.mark.parametrize("net", ["linear", "mlp", "conv"])
def test_it_encodes_as_the_wide_one_and_decodes_as_that_where_the_others_are_0(net: str) -> None:
    wide, narrow = model_of(net, 6, seed=0), model_of(net, 3, seed=1)
    kept = torch.tensor([4, 0, 2])
    take_latents(narrow, wide, kept)
    x = torch.rand(5, *wide.shape)
    with torch.no_grad():
        ours, theirs = narrow.encode(x), wide.encode(x)
        torch.testing.assert_close(ours.mean, theirs.mean[:, kept])
        torch.testing.assert_close(ours.variance, theirs.variance[:, kept])
        z = torch.randn(5, 3)
        filled = torch.zeros(5, 6)
        filled[:, kept] = z
        torch.testing.assert_close(narrow.decode(z).mean, wide.decode(filled).mean)


def test_as_many_latents_as_there_were_are_a_copy_in_that_order() -> None:
    wide, other = model_of("mlp", 4, seed=0), model_of("mlp", 4, seed=1)
    take_latents(other, wide, torch.arange(4))
    x = torch.rand(3, *wide.shape)
    with torch.no_grad():
        torch.testing.assert_close(other.encode(x).mean, wide.encode(x).mean)


@pytest.mark.parametrize("kept", [[0, 1], [0, 1, 1], [0, 1, 2, 3]])
def test_too_few_too_many_or_the_same_twice_are_refused(kept: list[int]) -> None:
    with pytest.raises(InputError, match="3 different latents"):
        take_latents(model_of("mlp", 3, seed=0), model_of("mlp", 6, seed=0), torch.tensor(kept))


def test_latents_that_hang_together_cannot_be_taken_apart() -> None:
    wide, narrow = (model_of("mlp", n, seed=0, posterior="full") for n in (6, 3))
    with pytest.raises(InputError, match="independent"):
        take_latents(narrow, wide, torch.arange(3))
