"""Models of Keras 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, is_from
from polariscope.models.adapters.parts import parts_of
from polariscope.models.adapters.support.calls import type_name
from polariscope.models.adapters.wrapped import adapted


@adapter("keras", order=30)
class KerasAdapter(AbstractAdapter):
    """Models of Keras with an encoder and a decoder, or encoders. Images and codes have their channels last.

    Keras does not call hooks of PyTorch, so ``compare`` sees the input and the codes, but not the layers. For the same
    reason it is not known whether all weights are used, so a deterministic encoder must be declared.
    """

    def recognises(self, thing: object) -> bool:
        return is_from(thing, "keras") and callable(thing)

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        encoder, decoder = parts_of(thing)
        return Opened(
            adapted(
                _function(thing if encoder is None else encoder),
                None if decoder is None else _function(decoder),
                options,
                is_channels_last=_is_channels_last(thing if encoder is None else encoder),
                name=f"{type_name(thing)} (Keras)",
            )
        )


def _is_channels_last(model: Any) -> bool:
    """Return True unless the layers of a model declare that the channels come first."""
    layers = getattr(model, "layers", None) or []
    formats = {getattr(layer, "data_format", None) for layer in layers}
    return "channels_first" not in formats


def _function(model: Any) -> Callable[..., object]:
    """Return a model of the torch backend as it is; other backends receive and return arrays of NumPy."""
    if isinstance(model, nn.Module) or isinstance(getattr(model, "__self__", None), nn.Module):
        return model

    def call(values: Tensor) -> object:
        return _as_tensors(model(values.detach().cpu().numpy()))

    return call


def _as_tensors(output: Any) -> Any:
    if isinstance(output, Mapping):
        return {name: _as_tensors(value) for name, value in output.items()}
    if isinstance(output, (tuple, list)):
        return [_as_tensors(value) for value in output]
    return torch.as_tensor(np.array(output))
