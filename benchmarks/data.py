"""How long a training step waits for its data, from every kind of source.

The step is that of a convolutional VAE on 64 × 64 images, batch 64. For each source two loaders take turns in short
rounds: ours, which gathers a batch at once, and the customary one, torch's DataLoader over a dataset that gives one
sample at a time, with what one usually writes there: an array in memory, an HDF5 file read row by row, a JPEG decoded
at every access. The share is waiting over waiting and computing; shown are medians over the rounds. Images per second
are those that ours makes while it does nothing else: by the clock, and by the time of the processors, which others on
the machine do not change much. The target of rendered datasets is 15,000.

    python benchmarks/data.py [--rounds 7] [--steps 6] [--threads 1] [--sources dsprites sprites …]

Files in the original formats are written to a temporary folder first, smaller than the originals; they are then in the
memory of the system, as files that fit into it are after one pass.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor

import polariscope as ps
from polariscope.data.cache import VARIABLE
from polariscope.data.published.mpi3d import MPI3DDataset
from polariscope.objectives import Batch, Step, total
from polariscope.training.memory import keep_freed_memory
from polariscope.training.plan import plan
from polariscope.training.threads import using_threads

BATCH = 64
TARGET = 10.0
"""Per cent of a step that memory-mapped and cached sources may wait, and JPEGs after the first pass."""
Item = Callable[[int], Tensor]
Source = Callable[[Path], tuple[Any, Item]]
"""Makes files in a folder; gives our dataset, and the customary way to one sample of it."""
SOURCES: dict[str, tuple[str, Source]] = {}


def source(name: str, words: str) -> Callable[[Source], Source]:
    """Decorator of a source."""

    def keep(make: Source) -> Source:
        SOURCES[name] = (words, make)
        return make

    return keep


def as_tensor(image: np.ndarray) -> Tensor:
    """One image of bytes as everybody makes a tensor of it: channels first, floats in [0, 1]."""
    pixels = image[np.newaxis] if image.ndim == 2 else image.transpose(2, 0, 1)
    return torch.from_numpy(pixels.astype(np.float32) / 255)


def drawn(count: int) -> np.ndarray:
    """Sprites as bytes, (image, 64, 64)."""
    data = ps.load_dataset("sprites")
    return data.images(np.random.default_rng(0).integers(len(data), size=count))[:, 0]


def coloured(count: int) -> np.ndarray:
    """Sprites in colours, (image, 64, 64, 3)."""
    colours = np.random.default_rng(1).integers(128, 256, size=(count, 1, 1, 3))
    return (drawn(count)[..., np.newaxis] / 255 * colours).astype(np.uint8)


def grid(*sizes: int) -> np.ndarray:
    """Every combination of factors, the last varying fastest."""
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


@source("arrays", "arrays in memory")
def arrays(folder: Path) -> tuple[Any, Item]:
    images = drawn(20_000)
    return ps.from_arrays(images), lambda index: as_tensor(images[index])


@source("mapped", "an .npy file, memory-mapped")
def mapped(folder: Path) -> tuple[Any, Item]:
    np.save(folder / "images.npy", drawn(20_000))
    images = np.load(folder / "images.npy", mmap_mode="r")
    return ps.from_arrays(images), lambda index: as_tensor(images[index])


@source("dsprites", "dSprites .npz, cached eight pixels to a byte")
def dsprites(folder: Path) -> tuple[Any, Item]:
    sprites = ps.load_dataset("sprites")
    factors = grid(3, 6, 20, 8, 8)
    pixels = sprites.images(sprites.index_of(factors))[:, 0] // 255
    name = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    np.savez_compressed(folder / name, imgs=pixels, latents_classes=np.insert(factors, 0, 0, axis=1))
    return ps.load_dataset("dsprites", path=str(folder)), lambda index: as_tensor(
        pixels[index] * np.uint8(255)
    )


@source("shapes3d-original", "Shapes3D .h5, cached; customary: h5py row by row")
def shapes3d(folder: Path) -> tuple[Any, Item]:
    import h5py  # type: ignore[import-untyped, unused-ignore]

    sizes = (10, 10, 10, 2, 1, 4)
    file = h5py.File(folder / "3dshapes.h5", "w")
    images = coloured(int(np.prod(sizes)))
    file.create_dataset("images", data=images, compression="gzip", chunks=(1, 64, 64, 3))
    file.create_dataset("labels", data=grid(*sizes).astype(float))
    file.close()
    rows = h5py.File(folder / "3dshapes.h5", "r")["images"]
    return ps.load_dataset("shapes3d-original", path=str(folder)), lambda index: as_tensor(rows[index])


@source("mpi3d", "MPI3D .npz without compression, memory-mapped in place")
def mpi3d(folder: Path) -> tuple[Any, Item]:
    sizes = (2, 2, 2, 3, 3, 10, 10)
    MPI3DDataset.grids = (sizes,)  # the originals, told by their numbers of images, have 5.7 and 12.7 GB
    images = coloured(int(np.prod(sizes)))
    np.savez(folder / "mpi3d_toy.npz", images=images)
    return ps.load_dataset("mpi3d", path=str(folder)), lambda index: as_tensor(images[index])


def jpegs(folder: Path, count: int = 2000) -> list[Path]:
    """JPEG files of the size of CelebA's."""
    folder.mkdir()
    files = []
    for number, image in enumerate(coloured(count)):
        files.append(folder / f"{number + 1:06}.jpg")
        Image.fromarray(image).resize((178, 218)).save(files[-1], quality=90)
    return files


