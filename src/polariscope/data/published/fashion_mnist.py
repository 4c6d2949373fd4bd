"""The original Fashion-MNIST dataset."""

from __future__ import annotations

import dataclasses

from polariscope.data.dataset import dataset
from polariscope.data.originals import Gigabytes
from polariscope.data.published.support.idx import AbstractIdxDataset, idx_files


@dataset("fashion-mnist")
@dataclasses.dataclass(frozen=True)
class FashionMNISTDataset(AbstractIdxDataset):
    """Fashion-MNIST from its IDX files: photographs of clothes, shoes and bags.

    70,000 grey images of 28 × 28 pixels, the 60,000 training images before the 10,000 test images. The factor is the
    kind of article: T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle boot. The four files
    can be gzipped. They are unpacked once into the cache folder: 55 MB.

    Reference: xiao2017.
    """

    path: str | None = None
    """Folder of the four files; None for the cache folder."""
    max_unpacked: Gigabytes = None
    """Maximum size in gigabytes of a file after unpacking; None for 200 times the size of the file, but at least 4."""

    factor_names = ("article",)
    factor_sizes = (10,)
    factor_kinds = ("categorical",)
    originals = idx_files(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        (
            *("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"),
            *("bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        (
            *("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
            *("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
        ),
    )
    homepage = "https://github.com/zalandoresearch/fashion-mnist"
    licence = "MIT"
    citation = "xiao2017"
