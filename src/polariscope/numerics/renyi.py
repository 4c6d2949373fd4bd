"""Matrix-based Rényi entropies: information from kernel matrices of samples, without densities."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances
from polariscope.numerics.rounding import truncate

ROUNDING = 1e-8
"""Tolerance for the symmetry and the trace of a normalised matrix."""
BLOCK = 1024
"""Number of rows of a pairwise table in memory at a time."""


@dataclasses.dataclass(frozen=True)
class Information:
    """Information between codes z, inputs x and reconstructions x̂, in bits, averaged over batches."""

    gap: float
    """H(z) − I(x, x̂), the information in the codes that the reconstruction does not use."""
    entropy: float
    """H(z)."""
    reconstruction: float
    """I(x, x̂)."""
    inputs: float
    """I(x, z), one axis of the information plane."""
    outputs: float
    """I(x̂, z), the other axis of the information plane."""
    n_batches: int


def normalised_gram(
    x: Shaped[np.ndarray, "sample *shape"], width: float | None = None
) -> Float[np.ndarray, "sample sample"]:
    r"""Return the kernel matrix of h samples with a Gaussian kernel, scaled to trace 1.

    .. math:: A_{ij} = \frac{K_{ij}}{h \sqrt{K_{ii} K_{jj}}}, \qquad K_{ij} = \exp(-\|x_i - x_j\|^2 / 2s^2)

    The width s is Silverman's, :math:`s = \mathrm{std}(X) \, h^{-1/(4 + m)}`, with m values per sample and the standard
    deviation over all entries; constant data raise an error. In many dimensions s is small compared with the distances,
    and A tends to I/h: every sample is then isolated, and entropies equal log₂ h for any data.

    Reference: bonheme2023 App. D.2.

    >>> normalised_gram(np.array([[0.0], [0.0]]), width=1.0)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    rows = _rows("x", x)
    n_samples, n_values = rows.shape
    if width is None:
        deviation = float(rows.std())
        if deviation <= ROUNDING * np.abs(rows).max():
            raise InputError(
                "x",
                "vary, because the width of the kernel is its standard deviation",
                got="a constant",
                remedy="omit constant data, or pass a width",
            )
        width = deviation * n_samples ** (-1 / (4 + n_values))
    if not (width > 0 and math.isfinite(width)):
        raise InputError("width", "be positive", got=width)
    # K_ii = 1 for a Gaussian kernel, so only the division by h remains. Scaling by 1/s divides the squared
    # distances by s².
    return np.exp(-squared_distances(rows, 1 / width) / 2) / n_samples


def renyi_entropy(A: Float[np.ndarray, "sample sample"], alpha: float | int = 2) -> float:
    r"""Compute the Rényi entropy of order α of a normalised kernel matrix, in bits.

    With λ_i the eigenvalues of A, which add up to 1,

    .. math:: S_\alpha(A) = \frac{1}{1 - \alpha} \log_2 \sum_i \lambda_i^\alpha, \qquad
        S_2(A) = -\log_2 \|A\|_F^2, \qquad S_1(A) = -\sum_i \lambda_i \log_2 \lambda_i

    For α = 2, the default, no eigenvalues are computed; α = 1 is the limit. The entropy is 0 if the kernel cannot
    distinguish any samples, and log₂ n if no two samples are similar.

    Reference: bonheme2023 App. D.2 (α = 2 or 1.01), after Giraldo et al. (giraldo2015).

    >>> renyi_entropy(np.eye(8) / 8), renyi_entropy(np.full((8, 8), 1 / 8))
    (3.0, 0.0)
    """
    _check_normalised("A", A)
    _check_order(alpha)
    return _entropy(A.astype(np.float64), alpha)


