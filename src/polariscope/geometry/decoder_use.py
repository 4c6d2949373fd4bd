"""Use of each latent by the decoder, as a share of variance."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.geometry.decoder_function import check_codes, decode
from polariscope.models.protocol import ModelLike


def decoder_use(
    model: ModelLike,
    codes: Float[np.ndarray, "sample latent"],
    observed: Float[np.ndarray, "observation *shape"],
    *,
    seed: int = 0,
) -> Float[np.ndarray, " latent"]:
    r"""Compute the variance of the decoder's output due to each latent, as a share of the variance of the data.

    .. math:: \frac{\mathrm{E}\,\|f(z) - f(\tilde z^{(j)})\|^2}{2 \, \mathrm{tr}\, \mathrm{Cov}\, x}

    with f the decoder's mean, z the code of an observation, and :math:`\tilde z^{(j)}` the same code with latent j of
    another observation. It is 0 if the decoder ignores the latent. For a linear decoder and independent latents the
    shares are those of the output's variance, ‖W_j‖² Var z_j; if latents interact, they add up to more. Unlike the KL,
    it does not depend on the prior: with a conditional prior that follows the posterior, the KL of a latent that the
    decoder uses can be small.

    :param model: model with a decoder, or a function from codes to outputs.
    :param codes: codes, usually posterior means.
    :param observed: observations of these codes, as inputs of the network.
    :param seed: (default 0) seed of the permutation of observations.

    >>> z = np.array([[0.0], [2.0]], dtype=np.float32)
    >>> decoder_use(lambda code: 3 * code, z, 3 * z)
    array([2.])
    """
    codes = check_codes(model, codes)
    n = len(codes)
    if n < 2:
        raise InputError("codes", "be at least 2, because latents are exchanged between codes", got=n)
    if len(observed) != n:
        raise InputError("codes and observed", "be of the same samples", got=f"{n} and {len(observed)}")
    spread = float(observed.reshape(n, -1).astype(np.float64).var(axis=0).sum())
    if spread == 0:
        raise InputError(
            "observed", "vary", got=f"{n} equal observations", remedy="use is a share of their variance"
        )
    order = generator(seed, "decoder-use").permutation(n)
    codes = codes[order]
    outputs = decode(model, codes).reshape(n, -1).astype(np.float64)
    effects = []
    for j in range(codes.shape[1]):
        moved = codes.copy()
        moved[:, j] = np.roll(codes[:, j], 1)  # the order is random, so the neighbour is a random other code
        change = decode(model, moved).reshape(n, -1) - outputs
        # Two independent draws differ by twice the variance.
        effects.append((change**2).sum(axis=1).mean() / (2 * spread))
    return np.array(effects)
