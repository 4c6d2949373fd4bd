"""Sessions with the interface of onnxruntime."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import polariscope as ps
from foreign_models import ROWS, WIDTH, Encoder, expected, namespace, of_library, seeded
from polariscope.core.errors import InputError


class InferenceSession:
    def __init__(self, names=("mu", "log_var"), batch="batch", draw=False, inputs=1):
        self.encoder, self.names, self.batch, self.draw, self.inputs = (
            seeded(Encoder),
            names,
            batch,
            draw,
            inputs,
        )

    def get_inputs(self):
        return [
            namespace(name=f"x{i}", shape=[self.batch, WIDTH], type="tensor(float)")
            for i in range(self.inputs)
        ]

    def get_outputs(self):
        return [namespace(name=name) for name in self.names]

    def run(self, names, feed):
        (x,) = feed.values()
        assert isinstance(self.batch, str) or len(x) == self.batch
        with torch.inference_mode():
            mean, log_variance = self.encoder(torch.from_numpy(x))
            parts = [mean, log_variance]
            if self.draw:
                parts.insert(0, mean + torch.exp(log_variance / 2) * torch.randn_like(mean))
        return [part.numpy() for part in parts]


def session(**options):
    return of_library(InferenceSession, "onnxruntime")(**options)


@pytest.mark.parametrize(
    "options",
    [{}, {"names": ("getitem", "linear_2")}, {"batch": 7}, {"names": ("a", "b", "c"), "draw": True}],
    ids=["names", "positions", "fixed batch", "draw"],
)
def test_outputs_are_read_by_name_or_by_value(options):
    opened = session(**options)
    rep = ps.encode(opened, ROWS, n_samples=None)
    mean, variance = expected(opened.encoder)
    np.testing.assert_allclose(rep.mean, mean, atol=1e-5)
    np.testing.assert_allclose(rep.variance, variance, rtol=1e-4)


def test_graphs_with_several_inputs_and_wrong_data_are_refused():
    with pytest.raises(
        InputError, match=r"InferenceSession has 2 inputs \(x0, x1\); export a graph whose only"
    ):
        ps.encode(session(inputs=2), ROWS)
    with pytest.raises(InputError, match=r"shape \(6,\), got data of shape \(5,\)"):
        ps.encode(session(), ROWS[:, :5])


def test_files_are_opened_by_the_runtime(tmp_path, monkeypatch):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"requires onnxruntime, which is not installed; .*polariscope\[onnx\]"
    ):
        ps.encode(file, ROWS)
    monkeypatch.undo()

    def fail(path, providers):
        raise RuntimeError("Protobuf parsing failed.")

    for open_session in (fail, lambda path, providers: session()):
        library = namespace(InferenceSession=open_session, __spec__=True)
        monkeypatch.setitem(sys.modules, "onnxruntime", library)
        if open_session is fail:
            with pytest.raises(InputError, match=r"model.onnx cannot be opened as an ONNX model: Protobuf"):
                ps.encode(file, ROWS)
    rep = ps.encode(str(file), ROWS, n_samples=None)
    np.testing.assert_allclose(rep.mean, expected(session().encoder)[0], atol=1e-5)
    page = ps.report(file, ROWS, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "model.onnx" in page
