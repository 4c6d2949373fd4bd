"""Options of a concept: read from its signature, checked at the door."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pytest
from annotated_types import Predicate

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.core.option_values import Advice, convert, describe, is_switch
from polariscope.core.options import build, check_options, options_of, route, to_record
from polariscope.core.registry import Family
from polariscope.models.likelihoods import likelihood
from polariscope.models.nets import net
from polariscope.models.posteriors import posterior
from polariscope.models.priors import prior
from polariscope.objectives import objective
from polariscope.objectives.beta import BetaObjective

FAMILIES = [net, posterior, prior, likelihood, objective]


@dataclasses.dataclass(frozen=True)
class Parent:
    """Has an option of its own."""

    depth: int = 2
    """How deep
    it is."""
    hidden: int = dataclasses.field(default=0, init=False)
    """Not an option: it cannot be given."""


@dataclasses.dataclass(frozen=True)
class Child(Parent):
    """One option of each kind."""

    beta: float = 4.0
    """Weight β."""
    widths: tuple[int, ...] = (60, 40)
    """Widths of the layers."""
    kernel: Literal[2, 4] = 2
    """Kernel size."""
    mode: Literal["no", "shared"] = "no"
    """A choice of words."""
    limit: float | None = None
    """None: no limit."""
    flag: bool = False
    """A switch."""
    label: str = "none so far"
    bins: list[int] = dataclasses.field(default_factory=lambda: [1, 2])
    """From a factory."""


@dataclasses.dataclass(frozen=True)
class Needy:
    """Has an option without a default."""

    path: str
    """Must be given."""
    seed: int = 0
    """May be given."""


@dataclasses.dataclass(frozen=True)
class Unbounded:
    """Numbers, alone and in lists."""

    beta: float = 4.0
    limit: float | None = None
    scales: tuple[float, ...] = (1.0,)
    most: float = math.inf


def estimator(x: Any, y: Any = 3, *, k: int = 5, ratio: float) -> float:
    return k * ratio * x * y


def check(**given: Any) -> dict[str, Any]:
    return check_options("thing 'child'", Child, given)


def test_options_of_a_dataclass_are_its_fields_in_order_with_the_inherited_ones() -> None:
    options = options_of(Child)
    assert list(options) == ["depth", "beta", "widths", "kernel", "mode", "limit", "flag", "label", "bins"]
    assert options["beta"].annotation is float
    assert options["beta"].default == 4.0
    assert options["bins"].default == [1, 2]
    assert not options["bins"].required


def test_the_docstring_under_a_field_is_its_help() -> None:
    options = options_of(Child)
    assert options["beta"].help == "Weight β."
    assert options["depth"].help == "How deep it is."
    assert options["label"].help == ""


def test_options_of_a_function_are_its_keyword_only_arguments() -> None:
    options = options_of(estimator)
    assert list(options) == ["k", "ratio"]
    assert options["k"].default == 5
    assert options["ratio"].required
    assert options["ratio"].annotation is float


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("beta", "4", 4.0),
        ("beta", "1e-4", 1e-4),
        ("beta", 4, 4.0),
        ("depth", "3", 3),
        ("widths", "60,40,20", (60, 40, 20)),
        ("widths", "60, 40", (60, 40)),
        ("widths", "60", (60,)),
        ("widths", "", ()),
        ("widths", [7, 8], (7, 8)),
        ("kernel", "4", 4),
        ("kernel", 4, 4),
        ("mode", "shared", "shared"),
        ("limit", "none", None),
        ("limit", "None", None),
        ("limit", None, None),
        ("limit", "0.5", 0.5),
        ("flag", "true", True),
        ("flag", "no", False),
        ("label", "none", "none"),
    ],
)
def test_text_from_a_command_line_becomes_the_options_type(name: str, value: Any, expected: Any) -> None:
    checked = check(**{name: value})
    assert checked == {name: expected}
    assert type(checked[name]) is type(expected)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        InputError, match=r"no option of thing 'child' named 'betta'; there are .*Did you mean 'beta'\?"
    ):
        check(betta=4)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("beta", "four", "option beta of thing 'child' must be a number, got 'four'"),
        ("depth", 2.5, "option depth of thing 'child' must be an integer, got 2.5"),
        ("widths", "60,x", "option widths of thing 'child' must be a list of integers, got '60,x'"),
        ("kernel", 3, "option kernel of thing 'child' must be one of 2, 4, got 3"),
        ("kernel", "3", "option kernel of thing 'child' must be one of 2, 4, got '3'"),
        ("mode", "maybe", "option mode of thing 'child' must be one of no, shared, got 'maybe'"),
        ("limit", "low", "option limit of thing 'child' must be a number or none, got 'low'"),
        ("flag", "perhaps", "option flag of thing 'child' must be true or false, got 'perhaps'"),
        ("beta", None, "option beta of thing 'child' must be a number, got None"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_words(name: str, value: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        check(**{name: value})
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nan", "inf", np.float32("nan")])
@pytest.mark.parametrize("name", ["beta", "limit", "scales"])
def test_what_is_no_finite_number_is_refused_by_name(name: str, value: Any) -> None:
    """JSON has no NaN: it would be kept as null, which is another setting, or none."""
    given = f"1,{value}" if isinstance(value, str) and name == "scales" else value
    given = (1.0, value) if name == "scales" and not isinstance(value, str) else given
    with pytest.raises(
        InputError, match=rf"{name} must (be|contain) finite.*, got .*(nan|inf).* \(thing 'unbounded'\)"
    ):
        check_options("thing 'unbounded'", Unbounded, {name: given})


def test_an_option_whose_default_is_infinite_takes_infinity_but_not_nan() -> None:
    assert check_options("thing 'unbounded'", Unbounded, {"most": "inf"}) == {"most": math.inf}
    for value in (math.nan, -math.inf):
        with pytest.raises(InputError, match=r"most must be finite, got .*\(thing 'unbounded'\)"):
            check_options("thing 'unbounded'", Unbounded, {"most": value})


def test_integers_of_any_size_are_finite() -> None:
    assert check(depth=10**400) == {"depth": 10**400}


def test_training_refuses_nan_in_every_part_by_name(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    for options, (name, owner) in (
        ({"objective": "beta", "beta": math.nan}, ("beta", "objective 'beta'")),
        ({"objective": {"name": "beta", "beta": math.nan}}, ("beta", "objective 'beta'")),
        ({"objective": "annealed", "gamma": math.nan}, ("gamma", "objective 'annealed'")),
        ({"learning_rate": math.nan}, ("learning_rate", "training")),
        ({"clip_gradient": math.inf}, ("clip_gradient", "training")),
        ({"prior_scale": math.nan}, ("scale", "prior 'isotropic'")),
    ):
        with pytest.raises(InputError, match=rf"{name} must be finite, got (nan|inf) \({owner}\)"):
            ps.train(data, out=tmp_path / "run", **options)
        assert not (tmp_path / "run").exists()


def test_an_object_is_looked_at_when_it_is_made() -> None:
    with pytest.raises(InputError, match="beta must be finite, got nan"):
        BetaObjective(math.nan)
    with pytest.raises(InputError, match="beta must be finite, got nan"):
        dataclasses.replace(BetaObjective(), beta=math.nan)


def test_an_option_without_a_default_must_be_given() -> None:
    with pytest.raises(InputError, match="thing 'needy' requires path"):
        check_options("thing 'needy'", Needy, {"seed": 1})
    assert check_options("thing 'needy'", Needy, {"path": "a"}) == {"path": "a"}


def test_types_are_described_in_words() -> None:
    assert describe(tuple[float, ...]) == "a list of numbers"
    assert describe(str) == "a word"
    assert describe(Literal["a", "b"]) == "one of a, b"
    assert describe(Child) == "Child"


MEMBERS = [(family, name) for family in FAMILIES for name in family]


@pytest.mark.parametrize(
    ("family", "name"), MEMBERS, ids=lambda value: value if isinstance(value, str) else value.noun
)
def test_building_from_the_record_of_a_concept_gives_an_equal_one(family: Family, name: str) -> None:
    made = build(family, name)
    record = json.loads(json.dumps(to_record(made, family), allow_nan=False))
    assert record["name"] == name
    assert build(family, record) == made


def test_records_keep_options_that_are_not_the_default() -> None:
    made = build(net, "mlp", {"encoder_widths": "8,4", "activation": "relu"})
    record = json.loads(json.dumps(to_record(made, net)))
    assert record["encoder_widths"] == [8, 4]
    assert build(net, record) == made != build(net, "mlp")


def test_build_takes_a_name_a_mapping_or_a_finished_object() -> None:
    beta = build(objective, "beta", {"beta": "2"})
    assert build(objective, {"name": "beta", "beta": 2}) == beta
    assert build(objective, {"name": "beta", "beta": 3}, {"beta": 2}) == beta
    assert build(objective, beta) is beta


def test_build_refuses_what_it_cannot_use() -> None:
    with pytest.raises(InputError, match="requires a 'name' if it is a mapping, got \\['beta'\\]"):
        build(objective, {"beta": 2})
    with pytest.raises(InputError, match="takes no further options, got beta"):
        build(objective, build(objective, "beta"), {"beta": 2})
    with pytest.raises(InputError, match="is not a registered objective"):
        build(objective, build(prior, "isotropic"))
    with pytest.raises(InputError, match="no option of objective 'vae' named 'beta'"):
        build(objective, "vae", {"beta": 2})


def test_every_member_is_importable_from_its_own_file() -> None:
    for family, name in MEMBERS:
        member = family[name]
        assert getattr(importlib.import_module(member.__module__), member.__name__) is member


def even(number: int) -> bool:
    """With a reason of its own for 13, and none for other odd numbers."""
    if number == 13:
        raise InputError(problem="13 is unlucky", remedy="take 12")
    return number % 2 == 0


def count(*, number: Annotated[int, Predicate(even)] = 2) -> int:
    """A concept whose option must be even."""
    return number


def test_true_is_no_number() -> None:
    with pytest.raises(InputError, match="number must be an integer, got True"):
        check_options("'count'", count, {"number": True})


def test_a_predicate_of_an_option_is_used_and_may_say_why() -> None:
    assert check_options("'count'", count, {"number": "4"}) == {"number": 4}
    with pytest.raises(InputError, match=r"^13 is unlucky; take 12\.$"):
        check_options("'count'", count, {"number": 13})
    with pytest.raises(InputError, match="number must be an integer, got 3"):
        check_options("'count'", count, {"number": 3})


TRAPS = Literal["tuple[", "tuple[tuple[", "None", "bool"]


@dataclasses.dataclass(frozen=True)
class Trap:
    """Options whose words look like types."""

    word: TRAPS = "bool"
    """A word."""
    other: TRAPS | None = None
    """A word, or none."""
    names: tuple[str, ...] | TRAPS = ()
    """Names, or a word."""
    rows: tuple[tuple[float, ...], ...] | None = None
    """Rows of numbers."""


@pytest.mark.parametrize("word", get_args(TRAPS))
def test_words_that_look_like_types_do_not_mislead(word):
    """The text of Literal["tuple[", "None", "bool"] holds the names of types; its structure does not."""
    assert check_options("trap", Trap, {"word": word, "other": word, "names": word}) == {
        "word": word,
        "other": word,
        "names": word,
    }


def test_types_of_options_are_read_from_their_structure():
    assert not is_switch(TRAPS)
    assert is_switch(bool | None)
    assert is_switch(Annotated[bool, Advice("tuple[")])
    assert describe(TRAPS) == "one of tuple[, tuple[tuple[, None, bool"
    with pytest.raises(InputError, match=r"word of trap must be one of tuple\["):
        check_options("trap", Trap, {"word": "none"})
    given = {"other": "none", "names": "a,b", "rows": "0,1;1,0"}
    assert check_options("trap", Trap, given) == {
        "other": None,
        "names": ("a", "b"),
        "rows": ((0.0, 1.0), (1.0, 0.0)),
    }
    assert check_options("trap", Trap, {"rows": "None"}) == {"rows": None}


def test_options_are_routed_to_the_part_that_has_them():
    parts = {"training": {"seed"}, "prior": {"scale"}, "data": {"seed", "scale"}}
    defers = {"data": {"training"}}
    assert route(["seed", "data_seed"], parts, KeyError, defers=defers) == {
        "seed": ("training", "seed"),
        "data_seed": ("data", "seed"),
    }
    with pytest.raises(
        InputError, match=r"^scale belongs to more than one part; use prior_scale or data_scale"
    ):
        route(["scale"], parts, KeyError, defers=defers)
    with pytest.raises(
        InputError, match=r"^seed belongs to more than one part; use training_seed or data_seed"
    ):
        route(["seed"], parts, KeyError)
    with pytest.raises(KeyError, match="width"):
        route(["width"], parts, KeyError)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("12345678901234567.0", int, 12345678901234567),
        ("1e4", int, 10_000),
        (np.array(3.0), int, 3),
        (np.float32(2), float, 2.0),
        (1.0, bool, True),
        (np.str_("a"), str, "a"),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
    ],
)
def test_values_become_the_type_of_the_option_exactly(value: Any, kind: Any, expected: Any) -> None:
    result = convert(value, kind)
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.True_, float),
        (np.True_, int),
        (b"ab", tuple[float, ...]),
        (b"4", float),
        ("x", Mapping[str, object]),
        (3.5, int),
        (10**400, float),
        (2, bool),
    ],
)
def test_values_of_other_types_are_not_converted(value: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match="is not"):
        convert(value, kind)


def test_an_object_and_a_name_give_the_same_options() -> None:
    assert BetaObjective(4) == BetaObjective(4.0) == build(ps.objectives, "beta", {"beta": "4"})
    assert type(BetaObjective(4).beta) is float
    assert ps.nets.mlp(encoder_widths=[6, 4]) == ps.nets.mlp(encoder_widths=(6, 4))
    with pytest.raises(InputError, match="beta must be a number, got '4'"):
        BetaObjective("4")
