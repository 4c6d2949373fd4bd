"""Tables in files: which columns are what, and what is refused by name."""

from __future__ import annotations

import gzip
import sys
import time

import numpy as np
import pandas
import polars
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
            "table.csv: column 'b' contains 'x' in row 0, which is not a number; .*other columns with columns.*labels",
        ),
        (
            "a,b\n1,2\n,NA\n3,\n",
            {},
            "lacks 3 of 6 values .*: column 'b' lacks 2 values, first in row 1; column 'a' lacks 1 value, first",
        ),
        ("a,b\n1,2\nnan,x\n", {}, "csv: column 'b' contains 'x' in row 1, which is not a number"),
        ("a,b\n1,2\n3,inf\n", {}, "X must be finite, got 1 .* first in row 1, column 'b'"),
        ("a,b\n1,2\n3\n", {}, "row 1 has 1 values for 2 columns"),
        ("a,b\n1,2,3\n", {}, "row 0 has 3 values for 2 columns"),
        ("a,a\n1,2\n", {}, "more than one column named 'a'"),
        ("a,\n1,2\n", {}, "column 1 has no name"),
        ("a,b\n", {}, "has no rows below its column names"),
        ("", {}, "is empty"),
        ("a;b\n1,5;2\n", {}, "a single column, but .* ';'; .* with delimiter=';'"),
        ("a\tb\n1\t2\n", {}, "single column"),
        ('a,b\n1,"2\n', {}, "cannot be read as a table"),
        ("a,b\n1,x\n2,\n", {"labels": ("b",)}, "column 'b' lacks 1 value, first in row 1"),
        ("a,b\n1,2\n", {"columns": ("c",)}, "no column of table.csv named 'c'; there are a, b"),
        ("a,b\n1,2\n", {"labels": ("a", "b")}, "no column left"),
        ("a,b\n1,2\n", {"labels": ("a",), "columns": ("a",)}, "'a' of table.csv cannot have two roles"),
        ("a,b\n1,2\n", {"columns": ("a", "a")}, "requested twice"),
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
    with pytest.raises(InputError, match="damaged or not a Parquet file"):
        TableDataset(str(tmp_path / "no.parquet"))


def test_a_gzipped_table_that_grows_beyond_its_limit_is_refused(write):
    path = write("a\n" + "1\n" * 10_000, "bomb.csv.gz")
    assert len(TableDataset(path)) == 10_000
    with pytest.raises(InputError, match="raise the limit with max_unpacked"):
        TableDataset(path, max_unpacked=1e-6)
    with pytest.raises(InputError, match="raise the limit with max_unpacked"):
        TableDataset(path, max_unpacked=5e-5)  # 20 kB of text, and 80 kB of numbers


def test_a_parquet_file_that_grows_beyond_its_limit_is_refused(tmp_path):
    """A value that repeats takes no room in the file: 3 kB hold what is 16 MB in memory."""
    path = tmp_path / "bomb.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": np.zeros(10**6), "b": np.zeros(10**6)}), path)
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match=r"would unpack to 0\.0 GB.*raise the limit with max_unpacked"):
        TableDataset(str(path), max_unpacked=0.015)
    assert len(TableDataset(str(path), max_unpacked=0.017)) == 10**6
    assert len(TableDataset(str(path), columns=("a",), max_unpacked=0.015)) == 10**6


def test_parquet_with_text_or_missing_values_is_refused_by_name(tmp_path):
    path = tmp_path / "table.parquet"
    table = pyarrow.table({"a": [1.0, None], "b": ["x", "y"], "c": [[1], [2]], "d": [1, 2]})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(
        InputError,
        match=r"parquet: column 'b' contains 'x' in row 0, .*; column 'c'",
    ):
        TableDataset(str(path))
    assert TableDataset(str(path), columns=("d",), labels=("b",)).factor_classes == {"b": ("x", "y")}
    with pytest.raises(InputError, match="delimiter is for text files"):
        TableDataset(str(path), delimiter=";")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0]}), tmp_path / "table.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"requires pyarrow.*pip install 'polariscope\[parquet\]'"):
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
    with pytest.raises(InputError, match=r"'species' of table\.csv cannot have two roles"):
        load_dataset(write(FOLDS), labels=["species"], aside=["species", "fold", "patient"])


