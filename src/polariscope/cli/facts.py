"""Facts about a dataset in ``polariscope data info``: memory, disk space, licence, citation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polariscope.cli.console import say
from polariscope.core.text import file_size

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


def say_facts(data: AbstractDataset) -> None:
    """Print memory, disk space, licence, citation and notes of a dataset.

    :param data: the dataset.
    """
    from polariscope.core.references import references

    footprint = data.footprint()
    disk = f"disk {file_size(footprint.disk_bytes)}" if footprint.disk_bytes else "no disk space"
    say(f"Memory {file_size(footprint.memory_bytes)}, {disk}. {footprint.words}")
    if data.note:
        say(f"Note: {data.note.rstrip('.')}.")
    if data.licence:
        say(f"Licence: {data.licence}.")
    if data.citation:
        known = references().get(data.citation)
        say(f"Cite: {known.short if known else data.citation} (polariscope cite {data.citation})")
