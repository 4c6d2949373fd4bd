"""Sprites against the shapes' inequalities, dSprites' index formula and the symmetries of the grid."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest
from matplotlib.path import Path

from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.seeds import generator
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.sources import load_recorded

SIZES = np.array([3, 6, 40, 32, 32])
SIDE, SEMI_AXES, HEART = 19.196, (12.766, 7.214), (9.592, 0.6625, 1.435)
"""Of the largest sprites at 64 pixels; of the heart half its width, its height's factor and the lift of its origin."""
POSITIONS = [(0, 0), (1, 0), (0, 1), (1, 1), (5, 9), (6, 9), (5, 10), (15, 16)]


def centre(k: int, image_size: int) -> float:
    """Of position k: 32 of them from a quarter of the image to three quarters."""
    return image_size / 4 + image_size / 2 * k / 31


def inside(factors: np.ndarray, image_size: int, grow: float) -> np.ndarray:
    """Which pixel centres of the whole image fulfil the inequality of the shape, in float64."""
    shape, scale, orientation, x, y = factors
    pixels = np.arange(image_size) + 0.5
    z = (pixels[None, :] - centre(x, image_size)) - 1j * (pixels[:, None] - centre(y, image_size))
    z = z * np.exp(-2j * math.pi * orientation / 39) / ((0.5 + scale / 10) * image_size / 64 * grow)
    if shape == 0:
        return np.maximum(abs(z.real), abs(z.imag)) < SIDE / 2
    if shape == 1:
        return (z.real / SEMI_AXES[0]) ** 2 + (z.imag / SEMI_AXES[1]) ** 2 < 1
    corners = heart_outline(1001)
    return Path(corners).contains_points(np.stack([z.real, z.imag], axis=-1).reshape(-1, 2)).reshape(z.shape)


def heart_outline(n: int) -> np.ndarray:
    """Points of the closed curve."""
    t = np.linspace(0, 2 * math.pi, n)
    width, height, lift = HEART
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([width * np.sin(t) ** 3, height * y + lift], axis=1)


def at_some_positions() -> np.ndarray:
    """All shapes, scales and different orientations at a few positions."""
    poses = itertools.product(range(3), range(6), range(39), POSITIONS)
    return np.array([[*pose, *position] for *pose, position in poses])


