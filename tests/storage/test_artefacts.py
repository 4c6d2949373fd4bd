"""Artefacts: one file for each key, never replaced, and a changed one is never taken for whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polariscope.storage import artefacts as module
from polariscope.storage.artefacts import Artefacts, Key, verify
from polariscope.storage.documents import DamagedError, FormatError, read_document, write_document

KEY = Key("regime", "m" * 64, "d" * 64, "all", 100, {"alpha": 0.1, "n_samples": 10})


def other(**changes: object) -> Key:
    return Key(**{**KEY.to_dict(), **changes})


def as_stored(arrays: dict[str, np.ndarray], metadata: Any) -> tuple[dict[str, np.ndarray], Any]:
    return arrays, metadata


def test_the_same_key_is_read_and_another_kept_beside_it(tmp_path: Path) -> None:
    kept = Artefacts(tmp_path)
    assert kept.read(KEY) is None
    kept.keep(KEY, {"value": 1})
    for change in (
        {"model": "n" * 64},
        {"data": "e" * 64},
        {"part": "test"},
        {"step": 50},
        {"settings": {"alpha": 0.2, "n_samples": 10}},
        {"kind": "scores"},
        {"polariscope": "0.0.1"},
    ):
        assert kept.read(other(**change)) is None
        kept.keep(other(**change), {"value": 2})
    assert kept.read(KEY) == {"value": 1}
    assert [one.number for one in kept] == list(range(1, 9))
    assert next(iter(kept)).key == KEY
    assert len({one.path for one in kept}) == 8


def test_what_is_there_stays_unless_it_can_grow(tmp_path: Path) -> None:
    kept = Artefacts(tmp_path)
    kept.keep(KEY, {"a": 1})
    assert kept.keep(KEY, {"a": 2}) == {"a": 1}
    joined = kept.keep(KEY, {"b": 2}, join=lambda earlier, new: {**new, **earlier})
    assert joined == kept.read(KEY) == {"a": 1, "b": 2}
    assert [one.number for one in kept] == [1]


def test_arrays_come_back_bit_for_bit(tmp_path: Path) -> None:
    kept = Artefacts(tmp_path)
    arrays = {"mean": np.arange(6.0).reshape(2, 3)[:, ::-1], "indices": np.array([3, 1])}
    kept.keep_arrays(KEY, arrays, {"names": ("a", "b")})
    found, words = Artefacts(tmp_path).read_arrays(KEY, as_stored)
    assert words == {"names": ["a", "b"]}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    assert kept.read_arrays(other(step=1), as_stored) is None


def test_a_changed_number_is_noticed_and_the_file_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Artefacts(tmp_path)
    kept.keep(KEY, {"mig": 0.132})
    (file,) = tmp_path.glob("*.json")
    file.write_text(file.read_text().replace("0.132", "0.987"))
    assert list(kept.damaged()) == [file]
    assert list(kept) == []
    with pytest.raises(DamagedError, match="does not match its hash"):
        verify(file)
    assert kept.read(KEY) is None
    assert f"{file.name} is damaged: its content does not match its hash" in caplog.text
    assert "0.987" in file.with_name(f"{file.name}.damaged").read_text()
    assert kept.keep(KEY, {"mig": 0.132}) == kept.read(KEY) == {"mig": 0.132}


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    kept = Artefacts(tmp_path)
    kept.keep(KEY, {"value": 1})
    (file,) = tmp_path.glob("*.json")
    whole = file.read_text().rstrip()
    for length in range(len(whole)):
        file.write_text(whole[:length])
        assert list(kept.damaged()) == [file]


def test_changed_arrays_are_noticed_when_they_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Artefacts(tmp_path)
    kept.keep_arrays(KEY, {"mean": np.ones(3)}, {})
    (file,) = tmp_path.glob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert kept.read_arrays(KEY, as_stored) is None
    assert "is damaged" in caplog.text


def test_a_whole_file_under_another_name_is_not_taken_for_what_it_says(tmp_path: Path) -> None:
    kept = Artefacts(tmp_path)
    kept.keep(KEY, {"value": 1})
    (file,) = tmp_path.glob("*.json")
    file.rename(kept.file(other(step=50)))
    assert list(kept) == []
    assert "its content does not match its name" in next(iter(kept.damaged().values()))
    assert kept.read(other(step=50)) is None


def test_files_of_other_people_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes-of-mine.json").write_text("{}")
    (tmp_path / "report.html").write_text("")
    assert list(Artefacts(tmp_path)) == []
    assert Artefacts(tmp_path).damaged() == {}


KEEP_MANY = """
import sys
from pathlib import Path
from polariscope.storage.artefacts import Artefacts, Key
kept, first = Artefacts(Path(sys.argv[1])), int(sys.argv[2])
for step in range(first, first + 20):
    kept.keep(Key("regime", "m", "d", step=step), {"step": step})
    kept.keep(Key("scores", "m", "d"), [step], join=lambda earlier, new: sorted({*earlier, *new}))
