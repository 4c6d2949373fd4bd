"""Images have the same bytes whether they are drawn when asked for or come from the file, which is made once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from polariscope.data import cache
from polariscope.data.rendered.support import scenes
from polariscope.data.rendered.support.scenes import AbstractScenes

DRAWN: list[int] = []
"""How many images each call drew."""


@dataclasses.dataclass(frozen=True)
class Toy(AbstractScenes):
    """Grey images: the body is the second factor, which does not vary slowest."""

    image_size: int = 2
    factor_names = ("pose", "body", "light")
    factor_sizes = (5, 4, 3)
    factor_kinds = ("ordinal", "categorical", "ordinal")
    body_factors = ("body",)
    drawing = 1
    name = "toy"  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    def draw(self, body, factors):
        assert (factors[:, 1] == body[0]).all()
        DRAWN.append(len(factors))
        grey = 50 * factors[:, 0] + 10 * factors[:, 1] + factors[:, 2]
        return np.broadcast_to(grey[:, None, None, None], (len(factors), *self.shape)).astype(np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    DRAWN.clear()
    return tmp_path


def expected(data: Toy, indices) -> np.ndarray:
    factors = data.factors(indices)
    return np.broadcast_to((factors @ [50, 10, 1])[:, None, None, None], (len(factors), *data.shape))


def test_a_few_images_are_drawn_when_asked_for_and_once(folder: Path):
    data = Toy()
    np.testing.assert_array_equal(data.images([7, 3, 7, 59]), expected(data, [7, 3, 7, 59]))
    assert sum(DRAWN) == 3
    np.testing.assert_array_equal(Toy().images([59, 3]), expected(data, [59, 3]))
    assert sum(DRAWN) == 3
    assert not list(folder.rglob("*.npy"))
    assert data.images([]).shape == (0, 1, 2, 2)


def test_many_images_make_the_file_body_after_body(folder: Path):
    data = Toy()
    for index in range(30):  # half of all
        data.images(index)
    assert not list(folder.rglob("*.npy"))
    DRAWN.clear()
    np.testing.assert_array_equal(data.images([30]), expected(data, [30]))
    assert DRAWN == [15] * 4
    assert len(list(folder.rglob("*.npy"))) == 1
    everything = np.arange(60)[::-1]
    np.testing.assert_array_equal(data.images(everything), expected(data, everything))
    assert DRAWN == [15] * 4


def test_the_same_images_again_make_no_file(folder: Path):
    for _ in range(100):
        Toy().images([1, 2, 3])
    assert not list(folder.rglob("*.npy"))


def test_the_limit_is_of_different_images(monkeypatch: pytest.MonkeyPatch, folder: Path):
    monkeypatch.setattr(scenes, "DIRECT", 4)
    Toy().images([1, 2, 3, 4, 4, 4])
    assert not list(folder.rglob("*.npy"))
    Toy().images([5])
    assert list(folder.rglob("*.npy"))


def test_a_file_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch, folder: Path):
    data = Toy()
    drawn = data.images([5, 50])
    data.prepare()
    monkeypatch.setattr(scenes, "_memories", {})  # another process
    DRAWN.clear()
    np.testing.assert_array_equal(Toy().images([5, 50]), drawn)
    assert DRAWN == []


def test_another_edition_or_size_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch, folder: Path):
    Toy().prepare()
    Toy(image_size=3).prepare()
    monkeypatch.setattr(Toy, "drawing", 2)
    Toy().prepare()
    assert len(list(folder.rglob("*.npy"))) == 3


def test_images_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scenes, "_IMAGE_BYTES", 10 * 4)
    data = Toy()
    np.testing.assert_array_equal(data.images(range(20)), expected(data, range(20)))
    assert len(data._memory.images) == 10
    np.testing.assert_array_equal(data.images(range(5, 25)), expected(data, range(5, 25)))
    assert len(data._memory.images) == 10


def test_what_is_returned_may_be_changed():
    data = Toy()
    for _ in range(2):
        data.images([3])[:] = 0
        np.testing.assert_array_equal(data.images([3]), expected(data, [3]))
        data.prepare()
