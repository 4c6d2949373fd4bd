"""The thirteen objects of real libraries with which the adapters are tested.

Each builder returns an object, the data it takes, and a function that builds another one with another seed. Models are
small and hardly trained: the tests compare numbers, not quality.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import torch
from torch import nn

import polariscope as ps

N, WIDTH, N_LATENTS = 300, 12, 3
RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 3, size=(N, 2))
ROWS = (FACTORS @ RNG.normal(size=(2, WIDTH)) + 0.3 * RNG.normal(size=(N, WIDTH))).astype(np.float32)
IMAGES = RNG.random(size=(120, 3, 16, 16)).astype(np.float32)


@dataclasses.dataclass
class Item:
    """An object of a library, and the data it takes."""

    thing: Any
    data: Any
    again: Callable[[], Any]
    """Builds another object of the same kind."""


def rows() -> Any:
    return ps.from_arrays(ROWS, FACTORS, factor_names=["first", "second"])


def images() -> Any:
    classes = (IMAGES.mean(axis=(1, 2, 3)) > IMAGES.mean()).astype(int)
    return ps.from_arrays(IMAGES, classes, factor_names=["bright"])


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.mu, self.log_var = (
            nn.Linear(WIDTH, 8),
            nn.Linear(8, N_LATENTS),
            nn.Linear(8, N_LATENTS),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.tanh(self.body(x))
        return self.mu(hidden), self.log_var(hidden) - 2


def decoder() -> nn.Module:
    return nn.Sequential(nn.Linear(N_LATENTS, 8), nn.Tanh(), nn.Linear(8, WIDTH))


class Whole(nn.Module):
    """As in the repository PyTorch-VAE: encode, decode, and a forward pass that also returns its input."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder_net = Encoder(), decoder()

    def encode(self, x: torch.Tensor) -> list[torch.Tensor]:
        return list(self.encoder(x))

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        return self.decoder_net(z)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        mu, log_var = self.encode(x)
        z = mu + torch.exp(log_var / 2) * torch.randn_like(mu)
        return [self.decode(z), x, mu, log_var]


def pytorch_vae(folder: Path) -> Item:
    torch.manual_seed(0)
    return Item(Whole(), rows(), Whole)


def pythae_model(folder: Path) -> Item:
    from pythae.models import VAE, VAEConfig

    def build() -> Any:
        return VAE(VAEConfig(input_dim=(WIDTH,), latent_dim=N_LATENTS, reconstruction_loss="mse"))

    torch.manual_seed(0)
    return Item(build(), rows(), build)


def pythae_folder(folder: Path) -> Item:
    item = pythae_model(folder)
    path = folder / "pythae"
    item.thing.save(str(path))
    return Item(path, item.data, lambda: path)


def _autoencoder_kl() -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(8, 8, 8),
        down_block_types=("DownEncoderBlock2D",) * 3,
        up_block_types=("UpDecoderBlock2D",) * 3,
        latent_channels=2,
        norm_num_groups=4,
        sample_size=16,
    ).eval()


def diffusers_model(folder: Path) -> Item:
    torch.manual_seed(0)
    return Item(_autoencoder_kl(), images(), _autoencoder_kl)


def diffusers_folder(folder: Path) -> Item:
    item = diffusers_model(folder)
    paths = [folder / "diffusers", folder / "diffusers-again"]
    item.thing.save_pretrained(paths[0])
    _autoencoder_kl().save_pretrained(paths[1])
    return Item(paths[0], item.data, lambda: paths[1])


def _lightning() -> Any:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = Encoder(), decoder()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            mu, log_var = self.encoder(batch[0])
            z = mu + torch.exp(log_var / 2) * torch.randn_like(mu)
            return ((self.decoder(z) - batch[0]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 1e-3)

    return Module()


def lightning_module(folder: Path) -> Item:
    torch.manual_seed(0)
    return Item(_lightning(), rows(), _lightning)


def lightning_checkpoint(folder: Path) -> Item:
    import lightning

    item = lightning_module(folder)
    trainer = lightning.Trainer(
        max_steps=1, logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
        enable_checkpointing=False, default_root_dir=folder,
    )  # fmt: skip
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(ROWS)), 50)
    trainer.fit(item.thing, batches)
    path = folder / "model.ckpt"
    trainer.save_checkpoint(path)
    return Item(path, item.data, lambda: path)


