"""Are our ``sprites`` drawn as dSprites? Against its pictures, and in the eyes of models trained on the original.

python benchmarks/originals/sprites.py MODELS ORIGINALS [--samples 10000] [--out runs/sprites]

MODELS holds five dSprites VAEs of YannDubs/disentangling-vae as safetensors, with models.json, as for
``public_models.py``. ORIGINALS holds ``dsprites.gif`` (64 × 64, one factor moving after the other, from
google-deepmind/dsprites-dataset) and ``dsprites_samples.png`` (10 × 10 original images, from the models' repository).
Compares frame by frame with the animation; the KLs of the first squares with the models' own log; and the models'
reconstruction (−log p at the posterior mean, nats per image) of random sprites with that of the hundred originals.
The measures of the drawing were fitted to the animation, so only the models are an independent check.
Prints what is wanted, what came out and whether it holds, writes results.json, and exits with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from PIL import Image, ImageSequence
from public_models import open_model
from rich.console import Console
from rich.table import Table
from torch import Tensor

import polariscope as ps
from polariscope.core import files
from polariscope.core.parsing import read_json

SHAPES = ("square", "ellipse", "heart")
FIRST_FRAME = {"heart": 0, "ellipse": 192, "square": 256}
"""Of each shape in the animation: six scales; from 18 frames on, 40 orientations; hearts then move along the border."""
LOG_BATCHES = 738
"""The models' log is that of the first batch of 1,000 images, divided by the number of batches."""
IOU_WANTED, KL_TOLERANCE, RECONSTRUCTION_TOLERANCE = 0.95, 0.03, 0.15


def poses_of_frames() -> tuple[Int[np.ndarray, " frame"], Int[np.ndarray, "frame 5"]]:
    """Frames of the animation whose factors are plain to see, and these factors."""
    pairs: list[tuple[int, list[int]]] = []
    for kind, name in enumerate(SHAPES):
        first = FIRST_FRAME[name]
        pairs += [(first + scale, [kind, scale, 0, 0, 0]) for scale in range(6)]
        pairs += [(first + 18 + turn, [kind, 5, turn, 0, 0]) for turn in range(40)]
    for step in range(32):
        pairs += [(58 + step, [2, 5, 0, 0, step]), (90 + step, [2, 5, 0, step, 31])]
        pairs += [(122 + step, [2, 5, 0, 31, 31 - step]), (154 + step, [2, 5, 0, 31 - step, 0])]
    return np.array([frame for frame, _ in pairs]), np.array([pose for _, pose in pairs])


def read_frames(path: Path) -> Bool[np.ndarray, "frame height width"]:
    """All frames of an animation, as white or not."""
    with Image.open(path) as animation:
        return np.stack([np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(animation)]) > 127


def read_sheet(path: Path) -> Float[np.ndarray, "sample 1 height width"]:
    """The hundred images of the sheet, as zeros and ones."""
    with Image.open(path) as picture:
        sheet = np.asarray(picture.convert("L")) > 127
    starts = [2 + 66 * k for k in range(10)]
    cells = [sheet[row : row + 64, column : column + 64] for row in starts for column in starts]
    return np.stack(cells)[:, np.newaxis].astype(np.float32)


