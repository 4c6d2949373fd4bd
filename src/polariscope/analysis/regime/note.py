"""Notes of a diagnosis: a code for programs, and the text generated from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polariscope.analysis.code_view import in_units
from polariscope.analysis.likelihood_fit import SOURCES, RivalReason, Source
from polariscope.core.errors import InputError
from polariscope.core.text import capitalised, numbered, plural

Writer = Callable[..., str]


class Note(str):
    """A note of a diagnosis: a text for readers, with a code for tables and pages.

    Only the code, the latents and the facts are stored; the text is generated from them.

    :param code: kind of the note, a key of ``WRITERS``.
    :param latents: (default None: the whole diagnosis) latents that the note is about.
    :param facts: values in the text, as JSON values; ``text`` replaces the text (other notes, and those of 0.2.0), and
        ``unit`` is "channel" if the numbers of latents are those of channels.

    >>> note = Note("wide", (3,))
    >>> note.code, note.latents, str(note).partition(".")[0]
    ('wide', (3,), 'Latent 3 has a larger variance than the prior')
    """

    code: str
    latents: tuple[int, ...] | None
    facts: dict[str, object]

    def __new__(cls, code: str, latents: Sequence[int] | None = None, **facts: Any) -> Note:
        if code not in WRITERS:
            raise InputError("code", f"be one of {', '.join(WRITERS)}", got=f"{code!r}")
        values = {name: value for name, value in facts.items() if name != "unit"}
        text = facts["text"] if "text" in facts else WRITERS[code](list(latents or ()), **values)
        note = super().__new__(cls, in_units(text, facts.get("unit", "latent")))
        note.code, note.facts = code, facts
        note.latents = None if latents is None else tuple(latents)
        return note

    def of_channels(self) -> Note:
        """Return the same note about channels instead of latents."""
        return Note(self.code, self.latents, **{**self.facts, "unit": "channel"})

    def __reduce__(self) -> tuple[Any, ...]:
        # By default pickle would call __new__ with the text as the code.
        return Note.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return code, latents and facts, as JSON values."""
        latents = None if self.latents is None else list(self.latents)
        return {"code": self.code, "latents": latents, "facts": self.facts}

    @classmethod
    def from_dict(cls, stored: object) -> Note:
        """Return the note that :meth:`to_dict` wrote, or that version 0.2.0 stored as text.

        :param stored: a mapping, or the text of a note of 0.2.0.
        """
        if isinstance(stored, str):
            return cls.from_text(stored)
        if not isinstance(stored, Mapping) or set(stored) != {"code", "latents", "facts"}:
            raise InputError("a note", "have code, latents and facts", got=f"{stored!r}"[:80])
        return cls(stored["code"], stored["latents"], **stored["facts"])

    @classmethod
    def from_text(cls, text: str) -> Note:
        """Return a note with this text; for texts of version 0.2.0 the code and the latents are recovered.

        :param text: the text.
        """
        code = next((code for pattern, code in OLDER.items() if re.match(pattern, text)), OTHER)
        # Only these texts name latents; a number in another text can be a count.
        named = re.findall(r"\blatents? (\d+(?:, \d+)*)", text) if code in ABOUT_LATENTS else []
        latents = sorted({int(number) for numbers in named for number in numbers.split(", ")})
        return cls(code, latents or None, text=text)


def name_latents(indices: Sequence[int]) -> str:
    """Return a phrase that names these latents.

    >>> name_latents([3]), name_latents([0, 2])
    ('latent 3', 'latents 0, 2')
    """
    return numbered("latent", indices)


OTHER = "other"
MISFIT = "sampled does not look like draws from N(mean, variance): (z − μ)²/σ² does not average 1 in "


def _exponentiated(_: list[int], misfits: Sequence[int]) -> str:
    also = f" Also, {MISFIT}{name_latents(misfits)}." if misfits else ""
    return (
        "No posterior variance is below the prior's, which is rare; variance might have been exponentiated twice, "
        f"which swaps active with passive.{also}"
    )


def _point(which: list[int], own: bool) -> str:
    return (
        f"A posterior variance of 0 makes the {'Gaussian ' if own else ''}KL infinite in {name_latents(which)}"
        f"{'; the KLs shown are those of the model' if own else ''}."
    )


