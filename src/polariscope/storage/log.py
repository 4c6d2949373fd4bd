"""The log of a run: one line per logging step, each chained to the one before by a hash.

A line that was changed, removed or inserted breaks the chain. Removing lines at the end does not break it, so
checkpoints and the model store a *mark*: the length of the log when they were saved, and its hash.
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
from polariscope.core.parsing import parse_json
from polariscope.core.paths import check_regular
from polariscope.core.records import AbstractStoredRecord
from polariscope.core.text import plural
from polariscope.storage.documents import DamagedError

CHAIN = ', "chain": "'
"""Separator between a line's record and its hash, which comes last."""


@dataclasses.dataclass(frozen=True)
class Mark(AbstractStoredRecord):
    """A position in a log, with the hash of everything before it."""

    n_bytes: int
    n_lines: int
    chain: str
    """Hash of all lines up to here."""


class Log:
    """A log file, written by one process and read by any. ``origin`` is the hash that the chain starts from.

    A writer opens the file, then calls its ``guard``, then writes. A process that takes over a run cuts the log, which
    creates a new file. A former writer that was paused between guard and write therefore writes to the old file, which
    is never read.
    """

    def __init__(self, path: Path, origin: str, guard: files.Guard | None = None) -> None:
        self.path = path
        self.guard = guard
        self.start = Mark(0, 0, origin)
        self._end: Mark | None = None

    def append(self, record: dict[str, object]) -> None:
        """Add one line."""
        # JSON has no NaN; the loop does not log such lines.
        body = json.dumps(record, allow_nan=False)
        chain = chained(self.end.chain, body)
        # The hash replaces the closing brace and becomes the last entry, so a line is still valid JSON.
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
        """Flush all lines to disk and return the mark after them."""
        # fsync writes all pages of the file, also those written through another handle.
        with self.path.open("ab") as file:
            os.fsync(file.fileno())
        return self.end

    def cut(self, mark: Mark | None, in_place: bool = False) -> None:
        """Delete the lines after ``mark`` (None: all lines), because those steps are going to be repeated.

        :param mark: end of the log.
        :param in_place: (default False) if True, shorten the file instead of creating a new one. This requires no free
            space, and is only for a process that has written the log already.
        """
        mark = mark or self.start
        if mark.n_lines:
            self._check(mark, [earlier for earlier, _ in self._walk(to_lines=mark.n_lines)])
        if in_place and self.path.exists():
            with self.path.open("rb+") as file:
                if self.guard is not None:
                    self.guard()
                file.truncate(mark.n_bytes)
            self._end = mark
            return
        before = self.path.read_bytes()[: mark.n_bytes] if self.path.exists() else b""
        with files.atomic(self.path, self.guard) as part:
            part.write_bytes(before)
        self._end = mark

    def read(self, mark: Mark | None = None) -> list[dict[str, Any]]:
        """Read all lines, without a line that is being written.

        A changed line raises an error, as does a log that ends before the ``mark`` of a model or checkpoint.
        """
        lines = list(self._walk())
        if mark is not None and mark.n_lines:
            self._check(mark, [earlier for earlier, _ in lines])
        return [record for _, record in lines]

    def contradicts(self, mark: Mark) -> bool:
        """Return True if a mark was certainly not made in this log; a log that is damaged or too short decides nothing.

        :param mark: the mark of a model or checkpoint.
        """
        try:
            marks = [self.start, *(earlier for earlier, _ in self._walk(to_lines=mark.n_lines))]
        except DamagedError:
            return False
        return len(marks) > mark.n_lines and marks[mark.n_lines] != mark

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
        """Yield each line with the mark after it, checked against the chain."""
        if not self.path.exists():
            return
        mark = self.start
        # Bytes after the last line break are a line that is being written, or that a killed process left incomplete.
        for number, line in enumerate(check_regular(self.path).read_bytes().split(b"\n")[:-1], start=1):
            # Bytes that are not UTF-8 then fail the hash below instead of raising another error.
            body, separator, tail = line.decode("utf-8", errors="replace").rpartition(CHAIN)
            text = f"{body}}}"
            chain = chained(mark.chain, text)
            if not separator or tail != f'{chain}"}}':
                raise DamagedError(
                    f"{self.path} is damaged: line {number} does not match its hash or the previous line."
                )
            mark = Mark(mark.n_bytes + len(line) + 1, number, chain)
            yield mark, parse_json(text, str(self.path))
            if number == to_lines:
                return


def chained(chain: str, body: str) -> str:
    """Return the hash of the chain after one more line.

    >>> chained("", "{}") == chained("", "{}"), chained("", "{}") == chained("0", "{}")
    (True, False)
    """
    return hashlib.sha256(f"{chain}\n{body}".encode()).hexdigest()
