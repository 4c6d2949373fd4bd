"""Selection of the likelihood that suits the data, with its reason."""

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
"""Median variance / mean of the columns below which integers are not counts, such as ratings, which vary less."""
POISSON_UNTIL = 1.2
"""Median variance / mean up to which counts are Poisson; above it, they are overdispersed."""
MAX_SHARE_AT_LARGEST = 1e-3
"""Share of values equal to the largest one from which a scale is bounded: ratings, bytes, grey levels."""

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
    """A likelihood by name and the reason for it: a code and the facts."""

    name: str
    """The likelihood, a member of ``polariscope.likelihoods``."""
    reason: Reason
    """Code of the reason."""
    facts: ValueFacts
    """Facts about the values; for the reason "rescaled", those before rescaling."""
    instead: str = ""
    """For the reasons "rescaled" and "recorded": the likelihood that would otherwise have been selected."""

    @property
    def text(self) -> Text:
        """The choice, its reason, and the argument for another likelihood if there is a sensible one."""
        reason, alternative = WRITERS[self.reason](self)
        return (f"likelihood {self.name} ({reason}", *alternative, ")")


def choose_likelihood(facts: ValueFacts, before: ValueFacts | None = None) -> LikelihoodChoice:
    """Select the likelihood that suits values, and give the reason.

    Values that are guaranteed to lie in [0, 1], such as those of images, and tables of 0 and 1 are Bernoulli. A table
    contains counts if all values are non-negative integers, the median of variance / mean over its columns is at least
    0.8, and fewer than 0.1 % of the values equal the largest one. Counts are negative-binomial if the median exceeds
    1.2, otherwise Poisson. Everything else is Gaussian, including tables of fewer than 1,000 values: in them one value
    is more than 0.1 %, so the share at the largest value cannot show whether the scale is bounded.

    The share at the largest value excludes bounded scales, such as ratings, bytes and grey levels, whereas counts have
    a tail. It does not exclude columns of identifiers, such as 0 … n − 1, in which the largest value occurs once and
    variance / mean is huge. In a column of identifiers no value occurs twice, whereas in counts some value does,
    usually 0. A table in which no column has a repeated value is therefore not counts.

    Rescaled values are judged in their new units: standardised counts get a Gaussian model, and the reason names the
    likelihood that they would otherwise have had.

    :param facts: facts about the values.
    :param before: (default None: not rescaled) facts about the values in their original units.
    """
    choice = _by_values(facts)
    if before is None or choice.reason != "real":
        return choice
    original = _by_values(before)
    # If both are equal, the original units give the more specific reason why the values are not counts.
    return (
        original
        if original.name == choice.name
        else LikelihoodChoice(choice.name, "rescaled", before, original.name)
    )


def _by_values(facts: ValueFacts) -> LikelihoodChoice:
    if facts.is_unit_interval:
        return LikelihoodChoice("bernoulli", "unit-interval", facts)
    if not facts.is_table or facts.largest is None:
        return LikelihoodChoice("gaussian", "real", facts)
    # Tested before the rules for counts: many values of a binary table equal the largest one, so it would look bounded.
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
    """Return the likelihood that ``auto`` selects.

    A resumed run keeps its likelihood, since an earlier version might have selected another one.

    :param data: the dataset, with its variants.
    :param decodes: (default True) if False, no decoder is trained and no likelihood is used.
    :param recorded: (default None) name of the likelihood of the resumed run.
    """
    if not decodes:
        # The values are not read, because without a decoder the likelihood is only a placeholder.
        choice = choose_likelihood(ValueFacts(len(data.shape) == 1, data.is_unit_interval))
        return dataclasses.replace(choice, reason="no-decoder")
    before = before_units_changed(data)
    choice = choose_likelihood(data.value_facts, None if before is None else before.value_facts)
    if recorded is not None and recorded != choice.name:
        return LikelihoodChoice(recorded, "recorded", choice.facts, choice.name)
    return choice


def natural_likelihood(data: AbstractDataset) -> str:
    """Return the likelihood that suits the values in their original units, if they are counts or all 0 and 1.

    The result is empty for other values, whose likelihood is not certain.

    :param data: the dataset, with its variants.
    """
    before = before_units_changed(data)
    choice = choose_likelihood((data if before is None else before).value_facts)
    return choice.name if choice.reason in ("binary", "counts", "overdispersed") else ""


def _counts(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    reason = f"the values are counts: whole numbers with variance/mean {choice.facts.dispersion:.2g}"
    return reason, ("; for a Gaussian model pass ", Argument("likelihood", "gaussian"))


def _not_counts(reason: str) -> tuple[str, tuple[Piece, ...]]:
    return reason, ("; for counts pass ", Argument("likelihood", "negative-binomial"))


def _end_of_scale(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    share, largest = choice.facts.share_at_largest, choice.facts.largest
    return _not_counts(
        f"whole numbers of which {share:.1%} equal the largest, {largest:g}, as on a bounded scale"
    )


def _rescaled(choice: LikelihoodChoice) -> tuple[str, tuple[Piece, ...]]:
    values = "0 and 1" if choice.facts.is_binary else "counts"
    return f"the values were {values} before they were rescaled; without rescaling: {choice.instead}", ()


Writer = Callable[[LikelihoodChoice], tuple[str, tuple[Piece, ...]]]
WRITERS: dict[Reason, Writer] = {
    "unit-interval": lambda _: ("values lie in [0, 1]", ()),
    "binary": lambda _: (
        "all values are 0 or 1",
        ("; for a Gaussian model pass ", Argument("likelihood", "gaussian")),
    ),
    "overdispersed": _counts,
    "counts": _counts,
    "real": lambda _: ("values are not limited to [0, 1]", ()),
    "few-values": lambda choice: _not_counts(
        f"whole numbers, but {choice.facts.n_values:,} values are too few to distinguish counts from a bounded scale"
    ),
    "end-of-scale": _end_of_scale,
    "underdispersed": lambda choice: _not_counts(
        f"whole numbers that vary less than counts: variance/mean {choice.facts.dispersion:.2g}"
    ),
    "identifiers": lambda _: _not_counts("whole numbers without repetitions, like identifiers"),
    "rescaled": _rescaled,
    "recorded": lambda choice: (
        f"recorded with the run; for a new run it would be {choice.instead}",
        (),
    ),
    "no-decoder": lambda _: ("not used", ()),
}
"""Functions that return the reason in words and the argument for another likelihood."""
