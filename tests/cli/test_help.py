"""The first thing anybody types."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "PIL", "jaxtyping"}


def modules_after(*words: str) -> tuple[set[str], str]:
    """What a fresh process has imported when the command is done, and what it printed."""
    script = (
        "import sys; from polariscope.cli import main; main(sys.argv[1:]); "
        "print('MODULES', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    printed, _, names = done.stdout.rpartition("MODULES")
    return set(names.split()), printed


def test_help_lists_every_command_and_imports_nothing_heavy():
    imported, printed = modules_after("--help")
    assert not imported & HEAVY
    for name in ("demo", "data", "train", "diagnose", "report", "list"):
        assert f"\n  {name} " in printed


def test_version_imports_nothing_heavy():
    import polariscope

    imported, printed = modules_after("--version")
    assert not imported & HEAVY
    assert printed == f"polariscope {polariscope.__version__}\n"


def test_help_spends_well_under_a_second_on_imports():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import polariscope.cli.app"],
        capture_output=True,
        text=True,
        check=True,
    )
    microseconds = [
        int(line.split("|")[1]) for line in done.stderr.splitlines() if "polariscope.cli.app" in line
    ]
    assert microseconds[-1] < 800_000


def test_help_of_a_command_says_what_its_arguments_are(call):
    for words in ("diagnose", "report", "demo", "list", "data info", "data preview"):
        printed = call(words, "--help")
        assert printed.code == 0
        assert f"Usage: polariscope {words}" in printed.out


def test_help_of_train_lists_the_options_of_every_part_with_defaults(call):
    printed = call("train --help-all").out
    words = " ".join(printed.split())
    rate = "Maximum learning rate; the default for tables is 0.001, and for linear nets 0.01."
    assert f"--learning-rate {rate} [default: 0.0001]" in words
    assert "Options of objective beta: --beta Weight β of the rate" in words
    assert "One of adam, amsgrad, adagrad, sgd. [default: adam]" in words
    assert "Options of data sprites: --image-size Height and width in pixels" in words
    assert "--exact / --no-exact" in words


def test_help_of_train_tells_the_seed_of_the_data_from_the_seed_of_the_training(call):
    printed = call("train --help-all").out
    assert "--data-seed" in printed
    assert printed.count("  --seed ") == 1


def flags_in(printed: str) -> list[str]:
    return re.findall(r"^  (--[\w-]+)(?: |$)", printed, flags=re.MULTILINE)


@pytest.mark.parametrize("command", ["train", "size"])
def test_help_shows_the_options_people_use_in_one_aligned_list(call, command):
    printed = call(command, "--help").out
    flags = flags_in(printed)
    assert flags[-2:] == ["--help-all", "--help"]
    assert len(flags) == len(set(flags)) == 22
    assert {"--objective", "--steps", "--beta", "--seed", "--out", "--image-size"} <= {*flags}
    assert {"train": {"--latents"}, "size": {"--method", "--minutes", "--standardise"}}[command] <= {*flags}
    assert "Options of" not in printed
    assert len(printed.splitlines()) < 60
    starts = {
        line.index(re.split(r"\s{2,}", line.strip())[1]) for line in re.findall(r"^  --\S+ .*", printed, re.M)
    }
    assert len(starts) == 1


@pytest.mark.parametrize("command", ["train", "size"])
def test_help_all_shows_more_than_help_and_all_of_it(call, command):
    short, full = call(command, "--help").out, call(command, "--help-all").out
    assert {*flags_in(short)} < {*flags_in(full)}
    assert "Options of objective beta-tc:" in full
    assert call(command, "sprites --help-all").out == full  # wherever it stands
    assert "--help-all Show all options" in " ".join(short.split())


def test_a_command_with_few_options_shows_them_all_in_its_help(call):
    assert "Options of data sprites:" in call("data info --help").out