def _unsure(which: list[int], shares: Mapping[str, float]) -> str:
    listed = ", ".join(f"{name} in {share:.0%}" for name, share in shares.items() if share)
    return f"The type of latent {which[0]} is uncertain: it is {listed} of the bootstrap resamples."


def _fragile(which: list[int], edges: Mapping[str, float]) -> str:
    alphas = ", ".join(f"{edges[str(index)]:.3f}" for index in which)
    if len(which) == 1:
        return f"The type of latent {which[0]} depends on α: it changes at α = {alphas}."
    return f"The types of {name_latents(which)} depend on α: they change at α = {alphas}, respectively."


def _idle(which: list[int]) -> str:
    if len(which) == 1:
        return (
            f"Latent {which[0]} is not passive by its variance, but its mean is nearly constant. Its posterior is "
            "nearly the same for every input, so it carries almost no information, even if its KL is large."
        )
    return (
        f"{capitalised(name_latents(which))} are not passive by their variance, but their means are nearly constant. "
        "Their posteriors are nearly the same for every input, so they carry almost no information, even if their KL "
        "is large."
    )


def _intermediate(which: list[int]) -> str:
    have, them, they_do = ("has", "it", "it does") if len(which) == 1 else ("have", "them", "they do")
    return (
        f"{capitalised(name_latents(which))} {have} an intermediate variance. The rule calls {them} mixed, but "
        f"{they_do} not switch between active and passive: most inputs determine {them} only to some degree."
    )


def _wide(which: list[int]) -> str:
    have, them, they_carry = (
        ("has", "it", "it carries") if len(which) == 1 else ("have", "them", "they carry")
    )
    return (
        f"{capitalised(name_latents(which))} {have} a larger variance than the prior. The rule calls {them} mixed, but "
        f"{they_carry} almost no information."
    )


def _displaced(which: list[int], alpha: float) -> str:
    are, means, their = ("is", "mean", "its") if len(which) == 1 else ("are", "means", "their")
    differ = "differs" if len(which) == 1 else "differ"
    return (
        f"{capitalised(name_latents(which))} {are} passive by {their} variance, but {their} {means} {differ} from the "
        f"prior's: the mean squared difference is at least {alpha:g} of the prior's variance."
    )


def _not_gaussian(which: list[int], mixed: Sequence[int], shaped: Sequence[int]) -> str:
    """Join the two reasons: latents that switch, and latents that are skewed or heavy-tailed."""
    reasons = []
    if switching := [index for index in which if index in mixed]:
        reasons.append(f"mixed latents that switch are not Gaussian: {name_latents(switching)}")
    if others := [index for index in which if index in shaped]:
        reasons.append(
            f"the skewness or excess kurtosis of samples of {name_latents(others)} is above 1 or below −1"
        )
    text = "; ".join(reasons)
    return f"The Gaussian total correlation is an approximation. {capitalised(text)}."


