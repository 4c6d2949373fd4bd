"""Comparison of linear models with principal component analysis."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from polariscope.analysis.regime.latent_types import VariableType
from polariscope.core.errors import Argument, InputError
from polariscope.core.records import AbstractRecord
from polariscope.geometry.decoder_function import check_codes
from polariscope.geometry.jacobian import decoder_jacobian
from polariscope.geometry.steps_of_latents import selected_latents
from polariscope.models.protocol import WholeModel
from polariscope.numerics.assignment import assign

if TYPE_CHECKING:
    import pandas

CLOSE = 0.1  # relative difference of eigenvalues below which their directions are arbitrary


@dataclasses.dataclass(frozen=True, eq=False)
class PcaAlignment(AbstractRecord):
    """Alignment of the columns of a linear decoder with principal directions, up to sign and order."""

    value: float
    """Mean |cosine| of each column with its assigned direction: 1 if they are the principal directions."""
    cosines: Float[np.ndarray, "component latent"]
    """|cosine| of every principal direction, by variance, with every column."""
    components: tuple[int, ...]
    """Component assigned to each latent."""
    angles: Float[np.ndarray, " latent"]
    """Principal angles in radians, largest first, between the columns' space and that of the first components: 0 if the
    model spans the space of PCA, with any rotation in it."""
    correlations: Float[np.ndarray, "component latent"] | None
    """|correlation| of the components' scores with the codes; None without codes."""
    eigenvalues: Float[np.ndarray, " component"]
    """Variance of the data along the components."""
    latents: tuple[int, ...]
    notes: tuple[str, ...]

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of :attr:`cosines`, a row for each component and a column for each latent."""
        import pandas

        columns = pandas.Index(self.latents, name="latent")
        return pandas.DataFrame(self.cosines, columns=columns).rename_axis("component")


def pca_alignment(
    weights: Float[np.ndarray, "feature latent"],
    observations: Float[np.ndarray, "sample feature"],
    *,
    codes: Float[np.ndarray, "sample latent"] | None = None,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
) -> PcaAlignment:
    r"""Match the columns of a linear decoder with the first principal directions of the data.

    A linear VAE with a diagonal posterior converges to decoder columns √(λ_i − βγ) u_i, with principal directions u_i
    of the data, up to signs and order. ``value`` is the maximum over assignments of the mean |cos(w_j, u_π(j))|. A
    linear autoencoder spans the same space (angles of 0), with an arbitrary rotation in it. Passive latents, with
    columns of 0, must be removed. If eigenvalues coincide, the directions are arbitrary and a note is added.

    Reference: zietlow2022 Thm 2.

    >>> x = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> pca_alignment(np.array([[0.0, -3.0], [0.5, 0.0]]), x).components
    (1, 0)
    """
    latents = selected_latents(weights.shape[1], types, keep)
    W, x = weights[:, list(latents)].astype(np.float64), observations.astype(np.float64)
    _check(W, x, latents)
    x = x - x.mean(axis=0)
    _, singular, directions = np.linalg.svd(x, full_matrices=False)
    d = len(latents)
    if d > len(singular):
        raise InputError(
            problem=(
                f"{d} latents require as many principal directions, and {x.shape[0]} observations of "
                f"{x.shape[1]} features have {len(singular)}"
            ),
            remedy="remove passive latents with types or keep, or pass more observations",
        )
    U, eigenvalues = directions[:d].T, singular**2 / len(x)
    columns = W / np.linalg.norm(W, axis=0)
    cosines = np.abs(U.T @ columns)
    rows, assigned = assign(cosines)
    # The assignment lists components; here they are sorted by latent.
    components = tuple(int(row) for row in rows[np.argsort(assigned)])
    basis = np.linalg.qr(columns)[0]
    # Use sines and cosines together: arccos alone loses digits of small angles.
    angles = np.arctan2(
        np.linalg.svd(basis - U @ (U.T @ basis), compute_uv=False),
        # Reversed, because the largest sine belongs to the smallest cosine.
        np.linalg.svd(U.T @ basis, compute_uv=False)[::-1],
    )
    return PcaAlignment(
        value=float(cosines[rows, assigned].mean()),
        cosines=cosines,
        components=components,
        angles=angles,
        correlations=None if codes is None else _correlations(x @ U, codes[:, list(latents)]),
        eigenvalues=eigenvalues[:d],
        latents=latents,
        notes=tuple(_notes(eigenvalues, d)),
    )


def align_with_pca(
    model: WholeModel,
    observations: Float[np.ndarray, "sample feature"],
    *,
    codes: Float[np.ndarray, "sample latent"] | None = None,
    types: Sequence[VariableType] | None = None,
    keep: Sequence[int] | None = None,
) -> PcaAlignment:
    """Compute :func:`pca_alignment` of a model with a linear decoder; a non-linear one raises an error."""
    n_latents = model.n_latents if codes is None else codes.shape[1]
    if codes is not None:
        check_codes(model, codes)
    # The points are arbitrary: a linear decoder has the same Jacobian everywhere.
    points = np.stack([np.zeros(n_latents), np.ones(n_latents), -2 * np.ones(n_latents)])
    at = decoder_jacobian(model, points)
    # Relative to the largest entry, because small ones are rounding errors of float32.
    if not np.allclose(at, at[:1], rtol=1e-4, atol=1e-6 * np.abs(at).max()):
        raise InputError(
            problem="the decoder is not linear: its Jacobian depends on the code",
            remedy=(
                "use decoder_orthogonality, or train with ",
                Argument("net", "linear"),
                " and a Gaussian likelihood",
            ),
        )
    return pca_alignment(at[0], observations, codes=codes, types=types, keep=keep)


def _check(
    W: Float[np.ndarray, "feature latent"], x: Float[np.ndarray, "sample f"], latents: Sequence[int]
) -> None:
    if len(W) != x.shape[1]:
        raise InputError(
            "weights and observations", "have the same features", got=f"{len(W)} and {x.shape[1]}"
        )
    if len(x) < 2 or not (np.isfinite(W).all() and np.isfinite(x).all()):
        raise InputError(
            "weights and observations",
            "be finite, with at least two observations",
            got=len(x),
            remedy="the model might have diverged",
        )
    idle = [j for j, length in zip(latents, np.linalg.norm(W, axis=0), strict=True) if length == 0]
    if idle:
        raise InputError(
            problem=f"latent {', '.join(map(str, idle))} has a column of zeros, which has no direction",
            remedy="remove passive latents with types or keep",
        )


def _correlations(
    scores: Float[np.ndarray, "sample component"], codes: Float[np.ndarray, "sample latent"]
) -> Float[np.ndarray, "component latent"]:
    if len(scores) != len(codes):
        raise InputError("codes", f"be those of the {len(scores)} observations", got=f"{len(codes)} rows")
    a, b = (array - array.mean(axis=0) for array in (scores, codes.astype(np.float64)))
    norms = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    # A constant code has no correlation; it is set to 0.
    return np.abs(np.divide(a.T @ b, norms, out=np.zeros(norms.shape), where=norms > 0))


def _notes(eigenvalues: Float[np.ndarray, " component"], d: int) -> list[str]:
    shown = eigenvalues[: d + 1]  # the last component included can be mixed with the first one left out
    close = [i for i in range(len(shown) - 1) if shown[i] - shown[i + 1] < CLOSE * shown[i]]
    if not close:
        return []
    pairs = ", ".join(f"{i} and {i + 1}" for i in close)
    return [f"Components {pairs} have variances within {CLOSE:.0%}, so their directions are arbitrary."]
