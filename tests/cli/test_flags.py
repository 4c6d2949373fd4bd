"""Flags of concepts: taken off the line, given to their parts."""

from __future__ import annotations

import pytest

from polariscope.cli.flags import NO_VALUE, FlagCommand, Group, share_out
from polariscope.core.errors import InputError
from polariscope.core.options import Option

DECLARED = {"--out": False, "--quiet": True}


def take(line: str):
    return FlagCommand("test")._take(line.split(), DECLARED)


def group(part: str, name: str, *options: str) -> Group:
    return Group(part, name, {option: Option(option, float, 1.0, "") for option in options})


TRAINING, BETA, DATA = (
    group("training", "", "seed", "steps"),
    group("objective", "beta", "beta"),
    group("data", "toy", "seed"),
)


@pytest.mark.parametrize(
    ("line", "rest", "flags"),
    [
        ("gaussian --beta 4", "gaussian", {"--beta": "4"}),
        ("--beta 4 gaussian", "gaussian", {"--beta": "4"}),
        ("gaussian --beta=4", "gaussian", {"--beta": "4"}),
        ("gaussian --gain -5", "gaussian", {"--gain": "-5"}),
        ("--out --odd gaussian --quiet", "--out --odd gaussian --quiet", {}),
        ("--exact gaussian", "gaussian", {"--exact": True}),
        ("--no-exact gaussian", "gaussian", {"--exact": False}),
        ("--no-data-exact gaussian", "gaussian", {"--data-exact": False}),
        ("--exact false gaussian", "gaussian", {"--exact": False}),
        ("--exact=no gaussian", "gaussian", {"--exact": False}),
        ("--antialias none sprites", "sprites", {"--antialias": None}),
        ("gaussian --learned no", "gaussian", {"--learned": "no"}),
        ("gaussian --a --b", "gaussian", {"--a": NO_VALUE, "--b": NO_VALUE}),
        ("gaussian --beta 1 --beta 2", "gaussian", {"--beta": "2"}),
        ("--beta 1 -- --gaussian", "-- --gaussian", {"--beta": "1"}),
    ],
)
def test_flags_are_taken_off_the_line_wherever_they_stand(line, rest, flags):
    assert take(line) == (rest.split(), flags)


def test_each_flag_goes_to_the_part_that_has_it():
    given = {"--beta": "4", "--steps": "10", "--data-seed": "3"}
    shared = share_out(given, [TRAINING, BETA, DATA], [])
    assert shared == {"objective": {"beta": "4"}, "training": {"steps": "10"}, "data": {"seed": "3"}}


def test_a_seed_without_a_part_is_the_seed_of_the_training():
    assert share_out({"--seed": "1"}, [TRAINING, DATA], []) == {"training": {"seed": "1"}, "data": {}}


def test_a_flag_of_two_parts_must_name_its_part():
    parts = [group("prior", "isotropic", "scale"), group("data", "toy", "scale")]
    with pytest.raises(
        InputError, match="--scale belongs to more than one part; say --prior-scale or --data-scale"
    ):
        share_out({"--scale": "1"}, parts, [])
    assert share_out({"--prior-scale": "1"}, parts, [])["prior"] == {"scale": "1"}


def test_an_unknown_flag_is_refused_with_the_nearest_in_flag_spelling():
    with pytest.raises(InputError, match=r"^no option --betta; did you mean --beta\?$"):
        share_out({"--betta": "4"}, [BETA], [])
    with pytest.raises(InputError, match="did you mean --latents"):
        share_out({"--n-latents": "4"}, [BETA], [], own=["--latents"])
    with pytest.raises(InputError, match="no option --zzzzzz; help_all lists those there are"):
        share_out({"--zzzzzz": "4"}, [BETA], [])


def test_a_flag_of_a_part_that_was_not_chosen_says_how_to_choose_it():
    with pytest.raises(InputError, match=r"--beta here: it belongs to objective beta.* add objective='beta'"):
        share_out({"--beta": "4"}, [DATA], [BETA, DATA])


def test_a_flag_without_its_value_is_refused():
    with pytest.raises(InputError, match="--steps needs a value"):
        share_out({"--steps": NO_VALUE}, [TRAINING], [])
