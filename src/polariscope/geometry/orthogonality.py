"""How orthogonal a decoder is: distance to orthogonality, what a random rotation gives, angles of columns."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import VariableType
from polariscope.core.arrays import refuse_masked
from polariscope.core.errors import Argument, InputError
from polariscope.core.records import AbstractRecord
from polariscope.core.seeds import generator
from polariscope.geometry.decoder_function import Output, check_codes
from polariscope.geometry.jacobian import decoder_metric
from polariscope.geometry.steps_of_latents import kept_latents
from polariscope.models.protocol import ModelLike
from polariscope.numerics.assignment import signed_permutation_distance
from polariscope.numerics.intervals import interval_of_mean

if TYPE_CHECKING:
    import pandas

N_DRAWS = 2000


@dataclasses.dataclass(frozen=True)
class HaarDistance(AbstractRecord):
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

    The derivation is our own. The "random decoders" of zietlow2022 Tab. 3.3 lie above it.
    """
    if n_latents < 1 or n_draws < 2:
        raise InputError(
            "n_latents",
            ("be at least 1 and ", Argument("n_draws"), " at least 2"),
            got=f"{n_latents} and {n_draws}",
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


N_POINTS = 500
CLOSE = 0.1  # singular values closer than this, relatively, are called degenerate
OFTEN = 0.1  # share of neighbours from which a note is due
IDLE = 0.01  # a column this short beside the longest hardly counts


@dataclasses.dataclass(frozen=True, eq=False)
class Orthogonality(AbstractRecord):
    """Distance to orthogonality of a decoder, and what it has to be read with."""

    value: float
    """DtO, averaged over the points: 0 when latents and principal directions agree everywhere. Lower is better."""
    interval: tuple[float, float] | None
    """95 % interval of the average over points; None for a single one."""
    haar: float
    """What random rotations of as many latents give."""
    haar_deviation: float
    """Standard deviation of a single random rotation."""
    overlap: float
    """Mean squared cosine between columns of the Jacobian: 0 orthogonal, 1 parallel. Lower is better."""
    random_overlap: float
    """The same with the points' own singular values and random rotations of the latents."""
    degenerate: float
    """Share of neighbouring singular values, over all points, that differ by less than 10 %."""
    latents: tuple[int, ...]
    """The latents looked at, in the order of the arrays below."""
    distances: Float[np.ndarray, " sample"]
    """DtO of each point."""
    cosines: Float[np.ndarray, "latent latent"]
    """Root mean square cosine between the columns of each pair of latents; 1 on the diagonal."""
    singular_values: Float[np.ndarray, "sample latent"]
    """Of each Jacobian, largest first."""
    notes: tuple[str, ...]
    """Where the numbers should be read with care."""

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of :attr:`cosines`, a row and a column for each latent."""
        import pandas

        latents = pandas.Index(self.latents, name="latent")
        return pandas.DataFrame(self.cosines, index=latents, columns=latents)

    @property
    def relative(self) -> float:
        """DtO over that of random rotations: 0 aligned, about 1 no better than chance."""
        return self.value / self.haar if self.haar > 0 else 0.0


def distance_to_orthogonality(
    jacobians: Float[np.ndarray, "sample value latent"],
    *,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
    seed: int = 0,
) -> Orthogonality:
    r"""How far the latents are from the principal directions of the decoder, averaged over points.

    With the singular value decomposition :math:`J_i = U_i \Sigma_i V_i^\top` of the Jacobian at point i,

    .. math:: \mathrm{DtO} = \frac1N \sum_i \|V_i - P(V_i)\|_F

    where P(V) is the signed permutation closest to V. 0: every latent moves the output along a principal direction
    of its own, so the columns of J are orthogonal. ``haar`` is what random rotations give. Signs and order of
    the latents do not matter.

    Where singular values coincide, V is arbitrary within their space and so is DtO, though the columns may be
    perfectly orthogonal: ``degenerate`` tells how often, and ``overlap`` is free of it, being the mean squared
    cosine of the angles between columns,

    .. math:: \frac{1}{d(d-1)} \sum_{j \ne k} \frac{G_{jk}^2}{G_{jj} G_{kk}}, \qquad G = J^\top J;

    a column of zeros is orthogonal to all. ``types`` removes passive latents, whose columns are near 0 and point
    anywhere, or ``keep`` names the latents to look at. Points where the whole Jacobian is 0 have no V and are left out.

    Reference: zietlow2022 Eq. 3.25. Ours: the assignment instead of an integer program, the reference values, the
    overlap.

    >>> result = distance_to_orthogonality(np.array([[[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]]))
    >>> result.value, round(result.haar, 3)
    (0.0, 0.548)
    """
    refuse_masked(jacobians, "jacobians")
    J = np.asarray(jacobians)
    if J.ndim != 3 or 0 in J.shape:
        raise InputError(
            "jacobians", "have shape (sample, value, latent) with at least one of each", got=J.shape
        )
    if not np.isfinite(J).all():
        raise InputError(
            "jacobians", "be finite", got="NaN or infinite values", remedy="the model may have diverged"
        )
    latents = kept_latents(J.shape[2], types, keep)
    J = J[:, :, list(latents)].astype(np.float64)
    return _measure(np.einsum("nvi,nvj->nij", J, J, optimize=True), latents, J.shape[1], seed)


def decoder_orthogonality(
    model: ModelLike,
    codes: Float[np.ndarray, "sample latent"],
    *,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
    output: Output = "mean",
    n_points: int = N_POINTS,
    seed: int = 0,
) -> Orthogonality:
    """:func:`distance_to_orthogonality` of a decoder at ``n_points`` of the codes, in bounded memory.

    ``codes`` are posterior means, as in ``rep.mean``; with more than ``n_points``, that many are drawn. ``output``
    as in :func:`polariscope.geometry.jacobian.decoder_jacobian`.
    """
    codes = check_codes(model, codes)
    if n_points < 1:
        raise InputError("n_points", "be at least 1", got=n_points)
    latents = kept_latents(codes.shape[1], types, keep)
    if len(codes) > n_points:
        codes = codes[generator(seed, "orthogonality", "points").choice(len(codes), n_points, replace=False)]
    metric = decoder_metric(model, codes, output=output)
    return _measure(metric[np.ix_(range(len(codes)), latents, latents)], latents, None, seed)


def _measure(
    metric: Float[np.ndarray, "sample latent latent"],
    latents: tuple[int, ...],
    n_values: int | None,
    seed: int,
) -> Orthogonality:
    lengths = np.diagonal(metric, axis1=1, axis2=2)
    alive = lengths.sum(axis=1) > 0
    if not alive.any():
        raise InputError(
            problem=(
                f"the decoder does not move with any of the {len(latents)} latents at these codes: all "
                "are passive, and there is no direction to compare"
            )
        )
    n_dead = int((~alive).sum())
    metric, lengths = metric[alive], lengths[alive]
    n, d = lengths.shape
    eigenvalues, V = np.linalg.eigh(metric)
    singular = np.sqrt(np.maximum(eigenvalues[:, ::-1], 0))
    distances = signed_permutation_distance(V)
    squares = _squared_cosines(metric)
    Q = haar_rotations(n, d, generator(seed, "orthogonality", "rotations"))
    rotated = np.einsum("nij,nj,nkj->nik", Q, eigenvalues, Q, optimize=True)
    value, haar = float(distances.mean()), haar_distance(d)
    degenerate = _share_degenerate(singular)
    return Orthogonality(
        value=value,
        interval=interval_of_mean(distances, at_least=0.0),
        haar=haar.mean,
        haar_deviation=haar.deviation,
        overlap=_off_diagonal_mean(squares),
        random_overlap=_off_diagonal_mean(_squared_cosines(rotated)),
        degenerate=degenerate,
        latents=latents,
        distances=distances,
        cosines=np.sqrt(squares.mean(axis=0)),
        singular_values=singular,
        notes=tuple(_notes(latents, lengths, degenerate, n_dead, n_values)),
    )


def _squared_cosines(
    metric: Float[np.ndarray, "sample latent latent"],
) -> Float[np.ndarray, "sample latent latent"]:
    lengths = np.diagonal(metric, axis1=1, axis2=2)
    products = lengths[:, :, None] * lengths[:, None, :]
    # A product of tiny lengths may underflow to 0: divide twice instead.
    roots = np.sqrt(lengths)
    roots = np.where(roots > 0, roots, 1.0)
    cosines = np.where(products > 0, metric / roots[:, :, None] / roots[:, None, :], 0.0)
    squares = np.minimum(cosines**2, 1.0)
    squares[:, np.arange(lengths.shape[1]), np.arange(lengths.shape[1])] = 1.0
    return squares


def _off_diagonal_mean(squares: Float[np.ndarray, "sample latent latent"]) -> float:
    d = squares.shape[1]
    return float(squares[:, ~np.eye(d, dtype=bool)].mean()) if d > 1 else 0.0


def _share_degenerate(singular: Float[np.ndarray, "sample latent"]) -> float:
    if singular.shape[1] == 1:
        return 0.0
    # Two singular values that are both 0, to rounding, are as degenerate as any two equal ones.
    floor = 1e-7 * singular[:, :1]
    upper, lower = np.maximum(singular[:, :-1], floor), np.maximum(singular[:, 1:], floor)
    return float(((upper - lower) < CLOSE * upper).mean())


def _notes(
    latents: tuple[int, ...],
    lengths: Float[np.ndarray, "sample latent"],
    degenerate: float,
    n_dead: int,
    n_values: int | None,
) -> list[str]:
    notes = []
    if len(latents) == 1:
        notes.append("a single latent has nothing to be orthogonal to: the distance is 0 by definition.")
    if degenerate >= OFTEN:
        notes.append(
            f"{degenerate:.0%} of neighbouring singular values differ by less than {CLOSE:.0%}: their directions "
            "are arbitrary, and the distance to orthogonality with them; read the overlap."
        )
    roots = np.sqrt(lengths.mean(axis=0))
    idle = [str(j) for j, root in zip(latents, roots, strict=True) if root < IDLE * roots.max()]
    if idle:
        notes.append(
            f"the decoder hardly moves with latent {', '.join(idle)}: passive latents make V arbitrary; "
            "remove them with types or keep."
        )
    if n_values is not None and n_values < len(latents):
        notes.append(
            f"{n_values} outputs cannot tell {len(latents)} latents apart: V is arbitrary where the decoder is flat."
        )
    if n_dead:
        notes.append(f"{n_dead} points where the decoder does not move at all were left out.")
    return notes
