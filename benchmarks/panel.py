"""The data that sizing is judged on, in two halves: constants are chosen on one, and the other is only reported.

What was reported once may have an influence on what is changed next, so there is a third part, of data that were added
after the last rule had been set.

An entry says how its data are made. MNIST and Fashion-MNIST are read from folders (the four IDX files, gzipped or
not), given by ``--mnist`` and ``--fashion``; entries whose files are not given are left out, and that is said.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

import polariscope as ps
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset

N_IMAGES = 50_000
"""Images of an image set that are used: a random part where there are more."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One set of data."""

    name: str
    half: str
    """"chosen on", "unseen" or "new"."""
    load: Callable[[Path], AbstractDataset]
    folder: str | None = None
    """The option that gives its files; None where none are needed."""
    around: int = 8
    """Where the reference begins to look; it changes the time only."""
    net: str = "auto"

    @property
    def is_gaussian(self) -> bool:
        """Whether the answer is known in closed form."""
        return self.net == "linear"


def table(load: str) -> Callable[[Path], AbstractDataset]:
    """A table of scikit-learn's, every feature with variance 1."""

    def loaded(_: Path) -> AbstractDataset:
        import sklearn.datasets

        rows = getattr(sklearn.datasets, load)().data
        return apply_variants(ps.from_arrays(np.asarray(rows, dtype=np.float32)), standardise=True)

    return loaded


def gaussian(eigenvalues: np.ndarray) -> Callable[[Path], AbstractDataset]:
    """Rows of a normal distribution with this spectrum."""
    return lambda _: ps.load_dataset("gaussian", eigenvalues=tuple(float(value) for value in eigenvalues))


def rendered(name: str, size: int, *variants: dict[str, object]) -> Callable[[Path], AbstractDataset]:
    """One of our rendered image sets, or a part of it where it is large."""

    def loaded(_: Path) -> AbstractDataset:
        whole = ps.load_dataset(name, image_size=size)
        part = [{"name": "subset", "n": N_IMAGES}] if len(whole) > N_IMAGES else []
        return apply_variants(whole, [*variants, *part])

    return loaded


def idx(name: str) -> Callable[[Path], AbstractDataset]:
    """MNIST or its like: 28 pixels with a black margin of 2."""
    return lambda folder: apply_variants(
        ps.load_dataset(name, path=str(folder)),
        [{"name": "padded", "image_size": 32}, {"name": "subset", "n": N_IMAGES}],
    )


SPECTRA = {
    "equal": np.concatenate([np.full(10, 4.0), np.full(30, 0.05)]),
    "power law": 10.0 / np.arange(1, 41) ** 1.5,
    "decay": 10 * np.exp(-np.arange(40) / 4) + 0.02,
    "steps": np.concatenate([np.full(3, 20.0), np.full(6, 2.0), np.full(12, 0.3), np.full(19, 0.02)]),
    "ramp": np.linspace(6.0, 0.02, 30),
    "two scales": np.concatenate([np.full(4, 50.0), np.full(14, 1.0), np.full(22, 0.05)]),
    "heavy tail": 10.0 / np.arange(1, 61) ** 2,
    "one direction": np.concatenate([np.full(1, 20.0), np.full(19, 0.5)]),
}
"""Eigenvalues of the gaussian tables: :func:`polariscope.analysis.theory.linear_size` has their answers."""

CHOSEN_ON, UNSEEN, NEW = "chosen on", "unseen", "new"

PANEL = (
    Entry("gaussian, equal", CHOSEN_ON, gaussian(SPECTRA["equal"]), around=10, net="linear"),
    Entry("gaussian, power law", CHOSEN_ON, gaussian(SPECTRA["power law"]), net="linear"),
    Entry("digits", CHOSEN_ON, table("load_digits"), around=15),
    Entry("MNIST", CHOSEN_ON, idx("mnist"), folder="mnist", around=11),
    Entry("sprites 32", CHOSEN_ON, rendered("sprites", 32), around=6),
    Entry("shapes3d 32", CHOSEN_ON, rendered("shapes3d", 32), around=8),
    Entry("gaussian, decay", UNSEEN, gaussian(SPECTRA["decay"]), net="linear"),
    Entry("gaussian, steps", UNSEEN, gaussian(SPECTRA["steps"]), around=9, net="linear"),
    Entry("breast cancer", UNSEEN, table("load_breast_cancer"), around=7),
    Entry("wine", UNSEEN, table("load_wine"), around=3),
    Entry("Fashion-MNIST", UNSEEN, idx("fashion-mnist"), folder="fashion", around=10),
    Entry("sprites 64", UNSEEN, rendered("sprites", 64), around=10),
    Entry("noisy sprites 32", UNSEEN, rendered("sprites", 32, {"name": "noisy"}), around=5),
    Entry("solids 32", UNSEEN, rendered("solids", 32), around=5),
    Entry("gaussian, ramp", NEW, gaussian(SPECTRA["ramp"]), net="linear"),
    Entry("gaussian, two scales", NEW, gaussian(SPECTRA["two scales"]), net="linear"),
    Entry("gaussian, heavy tail", NEW, gaussian(SPECTRA["heavy tail"]), net="linear"),
    Entry("gaussian, one direction", NEW, gaussian(SPECTRA["one direction"]), net="linear"),
    Entry("diabetes", NEW, table("load_diabetes"), around=4),
    Entry("iris", NEW, table("load_iris"), around=2),
    Entry("norb 32", NEW, rendered("norb", 32), around=8),
    Entry("cars 32", NEW, rendered("cars", 32), around=6),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which entries, and where files are."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries, all where none is named")
    for name in ("mnist", "fashion"):
        parser.add_argument(f"--{name}", type=Path, help="folder of its IDX files")


def asked_for(options: argparse.Namespace) -> list[tuple[Entry, Path]]:
    """The entries to run, each with the folder of its files; what is left out is said."""
    known = {entry.name: entry for entry in PANEL}
    for name in options.names:
        if name not in known:
            raise SystemExit(f"no entry {name!r}; there are {', '.join(known)}")
    found = []
    for entry in PANEL:
        if options.names and entry.name not in options.names:
            continue
        folder = None if entry.folder is None else getattr(options, entry.folder)
        if entry.folder is not None and folder is None:
            print(f"{entry.name} is left out: give --{entry.folder} FOLDER")
            continue
        found.append((entry, folder or Path()))
    return found
