"""Do the latents return when a model is trained again, and which of the models stands for the others?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from annotated_types import Ge, Gt, Lt
from jaxtyping import Bool, Float, Int

from polariscope.analysis.model_codes import Models
from polariscope.analysis.regime.use import uses, uses_of_codes
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError, check_word
from polariscope.core.frames import csv_of, frame_of
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.seeds import generator
from polariscope.core.text import interval
from polariscope.core.types import ArrayInput
from polariscope.numerics.assignment import assign
from polariscope.numerics.dependence import ranked, standardised
from polariscope.numerics.intervals import Interval, bounds_of_difference, jackknife_interval

if TYPE_CHECKING:
    import pandas

Relation = Literal["spearman", "pearson"]
RETURNS = math.sqrt(0.5)
"""Strength from which a latent counts as found again: more than half of its variance is shared with its partner."""
AGREEMENT = (0.0, 1.0)
"""Least and largest possible agreement of two models."""
BLOCKS = 20
TAIL = 0.95
APART = 0.2
"""By how much R² on all latents of another model must exceed that of the partner before a note speaks of a rotation."""


@dataclasses.dataclass(frozen=True)
class LatentMatch(AbstractRecord):
    """A latent of one model and its partners in all models, in their order."""

    model: int
    latent: int
    partners: tuple[int | None, ...]
    """The latent it is matched with in each model; its own number in its own; None where none is left for it."""
    strengths: tuple[float, ...]
    """Absolute correlation with each partner; 1 with itself, 0 without a partner."""
    lowest: float
    """The smallest strength over the other models."""
    mean: float
    """The mean strength over the other models."""
    returns: bool
    """Whether it is found again in every other model."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stability(AbstractStoredRecord, remedy="compare the models again"):
    """How far models trained alike find the same latents. The consistency first, then the evidence behind it."""

    value: float
    """Consistency: mean agreement of two models, from 0 to 1."""
    interval: Interval
    """95 %, over the draw of the samples; the choice of models is not in it."""
    chance: float
    """Mean consistency of the same codes when the samples of each model are shuffled."""
    chance_high: float
    """What chance exceeds in one case of twenty."""
    p_value: float
    """Share of the shuffles, the codes themselves among them, whose consistency is at least as high."""
    space: float
    """Share of the variance of a model's latents that is linear in all latents of another, on average."""
    space_chance: float
    """The same after shuffling."""
    names: tuple[str, ...]
    """Of the models."""
    agreement: Float[np.ndarray, "model model"]
    """Agreement of each pair of models; 1 on the diagonal."""
    centrality: tuple[float, ...]
    """Mean agreement of each model with the others."""
    central: int | None
    """The model that agrees best with the others; None of two, which agree equally."""
    runner_up: int | None
    """The second best."""
    lead: Interval | None
    """95 % interval of how much better the best agrees than the second best."""
    latents: tuple[LatentMatch, ...]
    """Every latent in use of every model."""
    n_used: tuple[int, ...]
    """Latents in use of each model."""
    relation: Relation
    threshold: float
    n_samples: int
    n_permutations: int
    seed: int
    notes: tuple[str, ...] = ()
    """Where it should be read with care."""

    def of(self, model: int) -> tuple[LatentMatch, ...]:
        """The latents of a model that are in use.

        :param model: its place among the models.
        """
        return tuple(one for one in self.latents if one.model == model)

    @property
    def shown(self) -> int:
        """The model whose latents are listed: the central one, else the first."""
        return 0 if self.central is None else self.central

    @property
    def returning(self) -> tuple[int, ...]:
        """Latents of the model that is shown which are found again in every other."""
        return tuple(one.latent for one in self.of(self.shown) if one.returns)

    def to_rows(self) -> list[dict[str, Any]]:
        """Everything about latents as a table: a row for each latent in use of each model."""
        rows = []
        for one in self.latents:
            row: dict[str, Any] = {
                "model": self.names[one.model],
                "latent": one.latent,
                "returns": one.returns,
                "lowest": one.lowest,
                "mean": one.mean,
                "centrality": self.centrality[one.model],
            }
            for name, partner, strength in zip(self.names, one.partners, one.strengths, strict=True):
                row |= {f"partner.{name}": partner, f"strength.{name}": strength}
            rows.append(row)
        return rows

    def to_csv(self) -> str:
        """:meth:`to_rows` as a text of comma-separated values."""
        rows = self.to_rows()
        return csv_of(frame_of(rows, list(rows[0]) if rows else ["model", "latent", "returns"]))

    def to_frame(self) -> pandas.DataFrame:
        """Return :meth:`to_rows` as a table, indexed by model and latent."""
        import pandas

        rows = self.to_rows()
        columns = list(rows[0]) if rows else ["model", "latent", "returns"]
        return pandas.DataFrame(rows, columns=columns).set_index(["model", "latent"])

    @property
    def headline(self) -> str:
        """The consistency beside its chance level, in a sentence."""
        return (
            f"Consistency {self.value:.3f} ({interval(self.interval, '.3f')}, 95 % over samples) of "
            f"{len(self.names)} models; chance {self.chance:.3f}, rarely above {self.chance_high:.3f} "
            f"(p = {self.p_value:.2g})."
        )

    @property
    def answer(self) -> str:
        """Which model to publish, in a sentence."""
        if self.central is None or self.runner_up is None or self.lead is None:
            return "No model is central: two agree equally with each other. Train a third."
        low, high = self.lead
        return (
            f"Most central: {self.names[self.central]}, agreement {self.centrality[self.central]:.3f} with the others; "
            f"{self.names[self.runner_up]} follows, {low:.3f} to {high:.3f} behind (95 % over samples)."
        )

    def __str__(self) -> str:
        name = self.names[self.shown]
        own = self.of(self.shown)
        listed = ", ".join(map(str, self.returning)) or "none"
        parts = [
            self.headline,
            self.answer,
            f"Latents of {name} that return in every model: {listed} (of {len(own)} in use).",
            f"Space: {self.space:.3f} of the variance of a model's latents is linear in another's (chance "
            f"{self.space_chance:.3f}).",
            *(f"Note: {note}" for note in self.notes),
        ]
        return "\n".join(parts)


