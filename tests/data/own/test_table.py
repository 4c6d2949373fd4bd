"""Tables in files: which columns are what, and what is refused by name."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pandas
import pyarrow.parquet
import pytest

from polariscope.core.errors import InputError
from polariscope.data.chain import apply_variants
from polariscope.data.own.arrays import from_arrays
from polariscope.data.own.support import separated
from polariscope.data.own.table import TableDataset
from polariscope.data.sources import load_dataset, load_recorded
from polariscope.training.plan import plan

TEXT = "height,weight,species,age\n1.5,3,owl,2\n-2e-3,4,cat,3\n7,5,owl,2\n"


@pytest.fixture
def write(tmp_path):
    def make(text: str, name: str = "table.csv") -> str:
        path = tmp_path / name
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return make


def check(data) -> None:
    assert data.feature_names == ("height", "weight")
    np.testing.assert_array_equal(data.values([2, 1]), np.array([[7, 5], [-2e-3, 4]], dtype=np.float32))
    assert data.factor_names == ("species", "age")
    assert data.factor_kinds == ("categorical", "categorical")
    assert data.factors([0, 1, 2]).tolist() == [[1, 2], [0, 3], [1, 2]]
    assert data.factor_classes == {"species": ("cat", "owl")}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.CSV", "t.csv.gz", "t.tsv.gz"])
def test_text_files_are_read_by_their_ending(write, name):
    text = TEXT.replace(",", "\t") if "tsv" in name else TEXT
    data = load_dataset(write(text, name), labels=["species", "age"])
    check(data)
    assert load_recorded(data.describe()).fingerprint == data.fingerprint


def test_parquet_gives_the_same_as_text(write, tmp_path):
    frame = pandas.read_csv(write(TEXT))
    frame["species"] = frame["species"].astype("category")
    frame.to_parquet(tmp_path / "table.parquet")
    data = load_dataset(tmp_path / "table.parquet", labels="species,age")
    check(data)
    assert data.fingerprint == load_dataset(write(TEXT), labels="species,age").fingerprint


def test_columns_and_row_names_are_chosen_by_name(write):
    data = TableDataset(write(TEXT), columns=("weight", "height"), row_names="species")
    assert data.feature_names == ("weight", "height")
    assert data.values([0]).tolist() == [[3, 1.5]]
    assert data.ids([2, 1]).tolist() == ["owl", "cat"]
    assert data.factor_names == ()


def test_whole_numbers_stay_whole_until_one_is_not(write, monkeypatch):
    monkeypatch.setattr(separated, "BLOCK_BYTES", 11)  # about two lines
    rows = [[1, 10], [2, 20], [3, 30], [4, 40], [5, 50]]
    text = "a,b\n" + "\n".join(f"{a},{b}" for a, b in rows)
    assert TableDataset(write(text))._rows.dtype == np.int64
    data = TableDataset(write(text + ".5"))
    assert data._rows.dtype == np.float64
    np.testing.assert_array_equal(data.values([4, 0]), [[5, 50.5], [1, 10]])


def test_quotes_blank_lines_and_a_byte_order_mark_are_read(write):
    data = TableDataset(write('\ufeff"a","b, c"\r\n1,2\r\n\r\n"3",4\r\n'))
    assert data.feature_names == ("a", "b, c")
    assert data.values([0, 1]).tolist() == [[1, 2], [3, 4]]


def test_the_index_of_pandas_names_the_rows(write, tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    frame.to_csv(tmp_path / "frame.csv")
    frame.to_parquet(tmp_path / "frame.parquet")
    for name in ("frame.csv", "frame.parquet"):
        data = load_dataset(str(tmp_path / name))
        assert data.feature_names == ("a",)
        assert data.ids([1, 0]).tolist() == ["y", "x"]
        assert "identifies rows" in data.choices[0]


def test_a_table_without_a_line_of_names_is_announced(write):
    data = TableDataset(write("1,2\n3,4\n"))
    assert data.choices == ("no line of column names, so columns are numbered",)
    assert data.feature_names == ()
    assert data.values([0]).tolist() == [[1, 2]]
    years = TableDataset(write("1999,2000\n3,4\n"), header=True)
    assert years.feature_names == ("1999", "2000")
    assert len(years) == 1


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "a,b\n1,x\n2,3\n",
            {},
            "table.csv: column 'b' holds 'x' in row 0, which is no number; .*other columns with columns.*labels",
        ),
        (
            "a,b\n1,2\n,NA\n3,\n",
            {},
            "column 'a' lacks 1 value, first in row 1; column 'b' lacks 2 values, first in row 1",
        ),
        ("a,b\n1,2\nnan,x\n", {}, "'a' lacks 1 value.*; column 'b' holds 'x' in row 1, which is no number"),
        ("a,b\n1,2\n3,inf\n", {}, "X must be finite, got 1 .* first in row 1, column 'b'"),
        ("a,b\n1,2\n3\n", {}, "row 1 has 1 values for 2 columns"),
        ("a,b\n1,2,3\n", {}, "row 0 has 3 values for 2 columns"),
        ("a,a\n1,2\n", {}, "more than one column named 'a'"),
        ("a,\n1,2\n", {}, "column 1 has no name"),
        ("a,b\n", {}, "has no rows below its column names"),
        ("", {}, "is empty"),
        ("a;b\n1,5;2\n", {}, "a single column, and ';' .* with delimiter=';'"),
        ("a\tb\n1\t2\n", {}, "single column"),
        ('a,b\n1,"2\n', {}, "cannot be read as a table"),
        ("a,b\n1,x\n2,\n", {"labels": ("b",)}, "column 'b' lacks 1 value, first in row 1"),
        ("a,b\n1,2\n", {"columns": ("c",)}, "no column of table.csv named 'c'; there are a, b"),
        ("a,b\n1,2\n", {"labels": ("a", "b")}, "no column left"),
        ("a,b\n1,2\n", {"labels": ("a",), "columns": ("a",)}, "'a' cannot be two of"),
        ("a,b\n1,2\n", {"columns": ("a", "a")}, "asked for twice"),
        ("a,b\n1,2\n", {"delimiter": "::"}, "delimiter must be one character"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_by_name(write, text, options, words):
    with pytest.raises(InputError, match=words):
        TableDataset(write(text), **options)


def test_another_delimiter_is_read_when_it_is_said(write):
    assert TableDataset(write("a;b\n1.5;2\n"), delimiter=";").values([0]).tolist() == [[1.5, 2]]


def test_files_that_are_no_tables_are_refused(write, tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*none.csv"):
        TableDataset(str(tmp_path / "none.csv"))
    (tmp_path / "latin.csv").write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(InputError, match="must be text in UTF-8"):
        TableDataset(str(tmp_path / "latin.csv"))
    whole = gzip.compress(TEXT.encode() * 100)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged"):
        TableDataset(str(tmp_path / "cut.csv.gz"))
    (tmp_path / "no.parquet").write_text("hello")
    with pytest.raises(InputError, match="damaged or no Parquet file"):
        TableDataset(str(tmp_path / "no.parquet"))


def test_a_gzipped_table_that_grows_beyond_its_limit_is_refused(write):
    path = write("a\n" + "1\n" * 10_000, "bomb.csv.gz")
    assert len(TableDataset(path)) == 10_000
    with pytest.raises(InputError, match="allow more with max_unpacked"):
        TableDataset(path, max_unpacked=1e-6)
    with pytest.raises(InputError, match="allow more with max_unpacked"):
        TableDataset(path, max_unpacked=5e-5)  # 20 kB of text, and 80 kB of numbers


def test_a_parquet_file_that_grows_beyond_its_limit_is_refused(tmp_path):
    """A value that repeats takes no room in the file: 3 kB hold what is 16 MB in memory."""
    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": np.zeros(10**6), "b": np.zeros(10**6)}), path)
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match=r"would unpack to 0\.0 GB.*allow more with max_unpacked"):
        TableDataset(str(path), max_unpacked=0.015)
    assert len(TableDataset(str(path), max_unpacked=0.017)) == 10**6
    assert len(TableDataset(str(path), columns=("a",), max_unpacked=0.015)) == 10**6


def test_parquet_with_text_or_missing_values_is_refused_by_name(tmp_path):
    path = tmp_path / "table.parquet"
    table = pyarrow.table({"a": [1.0, None], "b": ["x", "y"], "c": [[1], [2]], "d": [1, 2]})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(
        InputError,
        match=r"'a' lacks 1 value, first in row 1; column 'b' holds 'x' in row 0, .*; column 'c'",
    ):
        TableDataset(str(path))
    assert TableDataset(str(path), columns=("d",), labels=("b",)).factor_classes == {"b": ("x", "y")}
    with pytest.raises(InputError, match="delimiter is for text files"):
        TableDataset(str(path), delimiter=";")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0]}), tmp_path / "table.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"needs pyarrow.*pip install 'polariscope\[parquet\]'"):
        TableDataset(str(tmp_path / "table.parquet"))


def test_a_table_holds_what_the_same_frame_holds(write):
    path = write(TEXT)
    frame = pandas.read_csv(path)
    same = from_arrays(frame[["height", "weight"]], frame[["species", "age"]])
    assert TableDataset(path, labels=("species", "age")).fingerprint == same.fingerprint


FOLDS = "height,species,fold,patient\n" + "".join(
    f"{row / 7},{'owl' if row % 2 else 'cat'},{'test' if row > 8 else 'train'},p{row % 9 // 3}{row > 8}\n"
    for row in range(12)
)


def test_columns_set_aside_are_neither_features_nor_factors_and_still_split_the_data(write, tmp_path):
    text = write(FOLDS)
    pandas.read_csv(text).to_parquet(tmp_path / "table.parquet")
    for path in (text, str(tmp_path / "table.parquet")):
        data = load_dataset(path, labels=["species"], aside=["fold", "patient"])
        assert data.feature_names == ("height",)
        assert data.factor_names == ("species",)
        assert data.column("fold").tolist() == ["train"] * 9 + ["test"] * 3
        assert load_recorded(data.describe()).fingerprint == data.fingerprint
        some = apply_variants(data, "subset:n=6,seed=1", standardise=True)
        assert some.column("patient").tolist() == data.column("patient")[some.ids(np.arange(6))].tolist()


def test_a_changed_column_that_was_set_aside_changes_the_fingerprint(write):
    data = load_dataset(write(FOLDS), labels=["species"], aside=["fold", "patient"])
    other = load_dataset(
        write(FOLDS.replace("p0False", "p9False"), "other.csv"), labels=["species"], aside=["fold", "patient"]
    )
    assert data.fingerprint != other.fingerprint


def test_a_column_is_used_for_one_thing(write):
    with pytest.raises(InputError, match="'species' cannot be two of feature, label, name of rows and aside"):
        load_dataset(write(FOLDS), labels=["species"], aside=["species", "fold", "patient"])


def test_labels_have_the_kinds_that_are_said(write):
    """Steps to neighbouring values, as slow and pcl take them, need factors with an order."""
    text = "height,turn,size\n" + "".join(f"{row / 7},{row % 3},{row // 3}\n" for row in range(9))
    data = load_dataset(write(text), labels=["turn", "size"], factor_kinds=["cyclic", "ordinal"])
    assert data.factor_kinds == ("cyclic", "ordinal")
    assert load_recorded(data.describe()).factor_kinds == ("cyclic", "ordinal")
    plan(data, "slow", "mlp", 2)
    with pytest.raises(InputError, match="say which factors have an order with factor_kinds"):
        plan(load_dataset(write(text), labels=["turn", "size"]), "slow", "mlp", 2)
    with pytest.raises(InputError, match="factor_kinds must have one entry for each of the 2 factors"):
        load_dataset(write(text), labels=["turn", "size"], factor_kinds=["cyclic"])
    with pytest.raises(InputError, match="none were given"):
        load_dataset(write(text), factor_kinds=["cyclic"])
