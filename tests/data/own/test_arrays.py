"""Arrays of every accepted form come out as they went in; the others are refused with a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from polariscope.core.errors import InputError
from polariscope.data.own.arrays import ArraysDataset, from_arrays
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
    with pytest.raises(InputError, match="holds flat rows of 2 features, no images"):
        data.images([0])
    with pytest.raises(InputError, match="no known factors; give it factors"):
        data.factors([0])


def test_flat_values_are_in_the_unit_interval_only_when_said():
    rows = np.array([[0.0, 1.0], [0.5, 0.25]])
    assert not from_arrays(rows).is_unit_interval
    assert from_arrays(rows, unit_interval=True).is_unit_interval
    with pytest.raises(InputError, match=r"unit_interval=True needs values in \[0, 1\], got 0.0 … 2.0"):
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
    assert np.shares_memory(from_arrays(BYTES)._array, BYTES)


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
    with pytest.raises(InputError, match="white=1 needs bytes that are 0 or 1, got bytes up to 119"):
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
    with pytest.raises(InputError, match="channels first or last; say which with layout='channels-first'"):
        from_arrays(array)
    np.testing.assert_allclose(
        from_arrays(array, layout="channels-first").values([0])[0], array[0], atol=1e-7
    )
    last = from_arrays(array, layout="channels-last")
    assert last.shape == (3, 3, 8)
    np.testing.assert_allclose(last.values([0])[0], array[0].transpose(2, 0, 1), atol=1e-7)


def test_tensors_and_frames_are_accepted():
    torch = pytest.importorskip("torch")
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
        ([[1.0, float("nan")]], "X must be finite, got 1 NaN or infinite of 2 values"),
        ([[1.0, float("inf")], [2.0, -float("inf")]], "got 2 NaN or infinite of 4"),
        ([["a", "b"]], "X must hold numbers, got dtype <U1"),
        (np.array([[1, None]]), "X must hold numbers, got dtype object"),
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
        ({"factors": [0.5, 1, 2], "factor_kinds": ["ordinal"]}, "'factor-1' must hold whole numbers"),
        ({"factor_names": ["a"]}, "none were given; pass factors"),
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
    refused("objects.npz", "must be an npz file of plain arrays; .*no object arrays")
    np.savez(tmp_path / "two.npz", a=np.eye(2), b=np.eye(2))
    refused("two.npz", "must name its observations X .* got a, b")
    np.savez(tmp_path / "both.npz", X=np.eye(2), images=np.eye(2))
    refused("both.npz", "must name its observations")
    whole = (tmp_path / "objects.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    refused("cut.npz", "must be an npz file")
    with pytest.raises(InputError, match=r"needs path, an .npz file; for arrays in memory use from_arrays"):
        ArraysDataset(None)


NORMAL = np.random.default_rng(0).normal(size=(500, 3))


def test_a_column_that_float32_would_collapse_is_refused_with_the_remedy():
    """At 1e8 float32 has steps of 8: of 500 values one or two are left."""
    for far in (1e8, -1e8, 1e13):
        with pytest.raises(
            InputError,
            match=r"column 1 lies between .* different values [12] would be left; subtract the mean",
        ):
            from_arrays(NORMAL + np.array([0.0, far, 1e3]))
    whole = 2**30 + np.arange(40)[:, None]
    with pytest.raises(InputError, match=r"column 0 lies between .* 40 different values"):
        from_arrays(whole)
    X = NORMAL + 1e8
    np.testing.assert_allclose(
        from_arrays(X - X.mean(axis=0)).values([0]), (X - X.mean(axis=0))[:1], rtol=1e-6
    )


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


def test_sparse_matrices_and_datasets_of_torch_are_refused_with_their_own_remedy():
    import scipy.sparse
    import torch

    with pytest.raises(InputError, match=r"got a sparse csr_matrix; use its toarray\(\)"):
        from_arrays(scipy.sparse.csr_matrix(np.eye(3)))
    with pytest.raises(InputError, match=r"got a TensorDataset, which holds 2; use .* tensors\[0\]"):
        from_arrays(torch.utils.data.TensorDataset(torch.rand(5, 3), torch.arange(5)))
