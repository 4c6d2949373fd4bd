"""Analyses of a study: what is measured of each run, once for each data and objective, or over all runs alike.

A member is a frozen dataclass whose fields are its options. Its ``scope`` says where it stands in a study file: in
``each``, ``once`` or ``over``. Its ``gives`` says what its columns are, by name or by a pattern of names
(``parts.*``).
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.core.registry import open_family
from polariscope.data.observations import Subset

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset
    from polariscope.runs.run import Run

Cell: TypeAlias = "float | int | str | bool | None"
"""One cell of a table."""
Columns: TypeAlias = "dict[str, Cell]"
"""Cells of one row by column."""


@dataclasses.dataclass(frozen=True)
class Column:
    """What a column of a table is."""

    label: str
    """In words, as an axis has it."""
    higher_is_better: bool | None = None
    """None where neither is."""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """Least and largest possible value."""
    counts_latents: bool = False
    """Whether the largest possible value is the number of latents."""


Measured = TypeVar("Measured")


@dataclasses.dataclass(frozen=True)
class AbstractAnalysis(Subset, abc.ABC, Generic[Measured]):
    """Something that is measured of one run on some observations, and cached with its model."""

    n_samples: Annotated[int, Ge(2), Advice("None takes the whole dataset")] | None = Subset.n_samples
    """Number of observations, two at least; none for all."""

    kind: ClassVar[str] = ""
    """Kind of its cached record; empty if there is no record that a table shows."""
    record: ClassVar[type[Any] | None] = None
    """The class of the cached record, which has ``from_dict``."""
    kept_apart: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """Settings whose results have different columns: a table shows the newest result of each."""

    @property
    def where(self) -> dict[str, Any]:
        """The options that all analyses share, as methods of a run take them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Subset)}

    @abc.abstractmethod
    def measure(self, run: Run, step: int | None = None) -> Measured:
        """Return the result: read if it is cached, otherwise computed.

        :param run: a finished run.
        :param step: (default None: the finished model) the checkpoint of this step.
        """

    @abc.abstractmethod
    def columns(self, measured: Measured) -> Columns:
        """What of it goes into a table.

        :param measured: what :meth:`measure` gave.
        """

    def details(self, measured: Measured) -> Columns:
        """What of it only goes into a table with all details: by type of latent, by factor, by number of samples.

        :param measured: what :meth:`measure` gave.
        """
        return {}

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> AbstractAnalysis[Measured]:  # noqa: ARG003 (members may ask)
        """Return the analysis whose result is cached with these settings, as far as its columns depend on them.

        :param settings: what it was measured with.
        """
        return cls()


class AbstractOnce(abc.ABC):
    """Something that is determined once for each data and objective."""

    @abc.abstractmethod
    def check(self, data: AbstractDataset, settings: Mapping[str, object]) -> None:
        """Refuse what cannot be determined, before anything is done.

        :param data: what is looked at.
        :param settings: of training, without the number of latents.
        """

    @abc.abstractmethod
    def measure(self, data: AbstractDataset, settings: Mapping[str, object], folder: Path) -> None:
        """Find it, or go on with finding it, and keep it in a folder.

        :param data: what is looked at.
        :param settings: of training, without the number of latents.
        :param folder: where it is stored.
        """

    @abc.abstractmethod
    def is_kept(self, folder: Path) -> bool:
        """Whether the answer is there.

        :param folder: where it is stored.
        """

    @abc.abstractmethod
    def columns(self, folder: Path) -> Columns:
        """What of it goes into a table.

        :param folder: where it is stored.
        """


class AbstractOver(abc.ABC):
    """Something that is measured of runs that differ in their seed only."""

    @abc.abstractmethod
    def measure(self, runs: Sequence[Run]) -> dict[str, Any]:
        """What was measured, as JSON has it; with ``rows``, cells for each of the runs.

        :param runs: finished runs, two at least.
        """


analysis = family = open_family(__name__, "analysis", traits=("scope", "gives"))
