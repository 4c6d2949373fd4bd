"""A journal keeps every whole line, whatever happens to the process that writes the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from polariscope.storage.artefacts import Artefacts, Key
from polariscope.storage.documents import DamagedError
from polariscope.storage.journal import Journal, verify_journal

KEY = Key("course-codes", None, "data", settings={"n_samples": 3})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(Artefacts(tmp_path), KEY)
    journal.keep("a", {"value": 1.5, "infinite": float("inf")})
    journal.keep("b", {"value": (2, 3)})
    return journal


def test_contents_come_back_by_name_and_the_first_of_a_name_stays(journal: Journal, tmp_path: Path) -> None:
    journal.keep("a", {"value": 7})
    again = Journal(Artefacts(tmp_path), KEY)
    assert again.read() == {"a": {"value": 1.5, "infinite": "Infinity"}, "b": {"value": [2, 3]}}
    verify_journal(journal.path)


def test_what_another_process_kept_is_neither_lost_nor_kept_twice(journal: Journal, tmp_path: Path) -> None:
    other = Journal(Artefacts(tmp_path), KEY)
    other.keep("c", 1)
    journal.keep("c", 2)
    journal.keep("d", 3)
    other.keep("d", 4)
    other.keep("e", 5)
    assert {name: journal.read()[name] for name in "cde"} == {"c": 1, "d": 3, "e": 5}
    verify_journal(journal.path)


def test_lines_are_not_read_again_for_each_new_one(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "read", None)  # would be called
    journal.keep("c", 1)
    journal.keep("a", 2)
    monkeypatch.undo()
    assert list(journal.read()) == ["a", "b", "c"]


def test_a_damaged_file_that_was_not_read_is_set_aside_before_a_line_is_kept(
    journal: Journal, tmp_path: Path
) -> None:
    journal.path.write_bytes(journal.path.read_bytes().replace(b"1.5", b"1.6"))
    fresh = Journal(Artefacts(tmp_path), KEY)
    fresh.keep("c", 1)
    assert fresh.read() == {"c": 1}
    verify_journal(fresh.path)


def test_another_key_is_another_file(journal: Journal, tmp_path: Path) -> None:
    other = Journal(Artefacts(tmp_path), Key("course-codes", None, "data", settings={"n_samples": 4}))
    assert other.read() == {}
    assert other.path != journal.path


@pytest.mark.parametrize("n_bytes", [1, 20, 200])
def test_a_line_cut_by_a_kill_is_lost_alone_and_the_next_one_is_whole(journal: Journal, n_bytes: int) -> None:
    whole = journal.path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    journal.path.write_bytes(whole[: max(last, len(whole) - n_bytes)])
    assert list(journal.read()) == ["a"]
    verify_journal(journal.path)
    journal.keep("c", 1)
    assert journal.read() == {"a": {"value": 1.5, "infinite": "Infinity"}, "c": 1}
    verify_journal(journal.path)


def test_a_journal_of_half_a_line_is_an_empty_one(journal: Journal) -> None:
    journal.path.write_bytes(journal.path.read_bytes()[:10])
    assert journal.read() == {}
    verify_journal(journal.path)
    journal.keep("d", None)
    assert journal.read() == {"d": None}


def test_a_changed_line_is_refused_and_the_file_set_aside(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    journal.path.write_bytes(journal.path.read_bytes().replace(b"1.5", b"1.6"))
    with pytest.raises(DamagedError, match="line 2 does not match its hash"):
        verify_journal(journal.path)
    assert journal.read() == {}
    assert "computed again" in caplog.text
    assert journal.path.with_name(f"{journal.path.name}.damaged").exists()


def test_a_file_that_does_not_say_what_it_is_about_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "course-codes-000000000000.jsonl"
    file.write_text("{}\n")
    with pytest.raises(DamagedError, match="its key is missing"):
        verify_journal(file)
