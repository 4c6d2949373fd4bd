"""Cached results of a run: each is computed once, and later calls read it from disk.

The key of a result consists of its model, data, part of the split, step and settings
(:class:`~polariscope.storage.artefacts.Key`). Results with different keys are stored next to each other.
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


class NotCachedError(PolariscopeError):
    """A result is not cached, and the run is read-only."""


class CachedResults:
    """The cached results of one run.

    :param run: the run.
    :param read_only: (default False) if True, a :class:`NotCachedError` is raised for missing results, and nothing is
        computed or written.
    """

    def __init__(self, run: TrainedRun, read_only: bool = False) -> None:
        self.run = run
        self.read_only = read_only
        self.used: set[Path] = set()
        """Files of the results that were read or computed by this object."""

    def key(self, kind: str, observations: Observations, settings: Mapping[str, Any]) -> Key:
        """Return the key of a result, with the actual number of observations.

        :param kind: kind of result: "regime", "scores" …
        :param observations: the observations.
        :param settings: other settings that the result depends on.
        """
        # The actual number, so None and a number above the size of the data give the same key.
        counted = {"n_samples": len(self.run.choose(observations)), "seed": observations.seed}
        return self.key_of(kind, observations.step, observations.part, {**counted, **settings})

    def key_of(self, kind: str, step: int | None, part: str, settings: Mapping[str, Any]) -> Key:
        """Return the key of a result of one model.

        :param kind: kind of result: "course", "comparison" …
        :param step: step of the model; None for the finished model.
        :param part: part of the split.
        :param settings: other settings that the result depends on.
        """
        digest, done = self.run.digest_and_step(step)
        return Key(kind, digest, self.run.fingerprint, part, done, settings)

    def read_or_compute(self, key: Key, kind: type[Record], compute: Callable[[], Record]) -> Record:
        """Return the cached record with a key, or compute and cache it.

        :param key: key of the result.
        :param kind: class of the record, with ``to_dict`` and ``from_dict``.
        :param compute: function that computes the record.
        """
        # Added even if it cannot be written, so Run.is_saved detects that.
        self.used.add(self.run.folder.artefacts.file(key))
        parse: Callable[[Any], Record] = kind.from_dict  # type: ignore[attr-defined]
        record = self.run.folder.artefacts.read(key, parse)
        if record is None:
            self.check_may_compute(key)
            stored = compute().to_dict()  # type: ignore[attr-defined]
            with self.writing(key.kind):
                stored = self.run.folder.artefacts.keep(key, stored)
            # Built from JSON although it was just computed, so the first call returns the same record as later ones.
            record = parse(stored)
        self.touch(key)
        return record

    def check_may_compute(self, key: Key) -> None:
        """Raise an error if the run is read-only.

        :param key: key of the missing result.
        """
        if self.read_only:
            raise NotCachedError(f"{self.run.path} has no {key.kind} with these settings.")

    def touch(self, key: Key) -> None:
        """Record that a result was used now: :meth:`newest` returns the one that was used last.

        :param key: key of the result.
        """
        if not self.read_only:
            self.run.folder.artefacts.touch(self.run.folder.artefacts.file(key))

    @contextlib.contextmanager
    def writing(self, kind: str) -> Iterator[None]:
        """Log failed writes as warnings, so runs on a full or read-only disk can be analysed.

        :param kind: kind of the result that is written.
        """
        try:
            yield
        except OSError as error:
            logger.warning("the %s could not be saved in the run folder: %s", kind, error)

    def newest(
        self, kind: str, step: int | None, part: str | None, settings: Mapping[str, OptionValue]
    ) -> Artefact | None:
        """Return the cached result of a kind that was used last; None if there is none.

        :param kind: kind of result: "regime", "scores" …
        :param step: step of the model; None for the finished model.
        :param part: part of the split; None for any.
        :param settings: settings that the result must have.
        """
        digest, data = self.run.digest(step), self.run.fingerprint
        matching = [
            artefact
            for artefact in self.run.folder.artefacts.by_last_use()
            if artefact.kind == kind
            and artefact.matches(**settings)
            and part in (None, artefact.key.part)
            and artefact.key.data == data
            # The settings of a result of several models, such as a comparison, list all of them.
            and (artefact.key.model in (digest, None) or digest in artefact.key.settings.get("models", ()))
        ]
        return matching[-1] if matching else None

    def read(self, artefact: Artefact) -> Any | None:
        """Return the content of a cached result as JSON values; None if it is damaged.

        :param artefact: a cached result of this run.
        """
        self.used.add(artefact.path)
        return self.run.folder.artefacts.read(artefact.key)
