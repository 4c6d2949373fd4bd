"""Figures of the geometry, for a page or a talk, in the fonts of the caller's matplotlib settings; images as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from polariscope.core.errors import InputError

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

TEAL, ORANGE, GREY, INK = "#0f8b8d", "#e08e0b", "#9aa3ad", "#1f2933"
PAPER = 255


def draw_orthogonality(found: Orthogonality) -> Figure:
    """The points' distances with what random rotations give, and the cosines between columns."""
    figure, (left, right) = _panels(2, (7.4, 2.9))
    left.hist(found.distances, bins=30, color=TEAL)
    left.axvspan(
        found.haar - found.haar_deviation,
        found.haar + found.haar_deviation,
        color=GREY,
        alpha=0.3,
        lw=0,
        zorder=0,
    )
    left.axvline(found.haar, color=INK, lw=1, ls="--", label=f"random rotation, {found.haar:.2f}")
    left.axvline(found.value, color=ORANGE, lw=1.5, label=f"this decoder, {found.value:.2f}")
    left.set_xlim(left=0)  # where an aligned decoder lies
    left.set_xlabel("distance to orthogonality")
    left.set_ylabel("points")
    left.legend(fontsize="small")
    _matrix(right, np.abs(found.cosines), [str(j) for j in found.latents], [str(j) for j in found.latents])
    right.set_title(f"cosines between columns; overlap {found.overlap:.3f}", fontsize="medium")
    return figure


def draw_pca_alignment(found: PcaAlignment) -> Figure:
    """|cosine| of each decoder column with each principal direction."""
    figure, (axes,) = _panels(1, (3.8, 3.2))
    _matrix(axes, found.cosines, [str(i) for i in range(len(found.cosines))], [str(j) for j in found.latents])
    axes.set_xlabel("latent")
    axes.set_ylabel("principal component")
    axes.set_title(f"alignment {found.value:.3f}", fontsize="medium")
    return figure


def draw_loss_split(splits: Mapping[str, LossSplit]) -> Figure:
    """Deterministic and stochastic reconstruction loss of models side by side."""
    if not splits:
        raise InputError("splits", "hold at least one model's loss split, by name")
    figure, (axes,) = _panels(1, (4.6, 0.9 + 0.45 * len(splits)))
    names = list(splits)
    below = np.array([splits[name].deterministic for name in names])
    above = np.array([splits[name].stochastic for name in names])
    axes.barh(names, below, color=TEAL, label="deterministic")
    axes.barh(names, above, left=below, color=ORANGE, label="stochastic")
    axes.invert_yaxis()
    axes.set_xlabel("square error per observation")
    axes.legend(fontsize="small")
    return figure


def draw_corruptions(found: Mapping[str, Corrupted]) -> Figure:
    """How much of the codes each corruption leaves, and how much they still spread."""
    if not found:
        raise InputError("found", "hold at least one corruption, by name")
    figure, (axes,) = _panels(1, (4.6, 2.7))
    places, names = np.arange(len(found)), list(found)
    axes.bar(places - 0.2, [found[name].retained for name in names], 0.38, color=TEAL, label="codes retained")
    axes.bar(
        places + 0.2, [found[name].spread for name in names], 0.38, color=ORANGE, label="spread of codes"
    )
    axes.axhline(1, color=INK, lw=0.8, ls="--")
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_xticks(places, names)
    axes.legend(fontsize="small")
    return figure


def draw_traversals(shown: Traversals, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """A row of images for each latent, by KL."""
    columns = [f"{value:.1f}" for value in shown.values]
    return _sheet(shown.outputs, [str(j) for j in shown.latents], columns, display_range)


def draw_plane(plane: Plane, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Images over a grid of two latents: the first downwards, the second to the right."""
    labels = [f"{value:.1f}" for value in plane.values]
    figure = _sheet(plane.outputs, labels, labels, display_range)
    figure.supylabel(f"latent {plane.latents[0]}")
    figure.supxlabel(f"latent {plane.latents[1]}")
    return figure


def draw_eigenfaces(found: Eigenfaces, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """Each latent down, the mean, and each latent up."""
    middle = np.broadcast_to(found.mean, (len(found.latents), *found.mean.shape))
    rows = np.stack([found.faces[:, 0], middle, found.faces[:, 1]], axis=1)
    columns = [f"−{found.reach:g}", "mean", f"+{found.reach:g}"]
    return _sheet(rows, [str(j) for j in found.latents], columns, display_range)


def draw_interpolation(found: Interpolation, display_range: tuple[float, float] = (0.0, 1.0)) -> Figure:
    """The images on the way."""
    columns = [f"{share:.2f}" for share in np.linspace(0, 1, len(found.outputs))]
    return _sheet(found.outputs[None], [found.path], columns, display_range)


def _panels(n: int, size: tuple[float, float]) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


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
    from matplotlib.figure import Figure

    if images.ndim != 5:
        raise InputError(
            problem="this figure is made of images",
            got=f"observations of shape {images.shape[2:]}",
            remedy="flat data have none",
        )
    pictures = to_pictures(images.reshape(-1, *images.shape[2:]), display_range)
    n_rows, n_columns = images.shape[:2]
    figure = Figure(figsize=(0.7 * n_columns + 0.5, 0.7 * n_rows + 0.5), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        axes.imshow(pictures[place].squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.grid(False)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_visible(False)
    for axes, label in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(label, rotation=0, ha="right", va="center")
    for axes, label in zip(grid[-1], columns, strict=True):
        axes.set_xlabel(label, fontsize="small")
    return figure


def to_pictures(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float] = (0.0, 1.0)
) -> UInt8[np.ndarray, "image height width colour"]:
    """Bytes 0–255 with the channels last; values beyond ``display_range`` are clipped.

    Three channels are colours, one is grey; of any other number the mean is shown.
    """
    if images.ndim != 4:
        raise InputError(
            problem="pictures are made of images (channel, height, width)",
            got=f"observations of shape {images.shape[1:]}",
            remedy="flat data have none",
        )
    if not np.isfinite(images).all():
        raise InputError(
            "images", "be finite", got="NaN or infinite values", remedy="the model may have diverged"
        )
    if images.shape[1] not in (1, 3):
        images = images.mean(axis=1, keepdims=True)
    low, high = display_range
    span = high - low if high > low else 1.0
    return np.round(np.clip((images - low) / span, 0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


def tile(
    pictures: UInt8[np.ndarray, "row column height width colour"], gap: int | None = None
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Rows and columns of pictures of one size on one sheet, with a gap of paper between them."""
    rows, columns, height, width, colours = pictures.shape
    gap = max(1, width // 16) if gap is None else gap
    sheet = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, colours), PAPER, dtype=np.uint8
    )
    for i, j in np.ndindex(rows, columns):
        top, left = i * (height + gap), j * (width + gap)
        sheet[top : top + height, left : left + width] = pictures[i, j]
    return sheet
