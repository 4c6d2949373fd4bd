"""The harness fails if there is a defect: each kind is planted once."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from hostile import attacks, calls, kills, run, trials
from hostile.calls import Call
from hostile.mutations import ODD, Mutation, mutations_of

READ = "print(open('data/a.json').read())"
PLANTED = {
    "ok": READ,
    "noted": (
        "import sys\nkept = 'kept' in open('data/a.json').read()\nprint(kept)\n"
        "if not kept: print('Note: a.json is damaged.', file=sys.stderr)"
    ),
    "refused": "import sys, json; sys.exit(0 if 'kept' in open('data/a.json').read() else print('Error: no') or 1)",
    "SILENT": "print(len(open('data/a.json').read()))",
    "TRACEBACK": "import json; json.load(open('data/a.json')); print(1)",
    "UNEXPECTED": "import os\nif 'kept' not in open('data/a.json').read(): print('This is a bug in polariscope.')",
    "LOST": "import os\nif 'kept' not in open('data/a.json').read(): os.remove('data/b.json')",
    "CRASH": "import os\nif 'kept' not in open('data/a.json').read(): os.kill(os.getpid(), 9)",
    "HANG": "import time\nif 'kept' not in open('data/a.json').read(): time.sleep(60)",
    "LEFTOVER": (
        "import os, time\nif 'kept' not in open('data/a.json').read() and os.fork() == 0:\n    time.sleep(60)"
    ),
}
"""Fake commands that read a file, by the verdict about them when it is damaged."""


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> attacks.Arena:
    """An arena with two small files, and fake commands that read them."""
    made = attacks.Arena(tmp_path)
    (made.clean / "data").mkdir(parents=True)
    (made.clean / "data" / "a.json").write_text(json.dumps({"kept": 1}))
    (made.clean / "data" / "b.json").write_text(json.dumps({"other": 2}))
    fakes = tuple(Call.python(kind, code, "data") for kind, code in PLANTED.items())
    locked = Call.python("LOCKED", PLANTED["refused"], "data", repairs=True)
    monkeypatch.setitem(attacks.AREAS, "fake", (("data",), (*fakes, locked), {}))
    monkeypatch.setattr(calls, "SECONDS", 0.5)
    monkeypatch.setattr(calls, "GRACE", 0.1)
    return made


@pytest.mark.parametrize("kind", [*(kind for kind in PLANTED if kind != "ok"), "LOCKED"])
def test_each_kind_of_defect_is_noticed(arena: attacks.Arena, kind: str) -> None:
    judged = arena.attack(attacks.Case("fake", kind, "data/a.json", Mutation("empty", "", 0)))
    assert judged is not None
    assert judged[0].kind == kind
    assert judged[0].failed == kind.isupper()


def test_a_command_that_does_not_read_the_damaged_file_is_ok(arena: attacks.Arena) -> None:
    judged = arena.attack(attacks.Case("fake", "ok", "data/b.json", Mutation("empty", "", 0)))
    assert judged is not None
    assert judged[0].kind == "ok"


def test_damage_that_changes_nothing_is_not_counted(arena: attacks.Arena) -> None:
    (arena.clean / "data" / "a.json").write_bytes(bytes(50_000) + b"kept")
    assert arena.attack(attacks.Case("fake", "ok", "data/a.json", Mutation("zero", "header", 0))) is None


def test_a_command_with_two_results_cannot_be_judged(arena: attacks.Arena) -> None:
    random = Call.python("random", "import os; print(os.urandom(8))", "data")
    with pytest.raises(RuntimeError, match="has two results without damage"):
        arena.usual(random)


@pytest.mark.parametrize(
    ("resumed", "kind"), [("'kept'", calls.OK), ("open('data/a.json').read()", calls.SILENT)]
)
def test_missing_lines_are_harmless_only_if_resuming_gives_the_same_bytes(
    arena: attacks.Arena, monkeypatch: pytest.MonkeyPatch, resumed: str, kind: str
) -> None:
    check = Call.python("check", "print('whole')", "data", checks=True)
    resume = Call.python("resume", f"open('out', 'w').write({resumed})", "data", results=("out",))
    monkeypatch.setitem(attacks.AREAS, "fake", (("data",), (check, resume), {}))
    monkeypatch.setitem(attacks.REPEATED, "data/a.json", "resume")
    judged = arena.attack(attacks.Case("fake", "check", "data/a.json", Mutation("empty", "", 0)))
    assert judged is not None
    assert judged[0].kind == kind


def test_code_that_runs_and_files_outside_are_noticed(arena: attacks.Arena) -> None:
    for code in ("open('ESCAPED', 'w')", "open('../ESCAPED', 'w')", "open('../other', 'w')"):
        verdict, _ = trials.attempt(arena, trials.Trial("fake", (code,), is_python=True))
        assert verdict.kind == calls.ESCAPED
        (arena.here.parent / "other").unlink(missing_ok=True)


def test_an_input_that_is_overwritten_is_noticed(arena: attacks.Arena) -> None:
    code = "open('data/a.json', 'w').write('x')"
    verdict, _ = trials.attempt(arena, trials.Trial("fake", (code,), is_python=True, needs=("data",)))
    assert (verdict.kind, verdict.evidence) == (calls.LOST, "data/a.json was changed")


HOLD = """
import os, sys, time
def hold():
    if os.path.exists('../hold'):
        os.remove('../hold')
        time.sleep(60)
