"""Small files in exactly the formats of the published datasets, with their images and factors."""

from __future__ import annotations

import dataclasses
import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import scipy.io
from PIL import Image


@dataclasses.dataclass(frozen=True)
class Written:
    """Written data: the images that a dataset must return (sample, channel, height, width), and the factors."""

    images: np.ndarray | None
    factors: np.ndarray


class Trap:
    """An object that reports if it is ever unpickled."""

    def __reduce__(self):
        return exec, ("raise AssertionError('it was unpickled')",)


def grid(*sizes: int) -> np.ndarray:
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


def noise(*shape: int, most: int = 256, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(most, size=shape, dtype=np.uint8)


def dsprites(folder: Path, sizes: tuple[int, ...] = (2, 2, 3, 2, 2), **other: np.ndarray) -> Written:
    """Write dSprites with a pickled ``metadata``, like the original."""
    factors = grid(*sizes)
    pixels = noise(len(factors), 64, 64, most=2)
    arrays = {
        "imgs": pixels,
        "latents_values": factors.astype(float),
        "latents_classes": np.insert(factors, 0, 0, axis=1),
        "metadata": np.array({"trap": Trap()}, dtype=object),
    }
    np.savez_compressed(folder / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz", **{**arrays, **other})
    return Written(pixels[:, np.newaxis] * np.uint8(255), factors)


def shapes3d(folder: Path, sizes: tuple[int, ...] = (2, 2, 2, 2, 2, 3), **other: np.ndarray) -> Written:
    factors = grid(*sizes)
    pixels = noise(len(factors), 64, 64, 3)
    labels = factors * [0.1, 0.1, 0.1, 0.0715, 1, 4.2857] + [0, 0, 0, 0.75, 0, -30]
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        for name, array in {"images": pixels, "labels": labels, **other}.items():
            file.create_dataset(name, data=array, compression="gzip")
    return Written(pixels.transpose(0, 3, 1, 2), factors)


def mat(images: np.ndarray, **other: object) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"im": images, "mask": images[:, :, 0] > 0, **other}, do_compression=True)
    return buffer.getvalue()


def cars3d(folder: Path, n_cars: int = 3, unpacked: bool = False) -> Written:
    """Write images of 16 pixels, each of one colour, so resizing does not change them."""
    factors = grid(4, 24, n_cars)
    colours = noise(4, 24, n_cars, 3)
    contents = {"data/cars/list.txt": b"names", "data/sprites/other.mat": b"no car"}
    for car in reversed(range(n_cars)):  # the order in the archive is not that of the names
        images = np.broadcast_to(colours[:, :, car].transpose(2, 1, 0), (16, 16, 3, 24, 4))
        contents[f"data/cars/car_{car:03}_mesh.mat"] = mat(images)
    if unpacked:
        for name, data in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    else:
        with tarfile.open(folder / "nips2015-analogy-data.tar.gz", "w:gz") as archive:
            for name, data in contents.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    flat = colours.reshape(-1, 3, 1, 1)
    return Written(np.broadcast_to(flat, (len(flat), 3, 64, 64)), factors)


def norb_matrix(values: np.ndarray) -> bytes:
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[values.dtype.name]
    axes = [*values.shape, *[1] * (3 - values.ndim)]
    return struct.pack(f"<Ii{len(axes)}i", magic, values.ndim, *axes) + values.tobytes()


