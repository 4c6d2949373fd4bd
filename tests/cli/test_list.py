"""What there is to choose from."""

from __future__ import annotations

import pytest

import polariscope as ps
from polariscope.cli.families import FAMILIES


def test_every_public_family_can_be_listed():
    assert set(FAMILIES) == set(ps._FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_list_names_every_member_with_its_summary(call, family):
    printed = call("list", family)
    members = getattr(ps, family)
    assert printed.code == 0
    for name in members:
        row = next(line for line in printed.out.splitlines() if line.split()[:1] == [name])
        assert members.family.summary(name) in row
    if not len(members):
        assert printed.out == f"There is nothing in {family} yet.\n"


def test_list_gives_options_with_defaults_and_help(call):
    printed = call("list objectives").out
    row = next(line for line in printed.splitlines() if "--beta" in line)
    assert row.split()[:2] == ["--beta", "4"]
    assert "Weight β of the rate" in row


def test_list_without_a_family_gives_the_names_of_all(call):
    printed = call("list").out
    assert ", vae" in printed
    for family in FAMILIES:
        assert family in printed


def test_an_unknown_family_is_refused_with_a_suggestion(call):
    refused = call("list objective")
    assert refused.code == 2
    assert "no family named 'objective'" in refused.err
    assert "Did you mean 'objectives'?" in refused.err


def test_arrays_and_what_metrics_share_are_no_options(call):
    printed = call("list metrics").out
    for flag in ("--shared", "--variance", "--factor-names", "--factor-kinds", "--types"):
        assert flag not in printed
    for flag in ("--variant", "--bins", "--n-trees", "--sizes", "--threshold"):
        assert flag in printed
    # of svcca it is a number, which can be typed
    assert (
        next(row for row in call("list similarity").out.splitlines() if "--variance" in row).split()[1]
        == "0.99"
    )
