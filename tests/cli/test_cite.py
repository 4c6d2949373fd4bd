"""``polariscope cite``."""

from __future__ import annotations

from polariscope.core.references import read_bibtex, references


def test_keys_print_bibtex_in_the_order_they_are_given(call):
    printed = call("cite kingma2014 bonheme2023")
    assert printed.code == 0
    assert list(read_bibtex(printed.out)) == ["kingma2014", "bonheme2023"]
    assert "  school = {School of Computing, University of Kent},\n" in printed.out


def test_without_a_key_all_are_listed_with_authors_year_and_title(call):
    printed = call("cite").out
    for key in references():
        assert f"\n {key} " in printed
    assert "Kingma and Welling (2014), Auto-Encoding Variational Bayes" in printed


def test_an_unknown_key_prints_nothing_but_the_nearest(call):
    printed = call("cite kingma2014 bonheme2022")
    assert printed.code == 2
    assert printed.out == ""
    assert "Did you mean 'bonheme2023'?" in printed.err


def test_a_member_is_explained_with_its_references_in_full(call):
    printed = call("list objectives vae").out
    assert "  kingma2014: Diederik P. Kingma and Max Welling. Auto-Encoding Variational Bayes. " in printed