def test_labels_have_the_kinds_that_are_said(write):
    """Steps to neighbouring values, as slow and pcl take them, need factors with an order."""
    text = "height,turn,size\n" + "".join(f"{row / 7},{row % 3},{row // 3}\n" for row in range(9))
    data = load_dataset(write(text), labels=["turn", "size"], factor_kinds=["cyclic", "ordinal"])
    assert data.factor_kinds == ("cyclic", "ordinal")
    assert load_recorded(data.describe()).factor_kinds == ("cyclic", "ordinal")
    plan(data, "slow", "mlp", 2)
    with pytest.raises(InputError, match="declare the factors that have an order with factor_kinds"):
        plan(load_dataset(write(text), labels=["turn", "size"]), "slow", "mlp", 2)
    with pytest.raises(InputError, match="factor_kinds must have one entry for each of the 2 factors"):
        load_dataset(write(text), labels=["turn", "size"], factor_kinds=["cyclic"])
    with pytest.raises(InputError, match="no factors were passed"):
        load_dataset(write(text), factor_kinds=["cyclic"])


def test_a_table_without_names_does_not_lose_its_first_sample(write):
    iris = "5.1,3.5,1.4,0.2,Iris-setosa\n7.0,3.2,4.7,1.4,Iris-versicolor\n"
    with pytest.raises(InputError, match=r"contains '5.1' and 'Iris-setosa'.*header=True or header=False"):
        TableDataset(write(iris), labels=("4",))
    data = TableDataset(write(iris), header=False, labels=("4",))
    np.testing.assert_array_equal(data.values([0]), np.float32([[5.1, 3.5, 1.4, 0.2]]))
    assert data.factor_classes == {"4": ("Iris-setosa", "Iris-versicolor")}
    named = TableDataset(write("kind,1999,2000\nowl,3,4\n"), header=True, labels=("kind",))
    assert named.feature_names == ("1999", "2000")


@pytest.mark.parametrize(
    ("first", "names"),
    [(",0,1", ("0", "1")), ("id,inf,nan", ("inf", "nan")), ("id,x1,2nd", ("x1", "2nd"))],
    ids=["numbered-by-pandas", "words-that-floats-know", "names-with-digits"],
)
def test_names_that_cannot_be_a_sample_are_names(write, first, names):
    row_names = None if first.startswith(",") else "id"
    data = TableDataset(write(f"{first}\n7,1.5,2\n8,3,4\n"), row_names=row_names)
    assert data.feature_names == names
    assert data.ids([0, 1]).tolist() == ["7", "8"]


def test_columns_set_aside_are_there_without_names_too(write):
    data = TableDataset(write("1,2\n3,4\n"), header=False, aside=("1",))
    assert data.column("1").tolist() == [2, 4]


CODES = "code,x\n0001,1.5\n01,2.5\n1,3.5\n"


def test_names_labels_and_groups_are_text_exactly_as_written(write):
    codes = ["0001", "01", "1"]
    assert TableDataset(write(CODES), row_names="code").ids([0, 1, 2]).tolist() == codes
    assert TableDataset(write(CODES), labels=("code",)).factor_classes == {"code": tuple(codes)}
    assert TableDataset(write(CODES), aside=("code",)).column("code").tolist() == codes
    # As numbers these would be a single class.
    assert TableDataset(write("a,x\n1.0,1\n1,2\n"), labels=("a",)).factor_classes == {"a": ("1", "1.0")}
    large = "a,x\n99999999999999999998,1\n99999999999999999999,2\n"
    assert TableDataset(write(large), labels=("a",)).factor_sizes == (2,)


def test_a_mark_of_missing_values_is_a_label_like_any_other(write):
    words = ["NA", "US", "None", "nan", "?"]
    text = "country,x\n" + "".join(f"{word},{row}.5\n" for row, word in enumerate(words))
    assert TableDataset(write(text), row_names="country").ids(range(5)).tolist() == words
    data = TableDataset(write(text), labels=("country",))
    assert data.column("country").tolist() == words
    assert data.factor_classes == {"country": tuple(sorted(words))}
    numbered = TableDataset(write("site,x\n1,1\nNA,2\n"), labels=("site",))
    assert numbered.factor_classes == {"site": ("1", "NA")}
    frame = pandas.read_csv(write(text), keep_default_na=False)
    assert from_arrays(frame[["x"]], frame["country"]).factor_classes == data.factor_classes
    assert from_arrays(frame[["x"]], words).factor_sizes == (5,)
    assert from_arrays(frame.set_index("country")).ids(range(5)).tolist() == words


