"""Formatting of numbers, sizes, durations, plurals and lists of names."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Interval: TypeAlias = tuple[float | int, float | int]
"""Lower and upper end of an interval."""
DASH = "–"
"""Text for a missing number."""
MAX_LISTED = 5
"""Maximum number of names of a list in a message."""
NO_BREAK = "\xa0"
"""Non-breaking space between a number and its sign."""


def noun(count: float | int, singular: str) -> str:
    """Return a noun in the singular or plural.

    >>> noun(1, "latent"), noun(0, "latent")
    ('latent', 'latents')

    :param count: number of things.
    :param singular: the noun; its plural ends in s, or in ies after a consonant and y.
    """
    if count == 1:
        return singular
    is_consonant_y = singular.endswith("y") and singular[-2:-1] not in "aeiou"
    return f"{singular[:-1]}ies" if is_consonant_y else f"{singular}s"


def plural(count: int, singular: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "latent"), plural(737280, "image"), plural(2, "study")
    ('1 latent', '737,280 images', '2 studies')

    :param count: number of things.
    :param singular: the noun; see :func:`noun`.
    """
    return f"{count:,} {noun(count, singular)}"


def numbered(singular: str, items: Sequence[object]) -> str:
    """Return a noun followed by numbers or names.

    >>> numbered("latent", [3]), numbered("latent", [3, 5])
    ('latent 3', 'latents 3, 5')

    :param singular: the noun; see :func:`noun`.
    :param items: numbers or names.
    """
    return f"{noun(len(items), singular)} {', '.join(map(str, items))}"


def listed(names: Iterable[object], limit: int = MAX_LISTED, *, quoted: bool = False) -> str:
    """Return the first names of a list and the number of remaining ones.

    >>> listed("ab"), listed("abcdefg"), listed("ab", 1, quoted=True)
    ('a, b', 'a, b, c, d, e and 2 more', "'a' and 1 more")

    :param names: the names.
    :param limit: (default 5) maximum number of names.
    :param quoted: (default False) if True, each name is in quotes.
    """
    texts = [repr(str(name)) if quoted else str(name) for name in names]
    more = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {more} more" if more > 0 else "")


def joined(names: Iterable[object], word: str = "and") -> str:
    """Join all names of a list as in a sentence.

    >>> joined("a"), joined("ab"), joined("abc", "or")
    ('a', 'a and b', 'a, b or c')

    :param names: the names.
    :param word: (default "and") word before the last name.
    """
    *others, last = map(str, names)
    return f"{', '.join(others)} {word} {last}" if others else last


def shortened(text: str, longest: int) -> str:
    """Shorten a text to a maximum number of characters; a shortened text ends in an ellipsis.

    >>> shortened("centred", 10), shortened("standardised", 10)
    ('centred', 'standardi…')

    :param text: the text.
    :param longest: maximum number of characters.
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def capitalised(text: str) -> str:
    """Capitalise the first letter of a text; the others are unchanged.

    >>> capitalised("latents of the VAE")
    'Latents of the VAE'

    :param text: the text, not empty.
    """
    return f"{text[0].upper()}{text[1:]}"


def without_markup(text: str) -> str:
    """Return a docstring as plain text: names without roles and quotes, formulas as indented LaTeX source.

    >>> print(without_markup("The ``rate`` of :mod:`~polariscope.objectives.beta`:\\n\\n.. math:: a\\n          + b"))
    The rate of polariscope.objectives.beta:
    <BLANKLINE>
        a
        + b

    :param text: the docstring, without common indentation.
    """

    def formula(match: re.Match[str]) -> str:
        lines = [match["first"], *textwrap.dedent(match["rest"]).splitlines()]
        return "\n".join(f"{match['margin']}    {line}".rstrip() for line in lines if line.strip())

    text = re.sub(
        r"^(?P<margin> *)\.\. math::[ \t]*(?P<first>.*)(?P<rest>(?:\n*\n(?P=margin)[ \t]+\S.*)*)",
        formula,
        text,
        flags=re.MULTILINE,
    )
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", r"\1\2", text)


def number(value: float | int | None, decimals: int = 3, *, whole: bool = False) -> str:
    """Format a number with fixed decimals; None and NaN become a dash.

    >>> number(0.12345), number(None), number(-math.inf), number(7.0), number(7.0, whole=True), number(123456.0)
    ('0.123', '–', '−∞', '7.000', '7', '1.23e+05')

    :param value: the number; from 10,000 on it has three significant digits.
    :param decimals: (default 3) number of decimals.
    :param whole: (default False) if True, integers have no decimals.
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if whole and value == round(value):
        return f"{value:.0f}"
    return f"{value:.{decimals}f}" if abs(value) < 10_000 else f"{value:.3g}"


