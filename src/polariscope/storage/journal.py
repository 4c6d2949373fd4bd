"""A journal: what was measured of many checkpoints, one line for each, written as it is measured.

An artefact (:mod:`polariscope.storage.artefacts`) is written whole. What takes hours and is made of hundreds of parts
is stored in a journal on the way: a line is appended when a part is done, so a killed process loses the part it was at
and nothing else. Lines are chained by hashes, as those of the log are.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from polariscope import storage as layout
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.storage.artefacts import Artefacts, Key
from polariscope.storage.documents import DamagedError
from polariscope.storage.log import Log

FILE_NAME = re.compile(rf"([a-z]+(?:-[a-z]+)*)-([0-9a-f]{{12}}){re.escape(layout.JOURNAL)}")


class Journal:
    """The contents that were stored under a key, each with a name of its own.

    :param artefacts: those of the run's folder, whose lock it shares.
    :param key: what the contents depend on beside their names. The first line of the file says it.
    """

    def __init__(self, artefacts: Artefacts, key: Key) -> None:
        self.artefacts = artefacts
        self.key = key
        self.path = artefacts.folder / f"{key.kind}-{key.digest[:12]}{layout.JOURNAL}"
        self._log = Log(self.path, key.digest, artefacts.guard)
        self._names: set[str] = set()
        self._seen: int | None = None
        """Bytes of the whole lines whose names these are; None before the file was read."""

    def read(self) -> dict[str, Any]:
        """What was stored, by name. A file that does not match its hashes is set aside, and all of it is made again."""
        self._log = Log(self.path, self.key.digest, self.artefacts.guard)
        try:
            lines = self._log.read()
        except DamagedError as error:
            self.artefacts.set_aside(self.path, error)
            lines = []
        contents = {line["name"]: line["content"] for line in lines[1:]}
        self._names, self._seen = set(contents), self._log.end.n_bytes
        return contents

    def keep(self, name: str, content: Recordable) -> None:
        """Append a content; a name that is there already keeps what it has.

        :param name: what it is of: the digest of a model.
        :param content: a record or a JSON value.
        """
        with self.artefacts.writing():
            if self._size != self._seen:  # another process wrote; else no line is read again for each new one
                self.read()
            if name in self._names:
                return
            log = self._log
            if self._size > log.end.n_bytes:
                log.cut(log.end)  # the beginning of a line, which a killed process left
            if log.end.n_lines == 0:
                log.append({"key": self.key.to_dict()})
            log.append({"name": name, "content": to_plain(content)})
            self._names.add(name)
            self._seen = log.flush().n_bytes

    @property
    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


def verify_journal(path: Path) -> None:
    """Check the hashes of a journal's lines; a damaged one is refused.

    :param path: the file.
    """
    first, is_whole, _ = path.read_bytes().partition(b"\n")
    if not is_whole:
        return  # killed while the first line was written: there is nothing in it
    try:
        key = Key.from_dict(json.loads(first)["key"])
    except (KeyError, TypeError, ValueError, PolariscopeError):
        raise DamagedError(f"{path} is damaged: it does not say what it is about.") from None
    Log(path, key.digest).read()