def kl(model: Any, x: Float[np.ndarray, "sample 1 height width"]) -> float:
    """Mean over images of the KLs' sum, in nats."""
    with torch.inference_mode():
        mean, log_variance = model.encoder(torch.from_numpy(x))
        return float((mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2)


def reconstruction(model: Any, x: Float[np.ndarray, "sample 1 height width"]) -> float:
    """Mean over images of −log p(x|z) at the posterior mean, in nats."""
    total = 0.0
    with torch.inference_mode():
        for part in torch.from_numpy(x).split(500):
            decoded: Tensor = model.decoder(model.encoder(part)[0])
            total += float(torch.nn.functional.binary_cross_entropy(decoded, part, reduction="sum"))
    return total / len(x)


def against_frames(data: Any, frames: Bool[np.ndarray, "frame height width"]) -> list[dict[str, Any]]:
    """Squares and ellipses pixel for pixel, hearts by their overlap; upright in all scales, then all frames."""
    numbers, poses = poses_of_frames()
    ours, theirs = data.images(data.index_of(poses))[:, 0] > 0, frames[numbers]
    wrong = (ours ^ theirs).sum((1, 2))
    iou = (ours & theirs).sum((1, 2)) / (ours | theirs).sum((1, 2))
    upright = numbers - np.array([FIRST_FRAME[SHAPES[kind]] for kind in poses[:, 0]]) < 6
    rows = []
    for words, chosen in (("upright", upright), ("turned or moved", ~upright)):
        for kind, name in enumerate(SHAPES):
            members = chosen & (poses[:, 0] == kind)
            what = f"{words} {name}s, {members.sum()} frames"
            if name == "heart":
                least = float(iou[members].min())
                rows.append(row(f"{what}: smallest IoU", f"≥ {IOU_WANTED}", least, least >= IOU_WANTED))
            else:
                n_wrong = int(wrong[members].sum())
                rows.append(row(f"{what}: wrong pixels", "0", n_wrong, n_wrong == 0))
    return rows


def against_model(
    name: str, model: Any, log: dict[str, float], data: Any, sheet: Any, sprites: Any
) -> list[dict[str, Any]]:
    """The log's KL on the first squares, and the reconstruction of originals, both with our images."""
    logged = LOG_BATCHES * log["kl_loss"]
    rows = []
    # The loss of FactorVAE halves its batch and is logged on the first half, so its log is of 500 images.
    for n_squares in (1000, 500) if name.startswith("factor") else (1000,):
        found = kl(model, data.values(np.arange(n_squares)))
        holds = abs(found / logged - 1) <= KL_TOLERANCE
        rows.append(row(f"{name}: KL of the first {n_squares} squares", f"{logged:.4f} ± 3 %", found, holds))
    original, ours = reconstruction(model, sheet), reconstruction(model, sprites)
    holds = abs(ours / original - 1) <= RECONSTRUCTION_TOLERANCE
    rows.append(row(f"{name}: reconstruction", f"{original:.1f} ± 15 %", ours, holds))
    return rows


def row(what: str, wanted: str, found: float, holds: bool) -> dict[str, Any]:
    """One line of the table."""
    return {"what": what, "wanted": wanted, "found": found, "holds": bool(holds)}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Make every comparison; the rows of the table, and whether all hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path)
    parser.add_argument("originals", type=Path)
    parser.add_argument("--samples", type=int, default=10_000, help="random sprites that models reconstruct")
    parser.add_argument("--out", type=Path, default=Path("runs/sprites"))
    given = parser.parse_args(arguments)
    data = ps.load_dataset("sprites", image_size=64)
    rows = against_frames(data, read_frames(given.originals / "dsprites.gif"))
    sheet = read_sheet(given.originals / "dsprites_samples.png")
    sprites = data.values(np.random.default_rng(0).integers(len(data), size=given.samples))
    known = read_json(given.models / "models.json")
    for name in sorted(name for name in known if name.endswith("_dsprites")):
        model = open_model(given.models, name, known[name]["settings"])
        rows += against_model(name, model, known[name]["their_test_log"], data, sheet, sprites)
    table = Table("what", "wanted", "found", "holds")
    for each in rows:
        table.add_row(each["what"], each["wanted"], f"{each['found']:.6g}", "yes" if each["holds"] else "NO")
    Console().print(table)
    results = {"rows": rows, "holds": all(each["holds"] for each in rows)}
    files.write_json(given.out / "results.json", results)
    return results


if __name__ == "__main__":
    sys.exit(0 if main()["holds"] else 1)