def readable(value: float | int | None, *, whole: bool = False) -> str:
    r"""Format a number for a page: fewer decimals the larger it is, and a true minus sign.

    >>> [readable(value) for value in (0.01234, 61.2345, 12345.6, 2e-5, -0.5, math.inf, None)]
    ['0.012', '61.23', '12,345.6', '<\xa00.001', '−0.500', '∞', '–']

    :param value: the number.
    :param whole: (default False) if True, integers have no decimals.
    """
    if value is None:
        return DASH
    sign, size = ("−" if value < 0 else ""), abs(value)
    if math.isinf(size):
        return f"{sign}∞"
    if size == 0:
        return "0"
    if whole and size == round(size):
        return f"{sign}{size:,.0f}"
    # Three decimals would show 0.000.
    if size < 0.0005:
        return f">{NO_BREAK}−0.001" if sign else f"<{NO_BREAK}0.001"
    decimals = 3 if size < 10 else 2 if size < 100 else 1
    return f"{sign}{size:,.{decimals}f}"


def percent(share: float | int | None) -> str:
    r"""Format a share of 1 in per cent, for a page.

    >>> percent(0.123), percent(0.996), percent(1.0), percent(0.0004), percent(None)
    ('12\xa0%', '99.6\xa0%', '100\xa0%', '<\xa00.1\xa0%', '–')

    :param share: the share.
    """
    if share is None:
        return DASH
    if 0 < share < 0.001:
        return f"<{NO_BREAK}0.1{NO_BREAK}%"
    # More digits near 0 and 1: 0.996 is not all.
    digits = 1 if 0 < abs(share) < 0.1 or 0.99 < share < 1 else 0
    return f"{100 * share:.{digits}f}{NO_BREAK}%".replace("-", "−")


def interval(ends: Interval | None, form: str = ".3g", between: str = "–", absent: str = "") -> str:
    """Format an interval.

    >>> interval((0.25, 1.0)), interval((3, 3), "g"), interval((1, 1200), ",", " to "), interval(None, absent="–")
    ('0.25–1', '3–3', '1 to 1,200', '–')

    :param ends: lower and upper end.
    :param form: (default three significant digits) format of each end.
    :param between: (default "–") text between the ends.
    :param absent: (default "") text if there is no interval.
    """
    return absent if ends is None else between.join(format(end, form) for end in ends)


def span(low: float | int, high: float | int, form: str = "g", between: str = "–") -> str:
    """Format an interval, or one number if both ends are equal.

    >>> span(3, 5), span(3, 3)
    ('3–5', '3')

    :param low: the lower end.
    :param high: the upper end.
    :param form: (default "g") format of each end.
    :param between: (default "–") text between the ends.
    """
    return format(low, form) if low == high else interval((low, high), form, between)


def file_size(n_bytes: float | int) -> str:
    """Format a number of bytes in a suitable unit.

    >>> file_size(999), file_size(20_480), file_size(3_500_000), file_size(377_487_360), file_size(3e9)
    ('999 bytes', '20 kB', '3.5 MB', '377 MB', '3.0 GB')

    :param n_bytes: number of bytes; units are powers of 1,000.
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} {noun(n_bytes, 'byte')}"
    if n_bytes < 10**6:
        return f"{n_bytes / 1e3:.0f} kB"
    if n_bytes < 10**9:
        return f"{n_bytes / 1e6:.{1 if n_bytes < 10**7 else 0}f} MB"
    return f"{n_bytes / 1e9:.1f} GB"


def duration(seconds: float | int) -> str:
    """Format a duration in a suitable unit.

    >>> duration(42.0), duration(150.0), duration(9000.0)
    ('42 s', '2.5 min', '2.5 h')

    :param seconds: the duration.
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 3600 else f"{seconds / 3600:.2g} h"


def cell_text(value: object) -> str:
    """Format a value as the cell of a table: empty for None, yes or no, numbers with four significant digits.

    >>> [cell_text(value) for value in (None, True, 0.123456, 4.0, "conv")]
    ['', 'yes', '0.1235', '4', 'conv']

    :param value: the value.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def assigned(settings: Mapping[str, object]) -> str:
    """Format settings as NAME=VALUE, joined by commas.

    >>> assigned({"beta": 4.0, "net": "conv"})
    'beta=4, net=conv'

    :param settings: values by name.
    """
    return ", ".join(f"{name}={cell_text(value)}" for name, value in settings.items())


def summary_as_html(rows: Iterable[tuple[str, str]]) -> str:
    """Return labels and values as an HTML table; all texts are escaped.

    >>> summary_as_html([("data", "a < b")])
    "<table><tr><th style='text-align:left'>data</th><td style='text-align:left'>a &lt; b</td></tr></table>"

    :param rows: pairs of a label and a value.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for label, value in rows
    )
    return f"<table>{cells}</table>"
