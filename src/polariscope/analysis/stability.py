"""Stability of latents over repeated training, and the most representative of several models."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from annotated_types import Ge, Gt, Lt
from jaxtyping import Bool, Float, Int

from polariscope.analysis.code_view import Pool, Unit, in_units
from polariscope.analysis.model_codes import Models
from polariscope.analysis.regime.posterior import rows_of
from polariscope.analysis.regime.use import uses, uses_of_codes
from polariscope.analysis.representation import Representation, shape_in_words
from polariscope.core.errors import Argument, InputError, check_word
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
"""Strength above which a latent recurs: it shares more than half of its variance with its partner."""
AGREEMENT = (0.0, 1.0)
"""Smallest and largest possible agreement of two models."""
BLOCKS = 20
TAIL = 0.95
APART = 0.2
"""Minimum excess of R² on all latents of another model over that on the partner for a note about a rotation."""


@dataclasses.dataclass(frozen=True)
class LatentMatch(AbstractRecord):
    """A latent of one model and its partners in all models, in the order of the models."""

    model: int
    latent: int
    partners: tuple[int | None, ...]
    """Matched latent in each model: its own number in its own model, None if no latent is left for it."""
    strengths: tuple[float, ...]
    """Absolute correlation with each partner; 1 with itself, 0 without a partner."""
    lowest: float
    """Smallest strength over the other models."""
    mean: float
    """Mean strength over the other models."""
    returns: bool
    """If True, the latent recurs in every other model."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stability(AbstractStoredRecord, remedy="compare the models again"):
    """Agreement between the latents of models trained with the same settings: consistency and evidence."""

    value: float
    """Consistency: mean agreement over pairs of models, from 0 to 1."""
    interval: Interval
    """95 % interval over the draw of the samples, for these models."""
    chance: float
    """Mean consistency of the same codes when the samples of each model are shuffled."""
    chance_high: float
    """95 % quantile of the consistency of shuffled codes."""
    p_value: float
    """Share of the shuffles, including the codes themselves, whose consistency is at least as high."""
    space: float
    """Mean share of the variance of a model's latents that all latents of another model predict linearly."""
    space_chance: float
    """``space`` of shuffled codes."""
    names: tuple[str, ...]
    """Names of the models."""
    agreement: Float[np.ndarray, "model model"]
    """Agreement of each pair of models; 1 on the diagonal."""
    centrality: tuple[float, ...]
    """Mean agreement of each model with the others."""
    central: int | None
    """Model that agrees best with the others; None if there are only two, which agree equally."""
    runner_up: int | None
    """Model that agrees second best with the others."""
    lead: Interval | None
    """95 % interval of the difference in agreement between the best and the second best model."""
    latents: tuple[LatentMatch, ...]
    """Latents in use of all models."""
    n_used: tuple[int, ...]
    """Number of latents in use of each model."""
    relation: Relation
    threshold: float
    n_samples: int
    n_permutations: int
    seed: int
    notes: tuple[str, ...] = ()
    """Limits of the results."""
    unit: Unit = "latent"
    """Unit that is matched: "latent", or "channel" for codes with positions."""

    def of(self, model: int) -> tuple[LatentMatch, ...]:
        """Return the latents of a model that are in use.

        :param model: index of the model.
        """
        return tuple(match for match in self.latents if match.model == model)

    @property
    def shown(self) -> int:
        """Model whose latents are listed: the central one, otherwise the first."""
        return 0 if self.central is None else self.central

    @property
    def returning(self) -> tuple[int, ...]:
        """Latents of the model shown that recur in every other model."""
        return tuple(match.latent for match in self.of(self.shown) if match.returns)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a table with a row for each latent in use of each model."""
        rows = []
        for match in self.latents:
            row: dict[str, Any] = {
                "model": self.names[match.model],
                "latent": match.latent,
                "returns": match.returns,
                "lowest": match.lowest,
                "mean": match.mean,
                "centrality": self.centrality[match.model],
            }
            for name, partner, strength in zip(self.names, match.partners, match.strengths, strict=True):
                row |= {f"partner.{name}": partner, f"strength.{name}": strength}
            rows.append(row)
        return rows

    def to_csv(self) -> str:
        """Return :meth:`to_rows` as comma-separated values."""
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
        """Sentence about the consistency and its chance level."""
        return (
            f"Consistency {self.value:.3f} ({interval(self.interval, '.3f')}, 95 % over samples) of "
            f"{len(self.names)} models; chance level {self.chance:.3f}, 95 % quantile {self.chance_high:.3f} "
            f"(p = {self.p_value:.2g})."
        )

    @property
    def answer(self) -> str:
        """Sentence about the most representative model."""
        if self.central is None or self.runner_up is None or self.lead is None:
            return "No model is central: two models agree equally with each other. Train a third."
        low, high = self.lead
        return (
            f"Most central: {self.names[self.central]}, agreement {self.centrality[self.central]:.3f} with the others; "
            f"{self.names[self.runner_up]} follows, {low:.3f} to {high:.3f} behind (95 % over samples)."
        )

    def __str__(self) -> str:
        name = self.names[self.shown]
        n_used = len(self.of(self.shown))
        listed = ", ".join(map(str, self.returning)) or "none"
        parts = [
            self.headline,
            self.answer,
            f"Latents of {name} that recur in every model: {listed} (of {n_used} in use).",
            f"Space: {self.space:.3f} of the variance of a model's latents is linear in another's latents (chance "
            f"level {self.space_chance:.3f}).",
            *(f"Note: {note}" for note in self.notes),
        ]
        return in_units("\n".join(parts), self.unit)


def stability(
    models: object,
    *,
    variance: Sequence[ArrayInput] | None = None,
    names: Sequence[str] | None = None,
    relation: Relation = "spearman",
    threshold: Annotated[float, Gt(0), Lt(1)] = RETURNS,
    n_permutations: Annotated[int, Ge(19)] = 100,
    seed: int = 0,
    pool: Pool = "none",
) -> Stability:
    r"""Measure the agreement between the latents of models trained alike, and find the most representative model.

    With R_ab ≥ 0 the absolute correlation of latent a of model i with latent b of model j on the same samples, π the
    one-to-one matching with the largest sum, and d the number of latents in use,

    .. math:: A_{ij} = \frac{2}{d_i + d_j} \sum_a R_{a \pi(a)}

    is the agreement of two models: the mean over the latents of both. A latent without a partner counts as 0, so a
    collapsed model has no agreement with any other. The consistency is the mean agreement over all pairs. It is 1 if
    every model has the same latents up to order, sign and (with rank correlation) any monotone map. The most central
    model has the largest mean agreement with the others. A latent recurs (``returns``) if its strength
    :math:`R_{a \pi(a)}` exceeds the threshold in every other model. Uncorrelated latents have
    :math:`\sum_b R_{ab}^2 \le 1`, so above :math:`\sqrt{1/2}` the partner is unique.

    For the chance level, the samples of each model are shuffled, which preserves the dependence within a model and
    removes that between models. If the models are independent, p ≤ 0.05 in one case out of twenty. A recurring latent
    must also exceed the 95 % quantile of the best latent of shuffled models, which matters if there are few samples.

    Rank correlation is the default, because training determines a latent at best up to a monotone map, and because it
    is robust to outliers. ``pearson`` also depends on the shape of that map.

    Rotated latents do not count as the same latents. ``space`` distinguishes a rotation from models that have nothing
    in common: it is the mean R² of a latent on all latents of another model, and is 1 for any invertible linear map.

    The intervals of the consistency and of the lead are jackknife intervals over 20 blocks of samples, with the ranks
    of all samples. They describe these models; to learn about other seeds, train more models.

    Representations of codes with positions, (channel, height, width), are matched by channel. R_ab is then the
    correlation of two channels at the same position, over all samples and positions, and blocks and shuffles are those
    of samples. This requires the same positions in all models; ``pool="mean"`` compares the means over positions.

    Reference: ours. Matching by assignment as in the mean correlation coefficient of identifiability studies.

    :param models: codes of each model, of the same samples: representations, or arrays ``(sample, latent)`` of means;
        a list, or a mapping from names.
    :param variance: (default None) with arrays, the posterior variances σ² of each model: a latent then counts if it is
        in use (:mod:`polariscope.analysis.regime.use`), as for representations. Otherwise all latents that vary count.
    :param names: (default: their numbers) names of the models of a list.
    :param relation: (default "spearman") correlation: "spearman" or "pearson".
    :param threshold: (default √½) strength above which a latent recurs.
    :param n_permutations: (default 100) number of shuffles for the chance level.
    :param seed: (default 0) seed of the shuffles.
    :param pool: (default "none") values of a channel with positions: "none" for all, "mean" for the mean over them.

    >>> codes = np.array([[a, b] for a in range(5) for b in range(5)], dtype=float)
    >>> result = stability([codes, -codes[:, ::-1], codes**3])
    >>> round(result.value, 6), result.returning
    (1.0, (0, 1))
    """
    check_word("relation", relation, get_args(Relation))
    if not 0 < threshold < 1:
        raise InputError("threshold", "lie between 0 and 1", got=threshold)
    if n_permutations < 19:
        raise InputError("n_permutations", "be at least 19 for p to reach 0.05", got=n_permutations)
    listed, labels = _named(models, names)
    checked = Models(listed, variance, seed, labels)
    all_codes, n_positions, unit = _codes(listed, checked, pool)
    used = _in_use(listed, checked, all_codes)
    used_codes = [codes[:, mask] for codes, mask in zip(all_codes, used, strict=True)]
    plain = [standardised(codes) for codes in used_codes]
    related = [standardised(ranked(codes)) for codes in used_codes] if relation == "spearman" else plain
    joint = _JointCodes(
        np.concatenate(related, axis=1), np.concatenate(plain, axis=1), _parts(used_codes), n_positions
    )

    scored = joint.score()
    value = scored.consistency
    left_out = joint.without_each_block()
    shuffled = [joint.shuffled(generator(seed, "stability", index)) for index in range(n_permutations)]
    chances = np.array([each.consistency for each in shuffled])
    # "higher" keeps the quantile conservative if there are few shuffles.
    by_chance = float(np.quantile([each.best_lowest for each in shuffled], TAIL, method="higher"))
    matches = tuple(_matches(scored, used, max(threshold, by_chance)))
    order = np.argsort(-scored.centrality, kind="stable").tolist()
    several = len(listed) > 2
    lead = None
    if several:
        leads = [each.centrality[order[0]] - each.centrality[order[1]] for each in left_out]
        gap = float(scored.centrality[order[0]] - scored.centrality[order[1]])
        lead = jackknife_interval(gap, np.array(leads), bounds_of_difference(AGREEMENT))
    result = Stability(
        value=value,
        interval=jackknife_interval(value, np.array([each.consistency for each in left_out]), AGREEMENT),
        chance=float(chances.mean()),
        chance_high=float(np.quantile(chances, TAIL, method="higher")),
        # The codes themselves count as a shuffle, so p is never 0.
        p_value=float((1 + (chances >= value).sum()) / (1 + n_permutations)),
        space=scored.space,
        space_chance=float(np.mean([each.space for each in shuffled])),
        names=labels,
        agreement=scored.agreement,
        centrality=tuple(scored.centrality.tolist()),
        central=order[0] if several else None,
        runner_up=order[1] if several else None,
        lead=lead,
        latents=matches,
        n_used=tuple(int(mask.sum()) for mask in used),
        relation=relation,
        threshold=max(threshold, by_chance),
        n_samples=len(checked.codes[0]),
        n_permutations=n_permutations,
        seed=seed,
        unit=unit,
    )
    has_variance = checked.variance is not None
    notes = _notes(result, by_chance > threshold, has_variance, scored.matched_square)
    return dataclasses.replace(result, notes=tuple(in_units(note, unit) for note in notes))


def _named(models: Any, names: Sequence[str] | None) -> tuple[list[Any], tuple[str, ...]]:
    """Return the models as a list, and their names."""
    if isinstance(models, Mapping):
        if names is not None:
            raise InputError("names", "be omitted with a mapping, whose keys are the names")
        return list(models.values()), tuple(map(str, models))
    # An array with three axes is a list of models.
    if isinstance(models, Representation) or (isinstance(models, np.ndarray) and models.ndim < 3):
        raise InputError("models", "be a list or a mapping of at least 2 models", got="one")
    listed = list(models)
    labels = tuple(str(number) for number in range(len(listed))) if names is None else tuple(map(str, names))
    if len(labels) != len(listed) or len(set(labels)) != len(labels):
        raise InputError(
            "names", f"be unique, one for each of the {len(listed)} models", got=", ".join(labels)
        )
    return listed, labels


def _codes(
    listed: list[Any], models: Models, pool: Pool
) -> tuple[list[Float[np.ndarray, "row _"]], int, Unit]:
    """Return the codes to match with a column for each latent or channel, rows per sample, and the unit."""
    check_word("pool", pool, get_args(Pool))
    channels = [model for model in listed if isinstance(model, Representation) and model.unit == "channel"]
    if not channels:
        return models.codes, 1, "latent"
    if len(channels) < len(listed):
        raise InputError(
            problem="some models have codes with channels and others have not",
            remedy='compare models of the same kind, or pass rep.viewed("value") of each',
        )
    if pool == "mean":
        return [model.averaged().mean.astype(np.float64) for model in channels], 1, "channel"
    positions = {model.code_shape[1:] for model in channels}
    if len(positions) > 1:
        shapes = " and ".join(sorted(shape_in_words(shape) for shape in positions))
        raise InputError(
            "models",
            "have the same positions, because channels are compared at the same position",
            got=shapes,
            remedy=("use ", Argument("pool", "mean"), ", the mean over positions"),
        )
    size = channels[0].n_positions
    return [rows_of(codes, size) for codes in models.codes], size, "channel"


def _in_use(
    listed: list[Any], models: Models, all_codes: list[Float[np.ndarray, "row _"]]
) -> list[Bool[np.ndarray, " _"]]:
    """Return a mask of the latents that count, for each model."""
    varies = [np.ptp(codes, axis=0) > 0 for codes in all_codes]
    if models.variance is None:
        return varies
    masks = []
    for model, codes, variance in zip(listed, models.codes, models.variance, strict=True):
        use = uses(model) if isinstance(model, Representation) else uses_of_codes(codes, variance)
        masks.append(np.array([each.in_use for each in use]))
    return [varying & used for varying, used in zip(varies, masks, strict=True)]


def _parts(used_codes: list[Float[np.ndarray, "sample _"]]) -> list[slice]:
    ends = np.cumsum([0, *(codes.shape[1] for codes in used_codes)]).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


@dataclasses.dataclass(frozen=True, eq=False)
class _Scored:
    """Agreement of the models, computed from one table of correlations."""

    agreement: Float[np.ndarray, "model model"]
    partners: Int[np.ndarray, "all model"]
    """Partner of every latent in every model, as an index into that model's latents in use; −1 if there is none."""
    strengths: Float[np.ndarray, "all model"]
    space: float
    parts: list[slice]

    @property
    def centrality(self) -> Float[np.ndarray, " model"]:
        """Mean agreement of each model with the others."""
        # The agreement of a model with itself, 1, is subtracted.
        return (self.agreement.sum(axis=1) - 1) / (len(self.agreement) - 1)

    @property
    def consistency(self) -> float:
        """Mean agreement over pairs."""
        return float(self.centrality.mean())

    @property
    def lowest(self) -> Float[np.ndarray, " all"]:
        """Smallest strength of every latent over the other models; its own model, with strength 1, has no effect."""
        return self.strengths.min(axis=1, initial=1.0)

    @property
    def matched_square(self) -> float:
        """Mean squared strength of latents with a partner in another model: the value of ``space`` without mixing."""
        numbers = np.arange(len(self.parts))
        model_of_latent = np.concatenate(
            [np.full(part.stop - part.start, n) for n, part in zip(numbers, self.parts, strict=True)]
        )
        matched = (self.partners >= 0) & (model_of_latent[:, None] != numbers)
        return float((self.strengths[matched] ** 2).mean()) if matched.any() else 0.0

    @property
    def best_lowest(self) -> float:
        """Largest value of :attr:`lowest`."""
        return float(self.lowest.max(initial=0.0))


