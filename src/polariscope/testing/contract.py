"""The base class of all contracts: tests that run for each of several members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])
Cases = Callable[[Any], Iterable[object]]


def each(
    arguments: str, cases: Cases, ids: Callable[[Any], str | None] | None = None
) -> Callable[[Test], Test]:
    """Run a test of a contract for several cases, which depend on the members under test.

    :param arguments: names of the arguments of the test, as in ``pytest.mark.parametrize``.
    :param cases: a function from the contract, with its ``names``, to the cases.
    :param ids: (default: pytest's) a function from a value of a case to its name in the list of tests.
    """

    def mark(test: Test) -> Test:
        test.cases = arguments, cases, ids  # type: ignore[attr-defined]
        return test

    return mark


class AbstractContract:
    """Tests of the members of a family; pytest runs a subclass whose name begins with Test."""

    names: ClassVar[Sequence[str]] = ()
    """Names of the members to test."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrise each test: with the cases of :func:`each`, otherwise with every member as ``name``.

        :param metafunc: the test, from pytest.
        """
        default = ("name", lambda contract: contract.names, None)
        arguments, cases, ids = getattr(metafunc.function, "cases", default)
        wanted = arguments.replace(",", " ").split()
        # A test without these arguments runs once.
        if all(name in metafunc.fixturenames for name in wanted):
            metafunc.parametrize(arguments, list(cases(self)), ids=ids)

    def test_members_are_named(self) -> None:
        """Refuse a contract without members, which would pass."""
        assert self.names, "name your members: names = [...]"