def joint_entropy(
    A: Float[np.ndarray, "sample sample"], B: Float[np.ndarray, "sample sample"], alpha: float | int = 2
) -> float:
    r"""Compute the joint entropy of two views of samples, :math:`S_\alpha(A \circ B / \mathrm{tr}(A \circ B))`.

    It is at least either entropy and at most their sum.

    >>> joint_entropy(np.eye(8) / 8, np.full((8, 8), 1 / 8))
    3.0
    """
    _check_normalised("A", A)
    _check_normalised("B", B)
    _check_order(alpha)
    return _joint(A.astype(np.float64), B.astype(np.float64), alpha)


def mutual_information(
    A: Float[np.ndarray, "sample sample"], B: Float[np.ndarray, "sample sample"], alpha: float | int = 2
) -> float:
    r"""Compute the information :math:`S_\alpha(A) + S_\alpha(B) - S_\alpha(A, B)` of two views of samples, in bits.

    It is 0 if one of the views does not distinguish any samples. For B = A it differs slightly from S(A), unless the
    entries of the kernel are 0 or 1, because the elementwise square of a kernel is a narrower kernel.

    >>> mutual_information(np.eye(8) / 8, np.eye(8) / 8)
    3.0
    """
    return renyi_entropy(A, alpha) + renyi_entropy(B, alpha) - joint_entropy(A, B, alpha)


def information(
    sampled: Float[np.ndarray, "sample latent"],
    inputs: Shaped[np.ndarray, "input *shape"],
    outputs: Shaped[np.ndarray, "output *shape"],
    *,
    batch: int = 1000,
    alpha: float | int = 2,
) -> Information:
    """Compute the entropy of sampled codes z and the information with inputs x and reconstructions x̂ from z.

    It is computed for each full batch of samples in order, and averaged. The entropy of h samples is at most log₂ h, so
    batches of different sizes would not be comparable; an incomplete last batch is left out.

    Reference: bonheme2023 App. D.2; the authors' slices drop one sample of each batch, ours do not.
    """
    n_samples = len(sampled)
    if not len(inputs) == len(outputs) == n_samples:
        raise InputError(
            "sampled, inputs and outputs",
            "be of the same samples",
            got=f"{n_samples}, {len(inputs)} and {len(outputs)}",
        )
    if isinstance(batch, bool) or not 2 <= batch <= n_samples:
        raise InputError(
            "batch",
            f"lie between 2 and the number of samples, {n_samples}",
            got=batch,
            remedy="pass more samples or a smaller batch",
        )
    _check_order(alpha)
    estimates = []
    for start in range(0, n_samples - batch + 1, batch):
        part = slice(start, start + batch)
        Z, X, Y = (normalised_gram(values[part]) for values in (sampled, inputs, outputs))
        x, y, z = (_entropy(A, alpha) for A in (X, Y, Z))
        estimates.append(
            [z, x + y - _joint(X, Y, alpha), x + z - _joint(X, Z, alpha), y + z - _joint(Y, Z, alpha)]
        )
    entropy, reconstruction, of_inputs, of_outputs = (float(value) for value in np.mean(estimates, axis=0))
    return Information(
        entropy - reconstruction, entropy, reconstruction, of_inputs, of_outputs, n_batches=len(estimates)
    )


def information_gap(
    sampled: Float[np.ndarray, "sample latent"],
    inputs: Shaped[np.ndarray, "input *shape"],
    outputs: Shaped[np.ndarray, "output *shape"],
    *,
    batch: int = 1000,
    alpha: float | int = 2,
    decimals: int | None = None,
) -> float:
    """Return FONDUE_IB's statistic H(z) − I(x, x̂), in bits; for the other arguments see :func:`information`.

    :param decimals: (default None) number of decimals to which H and I are truncated before they are subtracted. The
        published searches truncate to 2 and use the threshold −0.01 (bonheme2023 §8.4.2). Truncating the difference is
        not the same: H = 3.129 and I = 3.131 give −0.01, but their truncated difference is 0.
    """
    result = information(sampled, inputs, outputs, batch=batch, alpha=alpha)
    if decimals is None:
        return result.gap
    entropy, shared = truncate(np.array([result.entropy, result.reconstruction]), decimals)
    return float(entropy - shared) / 10**decimals