"""
KILLED = {
    "ok": "open('out', 'w').write('x')\nhold()",
    "LOST": "file = open('out', 'a')\nfile.write('x')\nfile.flush()\nhold()",
    "LEFTOVER": ("part = f'{os.getpid()}.polariscope.part'\nopen(part, 'w')\nhold()\nos.remove(part)"),
    "LOCKED": (
        "if os.path.exists('begun'): print('Error: begun', file=sys.stderr); sys.exit(1)\n"
        "open('begun', 'w')\nhold()\nos.remove('begun')"
    ),
}
"""Fake commands by the verdict about them if they are killed while they hold."""


@pytest.mark.parametrize("kind", KILLED)
def test_a_killed_command_that_ends_differently_is_noticed(
    arena: attacks.Arena, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setitem(kills.CALLS, "fake", Call.python("fake", HOLD + KILLED[kind], "data"))
    executioner = kills.Executioner(arena)
    took, _ = executioner.undisturbed(kills.CALLS["fake"], whole=False)
    (arena.here.parent / "hold").touch()
    verdict, _, hits = executioner.kill(kills.KillCase("fake", (1.0 / took,)))
    assert (verdict.kind, hits) == (kind, 1)


def test_each_region_of_a_file_is_damaged_in_each_way(tmp_path: Path) -> None:
    import random

    file = tmp_path / "a.json"
    content = json.dumps({"a": [1, {"b": 2.5}], "sha256": "x"}, indent=2).encode()
    file.write_bytes(content)
    made = list(mutations_of(file, random.Random(0)))
    assert {(each.harm, each.region) for each in made} >= {
        (harm, region) for harm in ("flip", "cut", "zero") for region in ("header", "middle", "end")
    }
    changed = 0
    for mutation in made:
        file.write_bytes(content)
        is_changed = mutation.apply(file, None)
        assert is_changed == (not file.exists() or file.read_bytes() != content)
        changed += is_changed
    assert changed >= len(made) - 2  # there is no partner to swap with, and a value can be replaced by itself


@pytest.fixture
def failed() -> run.Tally:
    tally = run.Tally()
    for region in ("end", "header"):
        case = attacks.Case("run", "show r0", "r0/log.jsonl", Mutation("flip", region, 1)).to_dict()
        tally.add(run.Record("run", case, f"title {region}", calls.SILENT, "other", 2.0, 10**8))
    tally.add(run.Record("run", case, "fine", calls.OK, "", 1.0, 10**9, kills=3))
    return tally


def test_the_shortest_case_of_a_failure_is_written_as_a_script_that_repeats_it(
    failed: run.Tally, tmp_path: Path
) -> None:
    (script,) = run.write_reproducers(failed, tmp_path / "failures")
    text = script.read_text()
    assert "# SILENT, 2 times:\n# other\n" in text
    words = shlex.split(text.splitlines()[-1])
    case = run.make_case(json.loads(words[words.index("--again") + 1]))
    assert case == attacks.Case("run", "show r0", "r0/log.jsonl", Mutation("flip", "end", 1))


def test_the_table_counts_what_was_tried_and_what_failed(failed: run.Tally) -> None:
    assert "| run | 3 | 1 | 0 | 0 | 2 |" in failed.table()
    assert "3 calls, of which 0 were whole commands; 3 kills; 2 failed in 1 ways." in failed.summary()
    assert "Longest call: 2.0 s (title end). Peak memory: 1000 MB (fine)." in failed.summary()


def test_odd_values_are_texts_that_a_lenient_reader_accepts() -> None:
    readable = 0
    for text in ODD:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            continue
        readable += 1
    assert readable >= len(ODD) - 2  # too many digits, too deep
