"""Interpolation between two observations: a path of codes and its outputs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import Argument, InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.data_like import DataLike
from polariscope.geometry.decoder_function import check_codes, decode, opened
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import ModelLike, WholeModel

if TYPE_CHECKING:
    import pandas

Course = Literal["linear", "spherical"]


@dataclasses.dataclass(frozen=True, eq=False)
class Interpolation(AbstractRecord):
    """Outputs along a path between two codes."""

    evenness: float
    """Mean change of the output from step to step divided by the largest: 1 for equal steps, near 0 for a single jump,
    and 1 if the output does not change."""
    outputs: Float[np.ndarray, "step *shape"]
    """Decoder mean at each step."""
    codes: Float[np.ndarray, "step latent"]
    changes: Float[np.ndarray, " change"]
    """Euclidean distance between neighbouring outputs."""
    path: Course

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each step: its code, and the change of the output from the previous step."""
        import pandas

        frame = pandas.DataFrame(self.codes).add_prefix("code.").rename_axis("step")
        return frame.assign(change=[np.nan, *self.changes])


def interpolate(
    model: ModelLike,
    first: Float[np.ndarray, " latent"],
    second: Float[np.ndarray, " latent"],
    *,
    n_steps: int = 10,
    path: Course = "linear",
) -> Interpolation:
    """Decode ``n_steps`` codes from ``first`` to ``second``, both included; see :func:`codes_between`."""
    codes = check_codes(model, codes_between(first, second, n_steps, path))
    outputs = decode(model, codes)
    changes = np.linalg.norm(np.diff(outputs.reshape(n_steps, -1).astype(np.float64), axis=0), axis=1)
    evenness = float(changes.mean() / changes.max()) if changes.max() > 0 else 1.0
    return Interpolation(evenness, outputs, codes, changes, path)


def interpolate_observations(
    model: WholeModel,
    data: DataLike,
    first: int,
    second: int,
    *,
    n_steps: int = 10,
    path: Course = "linear",
) -> Interpolation:
    """Call :func:`interpolate` with the posterior means of two observations of ``data``, by index."""
    model, data = opened(model, data)
    dataset, _ = choose_observations(model, data, None, 0)
    indices = dataset.check_indices([first, second])
    with inference_mode(model):
        (encoded,) = encode_batches(model, dataset, indices)
        q = encoded.posterior
        start, end = q.mean.cpu().numpy()
    return interpolate(model, start, end, n_steps=n_steps, path=path)


def codes_between(
    first: Float[np.ndarray, " latent"],
    second: Float[np.ndarray, " latent"],
    n_steps: int,
    path: Course = "linear",
) -> Float[np.ndarray, "step latent"]:
    r"""Return equally spaced codes on a path from a to b.

    A linear path is (1 − t) a + t b. On a spherical path the direction turns at a constant rate by the angle ω between
    a and b, and the length changes linearly,

    .. math:: \bigl((1 - t)\|a\| + t\|b\|\bigr) \Bigl( \frac{\sin((1 - t)\omega)}{\sin\omega} \frac{a}{\|a\|}
        + \frac{\sin(t\omega)}{\sin\omega} \frac{b}{\|b\|} \Bigr)

    A linear path between draws of a Gaussian prior passes nearer to its centre than draws do, by a factor of up to √2
    in length; a spherical one does not. It requires lengths that are not 0 and directions that are not opposite.

    Reference: the rotation at constant rate is Shoemake, Animating rotation with quaternion curves (shoemake1985).

    >>> codes_between(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 3, "spherical").round(3).tolist()
    [[1.0, 0.0], [0.707, 0.707], [0.0, 1.0]]
    """
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise InputError(
            "first and second", "be codes of the same model", got=f"shapes {first.shape}, {second.shape}"
        )
    if n_steps < 2:
        raise InputError("n_steps", "be at least 2, both ends included", got=n_steps)
    t = np.linspace(0, 1, n_steps)[:, None]
    if path == "linear":
        return (1 - t) * first + t * second
    if path != "spherical":
        raise InputError("path", "be 'linear' or 'spherical'", got=f"{path!r}")
    lengths = np.linalg.norm(first), np.linalg.norm(second)
    if min(lengths) == 0:
        raise InputError(
            problem="a spherical path requires codes that are not 0, because 0 has no direction",
            remedy=("use ", Argument("path", "linear")),
        )
    a, b = first / lengths[0], second / lengths[1]
    # Use the tangent of the half-angle: arccos(a·b) loses half the digits of small angles.
    omega = 2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
    # sin ω is the denominator below.
    if omega > np.pi - 1e-6:
        raise InputError(
            problem="a spherical path requires directions that are not opposite",
            remedy=("use ", Argument("path", "linear")),
        )
    if omega < 1e-9:  # equal directions: use the limit of the ratio of sines
        direction = (1 - t) * a + t * b
    else:
        direction = (np.sin((1 - t) * omega) * a + np.sin(t * omega) * b) / np.sin(omega)
    return ((1 - t) * lengths[0] + t * lengths[1]) * direction
