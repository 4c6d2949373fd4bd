"""Effective rank: how many directions a representation really uses."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from polariscope.numerics.information import entropy


def effective_rank(covariance: Float[np.ndarray, "latent latent"]) -> float:
    r"""Exponential of the entropy of the normalised singular values of a covariance matrix.

    .. math:: \exp \Bigl( -\sum_k p_k \log p_k \Bigr), \qquad p_k = s_k / \sum_l s_l

    n when all directions vary equally, 1 when there is one, 0 when nothing varies. Polarised representations
    have about n − (number of passive latents) for the mean and n for the sampled one.

    Reference: Roy and Vetterli, The Effective Rank, 2007; on the covariance as in the code of bonheme2023.

    >>> round(effective_rank(np.diag([2.0, 2.0, 0.0])), 12)
    2.0
    """
    singular = np.linalg.svd(covariance, compute_uv=False)
    total = singular.sum()
    if total == 0:
        return 0.0
    return float(np.exp(entropy(singular / total)))
