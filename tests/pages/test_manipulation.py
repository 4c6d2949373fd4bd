"""The page of a manipulation: images side by side, the largest difference, and shares of variance."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from manipulations import keep_untrained
from polariscope.data.variance import VarianceShares
from polariscope.manipulation.manipulation import open_manipulation
from polariscope.pages.manipulation import (
    ManipulationRecord,
    manipulation_page,
    measure_manipulation,
    share_rows,
    write_manipulation_page,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attack") / "m"
    keep_untrained(folder, ps.load_dataset("sprites", image_size=16), 0.1)
    return folder


@pytest.fixture(scope="module")
def record(folder: Path) -> ManipulationRecord:
    return measure_manipulation(open_manipulation(folder), n_images=3, n_samples=150)


def test_the_record_is_of_original_and_manipulated_data(record: ManipulationRecord) -> None:
    assert record.before.shape == record.after.shape == (3, 1, 16, 16)
    assert 0 < np.abs(record.after - record.before).max() <= record.largest <= 0.1 + 1e-7
    assert record.shares is not None
    before, after = record.shares
    assert before.factor_names == ("shape", "scale", "orientation", "x", "y")
    assert before.local_share.sum() == pytest.approx(1)
    assert not np.allclose(before.local, after.local)


def test_shares_are_listed_with_how_far_they_moved() -> None:
    before = VarianceShares(("a", "b"), np.array([1.0, 3.0]), np.array([2.0, 2.0]), 4.0)
    after = VarianceShares(("a", "b"), np.array([3.0, 1.0]), np.array([2.2, 1.8]), 4.0)
    rows = share_rows((before, after))
    assert rows is not None
    assert rows[0]["factor"] == "a"
    assert rows[0]["local"] == pytest.approx((0.25, 0.75, 0.5))
    assert rows[0]["global"] == pytest.approx((0.5, 0.55, 0.05))
    assert share_rows(None) is None


def test_the_page_shows_it_all_and_needs_nothing_from_outside(record: ManipulationRecord) -> None:
    page = manipulation_page(record).render()
    assert page == manipulation_page(record).render()
    assert page.count("data:image/png;base64,") == 3
    for text in ("original", "manipulated", "difference × 10", "largest difference", "seed-0 (mig 0.100)"):
        assert text in page
    plain = html.unescape(re.sub(r"<[^>]+>", "", page))  # words of the glossary are marked
    assert "The gap between their losses fell: +0.50 nats on the original data, -1.25 after" in plain
    assert record.shares is not None
    assert f"{100 * record.shares[0].local_share[3]:.1f} %" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_data_without_images_or_grid_have_a_page_too(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", X=draw.normal(size=(50, 4)), factors=draw.integers(3, size=(50, 2)))
    keep_untrained(tmp_path / "m", ps.load_dataset(tmp_path / "x.npz"))
    page = write_manipulation_page(tmp_path / "m").read_text(encoding="utf-8")
    assert "are not a full grid" in page
    assert "data:image/png" not in page
