"""The likelihood that suits the data: one decision, with its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

from polariscope.core.errors import Argument, Piece, Text
from polariscope.core.records import AbstractStoredRecord
from polariscope.data.chain import before_units_changed
from polariscope.data.counts import ValueFacts
from polariscope.data.dataset import AbstractDataset

MIN_DISPERSION = 0.8
"""Median variance / mean of the columns below which whole numbers are not counts: ratings vary less."""
POISSON_UNTIL = 1.2
"""Median variance / mean up to which counts are Poisson; above, they vary more than chance."""
MAX_SHARE_AT_LARGEST = 1e-3
"""Share of the values at the largest one from which a scale has an end: ratings, bytes, grey levels."""

Reason = Literal[
    "unit-interval",
    "binary",
    "overdispersed",
    "counts",
    "real",
    "few-values",
    "end-of-scale",
    "underdispersed",
    "identifiers",
    "rescaled",
    "recorded",
    "no-decoder",
]


@dataclasses.dataclass(frozen=True)
class LikelihoodChoice(AbstractStoredRecord, remedy="fit the estimator again"):
    """A likelihood by name, and why it was chosen: a code and the facts behind it."""

    name: str
    """The likelihood, a member of ``polariscope.likelihoods``."""
    reason: Reason
    """Why, as a code."""
    facts: ValueFacts
    """Facts about the values: for the reason "rescaled", before they were rescaled."""
    instead: str = ""
    """For the reasons "rescaled" and "recorded": the likelihood that the values would have had."""

    @property
    def text(self) -> Text:
        """The choice, its reason, and the way to another likelihood if there is a sensible one."""
        why, way_back = WRITERS[self.reason](self)
        return (f"likelihood {self.name} ({why}", *way_back, ")")


def choose_likelihood(facts: ValueFacts, before: ValueFacts | None = None) -> LikelihoodChoice:
    """Return the likelihood that suits values, and the reason.

    Values that are promised to lie in [0, 1], as those of images, and tables of 0 and 1 are Bernoulli. A table is
    counts if all values are whole numbers from 0, the median of variance / mean over its columns is at least 0.8 and
    fewer than 0.1 % of the values equal the largest one: negative-binomial if the median exceeds 1.2, otherwise
    Poisson. Everything else is Gaussian, also tables of fewer than 1,000 values: in them one value is 0.1 %, so the
    share at the largest value cannot show whether the scale has an end.

    The share at the largest value excludes scales with an end, such as ratings, bytes and grey levels: counts have a
    tail. It does not exclude columns of identifiers, such as 0 … n − 1, in which the largest value occurs once and
    variance / mean is huge. In a column of identifiers no value occurs twice, and in counts some value does, usually
    0; so a table in which no column has a repeated value is not counts.

    Values whose units were changed are judged as they are now: whoever asks for standardised counts gets a Gaussian
    model of them, and the reason names the likelihood that they would have had.

    :param facts: what is known of the values.
    :param before: (default None: units were not changed) what is known of them in their own units.
    """
    choice = _by_values(facts)
    if before is None or choice.reason != "real":
        return choice
    other = _by_values(before)
    # The units that a search puts a table into hide why its values are not counts.
    return (
        other if other.name == choice.name else LikelihoodChoice(choice.name, "rescaled", before, other.name)
    )


def _by_values(facts: ValueFacts) -> LikelihoodChoice:
    if facts.is_unit_interval:
        return LikelihoodChoice("bernoulli", "unit-interval", facts)
    if not facts.is_table or facts.largest is None:
        return LikelihoodChoice("gaussian", "real", facts)
    if facts.is_binary:
        return LikelihoodChoice("bernoulli", "binary", facts)
    if facts.is_distinct:
        return LikelihoodChoice("gaussian", "identifiers", facts)
    if facts.n_values * MAX_SHARE_AT_LARGEST < 1:
        return LikelihoodChoice("gaussian", "few-values", facts)
    if facts.share_at_largest >= MAX_SHARE_AT_LARGEST:
        return LikelihoodChoice("gaussian", "end-of-scale", facts)
    if facts.dispersion < MIN_DISPERSION:
        return LikelihoodChoice("gaussian", "underdispersed", facts)
    if facts.dispersion > POISSON_UNTIL:
        return LikelihoodChoice("negative-binomial", "overdispersed", facts)
    return LikelihoodChoice("poisson", "counts", facts)


def likelihood_of(
    data: AbstractDataset, *, decodes: bool = True, recorded: str | None = None
) -> LikelihoodChoice:
    """Return the likelihood that ``auto`` stands for.

    A run that was begun keeps its likelihood, since an earlier version can have chosen another one.

    :param data: the dataset, with its variants.
    :param decodes: (default True) whether a decoder is trained; otherwise no likelihood is used.
    :param recorded: (default None) name of the likelihood of the run that is resumed.
    """
    if not decodes:
        choice = choose_likelihood(ValueFacts(len(data.shape) == 1, data.is_unit_interval))
        return dataclasses.replace(choice, reason="no-decoder")
    before = before_units_changed(data)
    choice = choose_likelihood(data.value_facts, None if before is None else before.value_facts)
    if recorded is not None and recorded != choice.name:
        return LikelihoodChoice(recorded, "recorded", choice.facts, choice.name)
    return choice


def natural_likelihood(data: AbstractDataset) -> str:
    """Return the likelihood that the values call for in their own units: they are counts, or all 0 and 1.

    It is empty for other values, of which no likelihood is certain.

    :param data: the dataset, with its variants.
    """
    before = before_units_changed(data)
    choice = choose_likelihood((data if before is None else before).value_facts)
    return choice.name if choice.reason in ("binary", "counts", "overdispersed") else ""


def _counts(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    why = f"the values are counts: whole numbers with variance/mean {choice.facts.dispersion:.2g}"
    return why, ("; for a Gaussian model give ", Argument("likelihood", "gaussian"))


def _not_counts(why: str) -> tuple[str, tuple[Piece, ...]]:
    return why, ("; for counts give ", Argument("likelihood", "negative-binomial"))


def _end_of_scale(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    share, largest = choice.facts.share_at_largest, choice.facts.largest
    return _not_counts(
        f"whole numbers of which {share:.1%} are the largest, {largest:g}, as on a scale with an end"
    )


def _rescaled(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    what = "0 and 1" if choice.facts.is_binary else "counts"
    return f"the values were {what} before they were rescaled; unscaled they are {choice.instead}", ()


Writer = Callable[[LikelihoodChoice], tuple[str, tuple[Piece, ...]]]
WRITERS: dict[Reason, Writer] = {
    "unit-interval": lambda _: ("values lie in [0, 1]", ()),
    "binary": lambda _: (
        "all values are 0 or 1",
        ("; for a Gaussian model give ", Argument("likelihood", "gaussian")),
    ),
    "overdispersed": _counts,
    "counts": _counts,
    "real": lambda _: ("values need not lie in [0, 1]", ()),
    "few-values": lambda choice: _not_counts(
        f"whole numbers, but {choice.facts.n_values:,} values are too few to tell counts from a scale with an end"
    ),
    "end-of-scale": _end_of_scale,
    "underdispersed": lambda choice: _not_counts(
        f"whole numbers that vary less than counts: variance/mean {choice.facts.dispersion:.2g}"
    ),
    "identifiers": lambda _: _not_counts("whole numbers of which none occurs twice, as in identifiers"),
    "rescaled": _rescaled,
    "recorded": lambda choice: (
        f"recorded with the run; for a new run it would be {choice.instead}",
        (),
    ),
    "no-decoder": lambda _: ("not used", ()),
}
"""The reason in words, and the way to another likelihood."""
