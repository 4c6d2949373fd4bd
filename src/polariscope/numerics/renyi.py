"""Matrix-based Rényi entropies: information between samples from kernel matrices, without any density."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float, Shaped

from polariscope.core.errors import InputError
from polariscope.numerics.distances import squared_distances
from polariscope.numerics.rounding import truncate

ROUNDING = 1e-8
"""How far a matrix may be from symmetry and trace 1 and still count as normalised."""
BLOCK = 1024
"""Rows of a pairwise table that are in memory at a time."""


@dataclasses.dataclass(frozen=True)
class Information:
    """What codes z keep of inputs x for their reconstructions x̂, in bits, averaged over batches."""

    gap: float
    """H(z) − I(x, x̂): what the codes hold beyond what reconstruction uses."""
    entropy: float
    """H(z)."""
    reconstruction: float
    """I(x, x̂)."""
    inputs: float
    """I(x, z), one axis of the information plane."""
    outputs: float
    """I(x̂, z), the other."""
    n_batches: int


def normalised_gram(
    x: Shaped[np.ndarray, "sample *shape"], width: float | None = None
) -> Float[np.ndarray, "sample sample"]:
    r"""The kernel matrix of h samples with a Gaussian kernel, scaled to trace 1.

    .. math:: A_{ij} = \frac{K_{ij}}{h \sqrt{K_{ii} K_{jj}}}, \qquad K_{ij} = \exp(-\|x_i - x_j\|^2 / 2s^2)

    The width s is Silverman's, :math:`s = \mathrm{std}(X) \, h^{-1/(4 + m)}`, with m values per sample and the
    standard deviation over all entries; data that never vary have none. In many dimensions s is small beside the
    distances, and A tends to I/h: every sample is then a world of its own, and entropies say log₂ h whatever the
    data are.

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
                "vary, since the kernel's width is its standard deviation",
                got="the same value everywhere",
                remedy="leave constant data out, or give a width",
            )
        width = deviation * n_samples ** (-1 / (4 + n_values))
    if not (width > 0 and math.isfinite(width)):
        raise InputError("width", "be positive", got=width)
    return np.exp(-squared_distances(rows, 1 / width) / 2) / n_samples


def renyi_entropy(A: Float[np.ndarray, "sample sample"], alpha: float | int = 2) -> float:
    r"""Rényi entropy of order α of a normalised kernel matrix, in bits.

    With λ_i the eigenvalues of A, which add up to 1,

    .. math:: S_\alpha(A) = \frac{1}{1 - \alpha} \log_2 \sum_i \lambda_i^\alpha, \qquad
        S_2(A) = -\log_2 \|A\|_F^2, \qquad S_1(A) = -\sum_i \lambda_i \log_2 \lambda_i

    For α = 2, the default, no eigenvalue is computed; α = 1 is the limit. 0 when all samples are the same to the
    kernel, log₂ n when no two have anything in common.

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
    r"""Entropy of two views of the same samples together, :math:`S_\alpha(A \circ B / \mathrm{tr}(A \circ B))`.

    At least either entropy, at most their sum.

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
    r"""What two views of the same samples have in common, :math:`S_\alpha(A) + S_\alpha(B) - S_\alpha(A, B)`, bits.

    0 when one of them tells no two samples apart. Not quite S(A) for B = A, unless the kernel knows only "same"
    and "different": the elementwise square of a kernel is a narrower kernel.

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
    """Entropy of sampled codes z and its information with inputs x and reconstructions x̂, decoded from z.

    Computed for each whole batch of samples in the order given, and averaged: an entropy of h samples is at most
    log₂ h, so batches of another size would not be comparable. A rest that fills no batch is left out.

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
            remedy="give more samples or a smaller batch",
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
    """FONDUE_IB's statistic H(z) − I(x, x̂), in bits; arguments as in :func:`information`.

    :param decimals: (default None) decimals that H and I are each cut to, towards 0, before they are subtracted. The
        published searches cut to 2 and use the threshold −0.01 (bonheme2023 §8.4.2). Cutting the difference is not the
        same: H = 3.129 and I = 3.131 give −0.01, their difference would give 0.
    """
    result = information(sampled, inputs, outputs, batch=batch, alpha=alpha)
    if decimals is None:
        return result.gap
    entropy, shared = truncate(np.array([result.entropy, result.reconstruction]), decimals)
    return float(entropy - shared) / 10**decimals


def spi(inputs: Shaped[np.ndarray, "input *shape"], outputs: Shaped[np.ndarray, "output *shape"]) -> float:
    r"""How much the similarities between samples change when they are reconstructed.

    .. math:: \mathrm{SPI} = \frac1h \sum_{ij} |D_{ij} - \hat D_{ij}|

    with D and D̂ the cosine similarities of h inputs and of their reconstructions. 0 when all are kept; at most 2h,
    since the sum over h² pairs is divided by h only: compare it between models on the same samples.

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
    """One row of float64 for each sample; refuses what has no distances."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    if len(rows) < 2 or rows.shape[1] < 1:
        raise InputError(name, "hold at least 2 samples of at least 1 value", got=values.shape)
    if not np.isfinite(rows).all():
        raise InputError(name, "be finite", got="NaN or infinity", remedy="leave these samples out")
    return rows


def _directions(name: str, values: Shaped[np.ndarray, "sample *shape"]) -> Float[np.ndarray, "sample value"]:
    rows = _rows(name, values)
    lengths = np.linalg.norm(rows, axis=1)
    if (lengths == 0).any():
        raise InputError(
            name,
            "not hold samples that are all zero, which have no direction",
            got=int((lengths == 0).sum()),
            remedy="leave them out",
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
            remedy="make it with normalised_gram",
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
        entropy = -math.log2(float(np.vdot(A, A)))
    else:
        eigenvalues = np.linalg.eigvalsh(A)
        # What rounding makes of a zero is tiny, of either sign, and large to a power below 1.
        eigenvalues = eigenvalues[eigenvalues > len(A) * np.finfo(np.float64).eps * eigenvalues[-1]]
        if alpha == 1:
            entropy = -float((eigenvalues * np.log2(eigenvalues)).sum())
        else:
            entropy = math.log2(float((eigenvalues**alpha).sum())) / (1 - alpha)
    return max(0.0, entropy)  # rounding may leave 0 just below it
