"""Only what a line names is opened: modules of the package that a command imports, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from polariscope.cli.shared import ModelParts

COUNT = """
import sys
from polariscope.cli import main
code = main(sys.argv[1:])
print(code, *sys.modules, file=sys.stderr)
"""


def imported(*words: str) -> set[str]:
    """Names of the modules that a command imports."""
    done = subprocess.run([sys.executable, "-c", COUNT, *words], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


def of_package(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.startswith("polariscope."))


def test_training_opens_the_members_that_it_uses(elsewhere: Path) -> None:
    modules = of_package(imported("train", "digits", "--steps", "50", "--out", "run"))
    assert len(modules) <= 128
    for family in ("objectives", "models.priors", "models.likelihoods", "data.published"):
        members = {name.rpartition(".")[2] for name in modules if name.startswith(f"polariscope.{family}.")}
        assert len(members - {"support"}) <= 2, members


def test_looking_at_a_dataset_opens_no_other(elsewhere: Path) -> None:
    assert len(of_package(imported("data", "info", "digits"))) <= 37


def test_showing_a_run_needs_no_torch(trained: Path) -> None:
    assert "torch" not in imported("show", str(trained))


@pytest.mark.parametrize(
    "words", ["list", "list objectives", "list nets conv", "list figures", "list analyses"]
)
def test_lists_need_no_torch_and_open_no_member(words: str) -> None:
    modules = imported(*words.split())
    assert "torch" not in modules
    assert len(of_package(modules)) <= 20


@pytest.mark.parametrize("words", ["train --help", "size --help-all", "data info --help"])
def test_help_needs_no_torch(words: str) -> None:
    assert "torch" not in imported(*words.split())


def test_the_parts_that_are_named_on_the_line_are_those_that_are_planned() -> None:
    from polariscope.training.plan import FAMILIES

    assert [*ModelParts().concepts()] == [*FAMILIES]
