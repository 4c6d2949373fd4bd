"""Models in ONNX files and sessions of onnxruntime."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from polariscope.analysis.code_names import MEANS, SECONDS
from polariscope.core.errors import InputError, not_installed
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.adapters.support.outputs import RECONSTRUCTIONS
from polariscope.models.adapters.wrapped import adapted

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


class OnnxFunction:
    """A function that runs a session of onnxruntime.

    Outputs with known names are read by name, others by position. If the graph has a fixed batch size, smaller batches
    are filled up with their last row.

    :param session: the session.
    :param path: (default None) file of the session.
    """

    def __init__(self, session: Foreign, path: Path | None = None) -> None:
        self.session = session
        self.__name__ = path.name if path is not None else "InferenceSession"
        inputs = session.get_inputs()
        if len(inputs) != 1:
            raise InputError(
                problem=f"{self.__name__} has {len(inputs)} inputs ({', '.join(each.name for each in inputs)})",
                remedy="export a graph whose only input is a batch of observations",
            )
        self.input, self.outputs = inputs[0], [each.name for each in session.get_outputs()]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one observation; empty if the graph does not fix it."""
        sizes = tuple(self.input.shape[1:])
        return sizes if sizes and all(isinstance(size, int) for size in sizes) else ()

    def __call__(self, values: Tensor) -> object:
        rows = values.detach().cpu().numpy().astype(TYPES.get(self.input.type, np.float32))
        size = self.input.shape[0]
        size = size if isinstance(size, int) and size > 0 else len(rows)
        parts = [self._run(rows[first : first + size], size) for first in range(0, len(rows), size)]
        arrays = [torch.from_numpy(np.concatenate(each)) for each in zip(*parts, strict=True)]
        named = dict(zip(self.outputs, arrays, strict=True))
        if set(named) & set(MEANS) and set(named) & set(SECONDS):
            return named
        if len(arrays) == 1:
            return arrays[0]
        # Reconstructions are recognised by their shape, too.
        return tuple(named[name] for name in self.outputs if name not in RECONSTRUCTIONS or name == "mean")

    def _run(self, rows: np.ndarray, size: int) -> list[np.ndarray]:
        missing = size - len(rows)
        filled = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]) if missing else rows
        return [output[: len(rows)] for output in self.session.run(None, {self.input.name: filled})]


@adapter("onnx", order=20)
class OnnxAdapter(AbstractAdapter):
    """The path of an ``.onnx`` file, or a session of onnxruntime: an encoder, or a whole model without its decoder."""

    def recognises(self, thing: object) -> bool:
        if isinstance(thing, Path):
            return thing.suffix == ".onnx" and thing.is_file()
        return is_from(thing, "onnxruntime") and hasattr(thing, "get_inputs")

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        function = onnx_function(thing)
        model = adapted(function, None, options, name=function.__name__)
        model.expects(function.shape)
        return Opened(model)


def onnx_function(thing: Foreign) -> OnnxFunction:
    """Return the function of a file or session.

    :param thing: path of an ``.onnx`` file, or a session.
    """
    if not isinstance(thing, Path):
        return OnnxFunction(thing)
    if importlib.util.find_spec("onnxruntime") is None:
        raise not_installed(f"opening {thing}", "onnxruntime", "onnx")
    runtime = importlib.import_module("onnxruntime")
    try:
        session = runtime.InferenceSession(str(thing), providers=["CPUExecutionProvider"])
    # The runtime has its own errors, which must not be imported by name.
    except Exception as error:
        message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(problem=f"{thing} cannot be opened as an ONNX model: {message}") from error
    return OnnxFunction(session, thing)