class _JointCodes:
    """Standardised codes of all models next to each other, from which agreements are computed."""

    def __init__(
        self,
        related: Float[np.ndarray, "sample all"],
        plain: Float[np.ndarray, "sample all"],
        parts: list[slice],
        n_positions: int = 1,
    ) -> None:
        self.related, self.plain, self.parts, self.n_positions = related, plain, parts, n_positions

    def score(self) -> _Scored:
        """Compute the agreement on all samples."""
        return self._of(self.related.T @ self.related, self.plain.T @ self.plain)

    def without_each_block(self) -> list[_Scored]:
        """Compute the agreement without each of the blocks of samples."""
        n_samples = len(self.related) // self.n_positions
        count = min(BLOCKS, n_samples)
        # Blocks contain all positions of their samples.
        ends = [len(block) for block in np.array_split(np.empty(n_samples), count)]
        cuts = (np.cumsum(ends) * self.n_positions)[:-1]
        tables = [
            [block.T @ block for block in np.split(codes, cuts)] for codes in (self.related, self.plain)
        ]
        totals = [np.sum(blocks, axis=0) for blocks in tables]
        return [self._of(totals[0] - tables[0][i], totals[1] - tables[1][i]) for i in range(count)]

    def shuffled(self, draw: np.random.Generator) -> _Scored:
        """Compute the agreement after shuffling the samples of each model."""
        related, plain = np.empty_like(self.related), np.empty_like(self.plain)
        # Each model has its own order, so latents within a model stay dependent.
        for part in self.parts:
            order = draw.permutation(len(related) // self.n_positions)
            if self.n_positions > 1:
                order = (order[:, None] * self.n_positions + np.arange(self.n_positions)).ravel()
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
    scale = np.where(scale > 0, scale, 1.0)  # all variation of a latent can lie in the omitted block
    # Rounding can take a correlation slightly beyond 1.
    return np.clip(products / np.outer(scale, scale), -1.0, 1.0)


def _space(correlations: Float[np.ndarray, "all all"], parts: list[slice]) -> float:
    """Return the mean R² of every latent on all latents of each other model; 0 if there are none."""
    shares = []
    for j, other in enumerate(parts):
        # Nearly dependent latents would make the inverse large and R² noise.
        inverse = np.linalg.pinv(correlations[other, other], hermitian=True, rcond=1e-10)
        for i, one in enumerate(parts):
            if i != j and one.stop > one.start:
                cross = correlations[one, other]
                # R² = c C⁻¹ cᵀ for each row c of correlations with the other model's latents.
                shares.append(np.einsum("ab,bc,ac->a", cross, inverse, cross))
    return float(np.clip(np.concatenate(shares), 0.0, 1.0).mean()) if shares else 0.0


def _matches(scored: _Scored, used: list[Bool[np.ndarray, " _"]], threshold: float) -> list[LatentMatch]:
    numbers = [np.flatnonzero(mask).tolist() for mask in used]
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


def _notes(result: Stability, raised: bool, has_variance: bool, matched: float) -> list[str]:
    notes = []
    if not has_variance:
        notes.append("Without variances every latent that varies counts, including passive ones.")
    empty = [name for name, count in zip(result.names, result.n_used, strict=True) if not count]
    if empty:
        notes.append(f"No latent is in use in {', '.join(empty)}, so the agreement with other models is 0.")
    if result.p_value > 1 - TAIL:
        notes.append(
            "The models agree no better than unrelated codes of the same shape, so no model is representative."
        )
    elif result.lead is not None and result.lead[0] <= 0:
        assert result.central is not None
        assert result.runner_up is not None
        notes.append(
            f"The difference between {result.names[result.central]} and {result.names[result.runner_up]} is not "
            "significant on these samples: you can publish either."
        )
    if raised:
        notes.append(
            f"With {result.n_samples} samples, strengths up to {result.threshold:.2f} occur by chance, so this is the "
            "threshold for a latent to recur."
        )
    all_return = len(result.returning) == len(result.of(result.shown))
    if result.space > 0.5 and result.space - matched > APART and not all_return:
        notes.append(
            "The models encode nearly the same information along different directions: they differ mostly by a "
            "rotation."
        )
    return notes
