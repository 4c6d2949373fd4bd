"""Sizing: how many latents the data need. Each method asks for models of some widths and reads an answer off them.

A method sees models through :class:`AbstractCandidates` only, so it can be tested against the closed form of
the linear VAE without training anything, and used with any trainer.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt
from jaxtyping import Float, Shaped

from polariscope.analysis.noise import Noise
from polariscope.analysis.representation import Representation
from polariscope.analysis.verdict import Verdict
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import AbstractRecord, from_plain, to_plain
from polariscope.core.registry import open_family
from polariscope.training.planner import SEARCH_RATE, TABLES

if TYPE_CHECKING:
    import pandas

method = family = open_family(
    __name__,
    "sizing method",
    traits=("statistic", "trains", "needs_variances", "threshold", "interval", "uses"),
)
"""``statistic`` is what its trials measure, ``needs_variances`` whether it compares posterior variances with those of
the prior N(0, I), which not every model has, ``threshold`` where that is cut: "goal", a number of its own, or None;
``interval`` what the interval of one seed covers, ``uses`` which options of the goal it heeds. What only one method
asks for is a keyword-only argument of its function. Some also declare ``needs_factors`` (for data with known factors
only), ``finds_beta`` (it can search the largest β) and ``is_careful`` (its models learn at the goal's careful rate, as
a model of the size found then should)."""

TRACE = "Σ E[σ²]"
"""The statistic of FONDUE."""
DIMENSION = "intrinsic dimension"
"""The statistic of the method that estimates it."""
FROM_DATA = ("images", "net_rate")
"""What a goal says of the data and the net, and nobody asks for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """A model while it trains: the mean posterior variance of each latent, relative to the prior's."""

    steps: Shaped[np.ndarray, " look"]
    variances: Float[np.ndarray, "look latent"]
    gammas: Float[np.ndarray, " look"] | None = None
    """The decoder's variance γ at each look, where it is one number for all values."""
    held_out: tuple[tuple[int, float, float], ...] = ()
    """The loss where it was measured on held-out observations, as (step, held out, in training), nats each."""
    is_elbo: bool = False
    """Whether the loss is −ELBO: reconstruction plus rate, each with weight 1."""

    @property
    def trace(self) -> tuple[tuple[int, float], ...]:
        """Σ E[σ²] at each look, as (step, value)."""
        sums = self.variances.sum(axis=1)
        return tuple((int(step), float(value)) for step, value in zip(self.steps, sums, strict=True))


@dataclasses.dataclass(frozen=True)
class Losses:
    """What a model costs on held-out samples, nats per sample."""

    total: float
    """All terms of the objective with their weights: what is minimised."""
    reconstruction: float
    """−log p(x|z)."""
    rate: float | None
    """KL(q(z|x) ‖ p(z)), without a weight; None where the encoder is deterministic."""