"""


def test_two_processes_number_their_files_apart_and_lose_nothing(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", KEEP_MANY, str(tmp_path), str(first)])
        for first in (1000, 2000)
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    kept = Artefacts(tmp_path)
    assert sorted(one.number for one in kept) == list(range(1, 42))
    assert kept.read(Key("scores", "m", "d")) == [*range(1000, 1020), *range(2000, 2020)]


def test_documents_of_other_kinds_and_formats_are_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "size.json"
    write_document(file, "size", {"value": 5})
    assert read_document(file, "size").content == {"value": 5}
    with pytest.raises(DamagedError, match="should contain a recipe, but contains a size"):
        read_document(file, "recipe")
    file.write_text(file.read_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(FormatError, match=r"has format 3, .* install a newer polariscope"):
        read_document(file, "size")
    for old in ('{"size": {}, "hash": ""}', '{"format": 1}', "[]"):
        file.write_text(old)
        with pytest.raises(FormatError, match=r"was written by an earlier version .* Make it again"):
            read_document(file, "size")


def test_a_file_is_parsed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report asks for the newest of each kind; scanning all files for each of them took ten scans."""
    artefacts, parsed = Artefacts(tmp_path), []
    keys = [Key("regime", "m", "d", settings={"seed": seed}) for seed in range(3)]
    for key in keys:
        artefacts.keep(key, {"value": 1})
    artefacts = Artefacts(tmp_path)
    parse = module._artefact
    monkeypatch.setattr(module, "_artefact", lambda path: (parsed.append(path.name), parse(path))[1])
    for _ in range(4):
        assert len(list(artefacts)) == 3
        assert artefacts.by_last_use()
        assert not artefacts.damaged()
    assert sorted(parsed) == sorted(artefacts.file(key).name for key in keys)
    artefacts.file(keys[0]).write_text("{}")
    artefacts.file(keys[1]).unlink()
    assert list(artefacts.damaged()) == [artefacts.file(keys[0])]
    assert [artefact.key for artefact in artefacts] == [keys[2]]
    assert len(parsed) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2}',
        "[" * 100_000,
        "\0" * 50,
        "1" * 5000,
        None,
        {"a": 1},
        [1, None],
        "regime",
    ],
)
def test_a_bad_record_of_the_last_use_is_ignored_and_written_again(tmp_path: Path, text: object) -> None:
    """It only selects what is shown first."""
    kept = Artefacts(tmp_path)
    kept.keep(KEY, {"value": 1})
    file = tmp_path / ".asked.json"
    if isinstance(text, str) and text != "regime":
        file.write_text(text)
    else:
        write_document(file, "asked", text)  # type: ignore[arg-type]
    assert [one.key for one in kept.by_last_use()] == [KEY]
    kept.touch(kept.file(KEY))
    assert read_document(file, "asked").content == [kept.file(KEY).name]


def test_a_content_that_is_not_a_record_of_its_kind_is_damaged_although_its_hash_is_correct(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored = Artefacts(tmp_path)
    stored.keep(KEY, {"alpha": "x"})
    stored.keep_arrays(KEY, {"mean": np.zeros(3)}, {})
    stored.read_only = True
    with pytest.raises(DamagedError, match=r"regime-.*\.json is damaged: .*could not convert"):
        stored.read(KEY, lambda content: float(content["alpha"]))
    stored.read_only = False
    assert stored.read(KEY, lambda content: float(content["alpha"])) is None
    assert stored.read_arrays(KEY, lambda arrays, metadata: metadata["names"]) is None
    assert "is damaged: KeyError('names'). It is computed again; the damaged file is kept as" in caplog.text
    assert {path.suffix for path in tmp_path.iterdir() if not path.name.startswith(".")} == {".damaged"}