def stability(
    models: object,
    *,
    variance: Sequence[ArrayInput] | None = None,
    names: Sequence[str] | None = None,
    relation: Relation = "spearman",
    threshold: Annotated[float, Gt(0), Lt(1)] = RETURNS,
    n_permutations: Annotated[int, Ge(19)] = 100,
    seed: int = 0,
) -> Stability:
    r"""How far models that were trained alike find the same latents, and which of them stands for the others.

    With R_ab ≥ 0 the absolute correlation of latent a of model i with latent b of model j on the same samples, π the
    one-to-one matching of largest sum, and d the number of latents in use,

    .. math:: A_{ij} = \frac{2}{d_i + d_j} \sum_a R_{a \pi(a)}

    is the agreement of two models: the mean over the latents of both, where one without a partner counts 0, so a
    collapsed model agrees with none. The consistency is its mean over all pairs: 1 when every model has the same
    latents up to order, sign and (rank correlation) any monotone map. The most central model has the largest mean
    agreement with the others. A latent returns when its strength :math:`R_{a \pi(a)}` exceeds the threshold in every
    other model. Latents that are uncorrelated have :math:`\sum_b R_{ab}^2 \le 1`, so above :math:`\sqrt{1/2}` no other
    partner comes near.

    Chance: the samples of each model are shuffled, which keeps everything within a model and nothing between models.
    Where models really are independent, p ≤ 0.05 in one case of twenty. A latent that returns must also exceed what
    the best latent of all models reaches in one shuffle of twenty, which counts for few samples.

    Rank correlation is the default: a seed fixes each latent up to a monotone map at best, and how it stretches a
    latent is not what a reader calls another latent; nor do a few far samples decide. ``pearson`` sees the shape too.

    A rotation of the latents is not the same latents. ``space`` tells it from models that have nothing in common: the
    mean R² of a latent on all latents of another model, 1 for any invertible linear map.

    The interval, and that of the lead, are jackknives over 20 blocks of samples, with the ranks of all. They are about
    these models; how other seeds would do is told by more seeds.

    Reference: ours. Matching by assignment as in the mean correlation coefficient of identifiability studies.

    :param models: codes of each model, of the same samples: representations, or arrays ``(sample, latent)`` of means;
        a list, or a mapping from names.
    :param variance: (default None) with arrays, the posterior variances σ² of each model: a latent then counts if it is
        in use (:mod:`polariscope.analysis.regime.use`), as for representations. Otherwise all that vary count.
    :param names: (default: their numbers) what to call the models of a list.
    :param relation: (default "spearman") which correlation; or "pearson".
    :param threshold: (default √½) strength from which a latent returns.
    :param n_permutations: (default 100) shuffles behind the chance level.
    :param seed: (default 0) seed of the shuffles.

    >>> codes = np.array([[a, b] for a in range(5) for b in range(5)], dtype=float)
    >>> result = stability([codes, -codes[:, ::-1], codes**3])
    >>> round(result.value, 6), result.returning
    (1.0, (0, 1))
    """
    check_word("relation", relation, get_args(Relation))
    if not 0 < threshold < 1:
        raise InputError("threshold", "lie between 0 and 1", got=threshold)
    if n_permutations < 19:
        raise InputError("n_permutations", "be at least 19, or p could not reach 0.05", got=n_permutations)
    listed, called = _named(models, names)
    checked = Models(listed, variance, seed, called)
    used = _in_use(listed, checked)
    used_codes = [codes[:, chosen] for codes, chosen in zip(checked.codes, used, strict=True)]
    plain = [standardised(codes) for codes in used_codes]
    related = [standardised(ranked(codes)) for codes in used_codes] if relation == "spearman" else plain
    measured = _Measured(np.concatenate(related, axis=1), np.concatenate(plain, axis=1), _parts(used_codes))

    scored = measured.score()
    value = scored.consistency
    left_out = measured.without_each_block()
    shuffled = [measured.shuffled(generator(seed, "stability", index)) for index in range(n_permutations)]
    chances = np.array([one.consistency for one in shuffled])
    by_chance = float(np.quantile([one.best_lowest for one in shuffled], TAIL, method="higher"))
    matches = tuple(_matches(scored, used, max(threshold, by_chance)))
    order = np.argsort(-scored.centrality, kind="stable").tolist()
    several = len(listed) > 2
    lead = None
    if several:
        leads = [one.centrality[order[0]] - one.centrality[order[1]] for one in left_out]
        gap = float(scored.centrality[order[0]] - scored.centrality[order[1]])
        lead = jackknife_interval(gap, np.array(leads), bounds_of_difference(AGREEMENT))
    result = Stability(
        value=value,
        interval=jackknife_interval(value, np.array([one.consistency for one in left_out]), AGREEMENT),
        chance=float(chances.mean()),
        chance_high=float(np.quantile(chances, TAIL, method="higher")),
        p_value=float((1 + (chances >= value).sum()) / (1 + n_permutations)),
        space=scored.space,
        space_chance=float(np.mean([one.space for one in shuffled])),
        names=called,
        agreement=scored.agreement,
        centrality=tuple(scored.centrality.tolist()),
        central=order[0] if several else None,
        runner_up=order[1] if several else None,
        lead=lead,
        latents=matches,
        n_used=tuple(int(chosen.sum()) for chosen in used),
        relation=relation,
        threshold=max(threshold, by_chance),
        n_samples=len(checked.codes[0]),
        n_permutations=n_permutations,
        seed=seed,
    )
    knows = checked.variance is not None
    return dataclasses.replace(
        result, notes=tuple(_notes(result, by_chance > threshold, knows, scored.matched_square))
    )


