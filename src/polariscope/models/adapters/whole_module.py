"""Modules whose forward pass returns reconstruction, mean and log-variance."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter
from polariscope.models.adapters.parts import parts_of
from polariscope.models.adapters.support.calls import type_name
from polariscope.models.adapters.wrapped import adapted


@adapter("whole-module", order=70)
class WholeModuleAdapter(AbstractAdapter):
    """A module that returns its posterior in ``forward`` and also has a decoder.

    The outputs of ``forward`` contain the posterior, usually as (reconstruction, mean, log_variance).
    """

    def recognises(self, thing: object) -> bool:
        encoder, decoder = parts_of(thing)
        return isinstance(thing, nn.Module) and encoder is None and decoder is not None

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        return Opened(adapted(thing, parts_of(thing)[1], options, name=type_name(thing)))
