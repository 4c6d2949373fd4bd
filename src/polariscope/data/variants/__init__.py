"""Variants: wrappers that make another dataset of any dataset.

A variant is a dataset itself, so variants nest. What is random in one is a function of the index and the seed: the same
index gives the same image every time, in any batch and order. (The published loaders draw again at each access, so
their noise is a nuisance that can never be looked at twice.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.records import to_plain
from polariscope.core.registry import open_family
from polariscope.data.dataset import AbstractDataset

KINDS = {"images": 3, "rows": 1, "anything": None}
"""What a variant can be made of, and how many axes such an observation has."""
OWN = (
    *("check_indices", "column", "describe", "fingerprint", "is_counts", "n_features"),
    *("stored_values", "value_facts"),
)
"""What a variant answers for itself, from its own length, shape, values and options."""


@dataclasses.dataclass(frozen=True)
class AbstractVariant(AbstractDataset):
    """A dataset made of another. A member overrides what it changes; all else is asked of the ``base``.

    The decorator says of what it can be made: ``@variant("colour", of="images")``; the others are ``rows`` and
    ``anything``. One with options that must be given also has an ``example``, as the command line writes it. One
    that is mostly given a single option may name it, ``bare="folder"``: the command line then takes its value alone.
    """

    base: AbstractDataset = dataclasses.field(metadata={"is_option": False})
    """The dataset it is made of."""

    is_change_of_units = False
    """Whether it only changes units. A model needs such a variant for any data it is shown later."""

    def __post_init__(self) -> None:
        name = family.name_of(self)
        kind = family.traits(name)["of"]
        if KINDS[kind] not in (None, len(self.base.shape)):
            holds = "images" if len(self.base.shape) == 3 else "flat rows"
            raise InputError(
                problem=f"variant {name!r} is made of {kind}, and {self.base.name} holds {holds}",
                remedy="leave it out",
            )
        self.check()

    def check(self) -> None:
        """Refuse a base, or options, that make no sense together; by default nothing is refused."""

    @classmethod
    def read_options(
        cls,
        base: AbstractDataset,  # noqa: ARG003
        given: Mapping[str, object],
    ) -> dict[str, Any]:
        """The options as the class has them; by default as they were given.

        :param base: what the variant will be made of.
        :param given: options by name, before they are checked.
        """
        return dict(given)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    def __len__(self) -> int:
        return len(self.base)

    @property
    def root(self) -> AbstractDataset:
        """The dataset below all variants."""
        return self.base.root if isinstance(self.base, AbstractVariant) else self.base

    def options(self) -> dict[str, Any]:
        """The options as JSON has them, resolved: what is measured on the data is in numbers."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "base"]
        return {name: to_plain(getattr(self, name)) for name in names}

    def variants(self) -> list[dict[str, Any]]:
        """Records of all variants, the innermost first."""
        below = self.base.variants() if isinstance(self.base, AbstractVariant) else []
        return [*below, {"name": family.name_of(self), **self.options()}]

    def describe(self) -> dict[str, Any]:
        """The record of the dataset below, and the variants, for :func:`polariscope.data.sources.load_recorded`."""
        return {
            **self.root.describe(),
            "variants": self.variants(),
            "fingerprint": self.fingerprint,
            "root_fingerprint": self.root.fingerprint,
        }

    @property
    def fingerprint(self) -> str:
        """Hash of the base, the variant and its options."""
        return files.digest([self.base.fingerprint, family.name_of(self), self.identity()])

    def identity(self) -> dict[str, Any]:
        """What of the options decides the observations; by default all."""
        return self.options()


def ask_base(name: str) -> property:
    """An attribute or a method that is the base's."""
    return property(lambda self: getattr(self.base, name), doc=f"``{name}`` of the base.")


for _name in vars(AbstractDataset):
    if not _name.startswith("_") and _name not in OWN and _name not in vars(AbstractVariant):
        setattr(AbstractVariant, _name, ask_base(_name))

variant = family = open_family(
    __name__,
    "variant",
    traits=("of",),
    folders=(__name__, "polariscope.manipulation.variants"),  # one needs what a network has learned
)