def clashes(data: SpritesDataset, factors: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Factors of images that are equal."""
    first: dict[bytes, np.ndarray] = {}
    found = []
    for part in np.array_split(factors, math.ceil(len(factors) / 500)):
        for image, pose in zip(data.images(data.index_of(part)), part, strict=True):
            earlier = first.setdefault(hashlib.sha256(image.tobytes()).digest(), pose)
            if earlier is not pose:
                found.append((earlier, pose))
    return found


def test_indices_follow_the_formula_of_the_original():
    data = SpritesDataset()
    assert len(data) == 737_280
    bases = SIZES.prod() // SIZES.cumprod()
    factors = generator(0, "factors").integers(0, SIZES, size=(1000, 5))
    assert (data.index_of(factors) == factors @ bases).all()
    assert (data.factors(factors @ bases) == factors).all()


@pytest.mark.parametrize("image_size", [8, 50, 64, 80, 128])
def test_binary_images_fulfil_the_inequality_of_their_shape(image_size):
    data = SpritesDataset(image_size, antialias=False)
    indices = generator(0, "indices").integers(len(data), size=150)
    for image, factors in zip(data.images(indices)[:, 0], data.factors(indices), strict=True):
        # float32 may decide otherwise on the outline itself, about 1e-6 of it; the heart is interpolated in a table
        # with steps of 1/8, where its outline is 1/8²/8/4 = 5e-4 off, of 9.6, and more in the thin ends of the tip
        # and of the notch, of which a pixel's centre is rarely so near
        slack = 3e-3 if factors[0] == 2 else 1e-5
        assert (image[inside(factors, image_size, 1 - slack)] == 255).all()
        assert (image[~inside(factors, image_size, 1 + slack)] == 0).all()


@pytest.mark.parametrize("image_size", [16, 32, 48, 96])
def test_antialiased_images_are_distinct(image_size):
    assert clashes(SpritesDataset(image_size), at_some_positions()) == []


def test_binary_images_are_distinct_but_for_angles_of_squares_and_ellipses():
    found = clashes(SpritesDataset(), at_some_positions())
    assert 0 < len(found) < 200  # of 5,616; 3,092 of 718,848 at all positions, here some are symmetric
    for first, second in found:
        assert first[0] in (0, 1)
        assert (first[[0, 1, 3, 4]] == second[[0, 1, 3, 4]]).all()


def test_the_last_orientation_is_the_first():
    data = SpritesDataset()
    factors = generator(0, "ends").integers(0, SIZES, size=(200, 5))
    first, last = factors.copy(), factors.copy()
    first[:, 2], last[:, 2] = 0, 39
    assert (data.images(data.index_of(first)) == data.images(data.index_of(last))).all()


@pytest.mark.parametrize("image_size", [16, 32, 64, 96])
def test_the_last_position_is_the_first_moved_by_half_the_image(image_size):
    data = SpritesDataset(image_size)
    factors = generator(0, "moves").integers(0, SIZES, size=(300, 5))
    for axis in (3, 4):
        first, last = factors.copy(), factors.copy()
        first[:, axis], last[:, axis] = 0, 31
        here, there = (data.images(data.index_of(each))[:, 0].astype(int) for each in (first, last))
        moved = np.roll(here, image_size // 2, axis=2 if axis == 3 else 1)
        assert abs(there - moved).max() <= (0 if image_size == 64 else 1)  # a level of grey, by rounding


@pytest.mark.parametrize("image_size", [9, 31, 32, 64, 100])
def test_squares_and_ellipses_lie_about_their_positions(image_size):
    data = SpritesDataset(image_size, antialias=True)
    factors = generator(0, "centres").integers(0, [2, 6, 40, 32, 32], size=(200, 5))
    images = data.images(data.index_of(factors))[:, 0] / 255
    pixels = np.arange(image_size) + 0.5
    for axis, position in ((1, factors[:, 3]), (2, factors[:, 4])):
        mean = images.sum(axis=axis) @ pixels / images.sum(axis=(1, 2))
        expected = [centre(k, image_size) for k in position]
        # at a square's corner, half a diagonal from its middle, the grey is wrong by a quarter of a pixel at most
        side = SIDE * (0.5 + factors[:, 1] / 10) * image_size / 64
        assert (abs(mean - expected) < 4 * 0.25 * side / math.sqrt(2) / side**2).all()


@pytest.mark.parametrize(
    ("image_size", "antialias"),
    [(8, True), (9, True), (16, None), (32, None), (64, None), (64, True), (100, None)],
)
def test_sprites_stay_off_the_border_by_what_the_largest_square_leaves(image_size, antialias):
    data = SpritesDataset(image_size, antialias)
    poses = np.array(list(itertools.product(range(3), range(6), range(39), (0, 13, 31), (0, 13, 31))))
    images = data.images(data.index_of(poses))[:, 0]
    # the farthest corner is half a diagonal from the centre, and grey reaches half a pixel further
    margin = max(0, math.floor(image_size / 4 - SIDE / math.sqrt(2) * image_size / 64 - 0.5))
    border = np.ones((image_size, image_size), dtype=bool)
    border[margin : image_size - margin, margin : image_size - margin] = False
    assert not images[:, border].any()
    # and the largest squares come as near as two pixels more: binary ones have no grey, and only 39 angles
    squares = images[(poses[:, 0] == 0) & (poses[:, 1] == 5) & (poses[:, 3] == 0)]
    assert squares[:, :, margin : margin + 3].any()


@pytest.mark.parametrize("image_size", [16, 32, 64])
def test_every_image_has_a_sprite_and_its_area_grows_with_scale(image_size):
    data = SpritesDataset(image_size)
    grid = np.array(list(itertools.product(range(3), range(39), range(6))))
    factors = np.column_stack([grid[:, 0], grid[:, 2], grid[:, 1], np.full((len(grid), 2), 11)])
    area = data.values(data.index_of(factors)).sum(axis=(1, 2, 3)).reshape(3, 39, 6)
    assert area.min() > 0
    assert (np.diff(area, axis=2) > 0).all()


@pytest.mark.parametrize("image_size", [64, 128])
def test_areas_are_those_of_the_shapes_and_grow_with_the_square_of_the_size(image_size):
    x, y = heart_outline(100_001).T
    heart = abs(np.trapezoid(x, y))
    areas = np.array([SIDE**2, math.pi * math.prod(SEMI_AXES), heart]) * (image_size / 64) ** 2
    assert 220 < heart < 228
    factors = np.array([[shape, 5, orientation, 9, 20] for shape in range(3) for orientation in range(39)])
    smooth, binary = (
        SpritesDataset(image_size, antialias)
        .values(SpritesDataset().index_of(factors))
        .sum(axis=(1, 2, 3))
        .reshape(3, 39)
        for antialias in (True, False)
    )
    # a corner may gain or lose a fraction of a pixel; averaged over orientations so may a binary outline
    np.testing.assert_allclose(smooth, np.repeat(areas, 39).reshape(3, 39), atol=1.5)
    np.testing.assert_allclose(binary.mean(axis=1), areas, atol=2)


@pytest.mark.parametrize("image_size", [16, 32, 64])
def test_images_of_half_the_size_show_the_same(image_size):
    """Pixels averaged in fours are those of the smaller image: a grey pixel is nearly its share of the shape."""
    indices = generator(0, "halves").integers(len(SpritesDataset()), size=300)
    small, large = (
        SpritesDataset(size, antialias=True).values(indices)[:, 0] for size in (image_size, 2 * image_size)
    )
    pooled = large.reshape(300, image_size, 2, image_size, 2).mean(axis=(2, 4))
    assert abs(pooled - small).mean() < 0.003
    # the distance is wrong about the area of a pixel at corners, and most in the heart's notch and tip
    worst = abs(pooled - small).max(axis=(1, 2))
    for shape, most in enumerate((0.25, 0.15, 0.5)):
        assert worst[SpritesDataset().factors(indices)[:, 0] == shape].max() < most + 2 / 255


def test_upright_sprites_are_mirrored_and_squares_and_ellipses_turn_into_themselves():
    data = SpritesDataset()
    upright = data.images(
        data.index_of([[shape, scale, 0, 0, 0] for shape in range(3) for scale in range(6)])
    )
    corner = upright[:, 0, :32, :32]  # the first position is its middle
    assert (corner == corner[:, :, ::-1]).all()
    assert (corner[:12] == corner[:12, ::-1]).all()
    assert (corner[:6] == corner[:6].transpose(0, 2, 1)).all()
    assert (corner[12:] != corner[12:, ::-1]).any(axis=(1, 2)).all()
    turned = data.images(data.index_of([[shape, 5, k, 0, 0] for shape in range(3) for k in range(1, 39)]))
    mirrored = turned[:, 0, :32, :32].reshape(3, 38, 32, 32)[:, ::-1, :, ::-1]  # orientation 39 − k
    assert (turned[:, 0, :32, :32].reshape(3, 38, 32, 32) == mirrored).mean() > 0.9999


def test_hearts_stand_on_their_tip_and_turn_anticlockwise():
    data = SpritesDataset()
    upright, quarter, half = data.images(data.index_of([[2, 5, k, 16, 16] for k in (0, 10, 20)]))[:, 0] > 0
    for image in (upright, np.rot90(quarter, -1), np.rot90(half, -2)):
        rows = np.flatnonzero(image.any(axis=1))
        bottom, top = image[rows[-2]].sum(), image[rows[1]].sum()
        assert bottom <= 6 < top
    notch = upright[np.flatnonzero(upright.any(axis=1))[0] + 1]
    lobes = np.flatnonzero(np.diff(np.flatnonzero(notch)) > 1)
    assert len(lobes) == 1, "two lobes with a notch between them"
    widths = upright.sum(axis=1)
    assert abs(int(np.argmax(widths)) - 32) < 10


@pytest.mark.parametrize("image_size", [32, 64, 100])
def test_pixels_do_not_depend_on_the_batch(image_size):
    data = SpritesDataset(image_size, antialias=True)
    indices = generator(0, "batch").integers(len(data), size=150)
    images = data.images(indices)
    assert (data.images(indices[::-1]) == images[::-1]).all()
    assert (np.concatenate([data.images(index) for index in indices[:20]]) == images[:20]).all()


def test_default_is_binary_at_multiples_of_64():
    for image_size, grey in ((64, False), (128, False), (32, True), (96, True)):
        levels = np.unique(SpritesDataset(image_size).images(np.arange(0, 737_280, 9973)))
        assert (len(levels) > 2) == grey
        assert levels[0] == 0
        assert levels[-1] == 255


def test_results_on_another_drawing_are_not_taken_over():
    data = SpritesDataset()
    assert data.fingerprint != files.digest(data.describe())  # that of the first drawing
    assert data.fingerprint != SpritesDataset(32).fingerprint
    with pytest.raises(PolariscopeError, match="sprites has changed since it was recorded"):
        load_recorded({**data.describe(), "fingerprint": files.digest(data.describe())})


def test_golden_images():
    """Frozen with the second drawing: a change of these bytes changes every result on sprites."""
    indices = np.arange(64) * 11_519
    digest = hashlib.sha256(SpritesDataset().images(indices).tobytes()).hexdigest()
    assert digest == "25fbe7531d314432844498bab4cc732f1a3146ddae97d8ffb27cf74fc7e54678"


def test_a_size_too_small_for_sprites_is_refused():
    with pytest.raises(InputError, match="image_size must be at least 8 pixels to show a sprite, got 7"):
        SpritesDataset(7)
