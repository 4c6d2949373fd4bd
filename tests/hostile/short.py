"""A short part of ``make hostile``, the same each time: ``python tests/hostile/short.py`` prints a record per line.

It is a process of its own because its calls are forks of it: here nothing but polariscope is imported, and shapes are
not checked.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile import attacks, run, scarce, strategies, victims, zoo
from hostile.kills import KillCase

NEEDED = (victims.TRAIN, victims.TRAIN_MNIST, "diagnose r0", "diagnose r1", "score r")
COMMANDS = tuple(command for command in victims.MAKE if command.startswith(NEEDED))
"""Commands that make two runs with a diagnosis and scores, and a run on MNIST."""
MADE = {
    "r0",
    "r1",
    "rm",
    "half",
    "codes.npz",
    "rows.csv",
    "rows.npy",
    "originals",
    "cache",
    "options.toml",
    "pictures",
}
AREAS = {
    "run": 40,
    "unfinished run": 12,
    "cache": 10,
    "input codes.npz": 6,
    "input rows.npy": 3,
    "input rows.csv": 3,
}
"""Number of damaged files by area."""
ANIMALS = {
    *(
        "pickled array",
        "header with code",
        "header that does not end",
        "array of a trillion rows",
        "zip bomb",
    ),
    *("entries that climb out", "png of ten billion pixels", "pipe named png", "folder that contains itself"),
    *(
        "tar that climbs out",
        "hdf5 with external storage",
        "model that is a pickle",
        "model of a billion latents",
    ),
    *(
        "model of integers",
        "x.csv is a pipe",
        "r0/settings.json is a link to itself",
        "pictures named in bytes",
    ),
}
KILLS = (("train", (0.5,)), ("train resumed", (0.7, 0.3)), ("train mnist, unpacking", (0.3,)))
CONDITIONS = (
    *(
        ("train", "file size", "1000"),
        ("train", "clock", "backwards"),
        ("train --steps 60", "file size", "4000"),
    ),
    *((attacks.DIAGNOSE, "files", "of 2100"), (attacks.DIAGNOSE, "file size", "0")),
    *((("train", "disk", "4000"), ("train", "read-only", "")) if scarce.can_mount() else ()),
)


def cases(clean: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases.

    :param clean: folder with the undamaged files.
    """
    for area, count in AREAS.items():
        for case in spread(list(attacks.cases(clean, 0, area)), count):
            yield case.to_dict()
    met: Counter[str] = Counter()
    for trial in zoo.trials():
        known = trial.animal in ANIMALS and trial.words[0] != "train"
        overwriting = trial.animal == "nothing" and not trial.is_python and trial.needs == ("codes.npz",)
        if set(trial.needs) <= MADE and (overwriting or (known and not met[trial.animal])):
            met[trial.animal] += 1
            yield trial.to_dict()
    for kind in strategies.KINDS:
        made = [trial for trial in strategies.generate(kind, 0, 60) if set(trial.needs) <= {"codes.npz"}]
        for trial in made[:: max(1, len(made) // 12)]:
            yield trial.to_dict()
    for trial in strategies.generate("commands", 0, 60)[::5]:
        yield dataclasses.replace(trial, needs=tuple(name for name in trial.needs if name in MADE)).to_dict()
    for name, moments in KILLS:
        yield KillCase(name, moments).to_dict()
    for condition in CONDITIONS:
        yield scarce.Condition(*condition).to_dict()


def spread(made: list[attacks.Case], count: int) -> list[attacks.Case]:
    """Return some cases, spread over files, commands and damages; slow commands are left out."""
    quick = [case for case in made if not case.call.startswith(("report", "compare", "course"))]
    random.Random(0).shuffle(quick)
    seen: Counter[str] = Counter()
    chosen: list[attacks.Case] = []
    while len(chosen) < count:
        best = min(quick, key=lambda case: seen[case.file] + seen[case.call] + seen[str(case.mutation)])
        quick.remove(best)
        chosen.append(best)
        seen.update((best.file, best.call, str(best.mutation)))
    return chosen


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hostile-") as root:
        attacker = run.Attacker(Path(root), COMMANDS)
        for case in cases(attacker.arena.clean):
            record = attacker.make(case)
            if record is not None:
                print(json.dumps(dataclasses.asdict(record)), flush=True)


if __name__ == "__main__":
    main()
