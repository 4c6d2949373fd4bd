"""The glossary of the documentation and the tooltips of the pages come from one list."""

from __future__ import annotations

import re
import runpy
from html.parser import HTMLParser
from pathlib import Path

from polariscope.pages.glossary import add_glossary, glossary

ROOT = Path(__file__).parents[2]
NAMES = {term.name for term in glossary()}


def explained(page: str) -> list[str]:
    return re.findall(r'class="term" href="#word-[^"]*" title="[^"]*">([^<]*)<', page)


class Structure(HTMLParser):
    """Collects links, ids and links inside links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.depth = self.nested = 0
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "a":
            self.links.append(given["href"])
            self.nested += self.depth > 0
            self.depth += 1

    def handle_endtag(self, tag):
        self.depth -= tag == "a"


def test_terms_are_distinct_and_have_one_to_three_sentences_each():
    assert len(glossary()) == len(NAMES) == len({term.slug for term in glossary()}) >= 20
    for term in glossary():
        assert 1 <= len(re.findall(r"[.](?:\s|$)", term.meaning)) <= 3, term.name
        assert term.spelled.search(f"The {term.name} is."), term.name


def test_the_page_of_the_documentation_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "glossary.py"))["page"]()
    assert (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8") == page, "run 'make docs'"


def test_a_word_is_explained_where_it_is_first_used_and_in_heads_of_columns():
    page = add_glossary(
        '<main><p>KL of latents.</p><p>KL again</p><table><tr><th scope="col">KL</th><th scope="row">KL</th></tr>'
        "</table></main>"
    )
    assert explained(page) == ["KL", "latents", "KL"]
    assert "<p>KL again</p>" in page
    assert '<th scope="row">KL</th>' in page


def test_the_longer_term_wins():
    assert explained(add_glossary("<main><p>the mean representation</p></main>")) == ["mean representation"]


def test_links_code_headings_and_pictures_are_left_alone():
    quiet = (
        '<main><h2>Latents</h2><a href="#x">latent</a><code>latent</code><svg><text>KL</text></svg></main>'
    )
    assert add_glossary(quiet) == quiet


def test_words_within_words_are_not_terms():
    quiet = "<main><p>An interactive, non-passive iterate of nature is accurate.</p></main>"
    assert add_glossary(quiet) == quiet


def test_a_report_explains_its_words_and_every_link_has_its_place(image_run):
    page = (image_run / "report.html").read_text(encoding="utf-8")
    found = Structure(page)
    assert found.nested == 0
    assert len(found.ids) == len(set(found.ids))
    assert {link for link in found.links if link.startswith("#")} <= {f"#{name}" for name in found.ids}
    words = {link.removeprefix("#word-") for link in found.links if link.startswith("#word-")}
    assert {"latent", "active", "passive", "kl", "nat", "prior", "posterior", "decoder", "traversal"} <= words
