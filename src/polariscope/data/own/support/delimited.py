"""Tables in text files: values between commas, tabs or semicolons, gzipped or not."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from polariscope.core.archives import is_gzip, open_stream, too_large, unpacked_limit
from polariscope.core.errors import Argument, InputError
from polariscope.data.own.support.columns import Troubles, check_names, is_missing
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.tables import REMEDY, VALUE_BYTES, Selection, contents_of, select

LINES = 20_000
"""Read at once."""


def read_delimited(
    path: Path,
    *,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    row_names: str | None = None,
    aside: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool | None = None,
    max_unpacked: float | None = None,
) -> Contents:
    """The features, labels and row names of a table in a text file, in UTF-8; rows are counted from 0.

    :param path: the file.
    :param columns: (default: all that are neither labels nor names) the features.
    :param labels: (default none) columns that are factors.
    :param row_names: (default none) the column that identifies rows.
    :param aside: (default none) columns that are neither features nor factors.
    :param delimiter: (default: a tab in .tsv files, else a comma) what stands between values.
    :param header: (default: yes, unless it holds only numbers) whether the first line names the columns.
    :param max_unpacked: (default: as :mod:`polariscope.core.archives` has it) gigabytes a gzipped file may unpack to.
    """
    where, choices = path.name, []
    between = delimiter or ("\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ",")
    lines = _lines(path, between, max_unpacked)
    first = next(lines, None)
    if first is None:
        raise InputError(problem=f"{path} is empty", remedy="give a table with a line of column names")
    if delimiter is None:
        _check_delimiter(path, first, between)
    if header is None:
        header = not all(_is_number(field) for field in first)
        if not header:
            choices.append("no line of column names, so columns are numbered")
    if header:
        names = [field.strip() for field in first]
    else:
        names, lines = [str(place) for place in range(len(first))], itertools.chain([first], lines)
    if header and row_names is None and names[0] == "" and len(names) > 1:
        names[0] = row_names = "row"
        choices.append("the first column, which has no name, identifies rows")
    if "" in names:
        raise InputError(
            problem=f"{where}: column {names.index('')} has no name", remedy="give every column a name"
        )
    check_names(names, where)
    selection = select(names, where, columns, labels, row_names, aside)
    numbers, texts = _read_columns(lines, path, names, selection, max_unpacked)
    if not header and not columns:
        contents = contents_of(selection, numbers, texts, tuple(choices))
        return Contents(contents.array, contents.factors, ids=contents.ids, choices=contents.choices)
    return contents_of(selection, numbers, texts, tuple(choices))


def read_texts(path: Path, max_unpacked: float | None = None) -> dict[str, Shaped[np.ndarray, " sample"]]:
    """Every column of a table in a text file by name, with a line of names: numbers where all are, else text.

    :param path: the file.
    :param max_unpacked: (default: as :mod:`polariscope.core.archives` has it) gigabytes a gzipped file may unpack to.
    """
    between = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    lines = _lines(path, between, max_unpacked)
    names = [field.strip() for field in next(lines, [])]
    check_names(names, path.name)
    return _read_columns(lines, path, names, Selection((), tuple(names)), max_unpacked)[1]


def _lines(path: Path, delimiter: str, max_unpacked: float | None) -> Iterator[list[str]]:
    """The fields of each line that is not blank."""
    if len(delimiter) != 1:
        raise InputError("delimiter", "be one character", got=f"{delimiter!r}")
    if not path.is_file():
        raise InputError(problem=f"there is no file {path}")
    with open_stream(path, max_unpacked) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        try:
            yield from (fields for fields in csv.reader(text, delimiter=delimiter, strict=True) if fields)
        except UnicodeDecodeError as error:
            raise InputError(
                str(path),
                "be text in UTF-8",
                got=f"bytes that are not ({error.reason})",
                remedy="save it as UTF-8",
            ) from None
        except csv.Error as error:
            raise InputError(
                problem=f"{path} cannot be read as a table ({error})", remedy="check its quotes and delimiter"
            ) from None


def _check_delimiter(path: Path, first: list[str], between: str) -> None:
    """Refuse a table of a single column whose values another delimiter would divide."""
    other = next((mark for mark in (";", "\t", ",", "|") if len(first) == 1 and mark in first[0]), None)
    if other is not None and other != between:
        raise InputError(
            problem=f"{path.name} has a single column, and {other!r} stands in its first line",
            remedy=("say what stands between its values with ", Argument("delimiter", other)),
        )


def _read_columns(
    lines: Iterator[list[str]],
    path: Path,
    names: list[str],
    selection: Selection,
    max_unpacked: float | None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Features as numbers; labels and names as numbers where all are, else as text."""
    features = {name: _Numbers(name) for name in selection.features}
    texts: dict[str, list[str]] = {name: [] for name in selection.texts}
    places = {name: names.index(name) for name in (*features, *texts)}
    troubles = Troubles()
    where, start = path.name, 0
    limit = unpacked_limit(path, max_unpacked) if is_gzip(path) else None
    while some := list(itertools.islice(lines, LINES)):
        for row, fields in enumerate(some):
            if len(fields) != len(names):
                raise InputError(
                    problem=f"{where}: row {start + row} has {len(fields)} values for {len(names)} columns",
                    remedy="give every row a value for every column, and put texts with the delimiter in quotes",
                )
        by_column = list(zip(*some, strict=True))
        for name, column in features.items():
            column.add(by_column[places[name]], start, troubles)
        for name, known in texts.items():
            known.extend(by_column[places[name]])
            lacking = [start + row for row, text in enumerate(by_column[places[name]]) if is_missing(text)]
            if lacking:
                troubles.missing(name, lacking)
        start += len(some)
        # "1," is two bytes of text and eight of memory.
        if limit is not None and start * len(places) * VALUE_BYTES > limit:
            raise too_large(path, limit)
    troubles.refuse(where, REMEDY)
    if not start:
        raise InputError(problem=f"{where} has no rows below its column names", remedy="add some")
    return {name: column.array() for name, column in features.items()}, {
        name: as_numbers(known) for name, known in texts.items()
    }


