"""Datasets of other libraries: items, arrays with a shape, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from polariscope.core.errors import InputError
from polariscope.data.inputs import as_dataset
from polariscope.data.own.arrays import from_arrays, from_dataset

ROWS = np.random.default_rng(0).random((7, 3)).astype(np.float32)


class Given:
    """Items by number, as a map-style dataset has them."""

    def __init__(self, items) -> None:
        self.items = list(items)
        self.asked = 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index):
        self.asked += 1
        return self.items[index]


@pytest.mark.parametrize("form", [np.asarray, torch.tensor, list, lambda row: row.tolist()])
def test_items_of_any_form_are_rows(form):
    data = from_dataset(Given(form(row) for row in ROWS))
    np.testing.assert_array_equal(data.values([6, 0, 0]), ROWS[[6, 0, 0]])
    assert data.factor_names == ()


@pytest.mark.parametrize("label", [int, str, torch.tensor, lambda number: np.array([number])])
def test_the_second_of_a_pair_is_its_label(label):
    data = from_dataset(Given((row, label(number % 2)) for number, row in enumerate(ROWS)))
    assert data.factors(range(7))[:, 0].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert data.factor_sizes == (2,)


def test_several_labels_are_several_factors():
    items = [(row, number, 0.5 * number) for number, row in enumerate(ROWS)]
    data = from_dataset(Given(items))
    assert data.factor_names == ("label-1", "label-2")
    assert data.factor_kinds == ("categorical", "continuous")
    assert data.factors([3]).tolist() == [[3, 1.5]]


def test_dictionaries_are_read_by_the_usual_names_or_by_those_given():
    items = [{"image": row, "label": number, "caption": "x"} for number, row in enumerate(ROWS)]
    data = from_dataset(Given(items))
    assert data.factor_names == ("label",)
    assert data.choices == ("not used: 'caption'",)
    odd = Given({"first": row, "second": row, "kind": "ab"[number % 2]} for number, row in enumerate(ROWS))
    with pytest.raises(InputError, match=r"'first', 'second', 'kind', and it is not clear .* key='first'"):
        from_dataset(odd)
    chosen = from_dataset(odd, key="second", labels=["kind"])
    assert chosen.factor_classes == {"kind": ("a", "b")}
    with pytest.raises(InputError, match="no entry of the items named 'thrd'"):
        from_dataset(odd, key="thrd")
    with pytest.raises(InputError, match="key and labels are for items that are dictionaries"):
        from_dataset(Given(ROWS), key="image")


def test_pictures_are_images_of_bytes_with_their_channels():
    colour = np.random.default_rng(1).integers(0, 256, (4, 6, 3, 3), dtype=np.uint8)
    data = from_dataset(Given((Image.fromarray(image), 1) for image in colour))
    assert data.shape == (3, 6, 3)
    np.testing.assert_array_equal(data.images(range(4)), colour.transpose(0, 3, 1, 2))
    grey = from_dataset(Given(Image.fromarray(image[:, :, 0]) for image in colour))
    np.testing.assert_array_equal(grey.images(range(4))[:, 0], colour[..., 0])


def test_items_that_fit_are_asked_for_once_and_others_each_time():
    kept, asked = Given(ROWS), Given(ROWS)
    in_memory, lazy = from_dataset(kept), from_dataset(asked, cache_megabytes=0)
    before = (kept.asked, asked.asked)
    for data in (in_memory, lazy):
        np.testing.assert_array_equal(data.values([5, 1, 5]), ROWS[[5, 1, 5]])
    assert (kept.asked - before[0], asked.asked - before[1]) == (0, 3)
    assert in_memory.fingerprint == lazy.fingerprint == from_arrays(ROWS).fingerprint


def test_datasets_that_give_many_items_at_once_are_asked_so():
    class Many(Given):
        def __getitems__(self, indices):
            return [self.items[index] for index in indices]

    source = Many(ROWS)
    data = from_dataset(source, cache_megabytes=0)
    asked = source.asked
    np.testing.assert_array_equal(data.values([2, 4]), ROWS[[2, 4]])
    assert source.asked == asked
    subset = torch.utils.data.Subset(
        torch.utils.data.TensorDataset(torch.tensor(ROWS), torch.arange(7)), [5, 2]
    )
    data = from_dataset(subset)
    np.testing.assert_array_equal(data.values([0, 1]), ROWS[[5, 2]])
    assert data.factors([0, 1]).tolist() == [[5], [2]]


def test_arrays_of_hdf5_are_read_where_they_are(tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("rows", data=ROWS)
        lazy = from_dataset(file["rows"], cache_megabytes=0)
        for indices in ([6, 0, 0, 3], [2], [], [1, 2, 3]):
            np.testing.assert_array_equal(lazy.values(indices), ROWS[np.array(indices, dtype=int)])
        assert lazy.fingerprint == from_arrays(ROWS).fingerprint
        kept = from_dataset(file["rows"])
    np.testing.assert_array_equal(kept.values([4]), ROWS[[4]])


def test_arrays_that_take_only_slices_are_read_one_by_one():
    class Slices:
        shape, dtype = ROWS.shape, ROWS.dtype

        def __len__(self) -> int:
            return 7

        def __getitem__(self, key):
            if not isinstance(key, slice):
                raise TypeError("slices only")
            return ROWS[key]

    data = from_dataset(Slices(), cache_megabytes=0)
    np.testing.assert_array_equal(data.values([6, 0, 3, 0]), ROWS[[6, 0, 3, 0]])


def test_whatever_arrays_take_datasets_take():
    for given in (ROWS, ROWS.tolist(), torch.tensor(ROWS)):
        assert from_dataset(given).fingerprint == from_arrays(given).fingerprint
        assert as_dataset(given).fingerprint == from_arrays(given).fingerprint
    assert len(as_dataset(Given(ROWS))) == 7


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(ROWS)


class Endless:
    def __getitem__(self, index):
        return ROWS[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            Stream(),
            "return each observation by its index, got Stream, which only iterates; collect",
        ),
        (iter(ROWS), "which only iterates"),
        (torch.utils.data.DataLoader(Given(ROWS)), "pass the dataset that it loads, loader.dataset"),
        (Endless(), "must have a length, got Endless without one"),
        (object(), "be a dataset or an array, got object"),
        (Given([]), "the Given is empty"),
        (
            Given([ROWS[0], ROWS[0, :2]]),
            r"item 1 is of shape \(2,\) .* item 0 of shape \(3,\) .*; convert all items",
        ),
        (Given([ROWS[0], (ROWS[0], 1)]), "item 1 is .* with labels 'label'"),
        (Given(["text"]), "item 0 does not contain an array of numbers"),
        (Given([None]), "item 0 does not contain an array of numbers"),
        (Given([np.arange(3), ROWS[0]]), "item 1 contains float32 numbers, but item 0 contains int64"),
        (Given([(ROWS[0], np.zeros((2, 2)))]), "label 'label' of item 0 is neither a number nor a text"),
        (Given([ROWS[0], ROWS[0] * np.nan]), "X lacks 3 of 6 values"),
    ],
)
def test_what_gives_no_observations_by_number_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        from_dataset(given)


def test_items_that_change_are_refused():
    class Augmented(Given):
        def __getitem__(self, index):
            self.asked += 1
            return self.items[index] + self.asked

    with pytest.raises(InputError, match=r"item 0 of the Augmented changes every time .* augmentation"):
        from_dataset(Augmented(ROWS))


def test_a_layer_is_only_for_anndata():
    with pytest.raises(InputError, match="layer is for AnnData, got ndarray"):
        from_dataset(ROWS, layer="counts")


def test_zarr_arrays_are_read_where_they_are(tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(str(tmp_path / "rows.zarr"), data=ROWS, chunks=(2, 3))
    lazy = from_dataset(array, cache_megabytes=0)
    np.testing.assert_array_equal(lazy.values([6, 0, 3, 0]), ROWS[[6, 0, 3, 0]])
    assert lazy.fingerprint == from_arrays(ROWS).fingerprint


def test_an_object_that_lacks_items_is_refused():
    class Short:
        def __len__(self) -> int:
            return 10

        def __getitem__(self, index: int) -> np.ndarray:
            if index > 4:
                raise IndexError(index)
            return np.full(3, index)

    with pytest.raises(InputError, match="the Short has length 10, but no item 5"):
        from_dataset(Short())
    with pytest.raises(InputError, match=r"the dict has length 1, but no item 0 \(KeyError\)"):
        from_dataset({"X": np.ones((3, 2))})


@pytest.mark.parametrize(
    ("thing", "remedy"),
    [
        (lambda: Given([ROWS[0]] * 3), "use from_dataset, which reads its items"),
        (
            lambda: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(3, 2))),
            r"use from_dataset\(loader.dataset\)",
        ),
        (
            lambda: SimpleNamespace(X=ROWS, obs=None, layers={}),
            r"use from_dataset, whose options are layer and labels \(columns of obs\)",
        ),
        (lambda: from_arrays(ROWS), "it is a dataset already"),
        (lambda: "digits", r"use load_dataset\('digits'\)"),
        (lambda: Path("rows.csv"), r"use load_dataset\('rows.csv'\)"),
        (lambda: {"X": ROWS}, "pass the array of observations that it contains"),
    ],
)
def test_from_arrays_names_the_right_function_without_reading_an_item(thing, remedy):
    data = thing()
    with pytest.raises(InputError, match=rf"X must be an array of observations, got \w+; {remedy}"):
        from_arrays(data)
    assert getattr(data, "asked", 0) == 0


@pytest.mark.parametrize("form", [list, tuple, np.asarray, memoryview, torch.tensor])
def test_everything_that_holds_numbers_is_an_array(form):
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(from_arrays(form(rows)).values([1]), [[3.0, 4.0]])


def test_a_dataset_is_not_made_into_a_dataset_again():
    with pytest.raises(InputError, match="got ArraysDataset; it is a dataset already"):
        from_dataset(from_arrays(ROWS))
