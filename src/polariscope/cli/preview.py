"""Preview of a dataset: a sheet of images, or a table of flat rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, UInt8

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.core.tables import TextTable
from polariscope.data.dataset import AbstractDataset

if TYPE_CHECKING:
    from PIL import Image

GAP = 2  # pixels between images
GREY = 96  # value of the gaps, which differs from the black and white of sprites
ROWS = 5
FEATURES = 40
MAX_SIDE = 8192  # pixels


def draw(data: AbstractDataset, n_samples: int, seed: int) -> Int[np.ndarray, " sample"]:
    """Return the indices of observations drawn without replacement; all of them if there are not enough."""
    return generator(seed, "preview").choice(len(data), size=min(n_samples, len(data)), replace=False)


def write_contact_sheet(file: Path, data: AbstractDataset, n_samples: int, seed: int) -> int:
    """Write a PNG file with ``n_samples`` random images in a square, and return their number."""
    if file.suffix.lower() != ".png":
        raise InputError("out", "end in .png", got=file)
    files.check_target(file, "out")
    indices = draw(data, n_samples, seed)
    # Checked before the images are read.
    side = math.ceil(math.sqrt(len(indices))) * (max(data.shape[1:]) + GAP)
    if side > MAX_SIDE:
        raise InputError(
            "samples",
            f"give a sheet of at most {MAX_SIDE} pixels a side",
            got=f"{n_samples}, which makes {side}",
            remedy="draw fewer",
        )
    with files.atomic(file) as part:
        contact_sheet(data.images(indices)).save(part, format="PNG")
    return len(indices)


def contact_sheet(images: UInt8[np.ndarray, "sample channel height width"]) -> Image.Image:
    """Return a roughly square sheet of images, enlarged if it is small."""
    from PIL import Image

    count, channels, height, width = images.shape
    if channels not in (1, 3):
        raise InputError(problem="a sheet requires images with 1 or 3 channels", got=channels)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.full(
        (rows * (height + GAP) + GAP, columns * (width + GAP) + GAP, channels), GREY, dtype=np.uint8
    )
    for position, image in enumerate(images):
        row, column = divmod(position, columns)
        top, left = GAP + row * (height + GAP), GAP + column * (width + GAP)
        sheet[top : top + height, left : left + width] = image.transpose(1, 2, 0)
    picture = Image.fromarray(sheet[:, :, 0] if channels == 1 else sheet)
    zoom = max(1, 512 // max(picture.size))
    return picture.resize((picture.width * zoom, picture.height * zoom), Image.Resampling.NEAREST)


def statistics_table(data: AbstractDataset, n_samples: int, seed: int) -> TextTable:
    """Return a table with mean, deviation and range of each feature over random rows, and with the first rows."""
    values = data.values(draw(data, n_samples, seed)).astype(np.float64)
    first = data.values(np.arange(min(ROWS, len(data))))
    n_features = data.shape[0]
    ids = data.ids(np.arange(len(first)))
    rows = [str(name) if ids.dtype.kind == "U" else f"row {name}" for name in ids.tolist()]
    names = data.feature_names or tuple(map(str, range(n_features)))
    headers = ("feature", "mean", "std", "min", "max", *rows)
    title = f"{data.name}: {n_features} features; statistics of {len(values)} random rows, and the first rows"
    shown = TextTable(*headers, title=title, numbers=headers[1:] if data.feature_names else headers)
    columns = (values.mean(0), values.std(0), values.min(0), values.max(0), *first)
    for feature in range(min(n_features, FEATURES)):
        shown.add_row(names[feature], *(f"{column[feature]:.4g}" for column in columns))
    if n_features > FEATURES:
        shown.notes.append(f"… and {n_features - FEATURES} more features.")
    return shown