def smallnorb(folder: Path, packed: bool = True) -> Written:
    """Write a few images of one shade each; the right camera has a different shade."""
    generator = np.random.default_rng(0)
    factors, shades = [], []
    for part, instances, count in (
        ("5x46789x9x18x6x2x96x96-training", [4, 6, 7, 8, 9], 7),
        ("5x01235x9x18x6x2x96x96-testing", [0, 1, 2, 3, 5], 5),
    ):
        sizes = (5, 5, 9, 18, 6)
        chosen = generator.choice(np.prod(sizes), size=count, replace=False)
        labels = np.stack(np.unravel_index(chosen, sizes), axis=1)
        labels[:, 1] = np.array(instances)[labels[:, 1]]
        shade = generator.integers(256, size=count).astype(np.uint8)
        pair = np.stack([shade, 255 - shade], axis=1)
        matrices = {
            "dat": np.ascontiguousarray(np.broadcast_to(pair[:, :, None, None], (count, 2, 96, 96))),
            "cat": labels[:, 0].astype(np.int32),
            "info": (labels[:, 1:] * [1, 1, 2, 1]).astype(np.int32),
        }
        for kind, values in matrices.items():
            data = norb_matrix(values)
            name = f"smallnorb-{part}-{kind}.mat"
            (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
        factors.append(labels)
        shades.append(shade)
    shade = np.concatenate(shades)
    images = np.broadcast_to(shade[:, None, None, None], (len(shade), 1, 64, 64))
    return Written(images, np.concatenate(factors)[:, [0, 2, 3, 4]])


def mpi3d(folder: Path, packed: bool = True, sizes: tuple[int, ...] = (2, 1, 2, 1, 1, 2, 3)) -> Written:
    """Write a smaller MPI3D; the grid of the original is identified by its number of images, so tests must set it."""
    pixels = noise(int(np.prod(sizes)), 64, 64, 3)
    (np.savez_compressed if packed else np.savez)(folder / "mpi3d_toy.npz", images=pixels)
    return Written(pixels.transpose(0, 3, 1, 2), grid(*sizes))


def idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def mnist(folder: Path, packed: bool = True, seed: int = 0) -> Written:
    images, labels = noise(9, 28, 28, seed=seed), noise(9, most=10, seed=seed)
    for part, rows in (("train", slice(0, 6)), ("t10k", slice(6, 9))):
        for kind, values in (("images-idx3", images[rows]), ("labels-idx1", labels[rows])):
            name, data = f"{part}-{kind}-ubyte", idx(values)
            (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
    return Written(images[:, np.newaxis], labels[:, np.newaxis].astype(int))


def picture(pixels: np.ndarray, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def celeba(folder: Path, packed: bool = False, count: int = 4) -> Written:
    """Write faces of one grey each, which JPEG preserves; their heights differ from their widths."""
    shades = noise(count)
    attributes = noise(count, 40, most=2)
    names = [f"{number + 1:06}.jpg" for number in range(count)]
    contents = {
        f"img_align_celeba/{name}": picture(np.full((218, 178, 3), shade, np.uint8), "JPEG", quality=95)
        for name, shade in zip(names, shades, strict=True)
    }
    if packed:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            for name, data in contents.items():
                archive.writestr(name, data)
    else:
        (folder / "img_align_celeba").mkdir()
        for name, data in contents.items():
            (folder / name).write_bytes(data)
    rows = [
        "  ".join([name, *map(str, 2 * row.astype(int) - 1)])
        for name, row in zip(names, attributes, strict=True)
    ]
    heads = [str(count), " ".join(f"Attribute_{number}" for number in range(40))]
    (folder / "list_attr_celeba.txt").write_text("\n".join([*heads, *rows]) + "\n")
    split = [f"{name} {number % 3}" for number, name in enumerate(names)]
    (folder / "list_eval_partition.txt").write_text("\n".join(split) + "\n")
    return Written(None, attributes.astype(int))


def symsol(folder: Path, packed: bool = True) -> Written:
    shapes = ("tet", "cube", "icosa", "cone", "cyl", "cone")
    pixels = noise(len(shapes), 64, 64)
    contents = {
        f"symsol/{number:03}_{shape}_x.png": picture(pixels[number], "PNG")
        for number, shape in enumerate(shapes)
    }
    if packed:
        with zipfile.ZipFile(folder / "symsol_reduced.zip", "w") as archive:
            for name in sorted(contents, reverse=True):
                archive.writestr(name, contents[name])
    else:
        (folder / "symsol").mkdir()
        for name, data in contents.items():
            (folder / name).write_bytes(data)
    return Written(pixels[:, np.newaxis], np.array([[0], [1], [2], [3], [4], [3]]))


WRITERS: dict[str, Callable[[Path], Written]] = {
    "cars3d": cars3d,
    "celeba": celeba,
    "dsprites": dsprites,
    "fashion-mnist": mnist,
    "mnist": mnist,
    "mpi3d": mpi3d,
    "shapes3d-original": shapes3d,
    "smallnorb": smallnorb,
    "symsol": symsol,
}
"""Writers by the name of the dataset."""
MPI3D_GRID = (2, 1, 2, 1, 1, 2, 3)
"""Grid of the small MPI3D, which a test must register."""
