"""Arrays of every accepted form come out as they went in; the others are refused with a remedy."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
import torch

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import ArraysDataset, from_arrays, from_dataset
from polariscope.data.sources import load_recorded

BYTES = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)


def test_flat_rows_come_back_as_float32_and_are_not_images():
    rows = np.array([[0.5, -2.0], [3.0, 4.0], [5.0, 1e-3]])
    data = from_arrays(rows)
    assert len(data) == 3
    assert data.shape == (2,)
    values = data.values([2, 0])
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, rows[[2, 0]].astype(np.float32))
    assert not data.is_unit_interval
    with pytest.raises(InputError, match="contains flat rows of 2 features, not images"):
        data.images([0])
    with pytest.raises(InputError, match="no known factors; pass factors"):
        data.factors([0])


def test_flat_values_are_in_the_unit_interval_only_when_said():
    rows = np.array([[0.0, 1.0], [0.5, 0.25]])
    assert not from_arrays(rows).is_unit_interval
    assert from_arrays(rows, unit_interval=True).is_unit_interval
    with pytest.raises(InputError, match=r"unit_interval=True requires values in \[0, 1\], got 0.0 … 2.0"):
        from_arrays(2 * rows, unit_interval=True)


def test_integers_and_booleans_are_numbers():
    np.testing.assert_array_equal(from_arrays([[1, 2], [3, 4]]).values([1]), [[3, 4]])
    np.testing.assert_array_equal(from_arrays(np.eye(3, dtype=bool)).values([1]), [[0, 1, 0]])


@pytest.mark.parametrize(
    ("array", "channels_first"),
    [
        (BYTES, BYTES.transpose(0, 3, 1, 2)),
        (BYTES.transpose(0, 3, 1, 2), BYTES.transpose(0, 3, 1, 2)),
        (BYTES[..., 0], BYTES[:, np.newaxis, :, :, 0]),
        (BYTES[..., :1], BYTES[:, np.newaxis, :, :, 0]),
    ],
)
def test_images_of_every_layout_have_their_channels_first(array, channels_first):
    data = from_arrays(array)
    assert data.shape == channels_first.shape[1:]
    assert data.is_unit_interval
    for images in (data.images([1, 0]), from_arrays(array / 255).images([1, 0])):
        assert images.dtype == np.uint8
        assert images.flags.c_contiguous
        np.testing.assert_array_equal(images, channels_first[[1, 0]])
    values = data.values([1, 0])
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, channels_first[[1, 0]] / 255, atol=1e-7)


def test_bytes_stay_bytes_and_are_not_copied():
    assert np.shares_memory(from_arrays(BYTES)._rows.array, BYTES)


BINARY = (np.arange(3 * 4 * 5) % 7 == 0).reshape(3, 4, 5).astype(np.uint8)


def test_bytes_that_are_all_0_and_1_are_black_and_white():
    data = from_arrays(BINARY)
    assert data.white == data.describe()["white"] == 1
    np.testing.assert_array_equal(data.values([2, 0])[:, 0], BINARY[[2, 0]])
    np.testing.assert_array_equal(data.images([2, 0])[:, 0], 255 * BINARY[[2, 0]])
    for same in (BINARY.astype(bool), BINARY.astype(float), 255 * BINARY):
        other = from_arrays(same)
        np.testing.assert_array_equal(other.values([0, 1, 2]), data.values([0, 1, 2]))
        np.testing.assert_array_equal(other.images([0, 1, 2]), data.images([0, 1, 2]))


def test_what_byte_is_white_is_read_off_the_whole_array_or_said():
    grey = np.concatenate([BINARY, np.full((1, 4, 5), 2, np.uint8)])
    assert from_arrays(grey).white == 255
    np.testing.assert_allclose(from_arrays(grey).values([0])[:, 0], BINARY[:1] / 255, atol=1e-7)
    assert from_arrays(np.zeros((2, 4, 4), np.uint8)).white == 255
    assert from_arrays(BINARY / 1.0).white is None
    dark = from_arrays(BINARY, white=255)
    np.testing.assert_array_equal(dark.images([0, 1, 2])[:, 0], BINARY)
    assert dark.values([0]).max() == np.float32(1 / 255)
    assert dark.fingerprint != from_arrays(BINARY).fingerprint


def test_a_byte_that_cannot_be_white_is_refused():
    with pytest.raises(InputError, match="white=1 requires bytes that are 0 or 1, got bytes up to 119"):
        from_arrays(BYTES, white=1)
    for white in (0, 254, True, 0.5):
        with pytest.raises((InputError, TypeError), match="white"):
            from_arrays(BINARY, white=white)
    for array in (BINARY / 1.0, BINARY[:, 0]):
        with pytest.raises(InputError, match="white is for images of bytes"):
            from_arrays(array, white=1)


def test_which_byte_is_white_survives_a_record(tmp_path):
    np.savez(tmp_path / "binary.npz", images=BINARY)
    for white in (None, 255):
        data = ArraysDataset(str(tmp_path / "binary.npz"), white=white)
        again = load_recorded(data.describe())
        assert again.white == data.white == (white or 1)
        np.testing.assert_array_equal(again.values([0, 1, 2]), data.values([0, 1, 2]))


def test_ambiguous_channels_are_settled_by_layout():
    array = np.random.default_rng(0).random((4, 3, 8, 3))
    with pytest.raises(InputError, match="channels first or last; choose with layout='channels-first'"):
        from_arrays(array)
    np.testing.assert_allclose(
        from_arrays(array, layout="channels-first").values([0])[0], array[0], atol=1e-7
    )
    last = from_arrays(array, layout="channels-last")
    assert last.shape == (3, 3, 8)
    np.testing.assert_allclose(last.values([0])[0], array[0].transpose(2, 0, 1), atol=1e-7)


def test_tensors_and_frames_are_accepted():
    np.testing.assert_array_equal(from_arrays(torch.ones(2, 3, requires_grad=True)).values([0]), [[1, 1, 1]])

    class Frame:
        def __array__(self, dtype=None, copy=None):
            return np.array([[1.0, 2.0]], dtype=dtype)

    np.testing.assert_array_equal(from_arrays(Frame()).values([0]), [[1, 2]])


def test_integer_factors_are_categorical_and_floats_continuous():
    X = np.zeros((4, 2))
    whole = from_arrays(X, [3, 1, 1, 7], factor_names=["digit"])
    assert (whole.factor_names, whole.factor_sizes, whole.factor_kinds) == (
        ("digit",),
        (3,),
        ("categorical",),
    )
    np.testing.assert_array_equal(whole.factors([3, 0]), [[7], [3]])
    assert whole.factors([0]).dtype == np.int64
    continuous = from_arrays(X, np.linspace(0, 1, 8).reshape(4, 2))
    assert continuous.factor_names == ("factor-1", "factor-2")
    assert continuous.factor_sizes == (0, 0)
    assert continuous.factor_kinds == ("continuous", "continuous")
    both = from_arrays(
        X, np.array([[0, 0.5], [1, 0.7], [2, 0.1], [0, 0.2]])
    )  # one array, one type for all columns
    assert both.factor_kinds == ("categorical", "continuous")
    assert both.factor_sizes == (3, 0)
    mixed = from_arrays(X, [[0, 0.5], [1, 0.7], [2, 0.1], [0, 0.2]], factor_kinds=["cyclic", "continuous"])
    assert mixed.factor_sizes == (3, 0)
    assert mixed.factors([1]).tolist() == [[1.0, 0.7]]
    assert from_arrays(X, [0.0, 1.0, 2.0, 1.0], factor_kinds=["ordinal"]).factors([2]).dtype == np.int64


def test_fingerprint_is_of_the_contents():
    rows = np.random.default_rng(0).random((5, 3))
    same = from_arrays(rows.copy()).fingerprint
    assert from_arrays(rows).fingerprint == same
    assert from_arrays(rows + 1e-9).fingerprint != same
    assert from_arrays(rows, [0, 1, 0, 1, 0]).fingerprint != same
    assert from_arrays(rows, unit_interval=True).fingerprint != same
    assert from_arrays(BYTES).fingerprint == from_arrays(BYTES.transpose(0, 3, 1, 2)).fingerprint


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (
            [[1.0, float("nan")]],
            "X lacks 1 of 2 values .NaN.: column 1 lacks 1 value, first in row 0; leave out rows",
        ),
        ([[1.0, float("inf")], [2.0, -float("inf")]], "got 2 NaN or infinite of 4"),
        ([["a", "b"]], "X must contain numbers, got dtype <U1"),
        (np.array([[1, None]]), "X must contain numbers, got dtype object"),
        ([[1, 2], [3]], "rows that do not fit together"),
        (np.zeros((0, 3)), r"at least one sample with one value, got shape \(0, 3\)"),
        (np.zeros((3, 0)), "at least one sample"),
        (3.0, "at least one sample"),
        (np.zeros(3), r"got shape \(3,\); reshape it"),
        (np.zeros((2, 1, 4, 4, 4)), "reshape it"),
        (
            np.full((2, 4, 4), 255.0),
            r"images of floats must lie in \[0, 1\], got 255.0 … 255.0; divide by 255",
        ),
        (
            np.zeros((2, 4, 4), dtype=np.int64),
            r"uint8 or floats in \[0, 1\], got int64; .*astype\(np.uint8\)",
        ),
        (np.zeros((2, 4, 4, 4)), "has neither 1 nor 3 channels first or last"),
        (np.full((2, 2), 1e300), "must fit float32"),
    ],
)
def test_bad_arrays_are_refused(X, words):
    with pytest.raises(InputError, match=words):
        from_arrays(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"factors": [1, 2]}, r"a row for each of the 3 samples, got \(2, 1\)"),
        ({"factors": np.zeros((3, 1, 1))}, r"shape \(sample, factor\)"),
        ({"factors": [1.0, float("nan"), 2.0]}, "factors must be finite"),
        (
            {"factors": [1, 2, 3], "factor_names": ["a", "b"]},
            "factor_names must have one entry for each of the 1",
        ),
        ({"factors": np.ones((3, 2)), "factor_names": ["a", "a"]}, "differ from one another"),
        (
            {"factors": [1, 2, 3], "factor_kinds": ["circular"]},
            "among categorical, ordinal, cyclic, continuous",
        ),
        ({"factors": [0.5, 1, 2], "factor_kinds": ["ordinal"]}, "'factor-1' must contain integers"),
        ({"factor_names": ["a"]}, "no factors were passed; pass factors"),
    ],
)
def test_bad_factors_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        from_arrays(np.zeros((3, 2)), **options)


@pytest.mark.parametrize("key", ["X", "images", "values", "anything"])
def test_files_are_read_by_key_or_as_the_only_array(tmp_path, key):
    path = tmp_path / "codes.npz"
    np.savez(path, **{key: BYTES}, factors=np.array([4, 5]), factor_names=np.array(["car"]))
    data = ArraysDataset(str(path))
    np.testing.assert_array_equal(data.images([0, 1]), BYTES.transpose(0, 3, 1, 2))
    assert data.factor_names == ("car",)
    assert data.factors([1]).tolist() == [[5]]
    assert data.fingerprint == from_arrays(BYTES, [4, 5], factor_names=["car"]).fingerprint


def test_a_bare_npy_file_is_read(tmp_path):
    np.save(tmp_path / "rows.npy", np.eye(3))
    np.testing.assert_array_equal(ArraysDataset(str(tmp_path / "rows.npy")).values([1]), [[0, 1, 0]])


def test_unreadable_files_are_refused_and_never_unpickled(tmp_path):
    def refused(name: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            ArraysDataset(str(tmp_path / name))

    refused("none.npz", "there is no file .*none.npz")
    (tmp_path / "text.npz").write_text("hello")
    refused("text.npz", "must be an npz file of plain arrays")
    np.savez(tmp_path / "objects.npz", X=np.array([{"a": 1}], dtype=object))
    refused("objects.npz", "must be an npz file of plain arrays; .*without object arrays")
    np.savez(tmp_path / "two.npz", a=np.eye(2), b=np.eye(2))
    refused("two.npz", "must name its observations X .* got a, b")
    np.savez(tmp_path / "both.npz", X=np.eye(2), images=np.eye(2))
    refused("both.npz", "must name its observations")
    whole = (tmp_path / "objects.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    refused("cut.npz", "must be an npz file")
    with pytest.raises(
        InputError, match=r"requires path, an .npz file; for arrays in memory use from_arrays"
    ):
        ArraysDataset(None)


NORMAL = np.random.default_rng(0).normal(size=(500, 3))


def test_a_column_that_float32_would_collapse_is_refused_with_the_remedy():
    """At 1e8 float32 has steps of 8: of 500 values one or two are left."""
    for far in (1e8, -1e8, 1e13):
        with pytest.raises(
            InputError,
            match=r"column 1 lies between .* only [12] of its .* different values .*; subtract the mean",
        ):
            from_arrays(NORMAL + np.array([0.0, far, 1e3]))
    whole = 2**30 + np.arange(40)[:, None]
    with pytest.raises(InputError, match=r"column 0 lies between .* 40 different values"):
        from_arrays(whole)
    X = NORMAL + 1e8
    np.testing.assert_allclose(
        from_arrays(X - X.mean(axis=0)).values([0]), (X - X.mean(axis=0))[:1], rtol=1e-6
    )


@pytest.mark.parametrize(
    "column",
    [(2**60 + np.arange(200)).astype(float), np.longdouble(2**60) + np.arange(200)],
    ids=["double", "long"],
)
def test_floats_beyond_2_53_that_would_collapse_are_refused_as_whole_numbers_are(column):
    """A range of 200 is below 1e-14 of the values, that of a computed constant, which is allowed below 2^53."""
    X = np.stack([NORMAL[:200, 0].astype(column.dtype), column], axis=1)
    with pytest.raises(
        InputError,
        match=r"column 'time' lies between 1\.15.* only 1 of its .*; leave out .* subtract a constant",
    ):
        from_arrays(X, feature_names=["a", "time"])
    constant = np.stack([column[:1].repeat(5), np.arange(5)], axis=1)
    assert len(from_arrays(constant)) == 5


def test_columns_that_float32_holds_are_taken_however_large():
    for X in (
        NORMAL + 1e5,
        NORMAL * 1e20,
        np.full((5, 2), 1e8 / 3),  # constants
        np.full((5, 2), 0.1)
        * (1 + 1e-15 * np.arange(5))[:, None],  # a constant as it comes out of a computation
        1e8 + 8.0 * np.arange(10)[:, None],  # few values, each held exactly
        2**30 + 128 * np.arange(10)[:, None],
    ):
        np.testing.assert_allclose(from_arrays(X).values(range(5)), X[:5], rtol=1e-7)


COUNTS = np.array([[0, 3, 0, 1], [0, 0, 0, 0], [7, 0, 0, 0], [0, 3, 2, 0]])


@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_array", "coo_array", "lil_array"])
def test_sparse_matrices_give_the_same_rows_as_dense_ones(form):
    data = from_arrays(getattr(scipy.sparse, form)(COUNTS), [0, 1, 1, 0])
    for indices in ([3, 0, 0, 2], [1], []):
        values = data.values(indices)
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, COUNTS[np.array(indices, dtype=int)])
    assert data.shape == (4,)
    assert data.fingerprint == from_arrays(scipy.sparse.csr_matrix(COUNTS), [0, 1, 1, 0]).fingerprint
    assert data.fingerprint != from_arrays(scipy.sparse.csr_matrix(COUNTS + 1), [0, 1, 1, 0]).fingerprint


def test_a_sparse_matrix_is_never_made_dense_as_a_whole_and_stays_as_it_was():
    """A dense copy would take 80 GB; duplicates are added up in a copy of our own."""
    rows, columns = np.array([0, 0, 99_999]), np.array([5, 5, 99_999])
    big = scipy.sparse.coo_array((np.array([1.0, 2.0, 4.0]), (rows, columns)), shape=(100_000, 100_000))
    data = from_arrays(big)
    assert data.values([0])[0, 5] == 3
    assert data.values([99_999]).sum() == 4
    unsorted = scipy.sparse.csr_array(
        (np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2)
    )
    from_arrays(unsorted)
    assert unsorted.indices.tolist() == [1, 0]


def test_what_is_wrong_in_a_sparse_matrix_is_refused():
    bad = scipy.sparse.csr_array(np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.raises(InputError, match="X lacks 1 of 4 values"):
        from_arrays(bad)
    with pytest.raises(InputError, match=r"unit_interval=True requires values in \[0, 1\], got 0.0 … 7.0"):
        from_arrays(scipy.sparse.csr_array(COUNTS), unit_interval=True)
    with pytest.raises(InputError, match=r"column 1 lies between 100000000 and 100000001.5"):
        from_arrays(scipy.sparse.csr_array(np.array([[0, 1e8], [1, 1e8 + 1], [0, 1e8 + 1.5]])))


def test_a_memory_map_stays_in_its_file_and_is_read_in_pieces(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).random((1000, 50))
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr("polariscope.data.own.support.rows.CHUNK_BYTES", 4000)
    data = from_arrays(mapped)
    assert isinstance(data._rows.array.base, np.memmap)
    assert max(len(chunk) for _, chunk in data._rows.chunks()) == 10
    np.testing.assert_array_equal(data.values([999, 3]), rows[[999, 3]].astype(np.float32))
    assert type(data.values([0])) is np.ndarray
    assert data.fingerprint == from_arrays(rows).fingerprint


def test_a_large_npy_file_is_mapped_and_announced(tmp_path, monkeypatch):
    monkeypatch.setattr("polariscope.data.own.support.archive.MAPPED_BYTES", 100)
    np.save(tmp_path / "images.npy", BYTES)
    data = ArraysDataset(str(tmp_path / "images.npy"))
    assert isinstance(data._rows.array.base, np.memmap)
    assert data.choices[0] == "read from the file as needed"
    np.testing.assert_array_equal(data.images([1]), BYTES.transpose(0, 3, 1, 2)[[1]])
    assert data.fingerprint == from_arrays(BYTES).fingerprint
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}] * 100, dtype=object))
    whole = (tmp_path / "images.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-5])
    for name in ("objects.npy", "cut.npy"):
        with pytest.raises(InputError, match="must be an npy file of a plain array"):
            ArraysDataset(str(tmp_path / name))


@pytest.mark.parametrize("key", ["y", "labels", "targets"])
def test_labels_beside_the_observations_are_factors_and_the_rest_is_named(tmp_path, key):
    np.savez(
        tmp_path / "data.npz", X=np.eye(3), **{key: np.array([2, 0, 2])}, weights=np.ones(3), notes=np.ones(1)
    )
    data = ArraysDataset(str(tmp_path / "data.npz"))
    assert data.factors([0, 1, 2]).tolist() == [[2], [0], [2]]
    assert data.factor_names == (key,)
    assert data.choices == (f"factors are {key!r}", "not used: 'weights', 'notes'")
    np.savez(tmp_path / "two.npz", X=np.eye(3), y=np.arange(3), labels=np.arange(3))
    with pytest.raises(InputError, match="must contain its factors once, got y, labels"):
        ArraysDataset(str(tmp_path / "two.npz"))


def test_names_of_features_and_rows_are_read_from_a_file(tmp_path):
    names = {"feature_names": np.array(["height", "weight"]), "ids": np.array(["ann", "bob", "eve"])}
    np.savez(tmp_path / "people.npz", X=np.ones((3, 2)), y=np.array(["f", "m", "f"]), **names)
    data = ArraysDataset(str(tmp_path / "people.npz"))
    assert data.feature_names == ("height", "weight")
    assert data.ids([2, 0]).tolist() == ["eve", "ann"]
    assert data.factors([0, 1]).tolist() == [[0], [1]]
    assert data.factor_classes == {"y": ("f", "m")}


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(
        InputError, match=r"feature_names must name each column .* got 1 names for X of shape \(2, 3\)"
    ):
        from_arrays(np.ones((2, 3)), feature_names=["a"])
    with pytest.raises(InputError, match="feature_names must name each column of flat rows"):
        from_arrays(np.zeros((2, 4, 4)), feature_names=["a", "b", "c", "d"])
    with pytest.raises(InputError, match="feature_names must differ from one another"):
        from_arrays(np.ones((2, 2)), feature_names=["a", "a"])
    with pytest.raises(InputError, match="ids must identify each of the 2 samples"):
        from_arrays(np.ones((2, 2)), ids=["a"])


def test_the_place_of_a_value_that_is_not_finite_is_named():
    rows = np.ones((4, 2))
    rows[2, 1] = np.inf
    with pytest.raises(InputError, match="first in row 2, column 'b'; drop"):
        from_arrays(rows, feature_names=["a", "b"])


def frame_of(library, columns):
    return {"pandas": pandas, "polars": polars}[library].DataFrame(columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_bring_the_names_of_their_columns(library):
    frame = frame_of(library, {"height": [1.5, 2.0, 2.5], "count": [1, 2, 3], "adult": [True, False, True]})
    labels = frame_of(
        library, {"species": ["owl", "cat", "owl"], "age": [3, 4, 3], "weight": [0.5, 0.1, 0.2]}
    )
    data = from_arrays(frame, labels)
    assert data.feature_names == ("height", "count", "adult")
    np.testing.assert_array_equal(data.values([2, 0]), [[2.5, 3, 1], [1.5, 1, 1]])
    assert data.factor_names == ("species", "age", "weight")
    assert data.factor_kinds == ("categorical", "categorical", "continuous")
    assert data.factors([0, 1]).tolist() == [[1, 3, 0.5], [0, 4, 0.1]]
    assert data.factor_classes == {"species": ("cat", "owl")}
    assert data.ids([1]).tolist() == [1]
    assert from_arrays(frame, labels["species"]).factor_names == ("species",)


def test_the_index_of_a_pandas_frame_names_the_rows():
    frame = pandas.DataFrame({"a": [1.0, 2.0]}, index=["first", "second"])
    assert from_arrays(frame).ids([1, 0]).tolist() == ["second", "first"]
    numbered = pandas.DataFrame({0: [1.0, 2.0], 1: [3.0, 4.0]}, index=[10, 20])
    assert from_arrays(numbered).feature_names == ()
    assert from_arrays(numbered).ids([1]).tolist() == [20]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_and_missing_values_of_frames_are_named(library):
    with pytest.raises(
        InputError, match=r"column 'b' contains 'x' in row 0, which is not a number; .*as factors"
    ):
        from_arrays(frame_of(library, {"a": [1.0, 2.0], "b": ["x", "y"]}))
    with pytest.raises(
        InputError, match=r"column 'a' lacks 2 values, first in row 1; column 'b' lacks 1 value"
    ):
        from_arrays(frame_of(library, {"a": [1.0, None, None], "b": [None, 2, 3]}))
    with pytest.raises(InputError, match=r"factors: column 'c' lacks 1 value, first in row 1"):
        from_arrays(np.ones((2, 1)), frame_of(library, {"c": ["x", None]}))


def test_text_factors_are_numbered_and_objects_are_refused():
    data = from_arrays(np.ones((3, 1)), ["b", "a", "b"], factor_names=["letter"])
    assert data.factors([0, 1, 2]).tolist() == [[1], [0], [1]]
    assert data.factor_classes == {"letter": ("a", "b")}
    with pytest.raises(InputError, match="column 'factor-1' lacks 1 value, first in row 1"):
        from_arrays(np.ones((2, 1)), np.array(["a", None], dtype=object))
    with pytest.raises(InputError, match="factor 'factor-1' must contain numbers or text, got dict"):
        from_arrays(np.ones((1, 1)), np.array([{}], dtype=object))


def test_a_tensor_dataset_is_used_with_its_labels():
    X, y = torch.rand(5, 3), torch.arange(5)
    for data in (
        from_arrays(torch.utils.data.TensorDataset(X, y)),
        from_dataset(torch.utils.data.TensorDataset(X, y)),
    ):
        np.testing.assert_array_equal(data.values([4, 1]), X[[4, 1]].numpy())
        assert data.factors([4]).tolist() == [[4]]
    assert from_arrays(torch.utils.data.TensorDataset(X)).factor_names == ()
    with pytest.raises(
        InputError, match=r"contains more than observations and labels, got shapes \(5, 3\), \(5, 2, 2\)"
    ):
        from_arrays(torch.utils.data.TensorDataset(X, torch.zeros(5, 2, 2)))


def test_a_lazy_frame_is_refused_with_its_remedy():
    with pytest.raises(InputError, match=r"X must be in memory, got a LazyFrame; collect it first"):
        from_arrays(polars.LazyFrame({"a": [1.0]}))


def test_dates_are_no_numbers():
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2020-01-01"]), "a": [1.0]})
    with pytest.raises(
        InputError, match=r"column 'day' contains '2020-01-01.*' in row 0, which is not a number"
    ):
        from_arrays(frame)


def test_frames_whose_rows_are_in_another_order_are_refused():
    """Rows are paired by their places: a frame of factors that was shuffled would give every sample another's."""
    rows = pandas.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["x", "y", "z"])
    kinds = pandas.Series([0, 1, 2], index=["x", "y", "z"], name="kind")
    assert from_arrays(rows, kinds).factors([2]).tolist() == [[2]]
    with pytest.raises(
        InputError, match=r"same rows in the same order, got 'x' and 'z' in row 0; .*loc\[X.index\]"
    ):
        from_arrays(rows, kinds[::-1])
    with pytest.raises(InputError, match="got 'z' and 'w' in row 2"):
        from_arrays(rows, kinds.rename({"z": "w"}))
    numbered = rows.reset_index(drop=True)
    with pytest.raises(InputError, match="same rows in the same order"):
        from_arrays(numbered, kinds.reset_index(drop=True)[::-1])
    assert from_arrays(numbered, kinds[::-1]).factors([0]).tolist() == [
        [2]
    ]  # numbers beside names say nothing


