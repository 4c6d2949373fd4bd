"""Notes of a diagnosis: a code that decisions read, and the text that is made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polariscope.analysis.likelihood_fit import SOURCES, RivalReason, Source
from polariscope.core.errors import InputError
from polariscope.core.text import capitalised, numbered, plural

Writer = Callable[..., str]


class Note(str):
    """A note of a diagnosis. It is the text that a reader sees, and carries the code that tables and pages read.

    Stored are the code, the latents and the facts; the text is made from them whenever a note is made or read.

    :param code: kind of the note, a key of ``WRITERS``.
    :param latents: (default None: the whole diagnosis) latents that it is about.
    :param facts: numbers in the text, JSON values; ``text`` is used as it is (notes of other parts and of 0.2.0).

    >>> note = Note("wide", (3,))
    >>> note.code, note.latents, str(note).partition(".")[0]
    ('wide', (3,), 'Wider than the prior: latent 3')
    """

    code: str
    latents: tuple[int, ...] | None
    facts: dict[str, object]

    def __new__(cls, code: str, latents: Sequence[int] | None = None, **facts: Any) -> Note:
        if code not in WRITERS:
            raise InputError("code", f"be one of {', '.join(WRITERS)}", got=f"{code!r}")
        text = facts["text"] if "text" in facts else WRITERS[code](list(latents or ()), **facts)
        note = super().__new__(cls, text)
        note.code, note.facts = code, facts
        note.latents = None if latents is None else tuple(latents)
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return Note.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return code, latents and facts, as JSON values."""
        latents = None if self.latents is None else list(self.latents)
        return {"code": self.code, "latents": latents, "facts": self.facts}

    @classmethod
    def from_dict(cls, stored: object) -> Note:
        """Return the note that :meth:`to_dict` described, or that version 0.2.0 stored as text.

        :param stored: a mapping, or the text of a note of 0.2.0.
        """
        if isinstance(stored, str):
            return cls.from_text(stored)
        if not isinstance(stored, Mapping) or set(stored) != {"code", "latents", "facts"}:
            raise InputError("a note", "have code, latents and facts", got=f"{stored!r}"[:80])
        return cls(stored["code"], stored["latents"], **stored["facts"])

    @classmethod
    def from_text(cls, text: str) -> Note:
        """Return a note with this text; notes of a diagnosis by version 0.2.0 get their code and latents.

        :param text: the text.
        """
        code = next((code for pattern, code in OLDER.items() if re.match(pattern, text)), OTHER)
        named = re.findall(r"\blatents? (\d+(?:, \d+)*)", text) if code in ABOUT_LATENTS else []
        latents = sorted({int(number) for numbers in named for number in numbers.split(", ")})
        return cls(code, latents or None, text=text)


def name_latents(indices: Sequence[int]) -> str:
    """Return latents in words.

    >>> name_latents([3]), name_latents([0, 2])
    ('latent 3', 'latents 0, 2')
    """
    return numbered("latent", indices)


OTHER = "other"
MISFIT = "sampled does not look like draws from N(mean, variance): (z − μ)²/σ² does not average 1 in "


def _exponentiated(_: list[int], misfits: Sequence[int]) -> str:
    also = f" Also, {MISFIT}{name_latents(misfits)}." if misfits else ""
    return (
        "No posterior variance is below the prior's, which hardly happens; variance may have been exponentiated twice, "
        f"which swaps active with passive.{also}"
    )


def _point(which: list[int], own: bool) -> str:
    return (
        f"A posterior variance of 0 makes the {'Gaussian ' if own else ''}KL infinite in {name_latents(which)}"
        f"{'; the KLs shown are of the model itself' if own else ''}."
    )


def _unsure(which: list[int], shares: Mapping[str, float]) -> str:
    listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share)
    return f"The type of latent {which[0]} is unsure: in the bootstrap it is {listed}."


def _fragile(which: list[int], edges: Mapping[str, float]) -> str:
    places = ", ".join(f"{edges[str(index)]:.3f}" for index in which)
    if len(which) == 1:
        return f"The type of latent {which[0]} depends on α: it changes at α = {places}."
    return f"The types of {name_latents(which)} depend on α: they change at α = {places}, in this order."


def _idle(which: list[int]) -> str:
    its, they_say = ("its", "it says") if len(which) == 1 else ("their", "they say")
    return (
        f"Not passive by {its} variance, yet with a mean that hardly moves: {name_latents(which)}. "
        f"{its.capitalize()} posterior is nearly the same for every input: {they_say} nothing about the input, "
        "whatever the KL."
    )


