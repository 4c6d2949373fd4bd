"""What there is to choose from."""

from __future__ import annotations

import re

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
        assert members.summary(name) in row
    if not len(members):
        assert printed.out == f"{family} has no members yet.\n"


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


def test_options_of_functions_are_listed_as_arguments_not_as_flags(call):
    printed = call("list metrics").out
    options = {line.split()[0] for line in printed.splitlines() if line.split()}
    for name in ("variance", "factor_names", "factor_kinds", "types"):  # what a program gives
        assert name not in options
    assert {"variant", "n_bins", "n_trees", "sizes", "threshold"} <= options
    assert "--n-trees" not in printed
    assert "dci:lasso" in printed
    # of svcca it is a number, which is a setting
    rows = [line.split() for line in call("list similarity").out.splitlines()]
    assert ["variance", "0.99"] in [row[:2] for row in rows]


def test_a_member_is_explained_with_every_option(call):
    printed = call("list metrics mig")
    assert printed.code == 0
    assert (
        "Gap in mutual information between the two latents that are most informative about each factor."
        in printed.out
    )
    assert ":param" not in printed.out
    assert ".. math::" not in printed.out
    assert "``" not in printed.out
    assert r"    \mathrm{MIG} = \frac1K" in printed.out
    assert "by estimator (polariscope.objectives.support.aggregate)" in call("list objectives beta-tc").out
    rows = {
        cells[0]: cells[1:]
        for line in printed.out.splitlines()
        if (cells := re.split(r" {2,}", line.strip()))
    }
    assert rows["n_bins"] == [
        "an integer, at least 2 and at most 1,000",
        "20",
        "Number of equal-width bins of each code.",
    ]
    assert rows["variant"][:2] == ["one of locatello, rebinned, chen", "locatello"]
    assert "--beta" in call("list objectives beta").out
    assert "It has no options." in call("list similarity cka").out
    refused = call("list metrics migg")
    assert refused.code == 2
    assert "Did you mean 'mig'?" in refused.err
