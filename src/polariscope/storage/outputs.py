"""Check of the files that a command writes for the user: they never replace an input or a file of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.storage import CHECKPOINTS, is_run, is_search

OWN_ENDINGS = (".json", ".jsonl", ".safetensors")
"""Endings of the files that a run or a search reads."""


def check_output(path: Path, argument: str, inputs: Iterable[str | Path] = ()) -> Path:
    """Return the path to write to; refuse inputs of the command and files that belong to a run or a search.

    :param path: path of the file; it need not exist.
    :param argument: name of the argument, for the message.
    :param inputs: (default none) files and folders that the command reads.
    """
    target = files.check_target(path, argument)
    resolved = target.resolve()
    if any(resolved == Path(each).resolve() for each in inputs):
        raise InputError(
            argument, "not be a file that the command reads", got=str(path), remedy="use another name"
        )
    folders = [
        resolved.parent,
        *([resolved.parents[2]] if resolved.parent.parent.name == CHECKPOINTS else []),
    ]
    if resolved.suffix in OWN_ENDINGS and any(is_run(folder) or is_search(folder) for folder in folders):
        raise InputError(
            argument,
            "not be a file of a run or a search",
            got=str(path),
            remedy="write it to another folder",
        )
    return target
