"""Traversals and interpolations as animated GIFs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.pictures import tile, to_pictures

SMALLEST = 64  # pixels; smaller pictures are enlarged by an integer factor


def write_gif(
    path: str | Path,
    frames: Float[np.ndarray, "row frame channel height width"],
    *,
    display_range: tuple[float, float] = (0.0, 1.0),
    seconds: float = 2.0,
    bounce: bool = True,
) -> Path:
    """Write a looping animation atomically, with all rows next to each other.

    ``frames`` are a traversal's ``outputs``, one row per latent, or ``outputs[None]`` of an interpolation.
    ``seconds`` is the duration of one pass; with ``bounce`` the animation then runs backwards. Pictures below 64 pixels
    are enlarged.
    """
    if frames.ndim != 5 or 0 in frames.shape:
        raise InputError(
            "frames",
            "have shape (row, frame, channel, height, width)",
            got=frames.shape,
            remedy="an animation requires images",
        )
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InputError("seconds", "be positive", got=seconds)
    rows, n_frames = frames.shape[:2]
    pictures = to_pictures(frames.reshape(-1, *frames.shape[2:]), display_range)
    pictures = pictures.reshape(rows, n_frames, *pictures.shape[1:])
    times = max(1, -(-SMALLEST // max(pictures.shape[2:4])))
    pictures = pictures.repeat(times, axis=2).repeat(times, axis=3)
    sheets = [tile(pictures[None, :, frame]) for frame in range(n_frames)]
    if bounce:
        # Without both ends, which would be shown twice in a row.
        sheets += sheets[-2:0:-1]
    # Pillow takes grey images without an axis of channels.
    images = [Image.fromarray(sheet[:, :, 0] if sheet.shape[2] == 1 else sheet) for sheet in sheets]
    # Viewers slow down animations with more than 50 frames per second.
    pause = max(20, round(1000 * seconds / n_frames))
    path = Path(path)
    with files.atomic(path) as part:
        images[0].save(
            part, format="GIF", save_all=True, append_images=images[1:], duration=pause, loop=0, disposal=1
        )
    return path