def _cells() -> Any:
    import anndata
    import pandas

    kinds = FACTORS[:, 0]
    rates = np.exp(RNG.normal(size=(3, 20)))[kinds] * 5
    counts = np.random.default_rng(1).poisson(rates).astype(np.float32)
    obs = pandas.DataFrame(
        {"kind": pandas.Categorical([f"kind-{kind}" for kind in kinds]),
         "batch": pandas.Categorical([f"batch-{each}" for each in FACTORS[:, 1]])},
        index=[f"cell-{number}" for number in range(N)],
    )  # fmt: skip
    return anndata.AnnData(counts, obs=obs)


def _single_cell(build: Callable[[Any], Any]) -> Item:
    cells = _cells()

    def train() -> Any:
        model = build(cells)
        model.train(max_epochs=2, enable_progress_bar=False, accelerator="cpu")
        return model

    torch.manual_seed(0)
    return Item(train(), cells, train)


def scvi_model(folder: Path) -> Item:
    import scvi

    def build(cells: Any) -> Any:
        scvi.model.SCVI.setup_anndata(cells, batch_key="batch")
        return scvi.model.SCVI(cells, n_latent=N_LATENTS, n_hidden=16)

    return _single_cell(build)


def drvi_model(folder: Path) -> Item:
    from drvi.model import DRVI

    def build(cells: Any) -> Any:
        DRVI.setup_anndata(cells, is_count_data=True)
        return DRVI(cells, n_latent=4, encoder_dims=[16], decoder_dims=[16])

    return _single_cell(build)


def _onnx_file(path: Path) -> Path:
    torch.onnx.export(
        Encoder().eval(), (torch.zeros(2, WIDTH),), path, input_names=["x"], output_names=["mu", "log_var"],
        dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1)}}, verbose=False,
    )  # fmt: skip
    return path


def onnx_file(folder: Path) -> Item:
    torch.manual_seed(0)
    return Item(_onnx_file(folder / "model.onnx"), rows(), lambda: _onnx_file(folder / "again.onnx"))


def onnx_session(folder: Path) -> Item:
    import onnxruntime

    torch.manual_seed(0)

    def build(name: str = "session-again.onnx") -> Any:
        return onnxruntime.InferenceSession(_onnx_file(folder / name))

    return Item(build("session.onnx"), rows(), build)


def _keras() -> Any:
    import keras

    class Model(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            x = keras.Input((WIDTH,))
            hidden = keras.layers.Dense(8, "tanh")(x)
            mean = keras.layers.Dense(N_LATENTS, name="z_mean")(hidden)
            log_var = keras.layers.Dense(N_LATENTS, name="z_log_var")(hidden)
            z = keras.layers.Lambda(
                lambda parts: parts[0] + keras.ops.exp(parts[1] / 2) * keras.random.normal((1, N_LATENTS)),
                name="z",
            )([mean, log_var])
            self.encoder = keras.Model(x, [mean, log_var, mean + 0 * z])
            code = keras.Input((N_LATENTS,))
            self.decoder = keras.Model(code, keras.layers.Dense(WIDTH)(keras.layers.Dense(8, "tanh")(code)))

        def call(self, x: Any) -> Any:
            return self.decoder(self.encoder(x)[0])

    return Model()


def keras_model(folder: Path) -> Item:
    torch.manual_seed(0)
    return Item(_keras(), rows(), _keras)


def skorch_net(folder: Path) -> Item:
    from skorch import NeuralNet

    def build() -> Any:
        return NeuralNet(Whole, criterion=nn.MSELoss, verbose=0).initialize()

    torch.manual_seed(0)
    return Item(build(), rows(), build)


ITEMS: dict[str, tuple[Callable[[Path], Item], str]] = {
    "pythae model": (pythae_model, "pythae"),
    "pythae folder": (pythae_folder, "pythae"),
    "diffusers AutoencoderKL": (diffusers_model, "diffusers"),
    "diffusers folder": (diffusers_folder, "diffusers"),
    "Lightning module": (lightning_module, "lightning"),
    "Lightning .ckpt": (lightning_checkpoint, "lightning"),
    "PyTorch-VAE module": (pytorch_vae, "torch"),
    "scvi-tools SCVI": (scvi_model, "scvi"),
    "DRVI": (drvi_model, "drvi"),
    "ONNX file": (onnx_file, "onnxruntime"),
    "ONNX session": (onnx_session, "onnxruntime"),
    "Keras VAE": (keras_model, "keras"),
    "skorch net": (skorch_net, "skorch"),
}
"""Builder of each object, and the library that it requires."""
REFUSED = ("pythae folder", "Lightning .ckpt")
"""Objects that contain pickles: they are refused with the way to pass the model."""
