"""Variants: wrappers that turn a dataset into another dataset.

A variant is itself a dataset, so variants nest. Randomness in a variant is a function of the index and the seed: the
same index always gives the same image, in any batch and order. (The published loaders draw again at each access, so the
same noisy image never occurs twice.)
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
"""Kinds of data that a variant applies to, and the number of axes of such an observation."""
NOT_DELEGATED = (
    *("check_indices", "column", "describe", "fingerprint", "is_counts", "n_features"),
    *("stored_values", "value_facts"),
)
"""Attributes that a variant computes from its own length, shape, values and options instead of those of its base."""


@dataclasses.dataclass(frozen=True)
class AbstractVariant(AbstractDataset):
    """A dataset derived from another. A member overrides what it changes; everything else is delegated to ``base``.

    The decorator declares the data that it applies to: ``@variant("colour", of="images")``; the alternatives are
    ``rows`` and ``anything``. A variant with required options also has an ``example``, in the form of the command line.
    A variant with one main option can name it, ``bare="folder"``; the command line then accepts its value alone.
    """

    base: AbstractDataset = dataclasses.field(metadata={"is_option": False})
    """The dataset that it is derived from."""

    is_change_of_units = False
    """True if the variant only changes units. A model requires such a variant for all later data, too."""

    def __post_init__(self) -> None:
        name = family.name_of(self)
        kind = family.traits(name)["of"]
        if KINDS[kind] not in (None, len(self.base.shape)):
            contents = "images" if len(self.base.shape) == 3 else "flat rows"
            raise InputError(
                problem=f"variant {name!r} applies to {kind}, but {self.base.name} contains {contents}",
                remedy="leave it out",
            )
        self.check()

    def check(self) -> None:
        """Raise an error if the base and the options do not fit; by default everything is accepted."""

    @classmethod
    def read_options(
        cls,
        base: AbstractDataset,  # noqa: ARG003
        arguments: Mapping[str, object],
    ) -> dict[str, Any]:
        """Convert arguments to the options of the class; by default they are returned unchanged.

        :param base: the dataset that the variant will be derived from.
        :param arguments: arguments by name, before they are checked.
        """
        return dict(arguments)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    def __len__(self) -> int:
        return len(self.base)

    @property
    def root(self) -> AbstractDataset:
        """The dataset underneath all variants."""
        return self.base.root if isinstance(self.base, AbstractVariant) else self.base

    def options(self) -> dict[str, Any]:
        """Return the options as JSON values, including numbers that were measured on the data."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "base"]
        return {name: to_plain(getattr(self, name)) for name in names}

    def variants(self) -> list[dict[str, Any]]:
        """Return the records of all variants, the innermost first."""
        below = self.base.variants() if isinstance(self.base, AbstractVariant) else []
        return [*below, {"name": family.name_of(self), **self.options()}]

    def describe(self) -> dict[str, Any]:
        """Return the record of the root and the variants, for :func:`polariscope.data.sources.load_recorded`."""
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
        """Return the options that determine the observations; by default all."""
        return self.options()


def delegate_to_base(name: str) -> property:
    """Return a property that delegates an attribute or a method to the base."""
    return property(lambda self: getattr(self.base, name), doc=f"``{name}`` of the base.")


# Everything that a variant does not define itself is that of its base, also attributes that are added later.
for _name in vars(AbstractDataset):
    if not _name.startswith("_") and _name not in NOT_DELEGATED and _name not in vars(AbstractVariant):
        setattr(AbstractVariant, _name, delegate_to_base(_name))

variant = family = open_family(
    __name__,
    "variant",
    traits=("of",),
    folders=(__name__, "polariscope.manipulation.variants"),  # its variant needs a trained network
)
