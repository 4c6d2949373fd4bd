"""Figures of the geometry of a decoder, in the fonts of the caller's matplotlib settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError
from polariscope.core.figure_style import GREY, INK, ORANGE, TEAL
from polariscope.core.figures import axes_grid, hide_frame, single_axes
from polariscope.core.pictures import to_pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from polariscope.geometry.eigenfaces import Eigenfaces
    from polariscope.geometry.interpolation import Interpolation
    from polariscope.geometry.loss_split import LossSplit
    from polariscope.geometry.orthogonality import Orthogonality
    from polariscope.geometry.pca import PcaAlignment
    from polariscope.geometry.robustness.corruption_probe import Corrupted
    from polariscope.geometry.traversals import Plane, Traversals


def draw_orthogonality(result: Orthogonality) -> Figure:
    """Draw the distances of the points, compared with random rotations, and the cosines between columns."""
    figure, (left, right) = axes_grid((7.4, 2.9), 2)
    left.hist(result.distances, bins=30, color=TEAL)
    left.axvspan(
        result.haar - result.haar_deviation,
        result.haar + result.haar_deviation,
        color=GREY,
        alpha=0.3,
        lw=0,
        zorder=0,
    )
    left.axvline(result.haar, color=INK, lw=1, ls="--", label=f"random rotation, {result.haar:.2f}")
    left.axvline(result.value, color=ORANGE, lw=1.5, label=f"this decoder, {result.value:.2f}")
    left.set_xlim(left=0)  # an aligned decoder has distance 0
    left.set_xlabel("distance to orthogonality")
    left.set_ylabel("points")
    left.legend(fontsize="small")
    _matrix(right, np.abs(result.cosines), [str(j) for j in result.latents], [str(j) for j in result.latents])
    right.set_title(f"cosines between columns; overlap {result.overlap:.3f}", fontsize="medium")
    return figure


def draw_pca_alignment(alignment: PcaAlignment) -> Figure:
    """Draw |cosine| of each decoder column with each principal direction."""
    figure, axes = single_axes((3.8, 3.2))
    _matrix(
        axes,
        alignment.cosines,
        [str(i) for i in range(len(alignment.cosines))],
        [str(j) for j in alignment.latents],
    )
    axes.set_xlabel("latent")
    axes.set_ylabel("principal component")
    axes.set_title(f"alignment {alignment.value:.3f}", fontsize="medium")
    return figure


def draw_loss_split(splits: Mapping[str, LossSplit]) -> Figure:
    """Draw the deterministic and stochastic reconstruction loss of several models."""
    if not splits:
        raise InputError("splits", "contain at least one model's loss split, by name")
    figure, axes = single_axes((4.6, 0.9 + 0.45 * len(splits)))
    names = list(splits)
    below = np.array([splits[name].deterministic for name in names])
    above = np.array([splits[name].stochastic for name in names])
    axes.barh(names, below, color=TEAL, label="deterministic")
    axes.barh(names, above, left=below, color=ORANGE, label="stochastic")
    axes.invert_yaxis()
    axes.set_xlabel("squared error per observation")
    axes.legend(fontsize="small")
    return figure


def draw_corruptions(corruptions: Mapping[str, Corrupted]) -> Figure:
    """Draw the share of the codes that is retained under each corruption, and their spread."""
    if not corruptions:
        raise InputError("corruptions", "contain at least one corruption, by name")
    figure, axes = single_axes((4.6, 2.7))
    positions, names = np.arange(len(corruptions)), list(corruptions)
    axes.bar(
        positions - 0.2,
        [corruptions[name].retained for name in names],
        0.38,
        color=TEAL,
        label="codes retained",
    )
    axes.bar(
        positions + 0.2,
        [corruptions[name].spread for name in names],
        0.38,
        color=ORANGE,
        label="spread of codes",
    )
    axes.axhline(1, color=INK, lw=0.8, ls="--")
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_xticks(positions, names)
    axes.legend(fontsize="small")
    return figure


def draw_traversals(shown: Traversals, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Draw a row of images for each latent, by KL."""
    columns = [f"{value:.1f}" for value in shown.values]
    return _sheet(shown.outputs, [str(j) for j in shown.latents], columns, display_range)


def draw_plane(plane: Plane, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Draw images over a grid of two latents, the first downwards, the second to the right."""
    labels = [f"{value:.1f}" for value in plane.values]
    figure = _sheet(plane.outputs, labels, labels, display_range)
    figure.supylabel(f"latent {plane.latents[0]}")
    figure.supxlabel(f"latent {plane.latents[1]}")
    return figure


def draw_eigenfaces(eigenfaces: Eigenfaces, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Draw each latent moved down, the mean, and each latent moved up."""
    middle = np.broadcast_to(eigenfaces.mean, (len(eigenfaces.latents), *eigenfaces.mean.shape))
    rows = np.stack([eigenfaces.faces[:, 0], middle, eigenfaces.faces[:, 1]], axis=1)
    columns = [f"−{eigenfaces.reach:g}", "mean", f"+{eigenfaces.reach:g}"]
    return _sheet(rows, [str(j) for j in eigenfaces.latents], columns, display_range)


def draw_interpolation(
    interpolation: Interpolation, display_range: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Draw the images along an interpolation."""
    columns = [f"{share:.2f}" for share in np.linspace(0, 1, len(interpolation.outputs))]
    return _sheet(interpolation.outputs[None], [interpolation.path], columns, display_range)


def _matrix(axes: Axes, values: Float[np.ndarray, "row column"], rows: list[str], columns: list[str]) -> None:
    shown = axes.imshow(values, cmap="Greys", vmin=0, vmax=1)
    axes.grid(False)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.figure.colorbar(shown, ax=axes, shrink=0.8)


def _sheet(
    images: Float[np.ndarray, "row column channel height width"],
    rows: list[str],
    columns: list[str],
    display_range: tuple[float, float],
) -> Figure:
    if images.ndim != 5:
        raise InputError(
            problem="this figure requires images",
            got=f"observations of shape {images.shape[2:]}",
            remedy="flat data cannot be shown",
        )
    pictures = to_pictures(images.reshape(-1, *images.shape[2:]), display_range)
    n_rows, n_columns = images.shape[:2]
    size = (0.7 * n_columns + 0.5, 0.7 * n_rows + 0.5)
    figure, grid = axes_grid(size, n_rows * n_columns, n_columns)
    for axes, picture in zip(grid, pictures, strict=True):
        axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.grid(False)
        axes.set(xticks=[], yticks=[])
        hide_frame(axes)
    for axes, label in zip(grid[::n_columns], rows, strict=True):
        axes.set_ylabel(label, rotation=0, ha="right", va="center")
    for axes, label in zip(grid[-n_columns:], columns, strict=True):
        axes.set_xlabel(label, fontsize="small")
    return figure
