"""Flags of concepts: taken off the line, given to their parts."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import pytest
from annotated_types import Ge

from polariscope.cli.command import Flag, FlagsOf, explain, flag_of
from polariscope.cli.flags import NO_VALUE, Group, assign_flags, split_line
from polariscope.core.errors import InputError

DECLARED = {"--out": False, "--quiet": True}
SWITCHES = {"--exact", "--data-exact", "--antialias"}


@dataclasses.dataclass(frozen=True)
class Training:
    seed: float = 0.0
    steps: float = 1.0


@dataclasses.dataclass(frozen=True)
class Beta:
    beta: float = 4.0


@dataclasses.dataclass(frozen=True)
class Toy:
    seed: float = 0.0
    scale: float = 1.0
    exact: bool = True


@dataclasses.dataclass(frozen=True)
class Isotropic:
    scale: float = 1.0


TRAINING, BETA, DATA, PRIOR = (
    Group("training", "", Training),
    Group("objective", "beta", Beta),
    Group("data", "toy", Toy),
    Group("prior", "isotropic", Isotropic),
)


@pytest.mark.parametrize(
    ("line", "rest", "flags"),
    [
        ("gaussian --beta 4", "gaussian", {"--beta": "4"}),
        ("--beta 4 gaussian", "gaussian", {"--beta": "4"}),
        ("gaussian --beta=4", "gaussian", {"--beta": "4"}),
        ("gaussian --gain -5", "gaussian", {"--gain": "-5"}),
        ("--out --odd gaussian --quiet", "--out --odd gaussian --quiet", {}),
        ("--exact gaussian", "gaussian", {"--exact": NO_VALUE}),
        ("--no-exact gaussian", "gaussian", {"--no-exact": NO_VALUE}),
        ("--no-data-exact gaussian", "gaussian", {"--no-data-exact": NO_VALUE}),
        ("--exact false gaussian", "gaussian", {"--exact": "false"}),
        ("--exact=no gaussian", "gaussian", {"--exact": "no"}),
        ("--antialias none sprites", "sprites", {"--antialias": "none"}),
        ("gaussian --learned no", "gaussian", {"--learned": "no"}),
        ("gaussian --a --b", "gaussian", {"--a": NO_VALUE, "--b": NO_VALUE}),
        ("gaussian --beta 1 --beta 2", "gaussian", {"--beta": "2"}),
        ("--beta 1 -- --gaussian", "-- --gaussian", {"--beta": "1"}),
    ],
)
def test_flags_are_taken_off_the_line_wherever_they_stand(line, rest, flags):
    assert split_line(line.split(), DECLARED, SWITCHES) == (rest.split(), flags)


def test_a_flag_that_is_not_known_takes_the_next_word():
    assert split_line(["gaussian", "--exact", "false"], DECLARED) == (["gaussian"], {"--exact": "false"})
    assert split_line(["--exact", "gaussian"], DECLARED) == ([], {"--exact": "gaussian"})


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ({"--exact": NO_VALUE}, True),
        ({"--no-exact": NO_VALUE}, False),
        ({"--data-exact": "yes"}, True),
        ({"--no-data-exact": NO_VALUE}, False),
        ({"--exact": "False"}, False),
    ],
)
def test_a_switch_needs_no_value(flags, value):
    assert assign_flags(flags, [DATA], list) == {"data": {"exact": value}}


def test_a_switch_is_refused_what_is_neither_yes_nor_no():
    with pytest.raises(InputError, match="exact of data 'toy' must be true or false, got 'perhaps'"):
        assign_flags({"--exact": "perhaps"}, [DATA], list)


def test_there_is_no_off_form_of_a_number():
    """The part is chosen, so the message must not ask for it."""
    with pytest.raises(InputError, match=r"^no option --no-beta; did you mean --beta\?$"):
        assign_flags({"--no-beta": NO_VALUE}, [BETA], lambda: [BETA])


def test_each_flag_goes_to_the_part_that_has_it():
    given = {"--beta": "4", "--steps": "10", "--data-seed": "3"}
    assigned = assign_flags(given, [TRAINING, BETA, DATA], list)
    assert assigned == {"objective": {"beta": 4.0}, "training": {"steps": 10.0}, "data": {"seed": 3.0}}


def test_values_are_checked_when_they_are_assigned():
    with pytest.raises(InputError, match="beta of objective 'beta' must be a number, got 'much'"):
        assign_flags({"--beta": "much"}, [BETA], list)


def test_a_seed_without_a_part_is_the_seed_of_the_training():
    assert assign_flags({"--seed": "1"}, [TRAINING, DATA], list) == {"training": {"seed": 1.0}, "data": {}}


def test_a_flag_of_two_parts_must_name_its_part():
    parts = [PRIOR, DATA]
    with pytest.raises(
        InputError, match="--scale belongs to more than one part; use --prior-scale or --data-scale"
    ):
        assign_flags({"--scale": "1"}, parts, list)
    assert assign_flags({"--prior-scale": "1"}, parts, list)["prior"] == {"scale": 1.0}


def test_an_unknown_flag_is_refused_with_the_nearest_in_flag_spelling():
    with pytest.raises(InputError, match=r"^no option --betta; did you mean --beta\?$"):
        assign_flags({"--betta": "4"}, [BETA], list)
    with pytest.raises(InputError, match="did you mean --latents"):
        assign_flags({"--n-latents": "4"}, [BETA], list, own_flags=["--latents"])
    with pytest.raises(InputError, match="no option --zzzzzz; help_all lists all options"):
        assign_flags({"--zzzzzz": "4"}, [BETA], list)


def test_a_flag_of_a_part_that_was_not_chosen_says_how_to_choose_it():
    with pytest.raises(InputError, match=r"--beta here: it belongs to objective beta.* add objective='beta'"):
        assign_flags({"--beta": "4"}, [DATA], lambda: [BETA, DATA])


def test_other_parts_are_opened_for_an_unknown_flag_only():
    def every() -> list[Group]:
        raise AssertionError("opened")

    assert assign_flags({"--beta": "4"}, [BETA], every) == {"objective": {"beta": 4.0}}
    with pytest.raises(AssertionError, match="opened"):
        assign_flags({"--seed": "4"}, [BETA], every)


def test_a_flag_without_its_value_is_refused():
    with pytest.raises(InputError, match="--steps requires a value"):
        assign_flags({"--steps": NO_VALUE}, [TRAINING], list)


@dataclasses.dataclass(frozen=True)
class Record:
    """A record of a command."""

    n_samples: Annotated[int, Ge(2)] | None = 100
    """Number of observations."""
    word: Annotated[Literal["tuple[", "None", "bool"], Flag("WORD", "--say")] = "bool"
    """A word."""
    names: tuple[str, ...] = ()
    """Names."""


def test_a_field_is_a_flag_with_its_range_default_and_help():
    options = FlagsOf(Record, without=("names",), defaults={"n_samples": 5}).options()
    assert [flag_of(option).name for option in options.values()] == ["--samples", "--say"]
    assert options["n_samples"].default == 5
    assert explain(options["word"]) == "A word. One of tuple[, None, bool."
    assert FlagsOf(Record, defaults={"n_samples": 5}).build({"word": "None"}) == Record(5, "None")
    with pytest.raises(InputError, match="n_samples must be at least 2, got 1"):
        FlagsOf(Record).build({"n_samples": "1"})
    with pytest.raises(
        InputError, match=r"word must be one of tuple\[, None, bool, got 'bol'; did you mean 'bool'"
    ):
        FlagsOf(Record).build({"word": "bol"})