def spi(inputs: Shaped[np.ndarray, "input *shape"], outputs: Shaped[np.ndarray, "output *shape"]) -> float:
    r"""Measure the change of the similarities between samples by reconstruction.

    .. math:: \mathrm{SPI} = \frac1h \sum_{ij} |D_{ij} - \hat D_{ij}|

    with D and D̂ the cosine similarities of h inputs and of their reconstructions. It is 0 if all similarities are
    preserved, and at most 2h, because the sum over h² pairs is divided by h only. Compare models on the same samples.

    Reference: bonheme2023 App. D.2 (in the text only, for deterministic autoencoders).

    >>> spi(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 1.0]]))
    0.0
    """
    before, after = _directions("inputs", inputs), _directions("outputs", outputs)
    if len(before) != len(after):
        raise InputError(
            "inputs and outputs", "be of the same samples", got=f"{len(before)} and {len(after)}"
        )
    total = 0.0
    for start in range(0, len(before), BLOCK):
        part = slice(start, start + BLOCK)
        total += float(np.abs(before[part] @ before.T - after[part] @ after.T).sum())
    return total / len(before)


def _rows(name: str, values: Shaped[np.ndarray, "sample *shape"]) -> Float[np.ndarray, "sample value"]:
    """Return one row of float64 for each sample; raise an error if distances are not defined."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    if len(rows) < 2 or rows.shape[1] < 1:
        raise InputError(name, "have at least 2 samples of at least 1 value", got=values.shape)
    if not np.isfinite(rows).all():
        raise InputError(name, "be finite", got="NaN or infinity", remedy="omit these samples")
    return rows


def _directions(name: str, values: Shaped[np.ndarray, "sample *shape"]) -> Float[np.ndarray, "sample value"]:
    rows = _rows(name, values)
    lengths = np.linalg.norm(rows, axis=1)
    if (lengths == 0).any():
        raise InputError(
            name,
            "not contain samples that are all zero, which have no direction",
            got=int((lengths == 0).sum()),
            remedy="omit them",
        )
    return rows / lengths[:, None]


def _check_normalised(name: str, A: Float[np.ndarray, "sample sample"]) -> None:
    if not np.isfinite(A).all():
        raise InputError(name, "be finite", got="NaN or infinity")
    if abs(np.trace(A) - 1) > ROUNDING or np.abs(A - A.T).max() > ROUNDING:
        raise InputError(
            name,
            "be a symmetric kernel matrix of trace 1",
            got=f"trace {np.trace(A):.6g}",
            remedy="compute it with normalised_gram",
        )


def _check_order(alpha: float | int) -> None:
    if not (alpha > 0 and math.isfinite(alpha)):
        raise InputError("alpha", "be positive and finite", got=alpha, remedy="2 is fastest")


def _joint(
    A: Float[np.ndarray, "sample sample"], B: Float[np.ndarray, "sample sample"], alpha: float | int
) -> float:
    product = A * B
    return _entropy(product / np.trace(product), alpha)


def _entropy(A: Float[np.ndarray, "sample sample"], alpha: float | int) -> float:
    if alpha == 2:
        # The sum of squared eigenvalues is the squared Frobenius norm.
        entropy = -math.log2(float(np.vdot(A, A)))
    else:
        eigenvalues = np.linalg.eigvalsh(A)
        # Rounding makes zeros tiny, of either sign; a power below 1 would make them large.
        eigenvalues = eigenvalues[eigenvalues > len(A) * np.finfo(np.float64).eps * eigenvalues[-1]]
        if alpha == 1:
            entropy = -float((eigenvalues * np.log2(eigenvalues)).sum())
        else:
            entropy = math.log2(float((eigenvalues**alpha).sum())) / (1 - alpha)
    return max(0.0, entropy)  # rounding can make 0 slightly negative
