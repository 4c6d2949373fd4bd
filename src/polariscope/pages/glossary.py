"""The words a newcomer meets, in plain sentences: the glossary of the documentation and the tooltips of the pages."""

from __future__ import annotations

import dataclasses
import re

from markupsafe import escape


@dataclasses.dataclass(frozen=True)
class Term:
    """A word and what it means."""

    name: str
    """The word, as the glossary lists it."""
    meaning: str
    """What it means, in one or two plain sentences."""
    pattern: str = ""
    """How the word occurs in a text; empty: as it is named, one or several of it, in small or capital letters."""

    @property
    def slug(self) -> str:
        """The name as part of a link."""
        return re.sub(r"\W+", "-", self.name.lower()).strip("-")

    @property
    def spelled(self) -> re.Pattern[str]:
        """What finds the word in a text."""
        return re.compile(self.pattern or rf"(?i)(?<![\w-]){re.escape(self.name)}s?(?![\w-])")


GLOSSARY = (
    Term(
        "latent", "One of the numbers in which the model describes an observation. Short for latent variable."
    ),
    Term(
        "encoder",
        "The network that turns an observation into a distribution over the latents: a mean and a variance for each.",
    ),
    Term("decoder", "The network that turns values of the latents back into an observation."),
    Term(
        "prior",
        "The distribution the latents are assumed to have before an observation is seen, written p(z). Usually each "
        "latent is normal with mean 0 and variance 1.",
    ),
    Term(
        "posterior",
        "What the encoder says of the latents of one observation, written q(z|x). A small variance means that the "
        "latent is known almost exactly.",
    ),
    Term(
        "polarised regime",
        "The state most VAEs train into: each latent is either known almost exactly or carries nothing, with little in "
        "between.",
        r"(?i)(?<![\w-])polarised(?: regime)?(?![\w-])",
    ),
    Term(
        "active",
        "A latent that is known almost exactly for every observation, and that the decoder uses. Its posterior "
        "variance is near 0.",
        r"(?i)(?<![\w-])active(?![\w-])",
    ),
    Term(
        "mixed",
        "A latent that is active for some observations and passive for others, or known only roughly.",
        r"(?i)(?<![\w-])mixed(?![\w-])",
    ),
    Term(
        "passive",
        "A latent whose posterior is the prior whatever the observation: it carries nothing, and the decoder ignores "
        "it. Also called collapsed.",
        r"(?i)(?<![\w-])passive(?![\w-])",
    ),
    Term(
        "KL",
        "Kullback–Leibler divergence of the posterior from the prior: how much a latent says about an observation. 0 "
        "when it says nothing.",
        r"(?<![\w-])KL(?![\w-])",
    ),
    Term(
        "nat",
        "Unit of information, as the bit is, but with the natural logarithm: 1 nat is about 1.44 bits.",
        r"(?<![\w-])nats?(?![\w-])",
    ),
    Term(
        "rate",
        "The part of the loss that keeps the posterior near the prior: the KL, summed over latents and averaged over "
        "observations.",
        r"(?<![\w-])rate(?![\w-])",
    ),
    Term(
        "Σ E[σ²]",
        "The posterior variances, averaged over observations and summed over latents. With a prior of variance 1 it "
        "counts roughly the passive latents.",
        r"Σ E\[σ²\]",
    ),
    Term(
        "mean representation",
        "Each observation described by the means of its posterior. Means of passive latents vary little, yet can still "
        "correlate, so drop them before you use it.",
        r"(?i)mean representations?(?![\w-])",
    ),
    Term(
        "sampled representation",
        "Each observation described by one draw from its posterior, which is what the decoder sees in training.",
        r"(?i)sampled representations?(?![\w-])",
    ),
    Term(
        "traversal",
        "A row of decoder outputs in which one latent changes and all others stay as they are.",
    ),
    Term(
        "factor",
        "A known property of the data, such as shape or position, with which the latents are compared.",
    ),
    Term(
        "disentanglement",
        "Each latent follows one factor and ignores the others.",
        r"(?i)(?<![\w-])disentang(?:lement|led)(?![\w-])",
    ),
    Term(
        "mutual information",
        "How much knowing one quantity tells about another, in nats. 0 when they are independent.",
    ),
    Term(
        "total correlation",
        "How strongly the latents depend on each other, all at once, in nats. 0 when they are independent.",
    ),
)
"""The twenty words a newcomer meets, in the order in which they build on each other."""

SILENT = ("head", "svg", "a", "code", "pre", "summary", "nav", "footer", "h1", "h2", "h3", "sub", "button")
"""Elements in which no word is explained: what is not text, what is a link or can be clicked, and headings."""


def add_glossary(page: str) -> str:
    """Explain the words of an HTML page: at their first use and in heads of columns, and in a list at the end.

    A word becomes a link to its line in the list, with the meaning as its tooltip. It works with the mouse, the
    keyboard and a touch screen, and without JavaScript.

    :param page: a whole page; the list is put at the end of its ``main`` element.

    >>> print(add_glossary("<main><p>Two latents.</p></main>"))
    <main><p>Two <a class="term" href="#word-latent" title="One of the numbers in which the model describes an
    observation. Short for latent variable.">latents</a>.</p><section class="words" ...
    """
    silent: list[str] = []
    in_head = False
    used: set[str] = set()
    parts = re.split(r"(<[^>]*>)", page)
    for place, part in enumerate(parts):
        if not part.startswith("<"):
            if not silent:
                parts[place] = _explain(part, used, in_head)
            continue
        name = part.strip("</>").split(maxsplit=1)[0].lower()
        if name in SILENT and not part.endswith("/>"):
            if not part.startswith("</"):
                silent.append(name)
            elif name in silent:
                silent.remove(name)
        elif name == "th":
            in_head = 'scope="col"' in part
    listed = "".join(
        f'<div><dt id="word-{term.slug}">{escape(term.name)}</dt><dd>{escape(term.meaning)}</dd></div>\n'
        for term in GLOSSARY
        if term.name in used
    )
    if not listed:
        return page
    words = f'<section class="words"><h3>Words on this page</h3>\n<dl>\n{listed}</dl></section>'
    before, end, after = "".join(parts).rpartition("</main>")
    return f"{before}{words}\n{end}{after}"


def _explain(text: str, used: set[str], again: bool) -> str:
    """A text of a page with the words marked that were not used before; all of them where ``again`` is true."""
    found: list[tuple[int, int, Term]] = []
    for term in sorted(GLOSSARY, key=lambda term: -len(term.name)):  # "mean representation" before its parts
        match = None if term.name in used and not again else term.spelled.search(text)
        if match and all(match.end() <= start or match.start() >= end for start, end, _ in found):
            found.append((*match.span(), term))
            used.add(term.name)
    for start, end, term in sorted(found, key=lambda place: -place[0]):
        link = (
            f'<a class="term" href="#word-{term.slug}" title="{escape(term.meaning)}">{text[start:end]}</a>'
        )
        text = text[:start] + link + text[end:]
    return text
