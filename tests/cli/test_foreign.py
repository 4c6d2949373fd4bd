"""Models of other libraries on the command line: a saved estimator, and an ONNX file opened by a fake runtime."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import polariscope as ps
from foreign_models import ROWS, Encoder, expected, namespace, seeded


class Session:
    """A session with the interface of onnxruntime."""

    def __init__(self, path, providers):
        self.encoder = seeded(Encoder)

    def get_inputs(self):
        return [namespace(name="x", shape=["batch", ROWS.shape[1]], type="tensor(float)")]

    def get_outputs(self):
        return [namespace(name="first"), namespace(name="second")]

    def run(self, names, feed):
        mean, variance = expected(self.encoder, feed["x"])
        return [mean, np.log(variance)]


@pytest.fixture
def files(elsewhere, monkeypatch):
    """A folder with a model, a saved estimator, data and codes."""
    monkeypatch.setitem(sys.modules, "onnxruntime", namespace(InferenceSession=Session, __spec__=True))
    (elsewhere / "model.onnx").write_bytes(b"")
    np.savez("data.npz", X=ROWS, factors=(ROWS[:, 0] > 0).astype(int))
    np.savez("codes.npz", mu=ROWS[:, :2], std=np.full((len(ROWS), 2), 0.3))
    ps.VAE(n_latents=3, steps=20).fit(ROWS).save("vae")
    (elsewhere / "model.ckpt").write_bytes(b"")
    return elsewhere


def test_every_command_takes_a_model_with_data(call, files):
    for command, words in (
        ("diagnose model.onnx --data data.npz", "of 3 latents"),
        ("diagnose vae --data data.npz", "of 3 latents"),
        ("score model.onnx --data data.npz --metrics mig", "all 3 latents, 300 samples"),
        ("compare model.onnx --data data.npz", "model.onnx, layers with each other"),
        ("stability model.onnx vae --data data.npz", "of 2 models"),
        ("report model.onnx --data data.npz", "The report is in model.html"),
        ("encode model.onnx --data data.npz --all --samples none", "Codes of 300 observations × 3 latents"),
        ("diagnose codes.npz", "of 2 latents"),
    ):
        done = call(command)
        assert done.code == 0, done.err
        assert words in done.out
    table = np.loadtxt("codes.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 1:], expected(seeded(Encoder))[0], atol=1e-5)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("diagnose model.onnx", "--data must be given for model.onnx, which is not a run"),
        ("diagnose codes.npz --data data.npz", "--data requires a model, and codes.npz is a file of codes"),
        ("diagnose model.onnx --data data.npz --step 3", "--step requires a run; model.onnx is a model"),
        ("diagnose codes.npz --outputs mean", "--outputs is for models of other libraries"),
        ("report model.onnx --data data.npz --out model.onnx", "model.onnx"),
        ("diagnose model.ckpt --data data.npz", "can contain a pickle.*load_from_checkpoint"),
        ("compare model.onnx codes.npz --data data.npz", "--data requires a model"),
        ("diagnose model.onnx --data data.npz --outputs mean,sd", "no output of an encoder named 'sd'"),
    ],
)
def test_wrong_calls_are_refused_in_words(call, files, command, words):
    before = sorted(files.iterdir())
    refused = call(command)
    assert refused.code == 2
    assert re.search(words, refused.err), refused.err
    assert sorted(files.iterdir()) == before
    assert (files / "model.onnx").read_bytes() == b""
