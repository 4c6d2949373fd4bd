"""Meaning of the axes of an array, and the byte that is white."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Shaped

from polariscope.core.errors import Argument, InputError
from polariscope.data.own import Layout
from polariscope.data.own.support.rows import AbstractRows, exceeds, extent

Axes = Literal["rows", "grey", "channels-first", "channels-last"]
"""Meaning of the axes of an array after the first: features; height and width; or these with channels."""
CHANNELS = (1, 3)


def axes_of(rows: AbstractRows, layout: Layout | None) -> Axes:
    """Return the meaning of the axes; images are checked to be bytes or floats in [0, 1].

    :param rows: the observations.
    :param layout: position of the channels, if the user passed it.
    """
    shape = rows.shape
    if len(shape) == 2:
        return "rows"
    if len(shape) not in (3, 4):
        raise InputError(
            "X",
            (
                "be (sample, feature), (sample, height, width), (sample, channel, height, width) or "
                "(sample, height, width, channel)"
            ),
            got=f"shape {shape}",
            remedy="reshape it, e.g. X.reshape(len(X), -1)",
        )
    if rows.dtype.kind in "iu" and rows.dtype != np.uint8:
        raise InputError(
            "images",
            "be uint8 or floats in [0, 1]",
            got=rows.dtype,
            remedy="convert values 0 … 255 with X.astype(np.uint8), and divide others by their largest possible value",
        )
    if rows.dtype.kind == "f":
        low, high = extent(rows)
        if low < 0 or high > 1:
            raise InputError(
                "images of floats",
                "lie in [0, 1]",
                got=f"{low} … {high}",
                remedy="divide by 255 or rescale them, or pass flat rows: X.reshape(len(X), -1)",
            )
    return "grey" if len(shape) == 3 else _channels(shape, layout)


def _channels(shape: tuple[int, ...], layout: Layout | None) -> Layout:
    """Return the position of the channels: that of the user, otherwise the axis of size 1 or 3."""
    if layout is not None:
        if layout not in ("channels-first", "channels-last"):
            raise InputError("layout", "be 'channels-first' or 'channels-last'", got=f"{layout!r}")
        return layout
    first, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if first and last:
        raise InputError(
            problem=f"X of shape {shape} can have its channels first or last",
            remedy=(
                "choose with ",
                Argument("layout", "channels-first"),
                " or ",
                Argument("layout", "channels-last"),
            ),
        )
    if not (first or last):
        raise InputError(
            problem=f"X of shape {shape} has neither 1 nor 3 channels first or last",
            remedy=(
                "if this is intended, give their position with ",
                Argument("layout", "channels-first"),
                " or ",
                Argument("layout", "channels-last"),
            ),
        )
    return "channels-first" if first else "channels-last"


def arranged(array: Shaped[np.ndarray, "sample ..."], axes: Axes) -> Shaped[np.ndarray, "sample ..."]:
    """Return a view of observations with their channels first.

    :param array: observations as they are stored.
    :param axes: meaning of its axes.
    """
    if axes == "grey":
        return array[:, np.newaxis]
    return np.moveaxis(array, 3, 1) if axes == "channels-last" else array


def shape_of(rows: AbstractRows, axes: Axes) -> tuple[int, ...]:
    """Return the shape of one observation with its channels first.

    :param rows: the observations.
    :param axes: meaning of their axes.
    """
    shape = rows.shape[1:]
    return {"grey": (1, *shape), "channels-last": (*shape[2:], *shape[:2])}.get(axes, shape)


def white_of(rows: AbstractRows, requested: int | None) -> int | None:
    """Return the byte that is white; None if the observations are not images of bytes.

    :param rows: the observations.
    :param requested: the value that the user passed, if any.
    """
    if requested is not None and (isinstance(requested, bool) or requested not in (1, 255)):
        raise InputError(
            "white", "be 1 or 255", got=f"{requested!r}", remedy="leave it out to have it recognised"
        )
    if len(rows.shape) == 2 or rows.dtype != np.uint8:
        if requested is not None:
            raise InputError(
                problem=(Argument("white"), " is for images of bytes"),
                got=f"{rows.dtype} of shape {rows.shape}",
                remedy="leave it out",
            )
        return None
    if requested == 255:
        return requested
    if not exceeds(rows, 1):
        # Images that are all black do not show which byte is white.
        return requested or (1 if exceeds(rows, 0) else 255)
    if requested == 1:
        raise InputError(
            problem=(Argument("white", 1), " requires bytes that are 0 or 1"),
            got=f"bytes up to {extent(rows)[1]:g}",
            remedy=("use ", Argument("white", 255), ", or rescale the images"),
        )
    return 255


def choices_of(rows: AbstractRows, axes: Axes, layout: Layout | None, white: int | None) -> tuple[str, ...]:
    """Describe the decisions about images that the user did not make, in a few words each.

    :param rows: the observations.
    :param axes: meaning of their axes.
    :param layout: position of the channels, if the user passed it.
    :param white: the byte recognised as white; None if the user passed it, or if there are no bytes.
    """
    choices = []
    if len(rows.shape) == 4 and layout is None:
        choices.append(f"channels {axes.removeprefix('channels-')} ({shape_of(rows, axes)[0]})")
    if white is not None:
        choices.append("bytes 0 and 1 are black and white" if white == 1 else "bytes divided by 255")
    return tuple(choices)