def _named(models: Any, names: Sequence[str] | None) -> tuple[list[Any], tuple[str, ...]]:
    """The models in a list, and what they are called."""
    if isinstance(models, Mapping):
        if names is not None:
            raise InputError("names", "be left out with a mapping, which has its own")
        return list(models.values()), tuple(map(str, models))
    if isinstance(models, Representation) or (isinstance(models, np.ndarray) and models.ndim < 3):
        raise InputError("models", "be several, in a list or by name", got="one")
    listed = list(models)
    called = tuple(str(number) for number in range(len(listed))) if names is None else tuple(map(str, names))
    if len(called) != len(listed) or len(set(called)) != len(called):
        raise InputError(
            "names", f"be different, one for each of the {len(listed)} models", got=", ".join(called)
        )
    return listed, called


def _in_use(listed: list[Any], models: Models) -> list[Bool[np.ndarray, " _"]]:
    """Which latents of each model count."""
    varies = [np.ptp(codes, axis=0) > 0 for codes in models.codes]
    if models.variance is None:
        return varies
    masks = []
    for chosen, codes, variance in zip(listed, models.codes, models.variance, strict=True):
        is_whole = isinstance(chosen, Representation)
        use = uses(chosen) if is_whole else uses_of_codes(codes, variance)
        masks.append(np.array([each.in_use for each in use]))
    return [some & used for some, used in zip(varies, masks, strict=True)]


