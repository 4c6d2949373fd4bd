"""Journal: results of many checkpoints, one line each, written as they are computed.

An artefact (:mod:`polariscope.storage.artefacts`) is written at once. Computations that take hours and have hundreds of
parts are stored in a journal: a line is appended when a part is complete, so a killed process loses only its current
part. Lines are chained by hashes, like those of the log.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from polariscope import storage as layout
from polariscope.core.errors import PolariscopeError
from polariscope.core.parsing import parse_json
from polariscope.core.records import to_plain
from polariscope.core.types import Recordable
from polariscope.storage.artefacts import Artefacts, Key
from polariscope.storage.documents import DamagedError
from polariscope.storage.log import Log

FILE_NAME = re.compile(rf"([a-z]+(?:-[a-z]+)*)-([0-9a-f]{{12}}){re.escape(layout.JOURNAL)}")


class Journal:
    """Contents that are stored under a key, each with its own name.

    :param artefacts: cached results of the run, whose lock the journal shares.
    :param key: inputs and settings of the contents, stored in the first line of the file.
    """

    def __init__(self, artefacts: Artefacts, key: Key) -> None:
        self.artefacts = artefacts
        self.key = key
        self.path = artefacts.folder / f"{key.kind}-{key.digest[:12]}{layout.JOURNAL}"
        self._log = Log(self.path, key.digest, artefacts.guard)
        self._names: set[str] = set()
        self._seen: int | None = None
        """Bytes of the complete lines with these names; None before the file was read."""

    def read(self) -> dict[str, Any]:
        """Return the contents by name. A damaged file is set aside, and all of it is computed again."""
        self._log = Log(self.path, self.key.digest, self.artefacts.guard)
        try:
            lines = self._log.read()
        except DamagedError as error:
            self.artefacts.set_aside(self.path, error)
            lines = []
        # The first line contains the key.
        contents = {line["name"]: line["content"] for line in lines[1:]}
        self._names, self._seen = set(contents), self._log.end.n_bytes
        return contents

    def keep(self, name: str, content: Recordable) -> None:
        """Append a content, unless its name exists already.

        :param name: name of the content: the digest of a model.
        :param content: a record or a JSON value.
        """
        with self.artefacts.writing():
            # The file is read again only if another process wrote to it.
            if self._size != self._seen:
                self.read()
            if name in self._names:
                return
            log = self._log
            if self._size > log.end.n_bytes:
                log.cut(log.end)  # removes an incomplete line that a killed process left
            if log.end.n_lines == 0:
                log.append({"key": self.key.to_dict()})
            log.append({"name": name, "content": to_plain(content)})
            self._names.add(name)
            self._seen = log.flush().n_bytes

    @property
    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


def verify_journal(path: Path) -> None:
    """Check the hashes of a journal's lines; raise an error if it is damaged.

    :param path: the file.
    """
    first, is_whole, _ = path.read_bytes().partition(b"\n")
    if not is_whole:
        return  # the process was killed while it wrote the first line, so the journal is empty
    try:
        key = Key.from_dict(parse_json(first.decode(), str(path))["key"])
    except (KeyError, TypeError, ValueError, PolariscopeError):
        raise DamagedError(f"{path} is damaged: its key is missing.") from None
    Log(path, key.digest).read()