def _constant(source: str) -> Writer:
    return lambda which: (
        f"Constant in the {source} representation: {name_latents(which)}. A constant latent has correlation 0 with the "
        "others and adds nothing to the total correlation."
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
    description = "0 and 1" if values == "binary" else "counts"
    return (
        f"The values are {description}, and the likelihood {rival} fits them better than {likelihood}, by {gain:.3g} "
        f"nats per observation with the same means, on {SOURCES[source]}. With {likelihood}, latents can describe "
        "noise."
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
        "runs). A lower weight of the rate keeps more of them in use; adding latents does not."
    )


def _few_samples(_: list[int], n_samples: int, n_latents: int, n_effective: int | None = None) -> str:
    return (
        f"{_samples(n_samples, n_effective)} are few for {n_latents} latents (at least 10 per latent are recommended): "
        "total correlation, mutual information and effective rank are biased. Encode more samples."
    )


def _too_few_samples(_: list[int], n_samples: int, n_latents: int, n_effective: int | None = None) -> str:
    return (
        f"{_samples(n_samples, n_effective)} of {n_latents} latents are always linearly dependent, so the total "
        "correlation is infinite. Encode more samples."
    )


def _samples(n_samples: int, n_effective: int | None) -> str:
    """Return the number of samples; for channels, also the effective number of their values."""
    if n_effective is None:
        return f"{n_samples} samples"
    return f"{n_samples} samples ({n_effective} independent values, because positions are correlated)"


def _channels(_: list[int], code_shape: Sequence[int]) -> str:
    n_positions, n_values = math.prod(code_shape[1:]), math.prod(code_shape)
    return (
        f"Codes have the shape {' × '.join(map(str, code_shape))}, so results are per channel: moments pool "
        f"{plural(n_positions, 'position')} of each channel, the KL is summed over them, and intervals resample "
        f"observations. For results on each of the {n_values:,} values, set per to value."
    )


def _flattened(_: list[int], code_shape: Sequence[int]) -> str:
    return (
        f"Codes of shape {' × '.join(map(str, code_shape))} were flattened to {math.prod(code_shape)} latents. For "
        "results per channel, set per to channel."
    )


WRITERS: dict[str, Writer] = {
    OTHER: lambda _, text: text,
    "channels": _channels,
    "flattened": _flattened,
    "drawn": lambda _: "sampled was not passed, so it was drawn once from N(mean, variance).",
    "not-begun": lambda _: (
        "No posterior variance is below the prior's: the model does not encode its inputs yet. Train it longer; if "
        "that changes nothing, lower the weight of the rate."
    ),
    "exponentiated": _exponentiated,
    "not-drawn": lambda which: (
        f"{MISFIT}{name_latents(which)}; check that variance is σ², neither its logarithm nor its root."
    ),
    "deterministic": lambda _: (
        "Every posterior variance is 0: the encoder is deterministic and has no finite KL from the prior. Every latent "
        "counts as active, even if it carries no information."
    ),
    "point": _point,
    "fewer-samples-than-latents": _too_few_samples,
    "few-samples": _few_samples,
    "unsure": _unsure,
    "fragile": _fragile,
    "idle": _idle,
    "wide": _wide,
    "intermediate": _intermediate,
    "displaced": _displaced,
    "constant-in-mean": _constant("mean"),
    "constant-in-sampled": _constant("sampled"),
    "infinite-in-mean": _infinite("mean"),
    "infinite-in-sampled": _infinite("sampled"),
    "not-gaussian": _not_gaussian,
    "conditional": lambda _: (
        "The prior depends on the sample, so it can follow the posterior of a latent that the decoder uses, and a "
        "small KL does not make a latent passive. The decoder effect shows whether the decoder uses it."
    ),
    "own-kl": lambda _: (
        "The KLs are those of the model. Types, Δ_KL and the criteria on moments compare the posterior with the "
        "Gaussian posterior of a passive latent under this prior."
    ),
    "too-few-latents": lambda _, n_latents, n_factors: (
        f"Fewer latents than factors: {n_latents} for {_varying(n_factors)}. Some factors have to share a latent."
    ),
    "still-learning": lambda _, n_in_use, n_factors: (
        f"Still learning: {_in_use(n_in_use)}, for {_varying(n_factors)}, but the loss was still falling when training "
        "ended. Train longer before you change other settings."
    ),
    "over-pruned": _over_pruned,
    "likelihood-other-values": _other_values,
    "likelihood-overdispersed": _overdispersed,
    "likelihood-other-variance": _other_variance,
}
"""Function that writes the text of each kind of note, from its latents and its facts."""

ABOUT_LIKELIHOOD = frozenset(
    ("likelihood-other-values", "likelihood-overdispersed", "likelihood-other-variance")
)
"""Codes of notes about a likelihood that another one would fit better."""
ABOUT_VIEW = frozenset(("channels", "flattened"))
"""Codes of notes about the unit of codes with several axes."""
ABOUT_LATENTS = frozenset(
    (
        *("not-drawn", "point", "unsure", "fragile", "idle", "wide", "intermediate", "displaced"),
        *("not-gaussian", "constant-in-mean", "constant-in-sampled"),
    )
)
"""Codes of notes about particular latents."""

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
"""First words of the notes of version 0.2.0, which stored only the texts, and their codes."""
VARYING = re.compile(r"for (\d+) varying factor")


def factors_named(notes: Sequence[Note]) -> int:
    """Return the number of varying factors in the notes of a diagnosis by version 0.2.0; 0 if there is none.

    :param notes: its notes.
    """
    return next((int(named[1]) for note in notes if (named := VARYING.search(note)) is not None), 0)