def decoded(file: Path) -> Tensor:
    """A JPEG decoded and resized, as one sample of the customary loader."""
    with Image.open(file) as image:
        return as_tensor(np.asarray(image.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)))


@source("celeba", "CelebA JPEGs, decoded once into the cache")
def celeba(folder: Path) -> tuple[Any, Item]:
    files = jpegs(folder / "img_align_celeba")
    rows = [f"{file.name} {' '.join(['-1'] * 40)}" for file in files]
    heads = [str(len(files)), " ".join(f"attribute-{number}" for number in range(40))]
    (folder / "list_attr_celeba.txt").write_text("\n".join([*heads, *rows]))
    return ps.load_dataset("celeba", path=str(folder)), lambda index: decoded(files[index])


@source("folder", "a folder of JPEGs, after the first pass")
def folder_of_jpegs(folder: Path) -> tuple[Any, Item]:
    files = jpegs(folder / "images")
    return ps.from_folder(folder / "images", image_size=64), lambda index: decoded(files[index])


for rendered in ("sprites", "shapes3d", "solids", "cars", "norb"):
    if rendered in ps.datasets:

        def render(folder: Path, name: str = rendered) -> tuple[Any, Item]:
            data = ps.load_dataset(name, image_size=64)
            return data, lambda index: torch.from_numpy(data.values([index])[0])

        SOURCES[rendered] = (f"{rendered}, rendered", render)


class Samples(torch.utils.data.Dataset):
    """A customary dataset: one sample at a time."""

    def __init__(self, length: int, item: Item) -> None:
        self.length, self.item = length, item

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        return self.item(index)


def our_batches(data: Any) -> Iterator[Tensor]:
    """Batches as our loop gathers them."""
    generator = np.random.default_rng(0)
    while True:
        yield torch.from_numpy(data.values(generator.integers(len(data), size=BATCH)))


def customary_batches(length: int, item: Item) -> Iterator[Tensor]:
    """Batches of a DataLoader without worker processes."""
    sampler = torch.utils.data.RandomSampler(range(length), replacement=True, num_samples=10**9)
    yield from torch.utils.data.DataLoader(Samples(length, item), batch_size=BATCH, sampler=sampler)


def trainer(data: Any) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], None]]:
    """How a batch is placed for the model, and one step of its training."""
    job = plan(data, "beta", "conv", 10, beta=4.0, steps=10)
    model = job.blueprint.build(0).to_device("cpu")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    noise = torch.Generator().manual_seed(0)

    def step(x: Tensor) -> None:
        loss = total(job.objective.terms(Step(model, Batch(x, 0), noise)))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return model.place, step


def measure(
    batches: Iterator[Tensor], place: Callable[[Tensor], Tensor], step: Callable[[Tensor], None], steps: int
) -> tuple[float, float, float]:
    """Seconds per step of waiting and of computing, and processor time of waiting."""
    waiting = computing = worked = 0.0
    for _ in range(steps):
        begin, work = time.perf_counter(), time.process_time()
        x = place(next(batches))
        arrived = time.perf_counter()
        worked += time.process_time() - work
        step(x)
        waiting += arrived - begin
        computing += time.perf_counter() - arrived
    return waiting / steps, computing / steps, worked / steps


def compare(data: Any, item: Item, rounds: int, steps: int) -> dict[str, float]:
    """Medians over the rounds of both loaders' waiting, of computing and of our work; the first round warms up."""
    for begin in range(0, min(len(data), 50_000), 1000):  # the first pass, which decodes and reads files
        data.values(np.arange(begin, min(begin + 1000, len(data))))
    place, step = trainer(data)
    ours, theirs = our_batches(data), customary_batches(len(data), item)
    found = []
    for _ in range(rounds + 1):
        wait, compute, work = measure(ours, place, step, steps)
        customary, _, _ = measure(theirs, place, step, steps)
        found.append((wait, customary, compute, work))
    names = ("ours", "customary", "step", "work")
    return dict(zip(names, np.median(found[1:], axis=0).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sources", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    given = parser.parse_args()
    keep_freed_memory()
    table = Table(title=f"Waiting for data: conv, 64×64, batch {BATCH}, {given.threads} threads")
    columns = ("source", "step", "wait", "share", "images/s", "of processor")
    for column in (*columns, "customary wait", "share", "customary / ours"):
        table.add_column(column, justify="left" if column == "source" else "right")
    with tempfile.TemporaryDirectory() as scratch, using_threads(given.threads):
        os.environ[VARIABLE] = str(Path(scratch, "cache"))
        for name in given.sources:
            words, make = SOURCES[name]
            folder = Path(scratch, name)
            folder.mkdir()
            data, item = make(folder)
            seconds = compare(data, item, given.rounds, given.steps)
            shares = [
                100 * wait / (wait + seconds["step"]) for wait in (seconds["ours"], seconds["customary"])
            ]
            table.add_row(
                words,
                f"{1e3 * seconds['step']:.1f} ms",
                f"{1e3 * seconds['ours']:.2f} ms",
                f"{shares[0]:.1f} %" + ("" if shares[0] < TARGET else " !"),
                f"{BATCH / seconds['ours']:,.0f}",
                f"{BATCH / seconds['work']:,.0f}",
                f"{1e3 * seconds['customary']:.2f} ms",
                f"{shares[1]:.1f} %",
                f"{seconds['customary'] / seconds['ours']:.1f}x",
            )
    table.caption = f"The target for every source is below {TARGET:.0f} %."
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
