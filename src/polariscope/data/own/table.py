"""Dataset of a table in a file: CSV, TSV or Parquet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Gt

from polariscope.core.errors import Argument, InputError
from polariscope.core.options import check_options, option
from polariscope.core.paths import resolved_path
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

    Every column is a feature, unless it is used as a label or as the names of rows, or is set aside. Nothing is
    guessed: an error names the features that contain text, integers with a leading zero (which are text), integers
    beyond 2^53, or missing values unless ``missing`` is set. Names of rows are text exactly as written. Labels, and
    columns set aside, are numbers if this loses nothing that is written, otherwise text exactly as written: 0001, 01
    and 1 are three classes, and NA is a class like any other. Labels of integers or text are classes (text is numbered
    in alphabetical order, and its names are kept); other numbers are continuous factors. Rows are counted from 0. The
    fingerprint is a hash of the data in use.
    """

    path: str
    """The file."""
    columns: tuple[str, ...] = ()
    """Columns that are features; empty for all columns without another use."""
    labels: tuple[str, ...] = ()
    """Columns that are factors or classes; they can contain text."""
    factor_kinds: tuple[FactorKind, ...] = ()
    """Kind of each label: categorical, ordinal, cyclic or continuous; by default, inferred from its values."""
    row_names: str | None = None
    """Column that identifies each row; None for row numbers."""
    aside: tuple[str, ...] = ()
    """Columns that are neither features nor factors: unused, or used by split_column or group_column."""
    delimiter: str | None = None
    """Separator of values; None for a tab in .tsv files, otherwise a comma."""
    header: bool | None = None
    """If True, the first line contains the names of the columns; if False, it is a sample. By default, it contains
    names if it has no number, and it is a sample if it has only numbers; a line with both raises an error."""
    unit_interval: bool = False
    """If True, values lie in [0, 1] and a Bernoulli likelihood is allowed."""
    max_unpacked: Annotated[float, Gt(0)] | None = None
    """Maximum size in gigabytes of a gzipped or Parquet file after unpacking; None for 200 times the size of the
    file, but at least 4."""
    missing: Missing = option("refuse", since="0.3", absent="refuse")  # noqa: RUF009
    """Treatment of missing values of a table: refuse them, drop rows with a missing value, or fill in the median of the
    column over all rows."""

    recorded: dataclasses.InitVar[bool] = False

    def __post_init__(self, recorded: bool) -> None:
        object.__setattr__(self, "path", str(resolved_path(self.path, "path")))
        contents = self._read(Path(self.path), recorded)
        self._fill(dataclasses.replace(contents, factor_kinds=self.factor_kinds or None))

    @classmethod
    def from_record(cls, name: str, options: Mapping[str, Any]) -> TableDataset:
        # A run of version 0.2 can use a table whose column names are partly numbers, which that version accepted.
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
