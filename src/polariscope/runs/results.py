"""Results that are cached with a run: each is computed once, and read back when it is asked for again.

The key of a result is its model, data, part of the split, step and settings
(:class:`~polariscope.storage.artefacts.Key`). Another key is another result, stored next to the first.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from polariscope.core.errors import PolariscopeError
from polariscope.core.types import OptionValue
from polariscope.data.observations import Observations
from polariscope.runs.trained_run import TrainedRun
from polariscope.storage.artefacts import Artefact, Key

logger = logging.getLogger("polariscope")

Record = TypeVar("Record")


class NotKeptError(PolariscopeError):
    """A result that is not cached with the run, when nothing may be computed."""


class CachedResults:
    """The results of one run, on disk.

    :param run: the run.
    :param computes: (default True) whether missing results are computed; otherwise a :class:`NotKeptError` is raised,
        and nothing is written.
    """

    def __init__(self, run: TrainedRun, computes: bool = True) -> None:
        self.run = run
        self.computes = computes
        self.used: set[Path] = set()
        """Files of the results that were read or made through this object."""

    def key(self, kind: str, observations: Observations, settings: Mapping[str, Any]) -> Key:
        """Return the key of a result, with the number of observations that there are.

        :param kind: "regime", "scores" …
        :param observations: what it is measured on.
        :param settings: all else that it depends on.
        """
        counted = {"n_samples": len(self.run.choose(observations)), "seed": observations.seed}
        return self.key_of(kind, observations.step, observations.part, {**counted, **settings})

    def key_of(self, kind: str, step: int | None, part: str, settings: Mapping[str, Any]) -> Key:
        """Return the key of a result of one model.

        :param kind: "course", "comparison" …
        :param step: (None: the finished model) a step of which there is a model.
        :param part: of the split.
        :param settings: all else that it depends on.
        """
        digest, done = self.run.digest_and_step(step)
        return Key(kind, digest, self.run.fingerprint, part, done, settings)

    def read_or_compute(self, key: Key, kind: type[Record], compute: Callable[[], Record]) -> Record:
        """Return the record under a key; computed and cached if there is none that can be read.

        :param key: of the result.
        :param kind: class of the record, with ``to_dict`` and ``from_dict``.
        :param compute: makes it.
        """
        self.used.add(self.run.folder.artefacts.file(key))
        stored = self.run.folder.artefacts.read(key)
        if stored is None:
            self.check_may_compute(key)
            stored = compute().to_dict()  # type: ignore[attr-defined]
            with self.writing(key.kind):
                stored = self.run.folder.artefacts.keep(key, stored)
        self.touch(key)
        # Made from JSON also when it was just computed, so the first call returns the same record as the next ones.
        return kind.from_dict(stored)  # type: ignore[attr-defined]

    def check_may_compute(self, key: Key) -> None:
        """Refuse to compute a result in a run that was opened to be read only.

        :param key: of the result.
        """
        if not self.computes:
            raise NotKeptError(f"{self.run.path} has no {key.kind} with these settings.")

    def touch(self, key: Key) -> None:
        """Note that a result was asked for now: :meth:`newest` returns the one asked for last.

        :param key: of the result.
        """
        if self.computes:
            self.run.folder.artefacts.ask(self.run.folder.artefacts.file(key))

    @contextlib.contextmanager
    def writing(self, kind: str) -> Iterator[None]:
        """Inside, a failed write is a warning: a run on a full or read-only disk can still be analysed.

        :param kind: of the result that is written.
        """
        try:
            yield
        except OSError as error:
            logger.warning("the %s could not be kept beside the run: %s", kind, error)

    def newest(
        self, kind: str, step: int | None, part: str | None, settings: Mapping[str, OptionValue]
    ) -> Artefact | None:
        """Return the artefact of a kind that was asked for last; None without one.

        :param kind: "regime", "scores" …
        :param step: (None: the finished model) the checkpoint of this step.
        :param part: (None: any) the part of the split it was measured on.
        :param settings: what it was measured with.
        """
        digest, data = self.run.digest(step), self.run.fingerprint
        matching = [
            artefact
            for artefact in self.run.folder.artefacts.by_asking()
            if artefact.kind == kind
            and artefact.matches(**settings)
            and part in (None, artefact.key.part)
            and artefact.key.data == data
            # A result of several models, as a comparison, lists all of them in its settings.
            and (artefact.key.model in (digest, None) or digest in artefact.key.settings.get("models", ()))
        ]
        return matching[-1] if matching else None

    def read(self, artefact: Artefact) -> Any | None:
        """Return the content of a cached record, as JSON has it; None if it is damaged.

        :param artefact: of this run.
        """
        self.used.add(artefact.path)
        return self.run.folder.artefacts.read(artefact.key)
