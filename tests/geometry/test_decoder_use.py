"""What the decoder makes of a latent, where that has a closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.geometry.decoder_use import decoder_use
from polariscope.training.plan import plan


def test_the_use_of_a_linear_decoder_has_its_closed_form() -> None:
    # f(z) = W z + b and independent draws of z_j: E‖W_j (z_j − z̃_j)‖² / 2 = ‖W_j‖² Var z_j.
    rng = np.random.default_rng(0)
    data = ps.from_arrays(rng.normal(size=(1000, 4)).astype(np.float32), rng.integers(2, size=1000))
    model = plan(data, objective="ivae", net="linear", n_latents=3).blueprint.build(0)
    codes = (rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.0]).astype(np.float32)
    observed = data.values(np.arange(1000))
    weights = model.decoder.trunk.layers[0][0].weight.detach().numpy()
    expected = (weights**2).sum(axis=0) * [1, 4, 0] / observed.var(axis=0).sum()
    # The mean of 1000 squares (z − z̃)²/2 ~ χ²: a relative error of about √(3/1000), five of them.
    np.testing.assert_allclose(decoder_use(model, codes, observed), expected, rtol=0.28)


def test_each_code_lends_its_latent_to_one_that_is_far_from_it_in_the_data() -> None:
    # Codes in order, as a dataset has them: the neighbour's latent would be nearly the same.
    codes = np.linspace(0, 1, 500)[:, None]
    use = decoder_use(lambda z: torch.cat([z, z], dim=1), codes, np.hstack([codes, codes]))
    # E (z − z̃)² = 2 Var z, relative error of a mean of 500 squares of a triangular distribution: √(7/5/500).
    assert use[0] == pytest.approx(1, abs=5 * 0.053)


def test_what_has_no_use_is_refused() -> None:
    codes = np.zeros((3, 1))
    with pytest.raises(InputError, match="observed must vary"):
        decoder_use(lambda z: z, codes, np.ones((3, 2)))
    with pytest.raises(InputError, match="of the same samples, got 3 and 2"):
        decoder_use(lambda z: z, codes, np.ones((2, 2)))
    with pytest.raises(InputError, match="codes must be at least 2"):
        decoder_use(lambda z: z, codes[:1], np.ones((1, 2)))
