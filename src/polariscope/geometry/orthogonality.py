"""Orthogonality of a decoder: distance to orthogonality, comparison with random rotations, angles of columns."""

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
from polariscope.geometry.steps_of_latents import selected_latents
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
    """Standard error of ``mean``; 0 if it has a closed form."""


def haar_rotations(
    n_draws: int, n_latents: int, random: np.random.Generator
) -> Float[np.ndarray, "draw latent latent"]:
    """Draw orthogonal matrices uniformly (from the Haar measure), by QR of Gaussian matrices."""
    q, r = np.linalg.qr(random.standard_normal((n_draws, n_latents, n_latents)))
    # QR is unique only if the diagonal of R is positive; otherwise the draws would not be uniform.
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


# It depends on the number of latents only, and averages thousands of rotations.
@functools.lru_cache(maxsize=64)
def haar_distance(n_latents: int, n_draws: int = N_DRAWS, seed: int = 0) -> HaarDistance:
    r"""Compute the mean and standard deviation of ‖V − P(V)‖_F over random rotations V.

    For one latent it is 0. For two latents, V is a rotation by a uniform angle and there is a closed form,

    .. math:: \mathrm{E} = \frac{16\sqrt2}{\pi} \Bigl(1 - \cos\frac\pi8\Bigr) \approx 0.548, \qquad
        \mathrm{E}[\cdot^2] = 4 - \frac{8\sqrt2}{\pi};

    for more latents it is averaged over ``n_draws`` rotations: about 1.63 for 5 latents, 2.85 for 10. Distances are
    below √(2d), and largest if all entries of V have a similar size.

    The derivation is ours. The "random decoders" of zietlow2022 Tab. 3.3 have larger distances.
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
CLOSE = 0.1  # relative difference below which singular values are degenerate
OFTEN = 0.1  # minimum share of degenerate neighbours for a note
IDLE = 0.01  # length of a column relative to the longest, below which the latent has almost no effect


@dataclasses.dataclass(frozen=True, eq=False)
class Orthogonality(AbstractRecord):
    """Distance to orthogonality of a decoder, with reference values."""

    value: float
    """DtO, averaged over the points: 0 if latents are aligned with principal directions everywhere. Lower is better."""
    interval: tuple[float, float] | None
    """95 % interval of the average over points; None for a single point."""
    haar: float
    """DtO of random rotations of the same number of latents."""
    haar_deviation: float
    """Standard deviation of a single random rotation."""
    overlap: float
    """Mean squared cosine between columns of the Jacobian: 0 if orthogonal, 1 if parallel. Lower is better."""
    random_overlap: float
    """Overlap with the same singular values and random rotations of the latents."""
    degenerate: float
    """Share of neighbouring singular values, over all points, that differ by less than 10 %."""
    latents: tuple[int, ...]
    """Latents in the analysis, in the order of the arrays below."""
    distances: Float[np.ndarray, " sample"]
    """DtO of each point."""
    cosines: Float[np.ndarray, "latent latent"]
    """Root mean square cosine between the columns of each pair of latents; 1 on the diagonal."""
    singular_values: Float[np.ndarray, "sample latent"]
    """Singular values of each Jacobian, largest first."""
    notes: tuple[str, ...]
    """Limits of the results."""

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of :attr:`cosines`, a row and a column for each latent."""
        import pandas

        latents = pandas.Index(self.latents, name="latent")
        return pandas.DataFrame(self.cosines, index=latents, columns=latents)

    @property
    def relative(self) -> float:
        """DtO divided by that of random rotations: 0 if aligned, about 1 at chance level."""
        return self.value / self.haar if self.haar > 0 else 0.0


