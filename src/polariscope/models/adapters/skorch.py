"""Networks of skorch."""

from __future__ import annotations

from collections.abc import Mapping

from polariscope.core.errors import InputError
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter, in_order, is_from
from polariscope.models.adapters.support.calls import type_name


@adapter("skorch", order=20)
class SkorchAdapter(AbstractAdapter):
    """A fitted network of skorch: its module is analysed."""

    def recognises(self, thing: object) -> bool:
        return is_from(thing, "skorch") and hasattr(thing, "get_params")

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        module = getattr(thing, "module_", None)
        if module is None:
            raise InputError(
                "model",
                "be fitted",
                got=f"a {type_name(thing)} of skorch without module_",
                remedy="call its fit or initialize first",
            )
        inner = next(each for each in in_order().values() if each.recognises(module))
        return inner.open(module, data, options)
