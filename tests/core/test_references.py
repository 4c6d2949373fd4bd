"""Every citation key leads to a full reference, and every reference is cited."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.core.references import cite, keys_in, read_bibtex, references

ROOT = Path(__file__).parents[2]
CITING = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.j2"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "benchmarks" / "originals").glob("*.py"),
    *ROOT.glob("*.md"),
]
UNREADABLE = ("our reference", "analyses.md", "analyses §", "design.md", "objectives §", "general knowledge")
REQUIRED = {
    "article": {"journal"},
    "inproceedings": {"booktitle"},
    "phdthesis": {"school"},
    "mastersthesis": {"school"},
    "misc": {"howpublished"},
}


def cited() -> dict[str, set[str]]:
    """Which files cite each key, without the list of references itself and its reader, whose examples are no use."""
    found: dict[str, set[str]] = {}
    for file in CITING:
        if file.stem != "references":
            for key in keys_in(file.read_text(encoding="utf-8")):
                found.setdefault(key, set()).add(str(file.relative_to(ROOT)))
    return found


def test_every_key_in_the_package_and_the_documentation_resolves():
    missing = {key: sorted(files) for key, files in cited().items() if key not in references()}
    assert not missing


def test_every_reference_is_cited():
    assert sorted(set(references()) - set(cited())) == []


def test_references_are_sorted_and_have_what_their_kind_needs():
    assert list(references()) == sorted(references())
    for key, reference in references().items():
        assert {"author", "title", "year", *REQUIRED[reference.kind]} <= set(reference.fields), key
        assert key.endswith(reference.fields["year"]), key
        assert reference.fields.get("url", "https://").startswith("https://"), key


def test_the_page_of_references_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "references.py"))["page"]()
    assert (ROOT / "docs" / "references.md").read_text(encoding="utf-8") == page, "run 'make docs'"


def test_nothing_points_to_papers_that_readers_do_not_have():
    for file in CITING:
        text = file.read_text(encoding="utf-8")
        assert not [words for words in UNREADABLE if words in text], file


def test_bibtex_of_an_entry_reads_back_as_the_same_entry():
    for key, reference in references().items():
        assert read_bibtex(reference.bibtex) == {key: reference}


def test_a_full_reference_has_authors_place_and_link():
    assert cite("kornblith2019").full == (
        "Simon Kornblith, Mohammad Norouzi, Honglak Lee and Geoffrey Hinton. Similarity of Neural Network "
        "Representations Revisited. International Conference on Machine Learning, 2019. "
        "https://arxiv.org/abs/1905.00414"
    )
    assert cite("hanley1982").full.endswith(
        "Radiology 143(1):29–36, 1982. https://doi.org/10.1148/radiology.143.1.7063747"
    )


def test_the_short_form_has_one_line_whatever_the_number_of_authors():
    assert cite("steele2014").short.startswith("Steele et al. (2014), ")
    assert cite("hoyer2004").short.startswith("Hoyer (2004), ")


@pytest.mark.parametrize(
    "text",
    [
        "@misc{a2020,\n  author = {A},\n",  # no end
        "@misc{a2020,\n  author = {A},\n  author = {B},\n}",  # a field twice
        "@misc{a2020,\n  author = A,\n}",  # no braces
        "@misc{a2020,\n}\n@misc{a2020,\n}",  # a key twice
        "author = {A},",  # outside any entry
    ],
)
def test_a_broken_entry_is_refused(text):
    with pytest.raises(InputError, match="BibTeX entry"):
        read_bibtex(text)


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'kingma2014'"):
        cite("kingma2013")
