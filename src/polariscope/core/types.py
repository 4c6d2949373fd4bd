"""Named unions of the values that public functions accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import Any, ClassVar, Protocol

    from numpy.typing import ArrayLike

    class Concept(Protocol):
        """A member of a family, such as a net or a prior: a dataclass."""

        __dataclass_fields__: ClassVar[dict[str, object]]

    class Items(Protocol):
        """An object with a length whose items are read by index, such as a PyTorch dataset."""

        def __len__(self) -> int: ...

        def __getitem__(self, index: int, /) -> Any: ...

    Scalar: TypeAlias = str | bool | int | float | None
    OptionValue: TypeAlias = (
        Scalar | PathLike[str] | Sequence[object] | Mapping[str, object] | Concept | Callable[..., object]
    )
    """Value of an option of a function or of a study file."""
    Recordable: TypeAlias = Scalar | PathLike[str] | Sequence[object] | Mapping[str, object] | Concept
    """Value that can be written as JSON: numbers, texts, lists and mappings of them, and dataclasses."""
    ArrayInput: TypeAlias = ArrayLike | Items
    """Arrays of NumPy, tensors, frames of pandas, and nested lists of numbers."""
    FactorsLike: TypeAlias = ArrayInput | Mapping[str, ArrayInput]
    """Factors as columns of an array, or by name."""
else:
    # At run time any value must reach the function, which rejects it with a message that names the argument.
    Scalar = OptionValue = Recordable = ArrayInput = FactorsLike = object
