"""Sections of the report: a file for what each one shows, and a template of the same name beside it.

The folder is the list. A section says where it stands and what it is called in the navigation (its traits), what it
measures, whether there is anything to show, and what its template is given (:class:`AbstractSection`). To add one,
write ``sections/NAME.py`` and ``sections/NAME.html.j2``.
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
    """What a page is about, as sections measure it: a run, a model from elsewhere, or codes alone."""

    representation: Representation
    regime: Regime
    has_rate: bool
    """Whether posteriors have a KL to the prior."""
    seed: int
    model: AbstractModel | None = None
    """None where only codes are known."""
    data: AbstractDataset | None = None
    """None where only codes are known."""
    run: Run | None = None
    """None unless it is a run of ours."""
    where: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Of a run, which codes the page shows, as :meth:`Run.representation` takes it."""
    find: Callable[..., Any] | None = None
    """Of a run, gives what :meth:`newest` returns."""

    def newest(self, kind: str, **settings: Any) -> Any:
        """Return the newest content of a kind that is stored with the run, or the one asked for; None without one.

        :param kind: what it is: "scores", "comparison" …
        :param settings: what it was made with.
        """
        return None if self.find is None else self.find(kind, **settings)


class AbstractSection(abc.ABC):
    """One section of the page. Everything is measured before anything is drawn."""

    def measure(self, subject: Subject) -> Any:
        """What it shows beyond what every page knows; it becomes :meth:`part` of the record. None: nothing.

        :param subject: what the page is about.
        """
        return None

    def part(self, record: ReportRecord) -> Any:
        """What :meth:`measure` gave."""
        return record.parts.get(family.name_of(self))

    def applies(self, record: ReportRecord) -> bool:
        """Whether it is on the page.

        :param record: all that was computed; by default the section needs its own part.
        """
        return self.part(record) is not None

    @abc.abstractmethod
    def view(self, record: ReportRecord) -> dict[str, Any]:
        """What the template finds under ``view``.

        Beside it are ``record``, ``regime``, ``settings``, ``sorting`` (by what latents are ordered) and ``commands``.

        :param record: all that was computed.
        """


def in_order() -> dict[str, AbstractSection]:
    """Every section by name, in the order of the page."""
    names = sorted(family, key=lambda name: (family.traits(name)["order"], name))
    return {name: family[name]() for name in names}


def measure_all(subject: Subject) -> dict[str, Any]:
    """What each section measures, where it measures anything."""
    measured = {name: one.measure(subject) for name, one in in_order().items()}
    return {name: part for name, part in measured.items() if part is not None}


def template_of(name: str) -> str:
    """Return the file of a section's template.

    :param name: of the section.
    """
    return f"{name.replace('-', '_')}{TEMPLATE}"


def folders() -> list[Path]:
    """Return the folders of the sections' templates, which are those of their files."""
    return sorted({Path(inspect.getfile(family[name])).parent for name in family})
