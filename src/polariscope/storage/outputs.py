"""Files that a command writes for the user: they never replace an input or a file of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.types import Recordable
from polariscope.storage import (
    ASIDE,
    CHECKPOINTS,
    SIMILARITY,
    SIMILARITY_PICTURE,
    is_run,
    is_search,
    is_study,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OWN_ENDINGS = (".json", ".jsonl", ".safetensors", ASIDE)
"""Endings of the files that a run, a search or a study reads."""


def check_output(path: Path, argument: str, inputs: Iterable[str | Path] = ()) -> Path:
    """Return the path to write to; refuse inputs of the command and files that belong to a run, a search or a study.

    An existing file in a folder that the command reads is an input too, unless the folder is that of a run or a search.

    :param path: path of the file; it need not exist.
    :param argument: name of the argument, for the message.
    :param inputs: (default none) files and folders that the command reads.
    """
    target = files.check_target(path, argument)
    resolved = target.resolve()
    # realpath, because resolve() raises an error for a circular link, which the reader of the input reports better.
    sources = [Path(os.path.realpath(each)) for each in inputs]
    data_folders = [each for each in sources if each.is_dir() and not (is_run(each) or is_search(each))]
    is_in_data = target.exists() and any(resolved.is_relative_to(folder) for folder in data_folders)
    if resolved in sources or is_in_data:
        raise InputError(
            argument, "not be a file that the command reads", got=str(path), remedy="use another name"
        )
    # Files of a checkpoint are two folders below their run.
    folders = [
        resolved.parent,
        *([resolved.parents[2]] if resolved.parent.parent.name == CHECKPOINTS else []),
    ]
    owners = (is_run, is_search, is_study)
    if resolved.suffix in OWN_ENDINGS and any(owns(folder) for owns in owners for folder in folders):
        raise InputError(
            argument,
            "not be a file of a run, a search or a study",
            got=str(path),
            remedy="write it to another folder",
        )
    return target


def write_comparison(folder: Path, record: Recordable, figure: Figure) -> tuple[Path, Path]:
    """Write the scores and the picture of a comparison of layers, and return their paths.

    :param folder: folder of both files.
    :param record: the scores, as JSON values.
    :param figure: the picture.
    """
    # Matplotlib is slow to import, and most commands check their outputs without drawing.
    from polariscope.core.figures import save_figure

    files.write_json(folder / SIMILARITY, record)
    return folder / SIMILARITY, save_figure(figure, folder / SIMILARITY_PICTURE, {}, dpi=160)