class AbstractCandidates(abc.ABC):
    """Models of one recipe and one seed that differ in their number of latents, trained as far as asked.

    Nothing is trained twice: a model asked for again with more steps is continued. ``changes`` are training
    options that differ from the recipe (``beta``, ``learning_rate``, ``prior`` …); models with other changes are
    other models. So are those with ``pruned_from``, a number of latents and one of steps: they begin with the most
    informative latents of that model after so many steps, and not afresh.
    """

    seed: int

    @property
    @abc.abstractmethod
    def steps_per_epoch(self) -> int:
        """Gradient steps in a pass over the training data."""

    @property
    def n_learned_from(self) -> int | None:
        """Values of an observation, where the decoder's variance is one number that is learned from them; else None."""
        return None

    @property
    def most_latents(self) -> int | None:
        """The most that make sense where the decoder's variance is learned: nothing is left to learn from beyond."""
        return None

    @property
    def fixed_variance(self) -> float | None:
        """The decoder's variance, where it is one number that is fixed; None: it is learned, or not one number."""
        return None

    @property
    def can_prune(self) -> bool:
        """Whether models can begin with latents of wider ones."""
        return False

    @property
    @abc.abstractmethod
    def n_steps(self) -> int:
        """Gradient steps spent so far, on all models."""

    @property
    @abc.abstractmethod
    def n_models(self) -> int:
        """Models that were asked for so far."""

    @property
    def n_seconds(self) -> float | None:
        """How long these models took to train up to there, and to measure; None: nobody counted."""
        return None

    def n_watched(self, n_latents: int, **changes: object) -> int:
        """Steps up to which a model was watched so far, in this search."""
        return 0

    def nearest_steps(self, n_latents: int, steps: int, **changes: object) -> int:
        """With how many steps narrow models begin from this one: so many, or all it has where they are gone.

        An earlier search in the same folder may have trained it further.

        :param n_latents: of the model.
        :param steps: after which it is wanted.
        :param changes: options that differ from the recipe.
        """
        return steps

    @abc.abstractmethod
    def watch(self, n_latents: int, steps: int, **changes: object) -> Curves:
        """Train a model up to ``steps`` and return its curves from the beginning."""

    @property
    def gains_by_company(self) -> bool:
        """Whether two models take less time side by side than one after the other."""
        return False

    def watch_together(self, widths: Sequence[int], steps: int, **changes: object) -> None:
        """Train several models up to ``steps``, at the same time where that is possible.

        :param widths: numbers of latents.
        :param steps: of each.
        :param changes: options that differ from the recipe, for all.
        """
        for n_latents in widths:
            self.watch(n_latents, steps, **changes)

    def remember(self, key: str, n_latents: int, steps: int, measure: Callable[[], float]) -> float:
        """What was measured under ``key`` of a model after so many steps, before further training; else measure it."""
        return measure()

    def noise(self, n_latents: int, steps: int, beta: float | None = None) -> Noise | None:
        """What a model that was watched took for noise after so many steps; None: that is not known, or not one number.

        :param n_latents: of the model.
        :param steps: after which it was looked at.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    def verdict(self, n_latents: int, steps: int, beta: float | None = None) -> Verdict | None:
        """Return the state of the training and the latents in use of a model that was watched; None: not known.

        :param n_latents: of the model.
        :param steps: after which it was looked at.
        :param beta: (default None: the recipe's) weight of the rate.
        """
        return None

    @abc.abstractmethod
    def representation(self, n_latents: int, steps: int, **changes: object) -> Representation:
        """Representation of 10,000 samples by a model of so many steps."""

    @abc.abstractmethod
    def losses(self, n_latents: int, steps: int, **changes: object) -> Losses:
        """What a model of so many steps costs on held-out samples."""

    def reconstruction_loss(self, n_latents: int, steps: int, **changes: object) -> float:
        """Held-out reconstruction loss in nats per sample."""
        return self.losses(n_latents, steps, **changes).reconstruction

    @abc.abstractmethod
    def reconstructions(
        self, n_latents: int, steps: int, **changes: object
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "sample feature"]]:
        """The samples of :meth:`representation`, and what the decoder makes of their sampled codes."""

    @abc.abstractmethod
    def observations(self) -> Float[np.ndarray, "sample feature"]:
        """At most 10,000 observations, as rows."""

    def split_rows(
        self,
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "other feature"]] | None:
        """Return the observations that models are trained on and those they are validated with; None: not known."""
        return None


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is asked of a method.

    A field is an option of ``polariscope.size``, a flag of ``polariscope size`` and, with its type and range, what
    both refuse; a method names those it heeds in its trait ``uses``.
    """

    threshold: float = 1.0
    """Most Σ E[σ²] that counts as no surplus; 1 as published."""
    n_init: Annotated[int, Ge(1)] | None = None
    """First guess of the number of latents; None: the method's own."""
    cap: Annotated[int, Ge(1)] = 512
    """Most latents that are tried."""
    steps: Annotated[int, Ge(400)] | None = None
    """Gradient steps of each model, where a method trains them all alike (None: 2,000), and the most that
    'fondue' gives to one (None: ten passes over the data, 8,000 to 16,000); below 400 no trend can be seen."""
    minutes: Annotated[float, Gt(0)] | None = None
    """Time to answer in; the interval says how sure that can be. With a folder, more time goes on from there. None: as
    long as it takes."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data of each model in the published searches; None: 1, 2, … until the answer stays."""
    learning_rate: Annotated[float, Gt(0)] | None = None
    """Step size of the optimiser; None: 1e-3, of 'fondue' on images 2e-4, of linear nets 1e-2, of the published
    searches 1e-4."""
    images: bool = False
    """Whether the observations are images."""
    net_rate: float | None = None
    """The learning rate that the net has of its own."""

    def rate(self) -> float:
        """The learning rate where only the outcome of a model counts."""
        return self.learning_rate or self.net_rate or TABLES.learning_rate

    def careful_rate(self) -> float:
        """The learning rate where every latent counts, which large steps prune: 2e-4 for images."""
        return self.learning_rate or self.net_rate or (SEARCH_RATE if self.images else TABLES.learning_rate)

    @property
    def fixed_steps(self) -> int:
        return 2000 if self.steps is None else self.steps


Decision = Literal["fits", "too many", "undecided"]
Target = Literal["latents", "beta"]
Role = Literal["narrow", "wide"]
Cause = Literal["below", "above", "below-unsettled", "above-unsettled", "silent"]
"""Why a trial is counted as it is: undecided and below or above the threshold, perhaps with posteriors that are still
wider than the prior; or no latent carries information."""
BELOW = "undecided after {} steps; counted as fitting because it is below the threshold now"
ABOVE = "undecided after {} steps; counted as too many because it is above the threshold now"
UNSETTLED = "; its posteriors are still wider than the prior: train longer, or raise the learning rate"
NOTES: dict[Cause, str] = {
    "below": BELOW,
    "above": ABOVE,
    "below-unsettled": BELOW + UNSETTLED,
    "above-unsettled": ABOVE + UNSETTLED,
    "silent": "no latent says anything about the input after {} steps",
}
WIDE = "wide model, for a first guess"


class OutOfTimeError(PolariscopeError):
    """The minutes that a search was given are over."""


@dataclasses.dataclass(frozen=True)
class Trial(AbstractRecord):
    """One model that was trained on the way to an answer."""

    n_latents: int
    seed: int
    statistic: float
    """What was measured of it, for FONDUE Σ E[σ²]."""
    decision: Decision
    """Whether the statistic is at most the threshold; undecided when that could still change."""
    steps: int
    """Gradient steps it was trained for."""
    beta: float | None = None
    """Weight of the rate, where that is what is searched for."""
    projected: tuple[float, float] | None = None
    """Where the statistic may be if the model is trained further."""
    keeps: int | None = None
    """How many of its latents are within the threshold together in the worst case, as a narrower model's would be."""
    curve: tuple[tuple[int, float], ...] = ()
    """The statistic while training: (step, value)."""
    role: Role = "narrow"
    """Whether the model decides about its number of latents, or makes the first guess."""
    cause: Cause | None = None
    """Why the decision is not the plain one; the note is made from it."""
    gamma: float | None = None
    """The decoder's variance γ at the end, where it is one number for all values."""

    @property
    def note(self) -> str:
        """What a reader of the list of models should know about this one; empty in most cases."""
        if self.role == "wide":
            return WIDE
        return "" if self.cause is None else NOTES[self.cause].format(f"{self.steps:,}")


def coded(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored trial with role and cause; version 0.2.0 stored them as the text of a note.

    :param trial: a trial as JSON has it.

    >>> coded({"n_latents": 3, "note": "no latent says anything about the input after 400 steps"})
    {'n_latents': 3, 'role': 'narrow', 'cause': 'silent'}
    """
    if "note" not in trial:
        return dict(trial)
    text, rest = trial["note"], {name: value for name, value in trial.items() if name != "note"}
    cause = next((cause for cause, note in NOTES.items() if _matches(note, text)), None)
    return {**rest, "role": "wide" if text == WIDE else "narrow", "cause": cause}


def _matches(template: str, text: str) -> bool:
    before, after = template.split("{}")
    return text.startswith(before) and text.endswith(after)


BasisCode = Literal["search", "early-stopped", "closed-form"]
BASES: dict[BasisCode, str] = {
    "search": "",
    "early-stopped": (
        "The wide model overfits, so the answer is the number it predicted at its lowest held-out loss, after "
        "{step:,} steps."
    ),
    "closed-form": (
        "Linear models with {closed_form} latents, in closed form, have a lower held-out loss than the trained models, "
        "which have not found what generalises. So the answer is that of linear models, cross-validated."
    ),
}
INTERVALS: dict[BasisCode, str] = {
    "early-stopped": "one latent more or fewer, and the number that the wide model has come to since",
    "closed-form": "one latent more or fewer than the answers without one tenth of the observations",
}
"""Meaning of the interval of one seed, if the answer does not rest on a search."""
BELOW_CLOSED_FORM = (
    "Linear models with {closed_form} latents, in closed form, have a lower held-out loss: the trained models have not "
    "found all that generalises. Allow more steps, or take up to {closed_form} latents."
)


@dataclasses.dataclass(frozen=True)
class Basis(AbstractRecord):
    """Evidence that an answer rests on."""

    code: BasisCode = "search"
    """Models on both sides of it; the wide model at its lowest held-out loss; or linear models in closed form."""
    step: int | None = None
    """Step of the lowest held-out loss, if the wide model overfits."""
    closed_form: int | None = None
    """Number of latents of linear models that generalise; None if it was not computed."""
    is_below: bool = False
    """Whether the answer is less, although linear models with so many latents have a clearly lower held-out loss."""

    @property
    def in_words(self) -> str:
        """The basis in a sentence or two; empty for a plain search.

        >>> Basis("early-stopped", step=3000).in_words.split(", ")[-1]
        'after 3,000 steps.'
        """
        texts = [BASES[self.code], BELOW_CLOSED_FORM if self.is_below else ""]
        text = " ".join(text for text in texts if text)
        return text.format(step=self.step or 0, closed_form=self.closed_form)


@dataclasses.dataclass(frozen=True)
class DataDimension(AbstractRecord):
    """Intrinsic dimension of the data, as method ``id`` estimates it."""

    value: float | None
    """None if it could not be estimated; ``problem`` contains the reason."""
    interval: tuple[float, float] | None = None
    n_points: int = 0
    """Different observations used."""
    problem: str = ""

    @property
    def rounded(self) -> int | None:
        """The nearest integer."""
        return None if self.value is None else max(1, round(self.value))

    @property
    def in_words(self) -> str:
        """The number with its interval, or why there is none.

        >>> DataDimension(4.2, (4.0, 4.4), 500).in_words, DataDimension(None, problem="too few samples").in_words
        ('4 (4.2, 95 % interval 4.0–4.4)', 'not estimated: too few samples')
        """
        if self.value is None or self.interval is None:
            return f"not estimated: {self.problem}"
        low, high = self.interval
        return f"{self.rounded} ({self.value:.1f}, 95 % interval {low:.1f}–{high:.1f})"


@dataclasses.dataclass(frozen=True)
class Found(AbstractRecord):
    """What a method found with one seed."""

    value: float | int | None
    """None when there is no answer; ``notes`` say why."""
    interval: tuple[float | int, float | int] | None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    noise: Noise | None = None
    """What the model of the answer takes for noise; None: :func:`polariscope.size` asks the candidates."""
    verdict: Verdict | None = None
    """State of the training and latents in use of the answer's model; None: :func:`polariscope.size` asks the
    candidates."""
    basis: Basis = Basis()


COUNTS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
DIFFERENT = (
    "These numbers answer different questions: how many latents models of this kind need, how many the fitted model "
    "uses, and how many coordinates the data have"
)
FEWER_COORDINATES = "; to unfold curved data a net can need more latents than coordinates"
MORE_COORDINATES = "; noise has coordinates too, which a model need not encode"


@dataclasses.dataclass(frozen=True)
class Size:
    """How many latents the data need (or, for ``target`` beta, how large β may be): the answer first."""

    value: float | int | None
    """The number of latents, or β; None when the method found none (``notes`` say why)."""
    interval: tuple[float | int, float | int] | None
    """Range of the answer; ``meaning_of_interval`` says of what."""
    method: str
    target: Target = "latents"
    statistic: str = TRACE
    """What ``trials`` measure."""
    threshold: float | int | None = None
    per_seed: tuple[float | int, ...] = ()
    """The answer of each seed."""
    trials: tuple[Trial, ...] = ()
    """The path taken, in order."""
    n_steps: int = 0
    """Gradient steps spent in all; a model that was continued counts once."""
    meaning_of_interval: str = ""
    notes: tuple[str, ...] = ()
    summary: str = ""
    """What the method does, in a line. It is kept with the answer, so a page need not open the method."""
    noise: Noise | None = None
    """What the model of the answer takes for noise: its γ, where that is one number for all values."""
    trains: bool = True
    """Whether models were trained for it; a closed form needs none."""
    verdict: Verdict | None = None
    """The fit: state of the training and latents in use of the trained model with as many latents as the answer."""
    dimension: DataDimension | None = None
    """Intrinsic dimension of the data; None if it was not asked for."""
    basis: Basis = Basis()
    """Evidence that the answer rests on."""

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The answer, the number in use in the fit and the intrinsic dimension of the data, each with its label.

        >>> for label, text in Size(7, (6, 8), "fondue", dimension=DataDimension(4.2, (4.0, 4.4), 500)).numbers:
        ...     print(f"{label}: {text}")
        answer: 7 latents (6–8)
        in use in the fit: not measured: no model of this size was trained
        intrinsic dimension of the data: 4 (4.2, 95 % interval 4.0–4.4)
        """
        rows = [("answer", self.answer)]
        if self.verdict is not None:
            low, high = self.verdict.interval
            span = "" if low == high else f" ({low}–{high})"
            rows.append(("in use in the fit", f"{self.verdict.n_in_use} of {self.verdict.n_latents}{span}"))
        elif self.trains and self.dimension is not None:
            rows.append(("in use in the fit", "not measured: no model of this size was trained"))
        if self.dimension is not None:
            rows.append(("intrinsic dimension of the data", self.dimension.in_words))
        return tuple(rows)

    @property
    def differs(self) -> bool:
        """Whether the answer, the number in use in the fit and the intrinsic dimension are not all equal."""
        if self.target != "latents" or self.value is None:
            return False
        fit = None if self.verdict is None else self.verdict.n_in_use
        dimension = None if self.dimension is None else self.dimension.rounded
        return any(number is not None and number != self.value for number in (fit, dimension))

    @property
    def about_differences(self) -> str:
        """Why the numbers differ, in a sentence; empty if they are equal."""
        if not self.differs or self.value is None:
            return ""
        dimension = self.value if self.dimension is None else self.dimension.rounded or self.value
        tail = FEWER_COORDINATES if dimension < self.value else ""
        tail = MORE_COORDINATES if dimension > self.value else tail
        return f"{DIFFERENT}{tail}."

    @property
    def n_latents(self) -> int:
        """The number of latents: the answer, or what β was sought for."""
        if self.target == "beta":
            return self.trials[0].n_latents
        if self.value is None:
            raise PolariscopeError(f"{self.method} found no answer: {' '.join(self.notes)}")
        return int(self.value)

    @property
    def answer(self) -> str:
        """The answer in words.

        >>> Size(11, (10, 12), "fondue").answer
        '11 latents (10–12)'
        >>> Size(2.5, (2.0, 3.0), "fondue", target="beta").answer
        'β = 2.5 (2–3)'
        """
        if self.value is None or self.interval is None:
            return "no answer"
        low, high = self.interval
        if self.target == "beta":
            return f"β = {self.value:.3g} ({low:.3g}–{high:.3g})"
        noun = "latent" if self.value == 1 else "latents"
        around = f"{low:g}" if low == high else f"{low:g}–{high:g}"
        return f"{self.value:g} {noun} ({around})"

    @property
    def in_words(self) -> str:
        """What the answer means, what it depends on, and what to do where it is open; "" for other statistics.

        >>> import textwrap
        >>> print(textwrap.fill(Size(3, (3, 4), "fondue", threshold=1.0, per_seed=(3,)).in_words, 100))
        A model puts 3 latents to use; of 4 about one would be left over. This depends on what counts as
        noise (the likelihood), the threshold (1), the length of training and the seed (1 was tried).
        """
        if self.target != "latents" or not self.value or self.statistic != TRACE or self.threshold is None:
            return ""
        n = self.n_latents
        noise = f"what counts as noise ({'the likelihood' if self.noise is None else 'γ'})"
        words = f"{self._meaning(n)} This depends on {noise}"
        if not self.trains:
            return f"{words} and the threshold ({self.threshold:g})."
        longest = max((trial.steps for trial in self.trials), default=0)
        tried = len(self.per_seed)
        words += (
            f", the threshold ({self.threshold:g}), the length of training"
            f"{f' (up to {longest:,} steps)' if longest else ''} and the seed ({tried} "
            f"{'was' if tried == 1 else 'were'} tried)."
        )
        # Other answers do not rest on the models that are undecided.
        n_open = sum(trial.decision == "undecided" for trial in self.trials if self.basis.code == "search")
        if n_open:
            words += (
                f" {n_open} of {len(self.trials)} models {'is' if n_open == 1 else 'are'} not decided: trust the "
                "interval more than the number, or allow more steps."
            )
        return words

    def _meaning(self, n: int) -> str:
        """Return what the answer n means, in a sentence or two."""
        if self.basis.code != "search":
            return self.basis.in_words
        last = [trial.statistic for trial in self.trials if trial.n_latents == n + 1]
        is_wider = any(trial.n_latents > n for trial in self.trials)
        beyond = f"{n + 1 if is_wider else 'more'} were not tried"
        if last or not self.trials:
            n_left = min(n + 1, max(1, round(last[-1]))) if last else 1
            beyond = f"of {n + 1} about {COUNTS.get(n_left, n_left)} would be left over"
            if self.threshold != 1:
                beyond = f"with {n + 1}, more would be left over than the threshold allows"
        puts = f"puts {n} latent{'s' if n > 1 else ''} to use"
        if self.trials and not any(trial.n_latents == n for trial in self.trials):
            puts = f"{puts}, by what wider ones show (none of this size was trained)"
        about = f" {self.basis.in_words}" if self.basis.in_words else ""
        return f"A model {puts}; {beyond}.{about}"

    def __str__(self) -> str:
        spent = f"{self.n_steps:,} gradient steps" if self.trains else "no training"
        rows = [] if self.verdict is None else [self.verdict.state]
        rows += [f"{self.answer} by {self.method}, {spent}."]
        rows += [f"{label}: {text}" for label, text in self.numbers[1:]]
        rows += [self.about_differences] if self.differs else []
        rows += [self.in_words] if self.in_words else []
        rows += [] if self.noise is None else [f"{self.noise.in_words}."]
        rows += ["", *_table(self)] if self.trials else []
        rows += ["", *self.notes] if self.notes else []
        return "\n".join(rows)

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each model that was trained, in order."""
        import pandas

        rows = []
        for trial in self.trials:
            low, high = (None, None) if trial.projected is None else trial.projected
            rows.append(
                {
                    **{
                        "n_latents": trial.n_latents,
                        "seed": trial.seed,
                        "beta": trial.beta,
                        "steps": trial.steps,
                    },
                    **{"statistic": trial.statistic, "decision": trial.decision, "projected_low": low},
                    **{"projected_high": high, "keeps": trial.keeps, "gamma": trial.gamma},
                }
            )
        columns = ["n_latents", "seed", "beta", "steps", "statistic", "decision"]
        columns += ["projected_low", "projected_high", "keeps", "gamma"]
        return pandas.DataFrame(rows, columns=columns).rename_axis("trial")

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return to_plain(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Size:
        """What :meth:`to_dict` wrote, equal in every bit; anything else is refused."""
        trials = stored.get("trials") if isinstance(stored, Mapping) else None
        if isinstance(trials, list) and all(isinstance(trial, Mapping) for trial in trials):
            stored = {**stored, "trials": [coded(trial) for trial in trials]}
        return from_plain(cls, stored, "size the data again")


def _table(size: Size) -> list[str]:
    """The path as aligned text."""
    columns = path_table(size)
    widths = [max(len(row[i]) for row in columns) for i in range(len(columns[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in columns]


def path_table(size: Size) -> list[tuple[str, ...]]:
    """The path taken: a heading, then a row for each model; of a closed form without what only training has."""
    seeds = len({trial.seed for trial in size.trials}) > 1
    is_beta = size.target == "beta"
    trained = ["steps", "decision", "may become"] if size.trains else ["decision"]
    heading = ["β" if is_beta else "latents", size.statistic, *trained]
    has_gamma = any(trial.gamma is not None for trial in size.trials)
    heading += ["γ"] if has_gamma else []
    rows: list[tuple[str, ...]] = [(*(["seed"] if seeds else []), *heading)]
    for trial in size.trials:
        first = f"{trial.beta:.3g}" if is_beta and trial.beta is not None else str(trial.n_latents)
        span = "" if trial.projected is None else f"{trial.projected[0]:.2f}–{trial.projected[1]:.2f}"
        trained = [f"{trial.steps:,}", trial.decision, span] if size.trains else [trial.decision]
        cells = [first, f"{trial.statistic:.3f}", *trained]
        cells += ["" if trial.gamma is None else f"{trial.gamma:.3g}"] if has_gamma else []
        rows.append((*([str(trial.seed)] if seeds else []), *cells))
    return rows


def median_answer(answers: Sequence[float | int]) -> float | int:
    """One answer for several seeds: the median; between two, the larger, since a latent too many does less harm.

    >>> median_answer([10, 11, 11, 13]), median_answer([10, 11])
    (11, 11)
    """
    ordered = sorted(answers)
    return ordered[len(ordered) // 2]
