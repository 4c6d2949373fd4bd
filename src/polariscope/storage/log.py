"""The log of a run: one line per logging step, each chained to the one before by a hash.

A line that was changed, taken out or put in breaks the chain. Lines cut off at the end leave a chain that holds, so
checkpoints and the model keep a *mark*: how long the log was when they were saved, and its hash there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polariscope.core import files
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.text import plural
from polariscope.storage.documents import DamagedError

CHAIN = ', "chain": "'
"""What separates a line's record from its hash, which comes last."""


@dataclasses.dataclass(frozen=True)
class Mark(AbstractStoredRecord):
    """A position in a log: everything before it is vouched for."""

    n_bytes: int
    n_lines: int
    chain: str
    """Hash of all lines up to here."""


class Log:
    """A log file, appended to by one process and read by any. ``origin`` is the hash that the chain starts from.

    A writer opens the file, then asks its ``guard``, then writes. Who takes a run over cuts the log, which makes a new
    file of it: one that was stopped between the question and the answer writes into the old one, which nobody reads.
    """

    def __init__(self, path: Path, origin: str, guard: files.Guard | None = None) -> None:
        self.path = path
        self.guard = guard
        self.start = Mark(0, 0, origin)
        self._end: Mark | None = None

    def append(self, record: dict[str, object]) -> None:
        """Add one line."""
        body = json.dumps(record, allow_nan=False)
        chain = chained(self.end.chain, body)
        line = f'{body[:-1]}{CHAIN}{chain}"}}\n'.encode()
        with self.path.open("ab") as file:
            if self.guard is not None:
                self.guard()
            file.write(line)
        self._end = Mark(self.end.n_bytes + len(line), self.end.n_lines + 1, chain)

    @property
    def end(self) -> Mark:
        """The mark after the last line."""
        if self._end is None:
            marks = [mark for mark, _ in self._walk()]
            self._end = marks[-1] if marks else self.start
        return self._end

    def flush(self) -> Mark:
        """Make sure that all lines are on disk; the mark after them."""
        with self.path.open("ab") as file:
            os.fsync(file.fileno())
        return self.end

    def cut(self, mark: Mark | None) -> None:
        """Drop what was logged after ``mark`` (None: all of it): those steps are going to be repeated."""
        mark = mark or self.start
        if mark.n_lines:
            self._check(mark, [earlier for earlier, _ in self._walk(to_lines=mark.n_lines)])
        before = self.path.read_bytes()[: mark.n_bytes] if self.path.exists() else b""
        with files.atomic(self.path, self.guard) as part:
            part.write_bytes(before)
        self._end = mark

    def read(self, mark: Mark | None = None) -> list[dict[str, Any]]:
        """All lines; a line that is just being written is left out.

        A line that was changed, and a log that does not reach the ``mark`` of a model or checkpoint, are refused.
        """
        lines = list(self._walk())
        if mark is not None and mark.n_lines:
            self._check(mark, [earlier for earlier, _ in lines])
        return [record for _, record in lines]

    def _check(self, mark: Mark, marks: list[Mark]) -> None:
        if len(marks) < mark.n_lines:
            raise DamagedError(
                f"{self.path} is damaged: it has {plural(len(marks), 'line')}, but the model was saved when it had "
                f"{mark.n_lines}; lines at its end are missing."
            )
        if marks[mark.n_lines - 1] != mark:
            raise DamagedError(
                f"{self.path} is damaged: its first {plural(mark.n_lines, 'line')} are not those that the "
                "model was saved with."
            )

    def _walk(self, to_lines: int | None = None) -> Iterator[tuple[Mark, dict[str, Any]]]:
        """Each line with the mark after it, checked against the chain."""
        if not self.path.exists():
            return
        mark = self.start
        # What follows the last line break is a line that a process was writing, or is.
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], start=1):
            body, separator, tail = line.decode("utf-8", errors="replace").rpartition(CHAIN)
            text = f"{body}}}"
            chain = chained(mark.chain, text)
            if not separator or tail != f'{chain}"}}':
                raise DamagedError(
                    f"{self.path} is damaged: line {number} does not match its hash or does not follow the one before."
                )
            mark = Mark(mark.n_bytes + len(line) + 1, number, chain)
            yield mark, json.loads(text)
            if number == to_lines:
                return


def chained(chain: str, body: str) -> str:
    """The hash after one more line.

    >>> chained("", "{}") == chained("", "{}"), chained("", "{}") == chained("0", "{}")
    (True, False)
    """
    return hashlib.sha256(f"{chain}\n{body}".encode()).hexdigest()
