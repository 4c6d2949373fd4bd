"""What every option of every member of every family promises."""

from __future__ import annotations

import pytest

import polariscope as ps
from polariscope.core.option_values import describe
from polariscope.core.options import check_options, options_of

OPTIONS = [
    (family, name, option)
    for family in ps._FAMILIES
    for name in getattr(ps, family)
    for option in options_of(getattr(ps, family)[name])
]


@pytest.mark.parametrize(("family", "name", "option"), OPTIONS)
def test_it_has_a_help_text(family: str, name: str, option: str) -> None:
    found = options_of(getattr(ps, family)[name])[option]
    assert found.help, "write a line ':param name: (default …) text', or a docstring under the field"


@pytest.mark.parametrize(
    ("family", "name", "option"),
    [each for each in OPTIONS if each[0] in ("metrics", "similarity", "dimension")],
)
def test_its_default_is_one_of_its_values(family: str, name: str, option: str) -> None:
    concept = getattr(ps, family)[name]
    found = options_of(concept)[option]
    assert describe(found.annotation)
    assert check_options(name, concept, {option: found.default}) == {option: found.default}
