"""Adapters from models of other libraries to the protocol of models.

Every file in this folder is an adapter. It recognises objects or paths by what they offer, without importing their
library, and returns a model that all analyses accept. :func:`polariscope.models.open_model.open_model` asks the
adapters in their order.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from polariscope.core.errors import Argument, Either
from polariscope.core.registry import open_family

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset
    from polariscope.models.protocol import AbstractModel

Foreign: TypeAlias = Any
"""An object of another library; its attributes are used without its types."""

adapter = family = open_family(
    __name__,
    "adapter",
    traits=("order",),
    # The adapter of estimators requires code that models must not depend on.
    folders=(__name__, "polariscope.estimators.adapters"),
    group=None,
)
"""The adapter with the smallest ``order`` that recognises an object opens it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """A model, and the data in its units if the adapter converts them itself."""

    model: AbstractModel
    dataset: AbstractDataset | None = None
    """The data; None if they are converted like any other data."""


class AbstractAdapter(abc.ABC):
    """Adapter for one kind of objects."""

    @abc.abstractmethod
    def recognises(self, thing: object) -> bool:
        """Return True if this adapter opens an object or a path; no library is imported and no file is executed.

        :param thing: an object, or a ``Path``.
        """

    @abc.abstractmethod
    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        """Return the model.

        :param thing: an object that the adapter recognises.
        :param data: the caller's data; None if there are none.
        :param options: options of :func:`polariscope.wrap` that the caller set.
        """


def in_order() -> dict[str, AbstractAdapter]:
    """Return every adapter by name, in the order in which they are asked."""
    names = sorted(family, key=lambda name: (family.traits(name)["order"], name))
    return {name: family[name]() for name in names}


def is_from(thing: object, *libraries: str) -> bool:
    """Return True if the class of an object, or one of its base classes, is defined in one of the libraries.

    :param thing: the object.
    :param libraries: names of packages.
    """
    modules = (kind.__module__.partition(".")[0] for kind in type(thing).__mro__)
    return any(module in libraries for module in modules)


def declaration(name: str, value: object) -> Either:
    """Return advice to declare an option: a call of ``wrap``, because not all functions have the option.

    :param name: name of an option of :func:`polariscope.wrap`.
    :param value: recommended value.
    """
    # There is no command "wrap"; commands have the option itself.
    return Either(f"polariscope.wrap(model, {name}={value!r})", Argument(name, value))
