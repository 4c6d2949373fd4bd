"""Variants on the command line."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from polariscope.storage.documents import read_settings


@pytest.fixture
def rows(elsewhere):
    values = np.random.default_rng(0).normal([0, 50, -300], [1, 3, 50], size=(200, 3))
    np.savez("rows.npz", X=values)
    return values


def test_info_shows_the_variants_and_how_to_look_at_them(call):
    done = call("data info sprites --image-size 16 --variant colour --variant subset:n=100,shape=0")
    assert done.code == 0
    assert "100 observations of 16×16 pixels, 3 channels." in done.out
    words = " ".join(done.out.split())
    assert "Variants: colour (seed = 0), subset (n = 100, seed = 0, where = shape=0)" in words
    assert (
        "polariscope data preview sprites --image-size 16 --variant colour --variant subset:n=100,shape=0"
        in words
    )


def test_preview_draws_what_the_network_will_see(call):
    assert call("data preview sprites --image-size 16 --samples 9 --variant inverted").code == 0
    sheet = np.asarray(Image.open("sprites-inverted.png"))
    assert (sheet == 255).mean() > 0.5


def test_training_records_them_and_resuming_refuses_others(call):
    line = "train sprites --image-size 16 --net linear --latents 2 --steps 2 --out run --variant subset:n=200,seed=1"
    assert call(line, "--variant grey").code == 0
    record = read_settings("run")["data"]
    assert [each["name"] for each in record["variants"]] == ["subset", "grey"]
    assert record["variants"][0]["n"] == 200
    assert call("diagnose run").code == 0
    again = call(line)
    assert again.code == 2
    assert "variants" in again.err


def test_standardise_and_scale_are_shorthands(call, rows):
    line = "train arrays:rows.npz --net linear --latents 2 --steps 2"
    assert call(line, "--standardise --out a").code == 0
    standardised = read_settings("a")["data"]["variants"][0]
    np.testing.assert_allclose(standardised["mean"], rows.astype(np.float32).mean(axis=0), rtol=1e-5)
    assert read_settings("a")["model"]["likelihood"]["name"] == "gaussian"
    assert call(line, "--scale --out b").code == 0
    assert read_settings("b")["model"]["likelihood"]["name"] == "bernoulli"
    assert call("diagnose a").code == 0


def test_the_scale_of_a_prior_carries_its_part(call):
    words = " ".join(call("train --help-all").out.split())
    assert "--scale Scale every feature of a table to [0, 1]." in words
    assert "--prior-scale Standard deviation" in words


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--variant color", "no variant named 'color'; there are .* Did you mean 'colour'?"),
        ("--variant colour:sed=1", "Did you mean 'seed'?"),
        ("--variant colour:seed", "--variant must be NAME or NAME:OPTION=VALUE"),
        ("--variant cropped:image-size=99", "a crop of 99 × 99 pixels does not lie in images of 16 × 16"),
        ("--variant subset:n=9999999", "be at most 737280"),
        ("--standardise", "variant 'standardised' applies to rows"),
        ("--standardise --scale", "--standardise and --scale both rescale"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_trained(call, flags, message, elsewhere):
    import re

    done = call("train sprites --image-size 16 --steps 2 --out run", flags)
    assert done.code == 2
    assert re.search(message, " ".join(done.err.split()))
    assert not (elsewhere / "run").exists()


def test_size_tells_to_standardise_and_passes_the_variants_on(call, rows):
    refused = call("size arrays:rows.npz --keep-units")
    assert refused.code == 2
    assert "--standardise" in refused.err
    done = call("size arrays:rows.npz --standardise --method id")
    assert done.code == 0
    assert "polariscope train arrays:rows.npz --standardise" in " ".join(done.out.split())


def test_variants_are_listed_with_their_options(call):
    printed = " ".join(call("list variants").out.split())
    assert "pixel-noise" in printed
    assert "--variant subset:n=50000,seed=1" in printed
    assert "epsilon" in call("list variants pixel-noise").out
