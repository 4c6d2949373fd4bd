"""View of codes with positions: diagnosed by channel or by value."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

from polariscope.core.options import checked

Per = Literal["channel", "value"]
Pool = Literal["none", "mean"]
"""Columns of codes with positions: all of them, or the mean over the positions of each channel."""
Unit = Literal["latent", "channel"]
"""Word for the unit of a diagnosis."""


@checked
@dataclasses.dataclass(frozen=True)
class CodeView:
    """Unit of a diagnosis of codes with positions, such as (channel, height, width)."""

    per: Per = "channel"
    """Unit of convolutional codes: channel pools all positions of a channel, value treats each value as a latent."""


def in_units(text: str, unit: Unit) -> str:
    """Return a text about latents with the word for the unit of a diagnosis.

    :param text: text about latents.
    :param unit: the unit.

    >>> in_units("Latents 0, 2 are in use.", "channel"), in_units("latent 3", "latent")
    ('Channels 0, 2 are in use.', 'latent 3')
    """
    if unit == "latent":
        return text
    return LATENT.sub(lambda match: ("C" if match[1] == "L" else "c") + "hannel", text)


LATENT = re.compile(r"\b([Ll])atent(?=s?\b)")
TEXT_OF_HTML = re.compile(r'(?<=>)[^<>]+|(?<=title=")[^"]*|(?<=aria-label=")[^"]*|(?<=alt=")[^"]*')
"""Texts that readers see: those between tags, and descriptions."""


def html_in_units(html: str, unit: Unit) -> str:
    """Return HTML about latents with the word for the unit of a diagnosis; names of classes and ids do not change.

    :param html: HTML about latents.
    :param unit: the unit.

    >>> html_in_units('<th class="latent" title="latent 1">latent</th>', "channel")
    '<th class="latent" title="channel 1">channel</th>'
    """
    return html if unit == "latent" else TEXT_OF_HTML.sub(lambda match: in_units(match[0], unit), html)
