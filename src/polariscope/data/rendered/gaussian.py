"""Gaussian rows with given covariance eigenvalues, for which a linear VAE has a closed-form solution."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float
from numpy.typing import ArrayLike

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset


@dataset("gaussian")
@dataclasses.dataclass(frozen=True)
class GaussianDataset(AbstractDataset):
    r"""Rows of a centred normal distribution whose covariance has given eigenvalues.

    .. math:: x = V \,\mathrm{diag}(\sqrt\lambda)\, s, \qquad s \sim N(0, I)

    with the principal directions V (columns, ``principal_directions``). The coordinates √λᵢ sᵢ along them are the
    continuous factors. If ``exact`` is True, the draws s are centred and whitened by their own covariance. The mean of
    the rows is then 0 and their covariance (divided by n, not n − 1) has the eigenvalues λ, not only in expectation but
    up to the rounding of float32. A linear β-VAE with decoder variance γ then converges to posterior variances
    min(1, βγ/λᵢ).

    >>> data = GaussianDataset(eigenvalues=(4.0, 1.0), width=3, n_samples=100)
    >>> np.linalg.eigvalsh(np.cov(data.values(range(100)).T, bias=True)).round(5).tolist()
    [0.0, 1.0, 4.0]
    """

    eigenvalues: Annotated[tuple[Annotated[float, Ge(0)], ...], Advice("they are variances")] = (
        4.0,
        2.0,
        1.0,
        0.5,
        0.25,
    )
    """Variances along the principal directions, each at least 0."""
    width: int | None = None
    """Number of features; those beyond the eigenvalues add directions of variance 0. None for one per eigenvalue."""
    n_samples: int = 10_000
    """Number of rows."""
    exact: bool = True
    """If True, the sample itself has the given covariance, not only the distribution it is drawn from."""
    rotate: bool = True
    """If True, principal directions are uniform over rotations; if False, they are the coordinate axes."""
    seed: int = 0
    """Seed of the rows and the rotation."""

    def __post_init__(self) -> None:
        count = len(self.eigenvalues)
        if count == 0:
            raise InputError(
                "eigenvalues",
                "be one or more finite numbers ≥ 0",
                got=self.eigenvalues,
                remedy="they are variances",
            )
        if self.width is not None and self.width < count:
            raise InputError(
                "width",
                f"be at least the number of eigenvalues, {count}",
                got=self.width,
                remedy="pass fewer eigenvalues or a larger width",
            )
        minimum = count + 1 if self.exact else 1
        if self.n_samples < minimum:
            raise InputError(
                "n_samples",
                (f"be at least {minimum} for {count} eigenvalues with ", Argument("exact", self.exact)),
                got=self.n_samples,
                remedy="draw more samples",
            )
        object.__setattr__(self, "factor_names", tuple(f"direction-{i + 1}" for i in range(count)))
        object.__setattr__(self, "factor_sizes", (0,) * count)
        object.__setattr__(self, "factor_kinds", ("continuous",) * count)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.eigenvalues) if self.width is None else self.width,)

    def __len__(self) -> int:
        return self.n_samples

    @functools.cached_property
    def principal_directions(self) -> Float[np.ndarray, "feature factor"]:
        """Orthonormal columns, in the order of ``eigenvalues``."""
        (width,), count = self.shape, len(self.eigenvalues)
        if not self.rotate:
            return np.eye(width)[:, :count]
        basis, triangle = np.linalg.qr(
            generator(self.seed, "gaussian", "rotation").standard_normal((width, width))
        )
        # QR leaves the signs arbitrary; a positive diagonal of the triangle makes the basis uniform (mezzadri2007).
        return (basis * np.sign(np.diag(triangle)))[:, :count]

    @functools.cached_property
    def _coordinates(self) -> Float[np.ndarray, "sample factor"]:
        # The rotation has its own stream, so these coordinates do not depend on it.
        draws = generator(self.seed, "gaussian", "rows").standard_normal(
            (self.n_samples, len(self.eigenvalues))
        )
        if self.exact:
            left, _, right = np.linalg.svd(draws - draws.mean(axis=0), full_matrices=False)
            draws = np.sqrt(self.n_samples) * left @ right  # the nearest matrix of covariance I
        return draws * np.sqrt(self.eigenvalues)

    @functools.cached_property
    def _rows(self) -> Float[np.ndarray, "sample feature"]:
        return (self._coordinates @ self.principal_directions.T).astype(np.float32)

    def values(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample feature"]:
        return self._rows[self.check_indices(indices)]

    def factors(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample factor"]:
        """Return the coordinates along the principal directions."""
        return self._coordinates[self.check_indices(indices)]
