"""Models that another group trained, through our eyes: same codes, the diagnosis of their README, a page for each.

python benchmarks/originals/public_models.py FOLDER [--mnist FILE.npy] [--samples 10000] [--out runs/public]

FOLDER holds ten VAEs of YannDubs/disentangling-vae as safetensors, with models.json (dSprites 64 × 64, MNIST 32 × 32).
Each is built as plain PyTorch modules, wrapped with ``polariscope.wrap``, and looked at on ``sprites`` of 64 pixels or
on images of digits: those in FILE.npy, (n, 28, 28) or (n, 32, 32) bytes, or else scikit-learn's 8 × 8 digits enlarged,
which MNIST models have never seen. Checks that the codes are those of a direct computation to 1e-5, prints the types
beside those of the README, and writes results.json and a page for each model.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file
from sklearn.datasets import load_digits
from torch import Tensor, nn

import polariscope as ps
from polariscope.core import files
from polariscope.core.parsing import read_json

README = {
    "VAE_dsprites": (6, 4, 0),
    "betaH_dsprites": (4, 6, 0),
    "betaB_dsprites": (4, 0, 6),
    "btcvae_dsprites": (5, 0, 5),
    "factor_dsprites": (6, 3, 1),
}
"""Active, mixed and passive latents as the README of the models has them, on 10,000 sprites of our first drawing.
On the present one VAE has 7, 3, 0 and betaH 5, 5, 0; the others are the same."""
TOLERANCE = 1e-5


class BurgessEncoder(nn.Module):
    """Strided convolutions and two dense layers; mean and log-variance come interleaved."""

    def __init__(self, size: int, channels: int, n_latents: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 4, 2, 1)
        self.conv2 = nn.Conv2d(32, 32, 4, 2, 1)
        self.conv3 = nn.Conv2d(32, 32, 4, 2, 1)
        self.conv_64 = nn.Conv2d(32, 32, 4, 2, 1) if size == 64 else None
        self.lin1 = nn.Linear(512, 256)
        self.lin2 = nn.Linear(256, 256)
        self.mu_logvar_gen = nn.Linear(256, 2 * n_latents)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for layer in (self.conv1, self.conv2, self.conv3, self.conv_64):
            x = x if layer is None else torch.relu(layer(x))
        x = torch.relu(self.lin2(torch.relu(self.lin1(x.flatten(1)))))
        mean, log_variance = self.mu_logvar_gen(x).reshape(len(x), -1, 2).unbind(-1)
        return mean, log_variance


class BurgessDecoder(nn.Module):
    """Three dense layers and transposed convolutions; outputs are probabilities."""

    def __init__(self, size: int, channels: int, n_latents: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(n_latents, 256)
        self.lin2 = nn.Linear(256, 256)
        self.lin3 = nn.Linear(256, 512)
        self.convT_64 = nn.ConvTranspose2d(32, 32, 4, 2, 1) if size == 64 else None
        self.convT1 = nn.ConvTranspose2d(32, 32, 4, 2, 1)
        self.convT2 = nn.ConvTranspose2d(32, 32, 4, 2, 1)
        self.convT3 = nn.ConvTranspose2d(32, channels, 4, 2, 1)

    def forward(self, z: Tensor) -> Tensor:
        x = torch.relu(self.lin3(torch.relu(self.lin2(torch.relu(self.lin1(z))))))
        x = x.reshape(len(x), 32, 4, 4)
        for layer in (self.convT_64, self.convT1, self.convT2):
            x = x if layer is None else torch.relu(layer(x))
        return torch.sigmoid(self.convT3(x))


def open_model(folder: Path, name: str, settings: dict[str, Any]) -> Any:
    """One of the models, wrapped."""
    channels, size, _ = settings["img_size"]
    tensors = load_file(folder / f"{name}.safetensors")
    parts = []
    for part, kind in (("encoder", BurgessEncoder), ("decoder", BurgessDecoder)):
        module = kind(size, channels, settings["latent_dim"])
        own = {key.removeprefix(f"{part}."): value for key, value in tensors.items() if key.startswith(part)}
        module.load_state_dict(own)
        parts.append(module.eval())
    return ps.wrap(*parts, likelihood="bernoulli", shape=settings["img_size"], name=name)


def images_for(name: str, mnist: Path | None) -> Any:
    """What a model is looked at with."""
    if name.endswith("dsprites"):
        return ps.load_dataset("sprites", image_size=64)
    pictures = load_digits().images * (255 / 16) if mnist is None else np.load(mnist)
    resized = [
        np.asarray(Image.fromarray(picture.astype(np.uint8)).resize((32, 32), Image.Resampling.BILINEAR))
        for picture in pictures
    ]
    return ps.from_arrays(np.stack(resized)[:, None])


def largest_difference(model: Any, rep: ps.Representation, data: Any, n_checked: int = 1000) -> float:
    """Between our codes and those of the bare encoder, applied in one go."""
    assert rep.indices is not None
    indices = rep.indices[:n_checked]
    with torch.inference_mode():
        mean, log_variance = model.encoder(torch.from_numpy(data.values(indices)))
    gaps = [np.abs(rep.mean[:n_checked] - mean.numpy()).max()]
    gaps.append(np.abs(rep.variance[:n_checked] - torch.exp(log_variance).numpy()).max())
    return float(max(gaps))


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Look at every model of the folder; the results by name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mnist", type=Path, default=None)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("runs/public"))
    parser.add_argument("--only", nargs="*", default=None, help="names of models; all by default")
    given = parser.parse_args(arguments)
    known = read_json(given.folder / "models.json")
    results: dict[str, Any] = {}
    table = Table("model", "active, mixed, passive", "README", "largest difference", "TC mean", "TC sampled")
    for name in given.only or sorted(known):
        model, data = open_model(given.folder, name, known[name]["settings"]), images_for(name, given.mnist)
        rep = ps.encode(model, data, n_samples=given.samples)
        regime = ps.diagnose(rep)
        page = ps.report(model, data, out=given.out / f"{name}.html", n_samples=given.samples)
        counts = tuple(regime.counts[kind] for kind in ("active", "mixed", "passive"))
        gap = largest_difference(model, rep, data)
        results[name] = {
            "counts": counts,
            "readme": README.get(name),
            "largest_difference": gap,
            "same_codes": gap <= TOLERANCE,
            "total_correlation": [regime.mean.total_correlation, regime.sampled.total_correlation],
            "page": page.name,
        }
        expected = README.get(name)
        table.add_row(
            name,
            ", ".join(map(str, counts)),
            "–" if expected is None else ", ".join(map(str, expected)),
            f"{gap:.1e}",
            f"{regime.mean.total_correlation:.3f}",
            f"{regime.sampled.total_correlation:.3f}",
        )
    Console().print(table)
    files.write_json(given.out / "results.json", results)
    return results


if __name__ == "__main__":
    main()