def _intermediate(which: list[int]) -> str:
    them, they_do = ("it", "it does") if len(which) == 1 else ("them", "they do")
    return (
        f"Intermediate variance: {name_latents(which)}. The rule calls {them} mixed, but {they_do} not switch between "
        "active and passive: most inputs are known to some degree."
    )


def _not_gaussian(which: list[int], mixed: Sequence[int], shaped: Sequence[int]) -> str:
    """Join latents that switch and those of another shape."""
    reasons = []
    if switching := [index for index in which if index in mixed]:
        reasons.append(f"mixed latents that switch are not Gaussian: {name_latents(switching)}")
    if others := [index for index in which if index in shaped]:
        reasons.append(
            f"skewness or excess kurtosis is beyond 1 in the sampled representation: {name_latents(others)}"
        )
    text = "; ".join(reasons)
    return f"The Gaussian total correlation is an approximation. {capitalised(text)}."


def _constant(source: str) -> Writer:
    return lambda which: (
        f"Constant in the {source} representation: {name_latents(which)}. Independent of everything: correlation 0, "
        "nothing added to the total correlation."
    )


def _infinite(source: str) -> Writer:
    return lambda _: (
        f"In the {source} representation a latent is a linear function of others: the total correlation is infinite."
    )


def _varying(n_factors: int) -> str:
    return plural(n_factors, "varying factor")


def _in_use(n_in_use: int) -> str:
    return f"{plural(n_in_use, 'latent')} with a mean posterior variance below 0.8 of the prior's"


def _other_values(
    _: list[int], likelihood: str, source: Source, rival: str, gain: float, values: RivalReason
) -> str:
    what = "0 and 1" if values == "binary" else "counts"
    return (
        f"The values are {what}, and the likelihood {rival} fits them better than {likelihood}, by {gain:.3g} nats per "
        f"observation with the same means, on {SOURCES[source]}. With {likelihood}, latents can describe noise."
    )


def _overdispersed(
    _: list[int],
    likelihood: str,
    source: Source,
    rival: str,
    dispersion: float,
    parameter: float,
    gain: float,
) -> str:
    return (
        f"The values vary {dispersion:.1f} times as much as the {likelihood} likelihood allows, on {SOURCES[source]}: "
        f"latents can describe noise. The likelihood {rival} fits better, by {gain:.3g} nats per observation with the "
        f"dispersion {parameter:.2g}."
    )


def _other_variance(
    _: list[int],
    likelihood: str,
    source: Source,
    rival: str,
    dispersion: float,
    parameter: float,
    gain: float,
) -> str:
    more = f"{dispersion:.2g} times" if dispersion > 1 else f"only {dispersion:.1%} of"
    assert likelihood == rival
    return (
        f"The variance of the {likelihood} likelihood is fixed, and the mean squared error is {more} that variance, on "
        f"{SOURCES[source]}. The variance {parameter:.3g} fits better, by {gain:.3g} nats per observation; it can also "
        "be learned."
    )


def _over_pruned(_: list[int], n_in_use: int, n_not_passive: int, n_factors: int) -> str:
    counted = ""
    if n_not_passive != n_in_use:
        counted = f" ({n_not_passive} {'is' if n_not_passive == 1 else 'are'} not passive)"
    return (
        f"Over-pruned: {_in_use(n_in_use)}{counted}, for {_varying(n_factors)} (zietlow2022 §4.3.4 discards such "
        "runs). A lower weight of the rate keeps more of them; more latents do not."
    )


