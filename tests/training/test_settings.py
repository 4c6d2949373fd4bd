"""Which observations a run trains on, and that it is recorded."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.training.plan import plan
from polariscope.training.settings import TrainSettings

N = 60
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 4))
FOLD = np.repeat([0, 1, 2], [40, 10, 10])
PATIENT = np.repeat(np.arange(20), 3)
TABLE = ps.from_arrays(X, np.stack([FOLD, PATIENT], axis=1), factor_names=["fold", "patient"])
SHORT = {"net": "linear", "n_latents": 2, "steps": 2, "log_every": 1, "batch_size": 8}


@dataclasses.dataclass(frozen=True)
class Official(AbstractDataset):
    """A dataset with a split of its own, in which patients stay together."""

    n_test: int = 12
    has_groups: bool = False

    @property
    def name(self) -> str:
        return "official"

    @property
    def shape(self) -> tuple[int, ...]:
        return (4,)

    def __len__(self) -> int:
        return N

    def values(self, indices):
        return X[self.check_indices(indices)].astype(np.float32)

    def parts(self):
        return (
            {"train": np.arange(N - self.n_test), "test": np.arange(N - self.n_test, N)}
            if self.n_test
            else None
        )

    def groups(self, indices):
        return PATIENT[self.check_indices(indices)] if self.has_groups else None


def test_without_a_word_the_split_and_the_record_are_those_of_before():
    job = plan(TABLE, **SHORT)
    record = job.describe("cpu")
    assert not {"split", "split_column", "group_column"} & set(record["training"])
    assert (job.split.train == TrainSettings().random_split(N).train).all()
    assert record["split"] == {"by": "random", "held_out": True, "train": 54, "validation": 3, "test": 3}


def test_a_column_decides_the_split():
    job = plan(TABLE, **SHORT, split_column="fold")
    for number, part in enumerate((job.split.train, job.split.validation, job.split.test)):
        assert sorted(part) == np.flatnonzero(number == FOLD).tolist()
    record = job.describe("cpu")
    assert record["training"]["split_column"] == "fold"
    assert record["split"]["by"] == "column fold"
    assert record["hash"] != plan(TABLE, **SHORT).describe("cpu")["hash"]
    with pytest.raises(
        InputError, match=r"no column named 'folds'; there are fold, patient. .*Did you mean 'fold'"
    ):
        plan(TABLE, **SHORT, split_column="folds")
    with pytest.raises(InputError, match="column 'patient' must contain train, validation or test"):
        plan(TABLE, **SHORT, split_column="patient")
    with pytest.raises(InputError, match="split_column and split both define"):
        plan(TABLE, **SHORT, split_column="fold", split="random")


def test_groups_are_kept_together():
    job = plan(TABLE, **SHORT, group_column="patient", train_fraction=0.6)
    pieces = [set(PATIENT[part]) for part in (job.split.train, job.split.validation, job.split.test)]
    assert sum(map(len, pieces)) == 20
    assert job.describe("cpu")["split"]["by"] == "groups"
    with pytest.raises(InputError, match="is in train and in validation"):
        plan(TABLE, **SHORT, split_column="fold", group_column="patient")


def test_the_official_split_is_taken_and_announced_unless_a_random_one_is_asked_for():
    job = plan(Official(), **SHORT)
    assert sorted(job.split.test) == list(range(48, 60))
    assert "official split (43 train, 5 validation, 12 test)" in job.chosen
    assert job.describe("cpu")["training"]["split"] == "official"
    other = plan(Official(), **SHORT, split="random")
    assert len(other.split.test) == 3
    assert other.describe("cpu")["training"]["split"] == "random"
    with pytest.raises(
        InputError, match="official has no official split; use split='random' or split_column"
    ):
        plan(Official(n_test=0), **SHORT, split="official")
    grouped = plan(Official(n_test=0, has_groups=True), **SHORT, train_fraction=0.6)
    assert any(words.startswith("split that keeps groups together") for words in grouped.chosen)
    assert not set(PATIENT[grouped.split.train]) & set(PATIENT[grouped.split.test])


@pytest.mark.usefixtures("undrawn")
def test_a_train_fraction_of_one_trains_on_everything_and_says_what_validation_is(tmp_path: Path):
    job = plan(TABLE, **SHORT, train_fraction=1)
    assert sorted(job.split.train) == list(range(N))
    assert "trained on everything, validated on 3 of the 60 training samples" in job.chosen
    run = tmp_path / "run"
    ps.train(TABLE, **SHORT, train_fraction=1, out=run)
    opened = ps.open_run(run, TABLE)
    assert len(opened.split().train) == N
    assert np.isfinite(opened.log()[-1]["validation"]["reconstruction"])
    with pytest.raises(InputError, match="the test part of the run's split is empty; use part='all'"):
        opened.regime(part="test")
    page = ps.report(run, TABLE).read_text()
    assert "on training data" in page
    assert "on held-out data" not in page


@pytest.mark.parametrize(
    ("data", "options", "test"),
    [
        (TABLE, {"split_column": "fold"}, np.flatnonzero(FOLD == 2)),
        (Official(), {}, np.arange(48, 60)),
    ],
)
def test_an_opened_run_has_the_split_it_was_trained_with(data, options, test, tmp_path: Path):
    run = tmp_path / "run"
    ps.train(data, **SHORT, **options, out=run)
    ps.train(data, **SHORT, **options, out=run)  # loads it
    opened = ps.open_run(run, data)
    assert sorted(opened.split().test) == test.tolist()
    assert sorted(opened.representation(part="test").indices) == test.tolist()
    record = json.loads((run / "settings.json").read_text())
    assert record["split"]["test"] == len(test)
    with pytest.raises(InputError, match="other settings"):
        ps.train(data, **SHORT, split="random", out=run)


def test_variants_keep_splits_columns_and_groups_in_their_own_numbers():
    rows = ps.apply_variants(TABLE, [{"name": "subset", "n": 30, "seed": 1}])
    job = plan(rows, **SHORT, split_column="fold")
    folds = rows.factors(np.arange(len(rows)))[:, 0]
    assert sorted(job.split.test) == np.flatnonzero(folds == 2).tolist()
    official = plan(ps.apply_variants(Official(has_groups=True), [{"name": "subset", "n": 30}]), **SHORT)
    assert official.settings.split == "official"
    assert len(official.split.train) + len(official.split.validation) + len(official.split.test) == 30
    counts = ps.from_arrays(np.arange(12).reshape(6, 2))
    assert not ps.apply_variants(counts, ["standardised"]).is_counts


def test_the_number_of_steps_is_limited() -> None:
    with pytest.raises(InputError, match=r"^steps must lie between 1 and 1,000,000,000, got 1000000001"):
        TrainSettings(steps=10**9 + 1)
    with pytest.raises(InputError, match=r"^epochs must be at most 100,000,000 for these data, got 1e\+09"):
        TrainSettings(epochs=1e9, batch_size=10).resolved(100)
    assert TrainSettings(epochs=1e8, batch_size=10).resolved(100).steps == 10**9
