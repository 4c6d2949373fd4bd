"""What a report says in words: the verdict, the settings, how to repeat the run, and what its words mean."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import escape

from polariscope.analysis.regime.regime import Regime, name_latents
from polariscope.training.planner import Pace
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from polariscope.sizing import Size

KINDS_OF_MIXED = {
    "switching": "active for some inputs and passive for others",
    "intermediate": "most inputs are known to some degree, with no switch",
    "wide": "wider than the prior",
}


def meanings(regime: Regime) -> dict[str, str]:
    """What each type means, and of the mixed latents how many there are of each kind."""
    kinds = regime.kinds_of_mixed
    listed = "; ".join(f"{count} {kind}: {KINDS_OF_MIXED[kind]}" for kind, count in kinds.items())
    return {
        "active": "known almost exactly for every input: posterior variance near 0",
        "mixed": f"neither active nor passive. {listed}" if kinds else "neither active nor passive",
        "passive": regime.passive_in_words,
    }


def number(value: float | None) -> str:
    r"""A number for people: three decimals when small, fewer when large.

    >>> [number(value) for value in (0.01234, 61.2345, 12345.6, 2e-5, -0.5, math.inf, None)]
    ['0.012', '61.23', '12,345.6', '<\xa00.001', '−0.500', '∞', '–']
    """
    if value is None:
        return "–"
    sign, size = ("−" if value < 0 else ""), abs(value)
    if math.isinf(size):
        return f"{sign}∞"
    if size == 0:
        return "0"
    if size < 0.0005:
        return ">\xa0−0.001" if sign else "<\xa00.001"
    decimals = 3 if size < 10 else 2 if size < 100 else 1
    return f"{sign}{size:,.{decimals}f}"


def percent(share: float | None) -> str:
    r"""A share of 1.

    >>> percent(0.123), percent(0.996), percent(1.0), percent(0.0004), percent(None)
    ('12\xa0%', '99.6\xa0%', '100\xa0%', '<\xa00.1\xa0%', '–')
    """
    if share is None:
        return "–"
    if 0 < share < 0.001:
        return "<\xa00.1\xa0%"
    digits = 1 if 0 < abs(share) < 0.1 or 0.99 < share < 1 else 0
    return f"{100 * share:.{digits}f}\xa0%".replace("-", "−")


FAINT = 0.01
"""Share of the KL below which a latent says next to nothing, whatever its type."""


def headline(regime: Regime) -> str:
    """Return the verdict in a few words: "5 of 10 latents in use, converged".

    :param regime: the diagnosis.
    """
    return regime.verdict.short


def explanation(regime: Regime, has_rate: bool = True, size: Size | None = None) -> str:
    """Return the verdict and what it means for the model, in a few sentences.

    :param regime: the diagnosis.
    :param has_rate: (default True) whether posteriors have a KL to the prior.
    :param size: (default None) the answer of a search for the number of latents, if there is one.
    """
    verdict = regime.verdict
    if not has_rate:
        return (
            f"{verdict} The encoder is deterministic: it returns a point for each observation, without variance or KL, "
            "so types of latents do not apply and every latent counts as active. Latents are sorted by their spread."
        )
    if not verdict.n_in_use:
        return str(verdict)
    top = verdict.in_use[:3]
    named = name_latents(top)
    carried = f"{named[0].upper()}{named[1:]} carr{'ies' if len(top) == 1 else 'y'} "
    if 0 < regime.kl < math.inf:
        share = sum(regime.latents[j].kl for j in top) / regime.kl
        what = "of KL to the prior"
        carried += f"{percent(share)} of the {number(regime.kl)} nats {what}."
    else:
        carried += "most of the information about an observation."
    room = _room(regime, size) if verdict.allows_advice and verdict.n_in_use == regime.n_latents > 1 else ""
    return " ".join(part for part in (str(verdict), carried, room) if part)


def _room(regime: Regime, size: Size | None) -> str:
    """Whether a model that uses all its latents needs more: one sentence, from the best evidence there is.

    A search for the number of latents comes first, then the number of known factors, then the latents themselves; each
    alone could say the opposite of another.
    """
    n = regime.n_latents
    if size is not None and size.target == "latents" and size.value is not None:
        if size.interval is not None and size.interval[0] <= n <= size.interval[1]:
            return f"The search for their number agrees: {size.answer}."
        return f"The search for their number found {size.answer}: {'more' if size.value > n else 'fewer'}."
    if regime.has_note("too-few-latents"):
        return "There are more factors than latents, so a model with more latents may find a use for them."
    if regime.has_note("over-pruned"):
        return "Some of them hardly leave the prior: a lower weight of the rate comes before more latents."
    if regime.has_note("still-learning"):
        return "The loss was still falling when training ended: train longer before you change their number."
    faint = [j for j in regime.order if 0 < regime.kl < math.inf and regime.latents[j].kl < FAINT * regime.kl]
    if not faint:
        return "None is left over, so a model with more latents may find a use for them."
    named = name_latents(faint)
    return (
        f"{named[0].upper()}{named[1:]} say{'s' if len(faint) == 1 else ''} next to nothing, so more latents "
        "are unlikely to be of use."
    )


def concept(record: Mapping[str, object]) -> str:
    """A named part with its options.

    >>> concept({"name": "beta", "beta": 4.0}), concept({"name": "vae"})
    ('beta (beta = 4)', 'vae')
    """
    options = ", ".join(f"{key} = {value_of(value)}" for key, value in record.items() if key != "name")
    return f"{record['name']} ({options})" if options else str(record["name"])


def value_of(value: object) -> str:
    """A setting as it is read."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(value_of, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {value_of(item)}" for key, item in value.items())
    return str(value)


