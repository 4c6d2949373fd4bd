"""What a random rotation gives: the value beside which a distance to orthogonality is read."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.numerics.assignment import signed_permutation_distance

N_DRAWS = 2000


@dataclasses.dataclass(frozen=True)
class HaarDistance:
    """Distance of uniformly random rotations from their closest signed permutations."""

    mean: float
    deviation: float
    """Standard deviation of a single rotation."""
    standard_error: float
    """Of ``mean``; 0 where it is known in closed form."""


def haar_rotations(
    n_draws: int, n_latents: int, random: np.random.Generator
) -> Float[np.ndarray, "draw latent latent"]:
    """Orthogonal matrices drawn uniformly (from the Haar measure): QR of a Gaussian matrix, diagonal of R positive."""
    q, r = np.linalg.qr(random.standard_normal((n_draws, n_latents, n_latents)))
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


@functools.lru_cache(maxsize=64)
def haar_distance(n_latents: int, n_draws: int = N_DRAWS, seed: int = 0) -> HaarDistance:
    r"""Mean and standard deviation of ‖V − P(V)‖_F over random rotations V.

    One latent: 0. Two latents, where V is a rotation by a uniform angle, have a closed form,

    .. math:: \mathrm{E} = \frac{16\sqrt2}{\pi} \Bigl(1 - \cos\frac\pi8\Bigr) \approx 0.548, \qquad
        \mathrm{E}[\cdot^2] = 4 - \frac{8\sqrt2}{\pi};

    more are averaged over ``n_draws`` rotations: about 1.63 for 5 latents, 2.85 for 10. The largest possible
    distance is below √(2d), where no entry of V stands out.

    Reference: our own (analyses §4.1). The "random decoders" of zietlow2022 Tab. 3.3 lie above it.
    """
    if n_latents < 1 or n_draws < 2:
        raise InputError(
            f"n_latents must be at least 1 and n_draws at least 2, got {n_latents} and {n_draws}."
        )
    if n_latents == 1:
        return HaarDistance(0.0, 0.0, 0.0)
    if n_latents == 2:
        mean = 16 * math.sqrt(2) / math.pi * (1 - math.cos(math.pi / 8))
        return HaarDistance(mean, math.sqrt(4 - 8 * math.sqrt(2) / math.pi - mean**2), 0.0)
    rotations = haar_rotations(n_draws, n_latents, generator(seed, "haar", n_latents))
    distances = signed_permutation_distance(rotations)
    deviation = float(distances.std(ddof=1))
    return HaarDistance(float(distances.mean()), deviation, deviation / math.sqrt(n_draws))