def distance_to_orthogonality(
    jacobians: Float[np.ndarray, "sample value latent"],
    *,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
    seed: int = 0,
) -> Orthogonality:
    r"""Measure the distance of the latents from the principal directions of the decoder, averaged over points.

    With the singular value decomposition :math:`J_i = U_i \Sigma_i V_i^\top` of the Jacobian at point i,

    .. math:: \mathrm{DtO} = \frac1N \sum_i \|V_i - P(V_i)\|_F

    where P(V) is the signed permutation closest to V. It is 0 if every latent moves the output along its own principal
    direction, so the columns of J are orthogonal. ``haar`` is the value for random rotations. The distance does not
    depend on signs and order of the latents.

    If singular values coincide, V is arbitrary within their space, and so is DtO, although the columns can be perfectly
    orthogonal. ``degenerate`` is the frequency of such cases. ``overlap`` is not affected; it is the mean squared
    cosine of the angles between columns,

    .. math:: \frac{1}{d(d-1)} \sum_{j \ne k} \frac{G_{jk}^2}{G_{jj} G_{kk}}, \qquad G = J^\top J;

    a column of zeros is orthogonal to all others. ``types`` removes passive latents, whose columns are near 0 with
    arbitrary directions, or ``keep`` lists the latents to analyse. Points at which the whole Jacobian is 0 have no V
    and are left out.

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
            "jacobians", "be finite", got="NaN or infinite values", remedy="the model might have diverged"
        )
    latents = selected_latents(J.shape[2], types, keep)
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
    """Compute :func:`distance_to_orthogonality` of a decoder at ``n_points`` of the codes, with bounded memory.

    ``codes`` are posterior means, such as ``rep.mean``; if there are more than ``n_points``, that many are drawn. For
    ``output`` see :func:`polariscope.geometry.jacobian.decoder_jacobian`.
    """
    codes = check_codes(model, codes)
    if n_points < 1:
        raise InputError("n_points", "be at least 1", got=n_points)
    latents = selected_latents(codes.shape[1], types, keep)
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
    varying = lengths.sum(axis=1) > 0
    if not varying.any():
        raise InputError(
            problem=(
                f"the decoder does not depend on any of the {len(latents)} latents at these codes: all "
                "are passive, and there is no direction to compare"
            )
        )
    n_constant = int((~varying).sum())
    metric, lengths = metric[varying], lengths[varying]
    n, d = lengths.shape
    # The order of the columns of V does not matter for the closest signed permutation.
    eigenvalues, V = np.linalg.eigh(metric)
    # eigh sorts ascending, and rounding can make small eigenvalues negative.
    singular = np.sqrt(np.maximum(eigenvalues[:, ::-1], 0))
    distances = signed_permutation_distance(V)
    squares = _squared_cosines(metric)
    Q = haar_rotations(n, d, generator(seed, "orthogonality", "rotations"))
    # Q Λ Qᵀ has the same singular values, in random directions of the latents.
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
        notes=tuple(_notes(latents, lengths, degenerate, n_constant, n_values)),
    )


def _squared_cosines(
    metric: Float[np.ndarray, "sample latent latent"],
) -> Float[np.ndarray, "sample latent latent"]:
    lengths = np.diagonal(metric, axis1=1, axis2=2)
    products = lengths[:, :, None] * lengths[:, None, :]
    # A product of tiny lengths can underflow to 0, so divide twice.
    roots = np.sqrt(lengths)
    roots = np.where(roots > 0, roots, 1.0)
    cosines = np.where(products > 0, metric / roots[:, :, None] / roots[:, None, :], 0.0)
    # Rounding can exceed 1.
    squares = np.minimum(cosines**2, 1.0)
    # Also for columns of zeros, whose cosines are 0 above.
    squares[:, np.arange(lengths.shape[1]), np.arange(lengths.shape[1])] = 1.0
    return squares


def _off_diagonal_mean(squares: Float[np.ndarray, "sample latent latent"]) -> float:
    d = squares.shape[1]
    return float(squares[:, ~np.eye(d, dtype=bool)].mean()) if d > 1 else 0.0


def _share_degenerate(singular: Float[np.ndarray, "sample latent"]) -> float:
    if singular.shape[1] == 1:
        return 0.0
    # Two singular values that are both 0 up to rounding are degenerate too.
    # 1e-7 is the relative precision of float32.
    floor = 1e-7 * singular[:, :1]
    upper, lower = np.maximum(singular[:, :-1], floor), np.maximum(singular[:, 1:], floor)
    return float(((upper - lower) < CLOSE * upper).mean())


def _notes(
    latents: tuple[int, ...],
    lengths: Float[np.ndarray, "sample latent"],
    degenerate: float,
    n_constant: int,
    n_values: int | None,
) -> list[str]:
    notes = []
    if len(latents) == 1:
        notes.append("The distance of a single latent is 0 by definition.")
    if degenerate >= OFTEN:
        notes.append(
            f"{degenerate:.0%} of neighbouring singular values differ by less than {CLOSE:.0%}, so their directions "
            "and the distance to orthogonality are arbitrary. Use the overlap instead."
        )
    roots = np.sqrt(lengths.mean(axis=0))
    idle = [str(j) for j, root in zip(latents, roots, strict=True) if root < IDLE * roots.max()]
    if idle:
        notes.append(
            f"The decoder hardly depends on latent {', '.join(idle)}. Passive latents make V arbitrary; remove them "
            "with types or keep."
        )
    if n_values is not None and n_values < len(latents):
        notes.append(
            f"{n_values} outputs cannot distinguish {len(latents)} latents, so V is partly arbitrary."
        )
    if n_constant:
        notes.append(f"{n_constant} points at which the decoder is constant were left out.")
    return notes