@pytest.mark.parametrize("tensor", [torch.eye(4).to_sparse(), torch.eye(4, dtype=torch.bfloat16)])
def test_tensors_that_numpy_cannot_read_are_refused_with_a_remedy(tensor):
    with pytest.raises(InputError, match=r"X must be convertible to a NumPy array.*to_dense\(\).float\(\)"):
        from_arrays(tensor)


def test_masked_factors_are_missing():
    """As an ordinary array the column would bring back what its owner masked."""
    values = np.ma.array([3, 1, 2], mask=[False, True, False])
    with pytest.raises(InputError, match="factors: column 'size' lacks 1 value, first in row 1"):
        from_arrays(np.eye(3), {"size": values, "kind": ["a", "b", "a"]})
    with pytest.raises(InputError, match="column 'kind' lacks 2 values, first in row 0"):
        from_arrays(np.eye(3), {"kind": np.ma.array(["a", "b", "c"], mask=[True, False, True])})
    whole = from_arrays(np.eye(3), {"size": np.ma.array([3, 1, 2])})
    assert whole.factors([0, 1, 2]).tolist() == [[3], [1], [2]]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_that_floats_cannot_represent_are_refused(dtype):
    array = np.zeros((4, 3), dtype=dtype)
    array[2, 1] = 2**53
    assert len(from_arrays(array)) == 4
    array[2, 1] += 1
    with pytest.raises(InputError, match=r"beyond 2\^53.*got 9007199254740993 in row 2, column 1"):
        from_arrays(array)
    with pytest.raises(InputError, match="in row 2, column 'time'"):
        from_arrays(scipy.sparse.csr_array(array), feature_names=["a", "time", "c"])
    assert from_arrays(np.eye(4), array[:, 1]).factors([2]).tolist() == [[2**53 + 1]]
    with pytest.raises(InputError, match="factor 'time' must be at most 2"):
        from_arrays(np.eye(4), {"time": array[:, 1], "dose": [0.5, 1, 2, 3]})
