"""Analyses of a study: of each run, once for each dataset and objective, or over runs that differ in the seed.

A member is a frozen dataclass whose fields are its options. Its trait ``scope`` is its section in a study file:
``each``, ``once`` or ``over``. Its trait ``gives`` describes its columns, by name or by a pattern of names
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
"""Cells of one row, by column."""


@dataclasses.dataclass(frozen=True)
class Column:
    """Description of a column of a table."""

    label: str
    """Label for an axis."""
    higher_is_better: bool | None = None
    """If True, higher is better; if False, lower is; None if neither is."""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    """Smallest and largest possible value."""
    counts_latents: bool = False
    """If True, the largest possible value is the number of latents."""


Measured = TypeVar("Measured")


@dataclasses.dataclass(frozen=True)
class AbstractAnalysis(Subset, abc.ABC, Generic[Measured]):
    """An analysis of one run on some observations; its result is cached with the model."""

    n_samples: Annotated[int, Ge(2), Advice("None takes the whole dataset")] | None = Subset.n_samples
    """Number of observations, at least two; none for all."""

    kind: ClassVar[str] = ""
    """Kind of its cached record; empty if tables show no record."""
    record: ClassVar[type[Any] | None] = None
    """Class of the cached record, which has ``from_dict``."""
    kept_apart: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """Settings whose results have different columns; a table shows the newest result of each."""

    @property
    def where(self) -> dict[str, Any]:
        """Options that all analyses share, as arguments for methods of a run."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Subset)}

    @abc.abstractmethod
    def measure(self, run: Run, step: int | None = None) -> Measured:
        """Return the result; it is read if it is cached, otherwise computed.

        :param run: a finished run.
        :param step: (default None: the finished model) step of the checkpoint.
        """

    @abc.abstractmethod
    def columns(self, measured: Measured) -> Columns:
        """Return the cells of the result that every table shows.

        :param measured: the result of :meth:`measure`.
        """

    def details(self, measured: Measured) -> Columns:
        """Return the cells for a table with all details: by type of latent, by factor, by number of samples.

        :param measured: the result of :meth:`measure`.
        """
        return {}

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> AbstractAnalysis[Measured]:  # noqa: ARG003 (members use it)
        """Return the analysis whose result is cached with these settings, as far as its columns depend on them.

        :param settings: settings of the cached result.
        """
        return cls()


class AbstractOnce(abc.ABC):
    """An analysis that is done once for each dataset and objective."""

    @abc.abstractmethod
    def check(self, data: AbstractDataset, settings: Mapping[str, object]) -> None:
        """Refuse an impossible analysis before anything is computed.

        :param data: the dataset.
        :param settings: training settings, without the number of latents.
        """

    @abc.abstractmethod
    def measure(self, data: AbstractDataset, settings: Mapping[str, object], folder: Path) -> None:
        """Compute the result, or resume an interrupted computation, and store it in a folder.

        :param data: the dataset.
        :param settings: training settings, without the number of latents.
        :param folder: folder of the result.
        """

    @abc.abstractmethod
    def is_kept(self, folder: Path) -> bool:
        """Return True if the result is stored.

        :param folder: folder of the result.
        """

    @abc.abstractmethod
    def columns(self, folder: Path) -> Columns:
        """Return the cells of the result for a table.

        :param folder: folder of the result.
        """


class AbstractOver(abc.ABC):
    """An analysis over runs that differ only in their seed."""

    @abc.abstractmethod
    def measure(self, runs: Sequence[Run]) -> dict[str, Any]:
        """Return the result as plain values for JSON; ``rows`` contains the cells of each run.

        :param runs: two or more finished runs.
        """


analysis = family = open_family(__name__, "analysis", traits=("scope", "gives"))