def settings_groups(settings: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Everything that decided the run, as titled lists of names and values."""
    model = settings["model"]
    parts = {key: value for key, value in model.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in model.items() if key not in parts}
    groups = {
        "data": data_in_words(settings["data"]),
        "objective": settings["objective"],
        **parts,
        "model": plain,
        "training": settings["training"],
        "environment": {"polariscope": settings["polariscope"], **settings["environment"]},
    }
    return [
        (title, [(key.replace("_", " "), value_of(value)) for key, value in group.items()])
        for title, group in groups.items()
    ]


def data_in_words(data: Mapping[str, object]) -> dict[str, object]:
    """What is recorded of a dataset, without hashes and long lists of numbers."""
    shown = {key: value for key, value in data.items() if key not in ("fingerprint", "root_fingerprint")}
    if "variants" not in shown:
        return shown
    from polariscope.data.chain import in_words, variants_of

    return {**shown, "variants": in_words(variants_of(data))}


def source_call(data: Mapping[str, object]) -> str:
    """Python that makes a recorded dataset again."""
    hidden = ("name", "fingerprint", "root_fingerprint", "shape")
    options = {key: value for key, value in data.items() if key not in hidden}
    if "path" in data and data["path"] is None:
        options.pop("path")
        variants = options.pop("variants", None)
        given = "".join(f", {key}={value!r}" for key, value in options.items() if value is not None)
        made = f"ps.from_arrays(X{given})"
        made = made if variants is None else f"ps.apply_variants({made}, {variants!r})"
        return f"data = {made}  # the same arrays, with their factors"
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return f"data = ps.load_dataset({data['name']!r}{given})"


def repeat_call(settings: Mapping[str, Any], run: str) -> str:
    """Python that makes the same run again; training options at their defaults are left out."""
    source = source_call(settings["data"])
    arguments: dict[str, Any] = {"objective": settings["objective"], **settings["model"]}
    for derived in (
        "shape",
        "n_auxiliary",
        "decodes",
        "normalises",
    ):  # from the data, the prior and the objective
        arguments.pop(derived, None)
    likelihood = arguments["likelihood"]
    if (
        likelihood.get("learned") == "shared" and "floor" not in likelihood
    ):  # as it was before there was a floor
        arguments["likelihood"] = {**likelihood, "floor": None}
    if len(settings["model"]["shape"]) == 1 and not _has_other_units(settings["data"]):
        arguments["keep_units"] = True
    defaults = {field.name: field.default for field in dataclasses.fields(TrainSettings)}
    # The planner's defaults depend on the data, so rate, batch and length are always written.
    always = {"seed", *(field.name for field in dataclasses.fields(Pace))}
    always |= {*settings.get("defaults_of_objective", ())}
    training = {**{key: defaults[key] for key in defaults if key in always}, **settings["training"]}
    arguments |= {
        key: value for key, value in training.items() if value != defaults.get(key) or key in always
    }
    arguments["out"] = run
    lines = [f"    {key}={_code(value)}," for key, value in arguments.items()]
    return "\n".join(["import polariscope as ps", "", source, "model = ps.train(", "    data,", *lines, ")"])


def _has_other_units(data: Mapping[str, Any]) -> bool:
    if "variants" not in data:
        return False
    from polariscope.data.chain import changes_of_units

    return bool(changes_of_units(data["variants"]))


def commands(run: str) -> dict[str, str]:
    """What to type for the parts of the report that are measured apart.

    >>> commands("my run")["score"]
    "polariscope score 'my run'"
    """
    name = shlex.quote(run)
    words = ("score", "compare", "course", "report", "check")
    return {command: f"polariscope {command} {name}" for command in words}


def _code(value: Any) -> str:
    is_bare = isinstance(value, Mapping) and set(value) == {"name"}
    return repr(value["name"] if is_bare else value)


@functools.cache
def environment(*folders: Path) -> jinja2.Environment:
    """Everything is escaped, and a name that is missing is an error.

    :param folders: where templates are beside those of the pages themselves.
    """
    own = jinja2.PackageLoader("polariscope", "pages/templates")
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([own, jinja2.FileSystemLoader(folders)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "percent": percent, "value": value_of}
    return made


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

    @functools.cached_property
    def spelled(self) -> re.Pattern[str]:
        """What finds the word in a text."""
        return re.compile(self.pattern or rf"(?i)(?<![\w-]){re.escape(self.name)}s?(?![\w-])")


@functools.cache
def glossary() -> tuple[Term, ...]:
    """The twenty words a newcomer meets, in the order in which they build on each other."""
    text = (
        resources.files("polariscope.pages").joinpath("templates/glossary.toml").read_text(encoding="utf-8")
    )
    return tuple(Term(**fields) for fields in tomllib.loads(text)["term"])


@functools.cache
def _longest_first() -> list[Term]:
    """The words in the order in which they are looked for: "mean representation" before its parts."""
    return sorted(glossary(), key=lambda term: -len(term.name))


SILENT = ("head", "svg", "a", "code", "pre", "summary", "nav", "footer", "h1", "h2", "h3", "sub", "button")
"""Elements in which no word is explained: what is not text, what is a link or can be clicked, and headings."""


def add_glossary(page: str) -> str:
    """Explain the words of an HTML page: at their first use and in heads of columns, and in a list at the end.

    A word becomes a link to its line in the list, with the meaning as its tooltip. It works with the mouse, the
    keyboard and a touch screen, and without JavaScript.

    :param page: a whole page; the list is put at the end of its ``main`` element.

    >>> print(add_glossary("<main><p>Two latents.</p></main>"))
    <main><p>Two <a class="term" href="#word-latent" title="One of the numbers in which the model describes an
    observation. Short for latent variable.">latents</a>.</p><section class="words"...
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
        for term in glossary()
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
    for term in _longest_first():
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
