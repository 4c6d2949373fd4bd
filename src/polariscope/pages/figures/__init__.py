"""Figures of the pages, none with an outside resource: SVG elements of one style and one palette, and PNG images."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from jaxtyping import Float, UInt8
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from polariscope.analysis.regime.types import COLOURS as COLOURS
from polariscope.core.look import DIVERGING as DIVERGING
from polariscope.core.look import INK as INK
from polariscope.core.look import LINE as LINE
from polariscope.core.look import QUIET as QUIET
from polariscope.core.look import STYLE as STYLE
from polariscope.geometry.figures import PAPER, tile, to_pictures

TRAIN, VALIDATION = "#44546a", "#c2410c"
PANEL = (3.6, 2.3)
SMALL = (2.6, 1.7)
LARGEST = 96  # pixels: larger images are shown smaller, so the page stays light


def to_svg(figure: Figure, key: str, alternative: str) -> Markup:
    """A figure as an SVG element as wide as its place; ``key`` makes its ids unique in the page."""
    file = io.StringIO()
    _arrange(figure)
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    key = re.sub(r"[^A-Za-z0-9_-]", "-", key)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', text)
    text = text.replace("xlink:href", "href")
    opening = text[: text.index(">") + 1]
    box = re.search(r'viewBox="[^"]+"', opening)
    assert box is not None
    start = Markup('<svg {} role="img" aria-label="{}">').format(Markup(box.group()), alternative)
    return start + Markup(text[len(opening) :].strip())


def _arrange(figure: Figure) -> None:
    """Give everything its place, as saving would; with places to find, saving draws all of it twice."""
    engine, dpi = figure.get_layout_engine(), figure.dpi
    if engine is not None:
        FigureCanvasSVG(figure)  # text is as wide as in the file
        engine.execute(figure)
        figure.set_layout_engine(None)
        figure.dpi = dpi  # which the canvas has changed


def panel(size: tuple[float, float], title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, parse_math=False)
    return figure, axes


def strip(
    images: Float[np.ndarray, "image channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Images side by side with a gap of paper between them.

    Three channels are colours, one is grey; of any other number the mean is shown. Values beyond
    ``display_range`` are clipped.
    """
    return join([_shrink(picture) for picture in to_pictures(images, display_range)])


def sheet(
    images: Float[np.ndarray, "row column channel height width"], display_range: tuple[float, float]
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Rows and columns of images with gaps between them; colours and range as in :func:`strip`."""
    pictures = to_pictures(images.reshape(-1, *images.shape[2:]), display_range)
    small = np.stack([_shrink(picture) for picture in pictures])
    return tile(small.reshape(*images.shape[:2], *small.shape[1:]))


def difference_strip(
    differences: Float[np.ndarray, "image channel height width"], scale: float
) -> UInt8[np.ndarray, "tall wide colour"]:
    """Signed differences, mean over channels: red where positive, blue where negative, white where none."""
    return join([_shrink(picture) for picture in diverging(differences.mean(axis=1), scale)])


def diverging(values: Float[np.ndarray, "*shape"], scale: float) -> UInt8[np.ndarray, "*shape 3"]:
    """Colours of values from −scale to scale; a scale of 0 (nothing differs) is all white."""
    from matplotlib import colormaps

    positions = values / (2 * scale) + 0.5 if scale > 0 else np.full(values.shape, 0.5)
    return np.round(colormaps[DIVERGING](positions.astype(np.float64))[..., :3] * 255).astype(np.uint8)


def join(
    pictures: list[UInt8[np.ndarray, "height width colour"]],
) -> UInt8[np.ndarray, "height total colour"]:
    """Pictures of one size side by side."""
    height, width, colours = pictures[0].shape
    gap = np.full((height, max(1, width // 16), colours), PAPER, dtype=np.uint8)
    parts = [part for picture in pictures for part in (gap, picture)][1:]
    return np.concatenate(parts, axis=1)


def data_uri(picture: UInt8[np.ndarray, "height width colour"]) -> str:
    """A picture as a PNG inside the page."""
    squeezed = picture[:, :, 0] if picture.shape[2] == 1 else picture
    file = io.BytesIO()
    Image.fromarray(squeezed).save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _shrink(picture: UInt8[np.ndarray, "height width colour"]) -> UInt8[np.ndarray, "h w colour"]:
    height, width, colours = picture.shape
    if max(height, width) <= LARGEST:
        return picture
    factor = LARGEST / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    squeezed = picture[:, :, 0] if colours == 1 else picture
    return np.asarray(Image.fromarray(squeezed).resize(size, Image.Resampling.LANCZOS)).reshape(
        size[1], size[0], colours
    )
