"""dSprites: order, pixels, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import originals
from polariscope.core.errors import InputError
from polariscope.data.published.dsprites import DSpritesDataset
from polariscope.data.rendered.sprites import SpritesDataset


def test_the_published_grid_is_that_of_sprites() -> None:
    assert DSpritesDataset.factor_names == SpritesDataset.factor_names
    assert DSpritesDataset.original_sizes == SpritesDataset.factor_sizes
    assert DSpritesDataset.factor_kinds == SpritesDataset.factor_kinds
    assert (
        int(np.prod(DSpritesDataset.original_sizes)) * 64 * 8 == 377_487_360
    )  # bit-packed, as the docstring says


def test_drawn_sprites_in_the_file_come_back_pixel_by_pixel(folder: Path) -> None:
    drawn = SpritesDataset()
    factors = originals.grid(3, 2, 2, 2, 2)
    pixels = drawn.images(drawn.index_of(factors))[:, 0] // 255
    originals.dsprites(
        folder, imgs=pixels, latents_classes=np.insert(factors, 0, 0, axis=1), latents_values=factors
    )
    data = DSpritesDataset(str(folder))
    np.testing.assert_array_equal(data.images(np.arange(len(data))), drawn.images(drawn.index_of(factors)))
    assert data.choices == ("the file contains a part of the original: 48 of the 737,280 images",)
    np.testing.assert_array_equal(data.index_of(factors), np.arange(48))


def test_the_file_itself_may_be_given_under_any_name(folder: Path) -> None:
    originals.dsprites(folder)
    renamed = next(folder.iterdir()).rename(folder / "mine.npz")
    assert len(DSpritesDataset(str(renamed))) == 48


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"imgs": np.full((48, 64, 64), 255, np.uint8)}, "pixels 0 and 1, as dSprites does, got 255"),
        ({"imgs": np.zeros((48, 32, 32), np.uint8)}, "'imgs', bytes of shape"),
        ({"imgs": np.zeros((48, 64, 64))}, "'imgs', bytes of shape .* got float64"),
        ({"imgs": np.zeros((47, 64, 64), np.uint8)}, "have 48 images, one for each row"),
        ({"latents_classes": np.zeros((48, 5), int)}, "'latents_classes', integers of shape"),
        ({"latents_classes": np.zeros((48, 6), int)}, "every combination of its factors once"),
        (
            {"latents_classes": np.insert(originals.grid(2, 2, 3, 2, 2), 0, 0, axis=1)[::-1]},
            "in the order of the original",
        ),
        ({"latents_classes": originals.grid(2, 2, 2, 3, 2, 1)}, "have one colour, got 2"),
        (
            {"latents_classes": np.insert(originals.grid(4, 1, 3, 2, 2), 0, 0, axis=1)},
            "at most 3·6·40·32·32 values of shape, .* got 4·1·3·2·2",
        ),
        ({"latents_classes": np.array([originals.Trap()] * 48, dtype=object)}, "contains Python objects"),
    ],
)
def test_a_file_that_contradicts_dsprites_is_refused(folder: Path, other: dict, words: str) -> None:
    originals.dsprites(folder, **other)
    with pytest.raises(InputError, match=words):
        DSpritesDataset(str(folder)).images([0])


def test_an_archive_without_the_images_is_refused(folder: Path) -> None:
    np.savez(folder / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz", X=np.eye(2))
    with pytest.raises(InputError, match=r"must contain 'imgs.npy', got X.npy"):
        DSpritesDataset(str(folder))


def test_a_file_may_unpack_to_no_more_than_allowed(folder: Path) -> None:
    originals.dsprites(folder)
    with pytest.raises(InputError, match=r"the limit of 0\.0001 GB"):
        DSpritesDataset(str(folder), max_unpacked=1e-4)
    with pytest.raises(InputError, match="max_unpacked must be positive, got -1"):
        DSpritesDataset(str(folder), max_unpacked=-1.0)