@pytest.mark.parametrize(
    ("text", "kinds"),
    [("dose,x\n1.5,1\nNA,2\n", ()), ("dose,x\n1,1\nNA,2\n", ("ordinal",)), ("dose,x\nlow,1\n ,2\n", ())],
    ids=["measured", "ordered", "empty"],
)
def test_a_label_that_needs_a_number_or_is_empty_is_missing(write, text, kinds):
    with pytest.raises(InputError, match="column 'dose' lacks 1 value, first in row 1"):
        TableDataset(write(text), labels=("dose",), factor_kinds=kinds)


def test_a_feature_with_a_leading_zero_is_text(write):
    with pytest.raises(
        InputError, match="column 'zip' contains '007' in row 1, which is text because of its leading"
    ):
        TableDataset(write("zip,x\n12,1.5\n007,2\n"))
    with pytest.raises(InputError, match="column 'zip' contains '-007' in row 1"):
        TableDataset(write('zip,x\n12,"1.5"\n-007,2\n'))
    numbers = "a,b,c\n0,0.07,1e-07\n-0.5,00.5,1E+07\n"
    np.testing.assert_array_equal(
        TableDataset(write(numbers)).values([0, 1]), np.float32([[0, 0.07, 1e-07], [-0.5, 0.5, 1e07]])
    )


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63, 10**30])
@pytest.mark.parametrize("other", ["2", "2.5"])
def test_whole_numbers_that_floats_cannot_represent_are_refused_in_features(write, number, other):
    with pytest.raises(
        InputError, match=f"column 'id' contains '{number}' in row 1, which is an integer beyond"
    ):
        TableDataset(write(f"id,x\n{other},1\n{number},1.5\n"))
    limit = TableDataset(write(f"id,x\n{other},1\n{2**53},1.5\n-1e30,1\n"))
    assert limit.values([1, 2])[:, 0].tolist() == [2**53, np.float32(-1e30)]


def test_whole_numbers_that_floats_cannot_represent_are_refused_in_frames_and_parquet(tmp_path):
    columns = {"x": [0.5, 1.5], "id": np.array([1, 2**53 + 1])}
    words = "column 'id' contains '9007199254740993' in row 1, which is an integer beyond"
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        with pytest.raises(InputError, match=words):
            from_arrays(frame)
    pandas.DataFrame(columns).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(InputError, match=words):
        TableDataset(str(tmp_path / "table.parquet"))


def test_floats_are_those_that_python_reads(write):
    """Every finite float, in the shortest writing and in more digits than it has, bit for bit."""
    draw = np.random.default_rng(0)
    floats = draw.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    floats = floats[np.abs(floats) < 3e38]
    texts = [repr(value) for value in floats.tolist()]
    texts += [f"{value:.30e}" for value in floats.tolist()]
    texts += [f"{draw.integers(10**15)}.{draw.integers(10**18):018d}" for _ in range(5_000)]
    for other in ("", "é"):  # the parsers in C and in Python
        array = TableDataset(
            write("a" + (other or ",") + "b\n" + "".join(f"{text}{other or ','}1\n" for text in texts)),
            delimiter=other or None,
        )._rows.array
        assert array[:, 0].tobytes() == np.array(list(map(float, texts))).tobytes()


def test_a_table_is_read_in_blocks_of_whole_lines(write, monkeypatch):
    """Line ends of every kind, in blocks that end anywhere."""
    rows = [[row / 7, row, f"p{row}"] for row in range(40)]
    for end in ("\n", "\r\n", "\r", "\n\n"):
        text = "a,b,c" + end + end.join(f"{a!r},{b},{c}" for a, b, c in rows)
        for size in (1, 7, 64, 2**24):
            monkeypatch.setattr(separated, "BLOCK_BYTES", size)
            data = TableDataset(write(text), row_names="c")
            assert data._rows.array.tolist() == [row[:2] for row in rows]
            assert data.ids([0, 39]).tolist() == ["p0", "p39"]
    monkeypatch.setattr(separated, "BLOCK_BYTES", 16)
    with pytest.raises(InputError, match="row 40 has 1 values for 3 columns"):
        TableDataset(write(text + "\n5"), row_names="c")
    with pytest.raises(InputError, match="'a' contains 'x' in row 40"):
        TableDataset(write(text + "\nx,1,2"), row_names="c")


