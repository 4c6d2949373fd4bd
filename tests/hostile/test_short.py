"""Damaged files, kills, full disks and odd input, the same each time; ``make hostile`` tries many more."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from hostile import attacks, kills, strategies
from hostile.victims import environment

SHORT = Path(__file__).with_name("short.py")


def test_hostile_calls_lose_nothing_and_change_no_result_silently(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SHORT)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [record for record in records if record["kind"].isupper()]
    assert not failed, "\n\n".join(f"{each['kind']} {each['title']}\n{each['evidence']}" for each in failed)
    tried, kinds = (
        Counter(record["area"] for record in records),
        Counter(record["kind"] for record in records),
    )
    assert tried["run"] >= 35
    assert tried["zoo"] >= 15
    assert tried["kills"] == 3
    assert kinds["refused"] >= 60  # the damage was read
    assert sum(record["kills"] for record in records) >= 2


def test_every_command_is_attacked() -> None:
    """A new command must be added to the harness, or be named here because it reads no files of its own."""
    made = [call for _, readers, _ in attacks.AREAS.values() for call in readers] + [*kills.CALLS.values()]
    attacked = {call.words[0] for call in made if not call.is_python}
    only_generated = {"demo", "list", "cite", "size-compare", "size-curve", "size-table", "size-beta"}
    assert {name.split()[0] for name in strategies.commands()} - attacked == only_generated