def _parts(used_codes: list[Float[np.ndarray, "sample _"]]) -> list[slice]:
    ends = np.cumsum([0, *(codes.shape[1] for codes in used_codes)]).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


@dataclasses.dataclass(frozen=True, eq=False)
class _Scored:
    """What follows from one table of correlations."""

    agreement: Float[np.ndarray, "model model"]
    partners: Int[np.ndarray, "all model"]
    """For every latent its partner in every model, by its place among that model's latents in use; −1: none."""
    strengths: Float[np.ndarray, "all model"]
    space: float
    parts: list[slice]

    @property
    def centrality(self) -> Float[np.ndarray, " model"]:
        """Mean agreement of each model with the others."""
        return (self.agreement.sum(axis=1) - 1) / (len(self.agreement) - 1)

    @property
    def consistency(self) -> float:
        """Mean agreement over pairs."""
        return float(self.centrality.mean())

    @property
    def lowest(self) -> Float[np.ndarray, " all"]:
        """Of every latent the smallest strength over the other models; 1 in its own does not count."""
        return self.strengths.min(axis=1, initial=1.0)

    @property
    def matched_square(self) -> float:
        """Mean squared strength of latents with a partner in another model: what ``space`` would be without mixing."""
        numbers = np.arange(len(self.parts))
        own = np.concatenate(
            [np.full(part.stop - part.start, n) for n, part in zip(numbers, self.parts, strict=True)]
        )
        chosen = (self.partners >= 0) & (own[:, None] != numbers)
        return float((self.strengths[chosen] ** 2).mean()) if chosen.any() else 0.0

    @property
    def best_lowest(self) -> float:
        """The largest of these."""
        return float(self.lowest.max(initial=0.0))


class _Measured:
    """Standardised codes of all models side by side, and what their correlations say."""

    def __init__(
        self,
        related: Float[np.ndarray, "sample all"],
        plain: Float[np.ndarray, "sample all"],
        parts: list[slice],
    ) -> None:
        self.related, self.plain, self.parts = related, plain, parts

    def score(self) -> _Scored:
        """On all samples."""
        return self._of(self.related.T @ self.related, self.plain.T @ self.plain)

    def without_each_block(self) -> list[_Scored]:
        """Without each of the blocks of samples."""
        count = min(BLOCKS, len(self.related))
        tables = [
            [block.T @ block for block in np.array_split(one, count)] for one in (self.related, self.plain)
        ]
        totals = [np.sum(blocks, axis=0) for blocks in tables]
        return [self._of(totals[0] - tables[0][i], totals[1] - tables[1][i]) for i in range(count)]

    def shuffled(self, draw: np.random.Generator) -> _Scored:
        """After the samples of each model were put into another order."""
        related, plain = np.empty_like(self.related), np.empty_like(self.plain)
        for part in self.parts:
            order = draw.permutation(len(related))
            related[:, part], plain[:, part] = self.related[order, part], self.plain[order, part]
        return self._of(related.T @ related, plain.T @ plain)

    def _of(self, related: Float[np.ndarray, "all all"], plain: Float[np.ndarray, "all all"]) -> _Scored:
        strength = np.abs(_as_correlations(related))
        n_models = len(self.parts)
        agreement = np.eye(n_models)
        partners = np.full((len(strength), n_models), -1)
        strengths = np.zeros((len(strength), n_models))
        for i, one in enumerate(self.parts):
            partners[one, i], strengths[one, i] = np.arange(one.stop - one.start), 1.0
            for j in range(i):
                other = self.parts[j]
                block = strength[one, other]
                rows, columns = assign(block)
                pairs = block[rows, columns]
                both = sum(block.shape)
                agreement[i, j] = agreement[j, i] = 2 * pairs.sum() / both if both else 0.0
                partners[one.start + rows, j], strengths[one.start + rows, j] = columns, pairs
                partners[other.start + columns, i], strengths[other.start + columns, i] = rows, pairs
        return _Scored(
            agreement, partners, strengths, _space(_as_correlations(plain), self.parts), self.parts
        )


