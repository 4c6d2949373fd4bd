"""A table in a file as a dataset: CSV, TSV or Parquet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Gt

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import check_options, option
from polariscope.data.dataset import FactorKind, dataset
from polariscope.data.missing import Missing
from polariscope.data.own.support.contents import Contents
from polariscope.data.own.support.observed import AbstractRowsDataset
from polariscope.data.own.support.parquet import read_parquet
from polariscope.data.own.support.separated import read_separated

PARQUET = (".parquet", ".pq")


@dataset("table", endings=(".csv", ".tsv", ".csv.gz", ".tsv.gz", *PARQUET))
@dataclasses.dataclass(frozen=True, eq=False)
class TableDataset(AbstractRowsDataset):
    """Rows of numbers from a table: CSV or TSV, gzipped or not, or Parquet.

    Every column is a feature, unless it is named as a label, as the names of rows or set aside. Nothing is guessed: a
    feature that contains text is refused by name, and so are whole numbers with a leading zero, which are text, whole
    numbers beyond 2^53, and missing values unless ``missing`` says otherwise. Names of rows are text exactly as
    written. Labels, and columns set aside, are numbers if nothing that is written is lost, otherwise text exactly as
    written: 0001, 01 and 1 are three classes, and NA is one like any other. Labels of whole numbers or text are classes
    (text is numbered in alphabetical order, and keeps its names), other numbers are continuous factors. Rows are
    counted from 0. The fingerprint is a hash of what is used.
    """

    path: str
    """The file."""
    columns: tuple[str, ...] = ()
    """The columns that are features; none: all that are not used otherwise."""
    labels: tuple[str, ...] = ()
    """Columns that are factors or classes; they may hold text."""
    factor_kinds: tuple[FactorKind, ...] = ()
    """categorical, ordinal, cyclic or continuous for each label; none: by the values, as above."""
    row_names: str | None = None
    """The column that identifies each row; none: row numbers."""
    aside: tuple[str, ...] = ()
    """Columns that are neither features nor factors: not used, or named by split_column or group_column."""
    delimiter: str | None = None
    """What stands between values; none: a tab in .tsv files, else a comma."""
    header: bool | None = None
    """Whether the first line names the columns, yes or no; none: no if it contains only numbers, yes if it contains no
    number. A line with both is refused, since it could be names or a sample."""
    unit_interval: bool = False
    """Values lie in [0, 1] and may be given to a Bernoulli likelihood."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Gigabytes to which a gzipped or Parquet file may unpack; none: 4, or 200 times the file where that is more."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """What is done about missing values of a table: refuse them, drop rows that lack one, or fill in the median of the
    column over all rows."""

    recorded: dataclasses.InitVar[bool] = False

    def __post_init__(self, recorded: bool) -> None:
        object.__setattr__(self, "path", str(Path(self.path).expanduser().resolve()))
        contents = self._read(Path(self.path), recorded)
        self._fill(dataclasses.replace(contents, factor_kinds=self.factor_kinds or None))

    @classmethod
    def from_record(cls, name: str, options: Mapping[str, Any]) -> TableDataset:
        # A run of version 0.2 can be of a table whose names were partly numbers, which that version did not refuse.
        return cls(**check_options(f"dataset {name!r}", cls, options), recorded=True)

    def _read(self, path: Path, recorded: bool) -> Contents:
        columns = {
            "columns": self.columns,
            "labels": self.labels,
            "row_names": self.row_names,
            "aside": self.aside,
        }
        if not path.name.lower().endswith(PARQUET):
            return read_separated(
                path,
                **columns,  # type: ignore[arg-type]
                factor_kinds=self.factor_kinds,
                delimiter=self.delimiter,
                header=self.header,
                trust_names=recorded,
                max_unpacked=self.max_unpacked,
            )
        for name in ("delimiter", "header"):
            if getattr(self, name) is not None:
                raise InputError(
                    problem=(Argument(name), " is for text files"), got=path.name, remedy="leave it out"
                )
        return read_parquet(path, **columns, max_unpacked=self.max_unpacked)  # type: ignore[arg-type]
