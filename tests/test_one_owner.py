"""One owner for each policy: changing a default in its one place changes every entry point."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import polariscope
from runs.test_earlier_versions import FIXTURES

PACKAGE = Path(polariscope.__file__).parent
PROBE = Path(__file__).with_name("one_owner.py")
CHANGES = {
    "alpha": ("analysis/regime/rule.py", r"alpha: Alpha = 0\.1\n", "alpha: Alpha = 0.2\n", 0.2),
    "n_bootstrap": ("analysis/regime/rule.py", r"= 200\n", "= 30\n", 30),
    "n_samples": ("data/observations.py", r"= 10_000\n", "= 150\n", 150),
    "seed": ("data/observations.py", r"Ge\(0\)\] = 0\n", "Ge(0)] = 3\n", 3),
    "per": ("analysis/code_view.py", r'per: Per = "channel"\n', 'per: Per = "value"\n', "value"),
    "part": ("data/observations.py", r'part: Part = "all"\n', 'part: Part = "train"\n', "train"),
}
"""File with the default of each policy, its text there, the new text and its value."""
OTHERS = {"ps.diagnose": {"seed"}, "page of codes": {"seed"}, "ps.score": {"seed"}}
"""Bootstrap seeds for codes from the caller, which do not select observations."""


Edit = tuple[str, str, str]
"""A file of the package, a pattern that occurs in it once, and the replacement."""


def changed(folder: Path, *edits: Edit) -> Path:
    """Copy the package with some lines changed, and return the folder to import it from."""
    copy = shutil.copytree(PACKAGE, folder / "polariscope", ignore=shutil.ignore_patterns("__pycache__"))
    for file, pattern, text in edits:
        after, count = re.subn(pattern, text, (copy / file).read_text(encoding="utf-8"))
        assert count == 1, f"{pattern} must stand once in {file}"
        (copy / file).write_text(after, encoding="utf-8")
    return folder


def run(package: Path, *arguments: str) -> str:
    """Run Python with a copy of the package, and return its stderr."""
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.mark.parametrize(
    "names", [("alpha", "n_bootstrap", "n_samples", "seed", "per"), ("part",)], ids="+".join
)
def test_every_default_changes_at_every_entry_point(names: tuple[str, ...], tmp_path: Path) -> None:
    """A default part would be refused for models and codes, which have no split, so it is changed separately."""
    edits = [CHANGES[name][:3] for name in names]
    more = [] if "part" in names else ["--with-models"]
    printed = run(changed(tmp_path / "copy", *edits), str(PROBE), str(tmp_path / "work"), *more)
    found = json.loads(printed.splitlines()[-1])
    wrong = {
        f"{place}: {name}": value
        for place, values in found.items()
        for name, value in values.items()
        if name in names and value != CHANGES[name][3] and name not in OTHERS.get(place, set())
    }
    assert not wrong
    assert len(found) >= (15 if "part" in names else 24)
    assert set(names) <= {name for values in found.values() for name in values}


RESUME = """
import sys
import polariscope as ps
sys.path.insert(0, {tests!r})
from runs.test_earlier_versions import SETTINGS
model = ps.train(ps.load_dataset("digits"), steps=80, out=sys.argv[1], **SETTINGS)
assert model.step == 80
record = ps.open_run(sys.argv[1]).settings
assert "patience" not in record["training"], record["training"]
ps.train(ps.load_dataset("digits"), steps=1, patience=7, out=sys.argv[1] + "-new")
assert ps.open_run(sys.argv[1] + "-new").settings["training"]["patience"] == 7
from polariscope.cli import main
assert main(["train", "digits", "--steps", "1", "--patience", "9", "--out", sys.argv[1] + "-flag", "--quiet"]) == 0
assert ps.open_run(sys.argv[1] + "-flag").settings["training"]["patience"] == 9
"""


def test_a_new_training_option_is_one_field_and_earlier_runs_resume(tmp_path: Path) -> None:
    """In 0.2.0, the default of a new option in a record made every earlier run refuse to resume."""
    field = (
        '    patience: Annotated[int, Ge(0)] = option(0, since="0.3", absent=0)\n'
        '    """Validations without improvement before training stops; 0: never."""\n'
        "    seed: int = 0\n"
    )
    package = changed(tmp_path / "copy", ("training/settings.py", r"    seed: int = 0\n", field))
    earlier = shutil.copytree(FIXTURES / "run-0.2.0", tmp_path / "run")
    run(package, "-c", RESUME.format(tests=str(Path(__file__).parent)), str(earlier))