def as_numbers(texts: Sequence[str]) -> Shaped[np.ndarray, " sample"]:
    """Texts as whole numbers where all of them are, else as numbers, else as they are.

    >>> as_numbers(["1", "2"]).dtype.kind, as_numbers(["1", "2.5"]).dtype.kind, as_numbers(["1", "b"]).dtype.kind
    ('i', 'f', 'U')

    :param texts: the texts of one column.
    """
    for kind in (np.int64, np.float64):
        try:
            return np.array(texts, dtype=kind)
        except (ValueError, OverflowError):
            continue
    return np.array([text.strip() for text in texts])


class _Numbers:
    """A column of numbers that grows: whole ones as long as all are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: type[np.int64 | np.float64] = np.int64
        self.parts: list[np.ndarray] = []

    def add(self, texts: Sequence[str], start: int, troubles: Troubles) -> None:
        """Read some more values; those that are no numbers are noted."""
        if self.kind is np.int64:
            try:
                self.parts.append(np.array(texts, dtype=np.int64))
                return
            except (ValueError, OverflowError):
                self.kind = np.float64
        try:
            part = np.array(texts, dtype=np.float64)
        except ValueError:
            part = np.array([float(text) if _is_number(text) else np.nan for text in texts])
        for row in np.flatnonzero(np.isnan(part)).tolist():
            if is_missing(texts[row]):
                troubles.missing(self.name, [start + row])
            else:
                troubles.text(self.name, texts[row], start + row)
        self.parts.append(part)

    def array(self) -> np.ndarray:
        return np.concatenate([part.astype(self.kind, copy=False) for part in self.parts])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
