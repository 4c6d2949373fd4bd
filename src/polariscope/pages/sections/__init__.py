"""Sections of the report: a Python file for each, and a template of the same name next to it.

Every file in this folder is a section. Its traits define the order and the title in the navigation. Its class
(:class:`AbstractSection`) computes results, decides whether the section is on the page, and returns the values for the
template. To add a section, write ``sections/NAME.py`` and ``sections/NAME.html.j2``.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.registry import open_family

if TYPE_CHECKING:
    from collections.abc import Callable

    from polariscope.data.dataset import AbstractDataset
    from polariscope.models.protocol import AbstractModel
    from polariscope.pages.record import ReportRecord
    from polariscope.runs.run import Run

section = family = open_family(__name__, "section", traits=("title", "order"), group=None)
"""``title`` is its name in the navigation; the section with the smallest ``order`` comes first."""

TEMPLATE = ".html.j2"


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """Subject of a page, from which sections compute their results: a run, a model from another library, or codes."""

    representation: Representation
    regime: Regime
    has_rate: bool
    """If True, posteriors have a KL to the prior."""
    seed: int
    model: AbstractModel | None = None
    """The model; None for codes."""
    data: AbstractDataset | None = None
    """The data; None for codes."""
    run: Run | None = None
    """The run; None for a model from another library and for codes."""
    where: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Arguments of :meth:`Run.representation` for the codes of a run that the page shows."""
    find: Callable[..., Any] | None = None
    """Function behind :meth:`newest`; None without a run."""

    def newest(self, kind: str, **settings: Any) -> Any:
        """Return the requested or newest cached result of a kind; None if there is none.

        :param kind: kind of result: "scores", "comparison" …
        :param settings: settings that the result must have.
        """
        return None if self.find is None else self.find(kind, **settings)


class AbstractSection(abc.ABC):
    """One section of the page. All results are computed before anything is drawn."""

    def measure(self, subject: Subject) -> Any:
        """Compute results that only this section shows; None if there are none.

        :meth:`part` returns them later.

        :param subject: subject of the page.
        """
        return None

    def part(self, record: ReportRecord) -> Any:
        """Return the result of :meth:`measure`.

        :param record: all results.
        """
        return record.parts.get(family.name_of(self))

    def applies(self, record: ReportRecord) -> bool:
        """Return whether the section is on the page; by default, whether :meth:`measure` returned a result.

        :param record: all results.
        """
        return self.part(record) is not None

    @abc.abstractmethod
    def view(self, record: ReportRecord) -> dict[str, Any]:
        """Return the values that the template reads as ``view``.

        The template can also read ``record``, ``regime``, ``settings``, ``sorting`` (the quantity that latents are
        sorted by) and ``commands``.

        :param record: all results.
        """


def in_order() -> dict[str, AbstractSection]:
    """Return every section by name, in the order of the page."""
    names = sorted(family, key=lambda name: (family.traits(name)["order"], name))
    return {name: family[name]() for name in names}


def measure_all(subject: Subject) -> dict[str, Any]:
    """Return the results of all sections by name; sections without results are omitted."""
    results = {name: section.measure(subject) for name, section in in_order().items()}
    return {name: part for name, part in results.items() if part is not None}


def template_of(name: str) -> str:
    """Return the file of a section's template.

    :param name: name of the section.
    """
    return f"{name.replace('-', '_')}{TEMPLATE}"


def folders() -> list[Path]:
    """Return the folders of the sections' templates, which are next to their Python files."""
    return sorted({Path(inspect.getfile(family[name])).parent for name in family})