def test_texts_in_quotes_can_contain_delimiters_quotes_and_lines(write, monkeypatch):
    monkeypatch.setattr(separated, "BLOCK_BYTES", 8)
    data = TableDataset(write('a,b\n1,"x, ""y"""\n2,"two\nlines"\n3,5"\n'), labels=("b",))
    assert data.column("b").tolist() == ['x, "y"', "two\nlines", '5"']
    with pytest.raises(InputError, match="cannot be read as a table"):
        TableDataset(write('a,b\n1,"2"3\n'))
    with pytest.raises(InputError, match="row 0 has 1 values"):
        TableDataset(write('a,b\n"1"\n'))


OLD = "height,weight,species,age,dose,fold,patient\n" + "".join(
    f"{row / 7},{row},{'owl' if row % 2 else 'cat'},{row % 3},{row / 4},{row % 3},p{row % 5}\n"
    for row in range(12)
)


def test_tables_have_the_fingerprints_of_version_0_2(write, tmp_path):
    """Fingerprint and record of polariscope 0.2.0 for the same file: its runs find their data."""
    old = "fc7e7930a980447f150c334a3b6161dd21481a9cd7566082a97d91a64d8c76a9"
    options = {"labels": ["species", "age", "dose"], "aside": ["fold", "patient"]}
    assert load_dataset(write(OLD), **options).fingerprint == old
    assert load_dataset(write(OLD.replace(",", "\t"), "t.tsv.gz"), **options).fingerprint == old
    pandas.read_csv(write(OLD)).to_parquet(tmp_path / "t.parquet")
    assert load_dataset(tmp_path / "t.parquet", **options).fingerprint == old
    record = {
        **{"name": "table", "path": write(OLD), "columns": [], "row_names": None, **options},
        **{"factor_kinds": ["categorical", "categorical", "continuous"], "delimiter": None, "header": None},
        **{"unit_interval": False, "max_unpacked": None, "shape": [12, 2], "fingerprint": old},
    }
    data = load_recorded(record)
    assert data.describe() == record


def test_frames_have_the_fingerprints_of_version_0_2():
    values = np.arange(12.0).reshape(4, 3) / 7
    columns = {"a": values[:, 0], "b": np.arange(4), "c": values[:, 2].astype(np.float32)}
    labels = {"kind": ["x", "y", "x", "y"], "level": [3, 2, 3, 2]}
    for library in (pandas, polars):
        data = from_arrays(library.DataFrame(columns), library.DataFrame(labels))
        assert data.fingerprint == "78c10d69390010a7d1724f5467d686666e0a63ebdb29d688f36bf7da775c71cf"


def test_a_record_of_version_0_2_is_read_as_that_version_did(write):
    """It took a first line with some numbers for names."""
    path = write("0,1,kind\n1.5,2,owl\n3,4,cat\n")
    with pytest.raises(InputError, match="could be column names or a sample"):
        load_dataset(path, labels=["kind"])
    fingerprint = "a132a9c4b6982fb662d801a4a9c3b6e6c2fea0d625335ed2fcdcc6d4bbdd6c13"
    record = {"name": "table", "path": path, "labels": ["kind"], "header": None, "fingerprint": fingerprint}
    data = load_recorded(record)
    assert data.feature_names == ("0", "1")
    assert data.header is None
    standard = apply_variants(data, "standardised")
    assert load_recorded(standard.describe()).fingerprint == standard.fingerprint


def test_the_time_to_read_a_wide_table_grows_with_its_columns(write):
    """Ten times the columns take about ten times as long; a quadratic reader would take a hundred times."""

    def seconds(n_columns: int) -> float:
        names = ",".join(f"c{column}" for column in range(n_columns))
        row = ",".join(f"{column / 7}" for column in range(n_columns))
        path = write(f"{names},kind\n{row},a\n{row},b\n", f"{n_columns}.csv")
        times = []
        for _ in range(3):
            start = time.process_time()
            assert TableDataset(path, labels=("kind",)).shape == (n_columns,)
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(40_000) < 30 * seconds(4_000)
