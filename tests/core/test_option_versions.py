"""Options that are newer than some records, and options that change no weights."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from polariscope.core.options import affecting, from_record, option, spelled_out, to_record


@dataclasses.dataclass(frozen=True)
class First:
    steps: int = 10


@dataclasses.dataclass(frozen=True)
class Second:
    """The same with a newer option, whose default is not what earlier models had."""

    steps: int = 10
    depth: int = option(2, since="0.3", absent=1)
    """Number of layers."""
    log_every: int = option(100, affects="log")
    save_every: int = option(100, affects="files")


def test_a_newer_option_is_left_out_where_it_has_the_value_of_its_absence():
    earlier = to_record(First())
    logs = {"log_every": 100, "save_every": 100}
    assert to_record(Second(depth=1)) == {**earlier, **logs}
    assert to_record(Second()) == {**earlier, "depth": 2, **logs}


def test_a_record_without_it_is_read_with_that_value_and_not_with_the_default():
    assert from_record(Second, to_record(First())) == Second(depth=1)
    for settings in (Second(), Second(depth=1), Second(depth=5)):
        assert from_record(Second, to_record(settings)) == settings


def test_what_an_option_changes_is_stated_in_its_field():
    assert affecting(Second, "weights") == {"steps", "depth"}
    assert affecting(Second, "weights", "log") == {"steps", "depth", "log_every"}


@pytest.mark.parametrize("half", [{"since": "0.3"}, {"absent": 1}])
def test_version_and_value_of_the_absence_belong_together(half: dict[str, object]):
    with pytest.raises(TypeError, match="requires both since and absent"):
        option(2, **half)


def test_a_signature_shows_the_fields_behind_its_options():
    @spelled_out(Second)
    def act(x: int, steps: int = 3, **options: int) -> None:
        """Act.

        :param x: a number.
        :param steps: how many.
        :param options: the rest,
            of which there are many.
        """

    parameters = inspect.signature(act).parameters
    assert list(parameters) == ["x", "steps", "depth", "log_every", "save_every"]
    assert (parameters["steps"].default, parameters["depth"].default) == (3, 2)
    assert (inspect.getdoc(act) or "").splitlines()[2:6] == [
        ":param x: a number.",
        ":param steps: how many.",
        ":param depth: (default 2) Number of layers.",
        ":param log_every: (default 100) ",
    ]
