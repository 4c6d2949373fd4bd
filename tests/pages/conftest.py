"""Runs small enough to be trained in seconds, one for each kind of page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from long_training import unchecked
from polariscope.data.own.arrays import ArraysDataset, from_arrays
from polariscope.data.sources import load_dataset
from polariscope.pages.record import ReportRecord, make_record
from polariscope.pages.report import report
from polariscope.training.train import train

HOSTILE = "<script>alert('latent')</script>"


@pytest.fixture(scope="session")
def image_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sprites of 16 × 16 pixels, with latents in use and passive ones."""
    run = tmp_path_factory.mktemp("runs") / "image"
    data = load_dataset("sprites", image_size=16)
    train(
        data,
        objective="beta",
        beta=3.0,
        net={"name": "mlp", "encoder_widths": (128,), "decoder_widths": (128,)},
        n_latents=6,
        steps=700,
        learning_rate=3e-3,
        log_every=50,
        validate_every=100,
        out=run,
        device="cpu",
    )
    report(run, n_samples=1000)
    return run


@pytest.fixture(scope="session")
def image_record(image_run: Path) -> ReportRecord:
    return make_record(image_run, n_samples=1000)


@pytest.fixture(scope="session")
def flat_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A linear model of Gaussian rows under a prior of standard deviation 2: flat data, two of three latents in use."""
    run = tmp_path_factory.mktemp("runs") / "flat"
    data = load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=5, n_samples=2000)
    with unchecked():
        train(
            data,
            objective="vae",
            net="linear",
            n_latents=3,
            prior_scale=2.0,
            likelihood="gaussian",
            likelihood_variance=0.2,
            keep_units=True,
            steps=3000,
            learning_rate=2e-2,
            schedule="cosine",
            log_every=250,
            validate_every=1000,
            out=run,
            device="cpu",
        )
    report(run, n_samples=1000)
    return run


@pytest.fixture(scope="session")
def flat_record(flat_run: Path) -> ReportRecord:
    return make_record(flat_run, n_samples=1000)


@pytest.fixture(scope="session")
def colour_data() -> ArraysDataset:
    """Blobs of colour in memory, with a factor whose name is an attack."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:16, :16] / 16
    colour, place = rng.random((300, 3, 1, 1)), rng.random((2, 300, 1, 1, 1))
    blobs = np.exp(-((x - place[0]) ** 2 + (y - place[1]) ** 2) / 0.05)
    images = np.round(255 * colour * blobs).astype(np.uint8)
    return from_arrays(images, (colour[:, 0, 0] > 0.5).astype(int), factor_names=[HOSTILE])


@pytest.fixture(scope="session")
def colour_run(tmp_path_factory: pytest.TempPathFactory, colour_data: ArraysDataset) -> Path:
    """One latent, which collapses, in a folder whose name is an attack too."""
    run = tmp_path_factory.mktemp("runs") / "<img src=x>"
    train(
        colour_data,
        objective="beta",
        beta=1000.0,
        net="conv",
        n_latents=1,
        steps=60,
        learning_rate=1e-3,
        log_every=20,
        validate_every=20,
        out=run,
        device="cpu",
    )
    report(run, colour_data)
    return run


@pytest.fixture(scope="session")
def conditional_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An iVAE of sprites: the prior of each observation is its own."""
    run = tmp_path_factory.mktemp("runs") / "conditional"
    train(
        load_dataset("sprites", image_size=16),
        objective="ivae",
        prior_mean="learned",
        net={"name": "mlp", "encoder_widths": (32,), "decoder_widths": (32,)},
        n_latents=4,
        steps=60,
        learning_rate=3e-3,
        log_every=20,
        validate_every=20,
        out=run,
        device="cpu",
    )
    report(run, n_samples=500)
    return run


@pytest.fixture(scope="session")
def headless_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier: no decoder, no rate, terms that are only watched, latents that nothing trains."""
    run = tmp_path_factory.mktemp("runs") / "headless"
    train(
        load_dataset("sprites", image_size=16),
        objective="classifier",
        net={"name": "mlp", "encoder_widths": (32,)},
        n_latents=3,
        steps=40,
        log_every=20,
        validate_every=20,
        out=run,
        device="cpu",
    )
    report(run, n_samples=500)
    return run


@pytest.fixture(scope="session")
def point_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An autoencoder of flat rows: a decoder, but no rate."""
    run = tmp_path_factory.mktemp("runs") / "point"
    train(
        load_dataset("gaussian", eigenvalues=(9.0, 4.0), width=4, n_samples=500),
        objective="ae",
        net="linear",
        n_latents=2,
        steps=500,
        learning_rate=2e-2,
        log_every=250,
        validate_every=250,
        out=run,
        device="cpu",
    )
    report(run, n_samples=500)
    return run


@pytest.fixture(scope="session")
def adversarial_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GAN on pairs: a term that trains the companion and is no part of the model's loss."""
    run = tmp_path_factory.mktemp("runs") / "adversarial"
    train(
        load_dataset("sprites", image_size=16),
        objective="weak-gan",
        net={"name": "mlp", "encoder_widths": (32,), "decoder_widths": (32,)},
        n_latents=5,
        steps=20,
        log_every=20,
        validate_every=20,
        out=run,
        device="cpu",
    )
    report(run, n_samples=500)
    return run


@pytest.fixture(scope="session")
def busy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No latent passive: two directions of large variance, two latents; one line of log."""
    run = tmp_path_factory.mktemp("runs") / "busy"
    data = load_dataset("gaussian", eigenvalues=(9.0, 6.0), n_samples=1000)
    train(
        data,
        objective="vae",
        net="linear",
        n_latents=2,
        likelihood="gaussian",
        likelihood_variance=0.1,
        keep_units=True,
        steps=1000,
        learning_rate=2e-2,
        schedule="cosine",
        log_every=1000,
        validate_every=1000,
        out=run,
        device="cpu",
    )
    report(run, n_samples=500)
    return run
