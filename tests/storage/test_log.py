"""A log that was changed anywhere, cut anywhere or mixed with another is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polariscope.storage.documents import DamagedError
from polariscope.storage.log import Log, Mark

LINES = [{"step": 10 * number, "loss": 1.0 / number, "words": "σ² — é"} for number in range(1, 13)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path / "log.jsonl", "origin")
    for line in LINES:
        made.append(line)
    return made


def again(log: Log, origin: str = "origin") -> Log:
    return Log(log.path, origin)


def test_lines_come_back_as_they_were_and_another_reader_finds_the_same_end(log: Log) -> None:
    assert again(log).read(log.end) == LINES
    assert again(log).end == log.end
    assert log.end.n_bytes == log.path.stat().st_size
    assert all("chain" in json.loads(line) for line in log.path.read_text().splitlines())


def test_appending_goes_on_with_the_chain_of_an_earlier_process(log: Log, tmp_path: Path) -> None:
    other = Log(tmp_path / "other.jsonl", "origin")
    for line in LINES[:5]:
        other.append(line)
    resumed = again(other)
    for line in LINES[5:]:
        resumed.append(line)
    assert other.path.read_bytes() == log.path.read_bytes()


def test_every_flipped_bit_is_noticed(log: Log) -> None:
    whole, mark = log.path.read_bytes(), log.end
    for position in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        log.path.write_bytes(damaged)
        with pytest.raises(DamagedError, match=r"log\.jsonl is damaged"):
            again(log).read(mark)


@pytest.mark.parametrize("kept", [0, 1, 8, 11])
def test_lines_missing_at_the_end_are_noticed_by_the_mark(log: Log, kept: int) -> None:
    mark = log.end
    log.path.write_text("".join(log.path.read_text().splitlines(keepends=True)[:kept]))
    noun = "line" if kept == 1 else "lines"
    words = rf"it has {kept} {noun}, but the model was saved when it had 12; lines at its end are missing"
    with pytest.raises(DamagedError, match=words):
        again(log).read(mark)


@pytest.mark.parametrize("change", ["swapped", "dropped", "doubled", "other origin"])
def test_lines_that_do_not_follow_each_other_are_noticed(log: Log, change: str) -> None:
    lines = log.path.read_text().splitlines(keepends=True)
    if change == "swapped":
        lines[3], lines[4] = lines[4], lines[3]
    elif change == "dropped":
        del lines[3]
    elif change == "doubled":
        lines.insert(3, lines[3])
    log.path.write_text("".join(lines))
    with pytest.raises(DamagedError, match="does not match its hash or the previous line"):
        again(log, "elsewhere" if change == "other origin" else "origin").read()


def test_a_whole_log_of_another_run_does_not_reach_the_mark(tmp_path: Path, log: Log) -> None:
    other = Log(tmp_path / "other.jsonl", "origin")
    for line in LINES:
        other.append({**line, "loss": 0.0})
    with pytest.raises(DamagedError, match="are not those that the model was saved with"):
        other.read(log.end)


def test_a_line_that_is_being_written_is_left_out(log: Log) -> None:
    with log.path.open("ab") as file:
        file.write(b'{"step": 130, "lo')
    assert again(log).read(log.end) == LINES


def test_cutting_keeps_what_the_mark_vouches_for(log: Log) -> None:
    marks = [log.start, *(mark for mark, _ in log._walk())]
    log.cut(marks[7])
    assert again(log).read(marks[7]) == LINES[:7]
    for line in LINES[7:]:
        log.append(line)
    assert log.end == marks[12]
    log.cut(None)
    assert again(log).read() == []


def test_a_torn_line_is_cut_off_before_the_run_goes_on(log: Log) -> None:
    mark = log.end
    with log.path.open("ab") as file:
        file.write(b'{"step": 130, "lo')
    resumed = again(log)
    resumed.cut(mark)
    resumed.append({"step": 130})
    assert again(log).read()[-1] == {"step": 130}


def test_cutting_to_a_mark_that_is_not_in_the_log_is_refused(log: Log) -> None:
    with pytest.raises(DamagedError, match="are not those that the model was saved with"):
        log.cut(Mark(100, 2, "0" * 64))
