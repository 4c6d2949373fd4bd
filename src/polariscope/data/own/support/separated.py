"""Tables in text files, read with pandas: values separated by commas, tabs or semicolons, gzipped or not.

pandas parses the values. It accepts rows that are too short and malformed quotes, and reads ``007`` as 7, so each block
of lines is checked before pandas reads it.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Num, Shaped, UInt8

from polariscope.core.archives import is_gzip, open_stream, too_large, unpacked_limit
from polariscope.core.arrays import LARGEST_WHOLE
from polariscope.core.errors import Argument, Either, InputError
from polariscope.core.paths import check_regular
from polariscope.data.own.support.column_kinds import (
    Troubles,
    as_features,
    as_labels,
    as_names,
    check_names,
    is_number,
)
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.table_files import REMEDY, VALUE_BYTES, Selection, contents_of, select

if TYPE_CHECKING:
    import pandas

BLOCK_BYTES = 2**24
"""Size of the text that is parsed at once, unless it contains quotes."""
QUOTE = b'"'
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def read_separated(
    path: Path,
    *,
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    factor_kinds: Sequence[str] = (),
    row_names: str | None = None,
    aside: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool | None = None,
    trust_names: bool = False,
    max_unpacked: float | None = None,
) -> Contents:
    """Read the features, labels and row names of a table in a text file, in UTF-8; rows are counted from 0.

    :param path: the file.
    :param columns: (default: all that are neither labels nor names) the features.
    :param labels: (default none) columns that are factors.
    :param factor_kinds: (default none) the kind of each label, if the user passed kinds.
    :param row_names: (default none) the column that identifies rows.
    :param aside: (default none) columns that are neither features nor factors.
    :param delimiter: (default: a tab in .tsv files, otherwise a comma) the character between values.
    :param header: (default: False if the first line contains only numbers, True if it contains no number, otherwise
        an error) if True, the first line contains the names of the columns.
    :param trust_names: (default False) if True, a first line with some numbers counts as names, as in version 0.2.
    :param max_unpacked: (default: that of :mod:`polariscope.core.archives`) maximum gigabytes of a gzipped file after
        unpacking.
    """
    where, choices = path.name, []
    separator = delimiter or _default_delimiter(path)
    blocks = _blocks(path, separator, max_unpacked)
    first, rest = _first_record(path, blocks, separator)
    if first is None:
        raise InputError(problem=f"{path} is empty", remedy="use a table with a line of column names")
    if delimiter is None:
        _check_delimiter(path, first, separator)
    if header is None:
        header = _names_columns(first, where, trust_names)
        if not header:
            choices.append("no line of column names, so columns are numbered")
    if header:
        names = [field.strip() for field in first.fields]
        body = rest
    else:
        names, body = [str(index) for index in range(len(first.fields))], first.line + rest
    if header and row_names is None and names[0] == "" and len(names) > 1:
        names[0] = row_names = "row"
        choices.append("the first column, which has no name, identifies rows")
    if "" in names:
        raise InputError(
            problem=f"{where}: column {names.index('')} has no name", remedy="give every column a name"
        )
    check_names(names, where)
    selection = select(names, where, columns, labels, row_names, aside)
    table = _Table(path, separator, names, max_unpacked)
    array, texts, troubles = table.read(itertools.chain([body], blocks), selection)
    kinds = dict(zip(labels, factor_kinds, strict=False))
    values = {
        name: as_names(name, column, troubles)
        if name == row_names
        else as_labels(name, column, troubles, kinds.get(name))
        for name, column in texts.items()
    }
    troubles.refuse(where, REMEDY)
    contents = contents_of(selection, array, values, tuple(choices))
    return contents if header or columns else dataclasses.replace(contents, feature_names=())


def read_texts(
    path: Path, row_names: str, max_unpacked: float | None = None
) -> dict[str, Shaped[np.ndarray, " sample"]]:
    """Return every column of a table in a text file by name; the file has a line of column names.

    :param path: the file.
    :param row_names: the column that identifies rows; the others are labels.
    :param max_unpacked: (default: that of :mod:`polariscope.core.archives`) maximum gigabytes of a gzipped file after
        unpacking.
    """
    separator = _default_delimiter(path)
    blocks = _blocks(path, separator, max_unpacked)
    first, body = _first_record(path, blocks, separator)
    names = [field.strip() for field in first.fields] if first else []
    check_names(names, path.name)
    table = _Table(path, separator, names, max_unpacked)
    _, texts, troubles = table.read(itertools.chain([body], blocks), Selection((), tuple(names)))
    values = {
        name: as_names(name, column, troubles) if name == row_names else as_labels(name, column, troubles)
        for name, column in texts.items()
    }
    troubles.refuse(path.name, REMEDY)
    return values


@dataclasses.dataclass(frozen=True)
class _Record:
    """The first line that is not blank."""

    fields: list[str]
    line: bytes


def _default_delimiter(path: Path) -> str:
    return "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","


def _blocks(path: Path, delimiter: str, max_unpacked: float | None) -> Iterator[bytes]:
    """Yield the text of a file in blocks of whole lines."""
    if len(delimiter) != 1:
        raise InputError("delimiter", "be one character", got=f"{delimiter!r}")
    if not check_regular(path).is_file():
        raise InputError(problem=f"there is no file {path}")
    with open_stream(path, max_unpacked) as stream:
        # The byte order mark, which some programs write at the beginning of UTF-8.
        pending = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf")
        while pending:
            # A quoted text can contain line ends, so a block with quotes is not divided.
            more = stream.read() if QUOTE in pending else stream.read(BLOCK_BYTES)
            if QUOTE in pending or not more:
                yield pending + more
                return
            # A line can continue in the next block, so the last one waits.
            end = pending.rfind(b"\n") + 1
            if end:
                yield pending[:end]
            pending = pending[end:] + more


def _first_record(path: Path, blocks: Iterator[bytes], delimiter: str) -> tuple[_Record | None, bytes]:
    """Return the first line that is not blank, and the text after it in its block."""
    for block in blocks:
        end = 0

        # The default binds the block of this iteration.
        def lines(block: bytes = block) -> Iterator[str]:
            nonlocal end
            for line in LINE.finditer(block):
                end = line.end()
                yield line.group().decode("utf-8")

        with _parser_errors(path):
            fields = next(filter(None, csv.reader(lines(), delimiter=delimiter, strict=True)), None)
        if fields is not None:
            line = block[:end]
            # Without a header line this line is put in front of the rest, so it must end.
            return _Record(fields, line if line.endswith((b"\n", b"\r")) else line + b"\n"), block[end:]
    return None, b""


def _names_columns(first: _Record, where: str, trust_names: bool) -> bool:
    """Return whether the first line contains column names; raise an error if it could be names or a sample."""
    fields = [field.strip() for field in first.fields]
    if all(map(is_number, fields)):
        return False
    numbers = [field for field in fields if is_number(field) and any(map(str.isdigit, field))]
    # pandas writes numbered columns next to an index in this form.
    is_numbered = fields[0] == "" and fields[1:] == [str(index) for index in range(len(fields) - 1)]
    if not numbers or is_numbered or trust_names:
        return True
    text = next(field for field in fields if not is_number(field))
    raise InputError(
        problem=(
            f"{where}: the first line contains {numbers[0]!r} and {text!r}, so it could be column names or a sample"
        ),
        remedy=Either(
            ("choose with ", Argument("header", True), " or ", Argument("header", False)),
            ("choose with ", Argument("header"), " yes|no (yes: it contains column names)"),
        ),
    )


def _check_delimiter(path: Path, first: _Record, separator: str) -> None:
    """Raise an error if a table has a single column that another delimiter would split."""
    fields = first.fields
    other = next((mark for mark in (";", "\t", ",", "|") if len(fields) == 1 and mark in fields[0]), None)
    if other is not None and other != separator:
        raise InputError(
            problem=f"{path.name} has a single column, but its first line contains {other!r}",
            remedy=("give the delimiter with ", Argument("delimiter", other)),
        )


@contextlib.contextmanager
def _parser_errors(path: Path) -> Iterator[None]:
    """Convert errors of the parsers to errors that name the file."""
    try:
        yield
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


class _Table:
    """The rows below the column names.

    :param path: the file.
    :param delimiter: the character between values.
    :param names: names of all columns.
    :param max_unpacked: maximum gigabytes of a gzipped file after unpacking; None for the default limit.
    """

    def __init__(self, path: Path, delimiter: str, names: Sequence[str], max_unpacked: float | None) -> None:
        self.path, self.delimiter, self.names = path, delimiter, names
        self.limit = unpacked_limit(path, max_unpacked) if is_gzip(path) else None

    def read(
        self, blocks: Iterator[bytes], selection: Selection
    ) -> tuple[Num[np.ndarray, "sample feature"] | None, dict[str, Shaped[np.ndarray, " sample"]], Troubles]:
        """Return the features as an array, the text of the other columns, and the problems of the features.

        :param blocks: the text, in blocks of whole lines.
        :param selection: the columns in use.
        """
        indices = {name: index for index, name in enumerate(self.names)}
        features = [indices[name] for name in selection.features]
        texts = {name: indices[name] for name in selection.texts}
        arrays: list[np.ndarray] = []
        parts: dict[str, list[np.ndarray]] = {name: [] for name in texts}
        troubles, start = Troubles(), 0
        for block in blocks:
            with _parser_errors(self.path):
                lines = self._lines(block, start)
                # "1," takes two bytes of text and eight of memory.
                size = (start + lines.count) * (len(features) + len(texts)) * VALUE_BYTES
                if self.limit is not None and size > self.limit:
                    raise too_large(self.path, self.limit)
                if not lines.count:
                    continue
                if features:
                    arrays.append(self._features(lines, features, start, troubles))
                if texts:
                    written = self._parse(lines, texts.values(), as_written=True)
                    for name, index in texts.items():
                        parts[name].append(written[index].to_numpy())
            start += lines.count
        if not start:
            raise InputError(
                problem=f"{self.path.name} has no rows below its column names", remedy="add rows"
            )
        array = np.concatenate(arrays) if arrays else None
        return array, {name: np.concatenate(column) for name, column in parts.items()}, troubles

    def _lines(self, block: bytes, start: int) -> _Lines:
        """Check that every row has a value for every column and well-formed quotes, neither of which pandas checks."""
        if not block.isascii():
            block.decode("utf-8")  # pandas does not check columns that are not in use
        if QUOTE in block or not self.delimiter.isascii():
            text = io.StringIO(block.decode("utf-8"), newline="")
            rows = filter(None, csv.reader(text, delimiter=self.delimiter, strict=True))
            lengths = np.fromiter(map(len, rows), dtype=np.int64)
            self._check_lengths(lengths, start)
            # The Python parser, used for delimiters that are not ASCII, does not read floats exactly.
            padded = not self.delimiter.isascii() or len(_leading_zeros(np.frombuffer(block, np.uint8))) > 0
            return _Lines(block, len(lengths), frozenset(range(len(self.names))) if padded else frozenset())
        # Positions below are counted from line feeds.
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if block.startswith(b"\n") or b"\n\n" in block:
            block = b"\n".join(line for line in block.split(b"\n") if line)
        codes = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(codes == ord("\n"))
        # The last line can lack its line end.
        if block and not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        marks = np.flatnonzero(codes == ord(self.delimiter))
        # Delimiters up to each line end, minus those up to the end before it, plus one.
        self._check_lengths(np.diff(np.searchsorted(marks, ends), prepend=0) + 1, start)
        zeros = _leading_zeros(codes)
        # Delimiters before the zero, minus those of the complete lines before it.
        columns = np.searchsorted(marks, zeros) - np.searchsorted(ends, zeros) * (len(self.names) - 1)
        return _Lines(block, len(ends), frozenset(columns.tolist()))

    def _check_lengths(self, lengths: Shaped[np.ndarray, " row"], start: int) -> None:
        wrong = np.flatnonzero(lengths != len(self.names))
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                problem=f"{self.path.name}: row {start + row} has {lengths[row]} values for {len(self.names)} columns",
                remedy="give every row a value for every column, and put texts with the delimiter in quotes",
            )

    def _parse(self, lines: _Lines, columns: Collection[int], as_written: bool) -> pandas.DataFrame:
        """Parse some columns of a block as text exactly as written, or as numbers if pandas recognises them."""
        import pandas

        options: dict[str, Any] = {"engine": "c", "low_memory": False}
        # The default parser of floats is exact since pandas 3.1, which deprecates the option.
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):
            options["float_precision"] = "round_trip"
        if not self.delimiter.isascii():  # the C parser requires a single byte
            options = {"engine": "python"}
        frame = pandas.read_csv(
            io.BytesIO(lines.block),
            sep=self.delimiter,
            header=None,
            names=range(len(self.names)),
            usecols=None if len(columns) == len(self.names) else sorted(columns),
            index_col=False,
            # One type for all columns, because pandas is slow with a type for each of many columns.
            dtype=object if as_written else None,
            na_filter=False,
            # Other blank lines were removed before; within quotes they can be part of a text.
            skip_blank_lines=QUOTE in lines.block,
            **options,
        )
        if len(frame) != lines.count:
            raise csv.Error(f"{lines.count} rows, of which pandas reads {len(frame)}")
        return frame

    def _features(
        self, lines: _Lines, features: list[int], start: int, troubles: Troubles
    ) -> Num[np.ndarray, "row feature"]:
        """Return the features of a block; values that cannot be features are recorded."""
        plain = [index for index in sorted(features) if index not in lines.padded]
        frame = self._parse(lines, plain, as_written=False) if plain else None
        is_number = [] if frame is None else [kind.kind in "if" for kind in frame.dtypes]
        clear = list(itertools.compress(plain, is_number))
        numbers = np.empty((lines.count, 0), dtype=np.int64)
        if frame is not None and clear:
            numbers = (frame if len(clear) == len(plain) else frame[clear]).to_numpy()
        # A float does not show whether a large number was written as an integer.
        small = ((numbers < LARGEST_WHOLE) & (numbers > -LARGEST_WHOLE)).all(axis=0)
        doubtful = set(features) - {clear[column] for column in np.flatnonzero(small)}
        if not doubtful and clear == features:
            return np.ascontiguousarray(numbers)
        read = {}
        if doubtful:
            texts = self._parse(lines, doubtful, as_written=True)
            read = {
                index: as_features(self.names[index], texts[index].tolist(), start, troubles)
                for index in doubtful
            }
        kind = np.result_type(numbers.dtype, *{column.dtype for column in read.values()})
        array = np.empty((lines.count, len(features)), dtype=kind)
        column_of = {index: column for column, index in enumerate(clear)}
        for column, index in enumerate(features):
            array[:, column] = read[index] if index in read else numbers[:, column_of[index]]
        return array


@dataclasses.dataclass(frozen=True)
class _Lines:
    """Checked, complete lines."""

    block: bytes
    count: int
    """Number of rows."""
    padded: frozenset[int]
    """Columns that are first read as text, because a value has a leading zero."""


def _leading_zeros(codes: UInt8[np.ndarray, " byte"]) -> Shaped[np.ndarray, " zero"]:
    """Return the positions of zeros that begin a number and are followed by a digit.

    >>> _leading_zeros(np.frombuffer(b"7,007,1.007,1e-07,-07", dtype=np.uint8)).tolist()
    [2, 19]
    """
    # Unsigned subtraction wraps around, so one comparison finds all digits.
    digit = codes - np.uint8(ord("0")) < 10
    zeros = np.flatnonzero((codes[:-1] == ord("0")) & digit[1:])
    zeros = zeros[(zeros == 0) | ~(digit[zeros - 1] | (codes[zeros - 1] == ord(".")))]
    # Near the beginning these indices wrap to the end; the condition on the last line excludes them.
    before, second = codes[zeros - 1], codes[zeros - 2]
    power = (before | 32) == ord("e")
    signed = ((before == ord("-")) | (before == ord("+"))) & ((second | 32) == ord("e"))
    return zeros[(zeros < 2) | ~(power | signed)]
