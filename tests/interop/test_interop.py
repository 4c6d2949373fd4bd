"""Models of the real libraries; ``make interop`` runs these tests. Libraries that are not installed are skipped."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from objects import ITEMS, REFUSED, ROWS, Encoder, Item, _onnx_file, rows
from table import FUNCTIONS, cell

import polariscope as ps

pytestmark = pytest.mark.filterwarnings("ignore")
WITHOUT_DECODER = ("ONNX file", "ONNX session")


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Item]:
    return {}


@pytest.fixture(params=ITEMS)
def named(
    request: pytest.FixtureRequest, items: dict[str, Item], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Item]:
    build, library = ITEMS[request.param]
    # Only torch is installed for the other tests, and a module of torch is tested there.
    pytest.importorskip("pythae" if library == "torch" else library)
    if request.param not in items:
        items[request.param] = build(tmp_path_factory.mktemp("item"))
    return request.param, items[request.param]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_cell_works_or_is_refused_with_a_message(
    named: tuple[str, Item], function: str, tmp_path: Path
) -> None:
    name, item = named
    found = cell(FUNCTIONS[function], item, tmp_path)
    if name in REFUSED:
        assert "pickle" in found
        assert "pass the model object" in found
    elif name in WITHOUT_DECODER and function == "geometry":
        assert found == "model must have a decoder, but this one has none."
    else:
        assert found == "works"


def test_codes_of_single_cells_are_those_of_the_library() -> None:
    for name, library in (("scvi-tools SCVI", "scvi"), ("DRVI", "drvi")):
        pytest.importorskip(library)
        item = ITEMS[name][0](Path())
        rep = ps.encode(item.thing, item.data, n_samples=None)
        np.testing.assert_allclose(rep.mean, item.thing.get_latent_representation(item.data), atol=1e-5)


def test_an_exported_encoder_has_the_diagnosis_of_the_module(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    file = _onnx_file(tmp_path / "model.onnx")
    torch.manual_seed(0)
    mine, theirs = ps.encode(Encoder(), rows()), ps.encode(file, rows())
    for part in ("mean", "variance", "rate"):
        np.testing.assert_allclose(getattr(theirs, part), getattr(mine, part), rtol=1e-5, atol=1e-5)
    assert ps.diagnose(theirs).types == ps.diagnose(mine).types
    assert ps.diagnose(theirs).trace == pytest.approx(ps.diagnose(mine).trace, abs=1e-5)


def test_plain_and_quantised_autoencoders_of_pythae_have_no_rate() -> None:
    pythae = pytest.importorskip("pythae.models")
    config = pythae.AEConfig(input_dim=(ROWS.shape[1],), latent_dim=3)
    quantised = pythae.VQVAEConfig(input_dim=(ROWS.shape[1],), latent_dim=3)
    for model in (pythae.AE(config), pythae.VQVAE(quantised)):
        rep = ps.encode(model, ROWS)
        assert rep.rate is None
