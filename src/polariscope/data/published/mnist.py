"""The original MNIST dataset."""

from __future__ import annotations

import dataclasses

from polariscope.data.dataset import dataset
from polariscope.data.originals import Gigabytes
from polariscope.data.published.support.idx import AbstractIdxDataset, idx_files


@dataset("mnist")
@dataclasses.dataclass(frozen=True)
class MNISTDataset(AbstractIdxDataset):
    """MNIST from its IDX files: handwritten digits.

    70,000 grey images of 28 × 28 pixels, the 60,000 training images before the 10,000 test images. The factor is the
    digit. The four files can be gzipped. They are unpacked once into the cache folder: 55 MB.

    Reference: lecun1998.
    """

    path: str | None = None
    """Folder of the four files; None for the cache folder."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes of a file after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("digit",)
    factor_sizes = (10,)
    factor_kinds = ("categorical",)
    originals = idx_files(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        (
            *("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
            *("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        (
            *("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
            *("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
        ),
    )
    homepage = "http://yann.lecun.com/exdb/mnist/"
    licence = "CC BY-SA 3.0"
    citation = "lecun1998"
