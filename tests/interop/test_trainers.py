"""The trainers of docs/sizing.md, with the real libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import polariscope as ps
from doc_blocks import ROOT, blocks
from interop.objects import ROWS, WIDTH, _cells


def trainer(name: str, **names: Any) -> Callable[[int], Any]:
    """Return a function of docs/sizing.md, shortened to one epoch."""
    (block,) = (each for each in blocks(ROOT / "docs" / "sizing.md") if f"def {name}" in each.code)
    code = block.code.replace("epochs=20", "epochs=1").replace("input_dim=(1, 8, 8)", f"input_dim=({WIDTH},)")
    exec(compile(code, f"{block.page}:{block.line}", "exec"), names)
    return names[name]


def check(data: Any, function: Callable[[int], Any]) -> None:
    """Size with models of at most four latents; the answer of hardly trained models is any number."""
    from polariscope.sizing.bisection import CapError

    widths = []

    def counted(n_latents: int) -> Any:
        widths.append(n_latents)
        return function(n_latents)

    try:
        size = ps.size(data, trainer=counted, n_init=2, cap=4)
        assert [trial.n_latents for trial in size.trials] == widths
    except CapError:
        assert widths == [2, 4]  # no model had surplus latents


@pytest.mark.filterwarnings("ignore")  # those of the libraries
def test_the_pythae_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("models", "pipelines", "trainers"):
        pytest.importorskip(f"pythae.{module}")
    import pythae

    monkeypatch.chdir(tmp_path)
    check(ROWS, trainer("pythae_trainer", pythae=pythae, images=ROWS))


@pytest.mark.filterwarnings("ignore")
def test_the_lightning_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lightning = pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)

    class MyVAE(lightning.LightningModule):
        def __init__(self, n_latents: int) -> None:
            super().__init__()
            self.body, self.out = torch.nn.Linear(WIDTH, 2 * n_latents), torch.nn.Linear(n_latents, WIDTH)

        def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return self.body(x).chunk(2, dim=1)

        def decode(self, z: torch.Tensor) -> torch.Tensor:
            return self.out(z)

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            return ((self.decode(self.encode(batch[0])[0]) - batch[0]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 1e-3)

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.from_numpy(ROWS)), 50)
    check(ROWS, trainer("lightning_trainer", lightning=lightning, MyVAE=MyVAE, loader=loader))


@pytest.mark.filterwarnings("ignore")
def test_the_scvi_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scvi = pytest.importorskip("scvi")
    monkeypatch.chdir(tmp_path)
    adata = _cells()
    check(adata, trainer("scvi_trainer", scvi=scvi, adata=adata))
