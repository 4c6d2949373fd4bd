"""What is chosen for the user is said, and what the user chose is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import polariscope as ps
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.training.plan import plan

TABLE = np.random.default_rng(0).normal(size=(200, 5))
COLOUR = np.random.default_rng(0).integers(256, size=(20, 32, 32, 3)).astype(np.uint8)
LEARNED = "decoder variance learned, one for all values (initially 0.1, at least 0.0001)"
ROOT = float(np.sqrt(TABLE.var(axis=0).mean()))
CENTRED = f"table centred and divided by {ROOT:.3g}, the root of its mean feature variance"
PACE: dict[str, Any] = {"learning_rate": 1e-3, "batch_size": 64, "steps": 2000}
PLANNED = "learning rate 0.001, batch size 64, 2,000 steps"
MLP = "net mlp with hidden layers of 16 and 16 units"
GAUSSIAN = "likelihood gaussian (values are not limited to [0, 1])"
BERNOULLI = "likelihood bernoulli (values lie in [0, 1])"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (CENTRED, MLP, GAUSSIAN, LEARNED)),
        ({"net": "linear"}, (CENTRED, GAUSSIAN, LEARNED)),
        ({"net": "linear", "likelihood": "gaussian"}, (CENTRED, LEARNED)),
        ({"net": "linear", "likelihood": "gaussian", "variance": 0.1}, (CENTRED,)),
        ({"net": "linear", "variance": 0.1}, (CENTRED, GAUSSIAN)),
        ({"net": "linear", "likelihood": {"name": "gaussian", "variance": 0.1}}, (CENTRED,)),
        ({"net": "linear", "likelihood": GaussianLikelihood(), "keep_units": True}, ()),
        ({"net": "linear", "likelihood": GaussianLikelihood(), "standardise": True}, ()),
        (
            {"objective": "ae", "net": "linear", "variance": 1.0},
            (CENTRED, "posterior deterministic (the objective's)", GAUSSIAN),
        ),
    ],
)
def test_only_what_was_left_open_is_announced(options: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert plan(TABLE, **options, **PACE).chosen == expected


def test_how_images_are_read_is_announced_unless_it_was_said() -> None:
    pace = "learning rate 0.0001, batch size 64, 20,000 steps"
    read = ("channels last (3)", "bytes divided by 255")
    assert plan(COLOUR).chosen == (*read, "net conv", BERNOULLI, pace)
    assert plan(np.moveaxis(COLOUR, 3, 1)).chosen[0] == "channels first (3)"
    said = ps.from_arrays(COLOUR, layout="channels-last", white=255)
    assert plan(said, net="conv", likelihood="bernoulli", **PACE).chosen == ()
    black_and_white = (COLOUR[..., 0] > 127).astype(np.uint8)
    assert "bytes 0 and 1 are black and white" in plan(black_and_white).chosen
    assert ps.from_arrays(COLOUR[..., 0] / 255).choices == ()


def test_resizing_and_channels_of_a_folder_are_announced(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30)).save(tmp_path / "one.png")
    assert ps.from_folder(tmp_path).choices == (
        "images of their own size, 30×40 pixels",
        "3 channels",
    )
    small = ps.from_folder(tmp_path, image_size=32, mode="crop", channels=1)
    assert small.choices == ("images resized to 32×32 pixels, cropped to squares", "1 channel")


def test_choices_are_kept_with_the_settings_and_do_not_change_the_hash() -> None:
    record = plan(TABLE).describe("cpu")
    assert tuple(record["chosen"][:-1]) == (CENTRED, MLP, GAUSSIAN, LEARNED, PLANNED)
    assert record["chosen"][-1].split()[0] == str(record["environment"]["threads"])
    model = record["model"]
    explicit = plan(TABLE, net=model["net"], likelihood=model["likelihood"], **PACE).describe("cpu")
    assert explicit["chosen"] == [CENTRED, *record["chosen"][-1:]]
    assert explicit["hash"] == record["hash"]


def test_the_estimator_says_what_it_chose() -> None:
    chosen = ps.VAE(n_latents=2, steps=5, variables="all").fit(TABLE).chosen_
    assert chosen == plan(TABLE, steps=5).chosen
    assert chosen == (CENTRED, MLP, GAUSSIAN, LEARNED, "learning rate 0.001, batch size 64")
    given = (
        ps.VAE(n_latents=2, steps=5, variables="all", net="linear", options={"variance": 0.2})
        .fit(TABLE)
        .chosen_
    )
    assert given == (CENTRED, GAUSSIAN, "learning rate 0.01, batch size 64")
    images = ps.VAE(n_latents=2, steps=5, variables="all").fit(COLOUR).chosen_
    pace = "learning rate 0.003, batch size 128"
    assert images == ("channels last", "bytes divided by 255", "net conv", BERNOULLI, pace)


def test_images_of_any_size_from_16_pixels_get_convolutions_and_smaller_ones_are_announced() -> None:
    assert "net conv" in plan(np.zeros((20, 28, 28), np.uint8)).chosen
    assert "net conv" in plan(np.zeros((20, 16, 45), np.uint8)).chosen
    reason = f"{MLP} (images below 16 pixels are too small for conv)"
    assert reason in plan(np.zeros((20, 15, 45), np.uint8)).chosen