WRITERS: dict[str, Writer] = {
    OTHER: lambda _, text: text,
    "drawn": lambda _: "sampled was not given: it is one draw from N(mean, variance), made here.",
    "not-begun": lambda _: (
        "No posterior variance is below the prior's: the model has not begun to encode its inputs. Train it longer; if "
        "that changes nothing, lower the weight of the rate."
    ),
    "exponentiated": _exponentiated,
    "not-drawn": lambda which: (
        f"{MISFIT}{name_latents(which)}; check that variance is σ², neither its logarithm nor its root."
    ),
    "deterministic": lambda _: (
        "Every posterior variance is 0: the encoder is deterministic and has no finite KL to the prior. Every latent "
        "counts as active, whatever it says."
    ),
    "point": _point,
    "fewer-samples-than-latents": lambda _, n_samples, n_latents: (
        f"{n_samples} samples of {n_latents} latents are always linearly dependent: the total correlation is infinite "
        "for that reason alone; encode more samples."
    ),
    "few-samples": lambda _, n_samples, n_latents: (
        f"{n_samples} samples are few for {n_latents} latents (10 per latent are a minimum): total correlation, mutual "
        "information and effective rank are biased; encode more."
    ),
    "unsure": _unsure,
    "fragile": _fragile,
    "idle": _idle,
    "wide": lambda which: (
        f"Wider than the prior: {name_latents(which)}. The rule calls this mixed, but no input is known."
    ),
    "intermediate": _intermediate,
    "displaced": lambda which, alpha: (
        f"Passive by variance, but with a mean away from the prior's (mean (μ − μ†)²/Σ† ≥ {alpha:g}): "
        f"{name_latents(which)}."
    ),
    "constant-in-mean": _constant("mean"),
    "constant-in-sampled": _constant("sampled"),
    "infinite-in-mean": _infinite("mean"),
    "infinite-in-sampled": _infinite("sampled"),
    "not-gaussian": _not_gaussian,
    "conditional": lambda _: (
        "The prior depends on the sample: it can follow the posterior of a latent that the decoder uses, so a small KL "
        "does not make a latent passive; the column of its use shows whether the decoder needs it."
    ),
    "own-kl": lambda _: (
        "The KLs are the model's own; types, Δ_KL and the criteria on moments compare the posterior with the Gaussian "
        "that a passive latent has under this prior."
    ),
    "too-few-latents": lambda _, n_latents, n_factors: (
        f"Fewer latents than factors: {n_latents} for {_varying(n_factors)}. Not every factor can have a latent of its "
        "own."
    ),
    "still-learning": lambda _, n_in_use, n_factors: (
        f"Still learning: {_in_use(n_in_use)}, for {_varying(n_factors)}, but the loss was still falling when training "
        "ended. Train longer before you change anything else."
    ),
    "over-pruned": _over_pruned,
    "likelihood-other-values": _other_values,
    "likelihood-overdispersed": _overdispersed,
    "likelihood-other-variance": _other_variance,
}
"""The text of each kind of note, from its latents and its facts."""

ABOUT_LIKELIHOOD = frozenset(
    ("likelihood-other-values", "likelihood-overdispersed", "likelihood-other-variance")
)
"""Codes of notes about a likelihood that another one would fit better."""
ABOUT_LATENTS = frozenset(
    (
        *("not-drawn", "point", "unsure", "fragile", "idle", "wide", "intermediate", "displaced"),
        *("not-gaussian", "constant-in-mean", "constant-in-sampled"),
    )
)
"""Codes of notes that are about some latents."""

OLDER: dict[str, str] = {
    "sampled was not given": "drawn",
    "No posterior variance is below the prior's: the model has not begun": "not-begun",
    "No posterior variance is below the prior's, which hardly": "exponentiated",
    "sampled does not look like draws": "not-drawn",
    "Every posterior variance is 0": "deterministic",
    "A posterior variance of 0 makes": "point",
    r"\d+ samples of \d+ latents are always": "fewer-samples-than-latents",
    r"\d+ samples are few": "few-samples",
    r"The type of latent \d+ is unsure": "unsure",
    r"The types? of latents? [\d, ]+ depends? on α": "fragile",
    "Not passive by": "idle",
    "Wider than the prior": "wide",
    "Intermediate variance": "intermediate",
    "Passive by variance, but": "displaced",
    "Constant in the mean": "constant-in-mean",
    "Constant in the sampled": "constant-in-sampled",
    "In the mean representation a latent is": "infinite-in-mean",
    "In the sampled representation a latent is": "infinite-in-sampled",
    "The Gaussian total correlation is": "not-gaussian",
    "The prior depends on the sample": "conditional",
    "The KLs are the model's own": "own-kl",
    "Fewer latents than factors": "too-few-latents",
    "Still learning": "still-learning",
    "Over-pruned": "over-pruned",
}
"""How the notes of version 0.2.0, which stored only their text, begin."""
VARYING = re.compile(r"for (\d+) varying factor")


def factors_named(notes: Sequence[Note]) -> int:
    """Return the number of varying factors that the notes of a diagnosis by version 0.2.0 name; 0 if none does.

    :param notes: its notes.
    """
    return next((int(named[1]) for note in notes if (named := VARYING.search(note)) is not None), 0)