def _as_correlations(products: Float[np.ndarray, "all all"]) -> Float[np.ndarray, "all all"]:
    scale = np.sqrt(np.diag(products))
    scale = np.where(scale > 0, scale, 1.0)  # all of a latent's spread may lie in the block that is left out
    return np.clip(products / np.outer(scale, scale), -1.0, 1.0)


def _space(correlations: Float[np.ndarray, "all all"], parts: list[slice]) -> float:
    """Mean R² of every latent on all latents of each other model; 0 where there are none."""
    shares = []
    for j, other in enumerate(parts):
        inverse = np.linalg.pinv(correlations[other, other], hermitian=True, rcond=1e-10)
        for i, one in enumerate(parts):
            if i != j and one.stop > one.start:
                cross = correlations[one, other]
                shares.append(np.einsum("ab,bc,ac->a", cross, inverse, cross))
    return float(np.clip(np.concatenate(shares), 0.0, 1.0).mean()) if shares else 0.0


def _matches(scored: _Scored, used: list[Bool[np.ndarray, " _"]], threshold: float) -> list[LatentMatch]:
    numbers = [np.flatnonzero(chosen).tolist() for chosen in used]
    matches = []
    for model, part in enumerate(scored.parts):
        for column in range(part.start, part.stop):
            strengths = scored.strengths[column].tolist()
            others = [strength for other, strength in enumerate(strengths) if other != model]
            partners = tuple(
                None if partner < 0 else numbers[other][partner]
                for other, partner in enumerate(scored.partners[column].tolist())
            )
            lowest = min(others)
            matches.append(
                LatentMatch(
                    model=model,
                    latent=numbers[model][column - part.start],
                    partners=partners,
                    strengths=tuple(strengths),
                    lowest=lowest,
                    mean=float(np.mean(others)),
                    returns=lowest > threshold,
                )
            )
    return matches


def _notes(result: Stability, raised: bool, knows_variance: bool, matched: float) -> list[str]:
    notes = []
    if not knows_variance:
        notes.append("Without variances every latent that varies counts, passive ones too.")
    empty = [name for name, count in zip(result.names, result.n_used, strict=True) if not count]
    if empty:
        notes.append(
            f"No latent is in use in {', '.join(empty)}, which therefore agrees with no other model."
        )
    if result.p_value > 1 - TAIL:
        notes.append(
            "The models agree no better than unrelated codes of the same shape would: no model stands for others."
        )
    elif result.lead is not None and result.lead[0] <= 0:
        assert result.central is not None
        assert result.runner_up is not None
        notes.append(
            f"{result.names[result.central]} and {result.names[result.runner_up]} cannot be told apart on these "
            "samples: either may be published."
        )
    if raised:
        notes.append(
            f"With {result.n_samples} samples chance alone reaches {result.threshold:.2f}, so a latent must be "
            "stronger than that to return."
        )
    all_return = len(result.returning) == len(result.of(result.shown))
    if result.space > 0.5 and result.space - matched > APART and not all_return:
        notes.append(
            "The models describe nearly the same space in other directions: they differ by a rotation more than by "
            "what they hold."
        )
    return notes
