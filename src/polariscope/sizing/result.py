"""The answer of a search, and the evidence behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from polariscope.analysis.noise import Noise
from polariscope.analysis.verdict import Verdict, state_text
from polariscope.core.errors import PolariscopeError
from polariscope.core.records import AbstractRecord, AbstractStoredRecord
from polariscope.core.text import interval, noun, plural, span
from polariscope.sizing.goal import Target
from polariscope.sizing.trial import Trial, coded

if TYPE_CHECKING:
    import pandas

    from polariscope.core.tables import TextTable

TRACE = "Σ E[σ²]"
"""The statistic of FONDUE."""
DIMENSION = "intrinsic dimension"
"""The statistic of the method that estimates it."""
BasisCode = Literal["search", "early-stopped", "closed-form"]
BASES: dict[BasisCode, str] = {
    "search": "",
    "early-stopped": (
        "The answer is the number of latents that the wide model predicted at its lowest held-out loss, after {step:,} "
        "steps."
    ),
    "closed-form": (
        "Linear models with {closed_form} latents, in closed form, have a lower held-out loss than the trained models, "
        "which have not learned the structure that generalises. The answer is that of linear models, cross-validated."
    ),
}
INTERVALS: dict[BasisCode, str] = {
    "early-stopped": "one latent more or fewer, and the number that the wide model predicted after all its steps",
    "closed-form": "one latent more or fewer than the answers with each tenth of the observations left out",
}
"""Meaning of the interval of one seed, if the answer is not based on a search."""
STATES: dict[BasisCode, str] = {
    "early-stopped": (
        "The wide model overfits, so the fit was stopped at its lowest held-out loss, after {step:,} steps."
    ),
    "closed-form": "The trained models have not reached the held-out loss of linear models.",
}
"""State of the fit, if the answer is not based on a search: the training loss can still fall, but that is not a reason
to train longer."""
BELOW_CLOSED_FORM = (
    "Linear models with {closed_form} latents, in closed form, have a lower held-out loss, so up to {closed_form} "
    "latents can carry information that generalises; the interval includes them."
)
INCLUDES_CLOSED_FORM = ". The upper end includes the {closed_form} latents of linear models in closed form"


@dataclasses.dataclass(frozen=True)
class Basis(AbstractRecord):
    """Evidence for an answer."""

    code: BasisCode = "search"
    """``search`` for models on both sides of the answer, ``early-stopped`` for the wide model at its lowest held-out
    loss, ``closed-form`` for linear models."""
    step: int | None = None
    """Step of the lowest held-out loss, if the wide model overfits."""
    closed_form: int | None = None
    """Number of latents of linear models that generalise; None if it was not computed."""
    is_below: bool = False
    """If True, the answer is smaller than ``closed_form``, although linear models of that size have a clearly lower
    held-out loss."""

    @property
    def in_words(self) -> str:
        """The basis in a sentence or two; empty for a plain search.

        >>> Basis("early-stopped", step=3000).in_words.split(", ")[-1]
        'after 3,000 steps.'
        """
        texts = [BASES[self.code], BELOW_CLOSED_FORM if self.is_below else ""]
        return self._filled(" ".join(text for text in texts if text))

    @property
    def state(self) -> str:
        """The state of the fit in a sentence; empty if the state of its training should be shown instead.

        >>> Basis("early-stopped", step=3000).state.split(", ")[-1]
        'after 3,000 steps.'
        """
        return self._filled(STATES.get(self.code, ""))

    def meaning_of_interval(self, default: str) -> str:
        """Return the meaning of the interval of one seed.

        :param default: the meaning for an answer that is based on a search.
        """
        end = INCLUDES_CLOSED_FORM if self.is_below else ""
        return self._filled(INTERVALS.get(self.code, default) + end)

    def _filled(self, text: str) -> str:
        return text.format(step=self.step or 0, closed_form=self.closed_form)


@dataclasses.dataclass(frozen=True)
class DataDimension(AbstractRecord):
    """Intrinsic dimension of the data, as method ``id`` estimates it."""

    value: float | None
    """None if it could not be estimated; ``problem`` contains the reason."""
    interval: tuple[float, float] | None = None
    n_points: int = 0
    """Number of distinct observations used."""
    problem: str = ""

    @property
    def rounded(self) -> int | None:
        """The nearest integer."""
        return None if self.value is None else max(1, round(self.value))

    @property
    def in_words(self) -> str:
        """The number with its interval, or the reason why it was not estimated.

        >>> DataDimension(4.2, (4.0, 4.4), 500).in_words, DataDimension(None, problem="too few samples").in_words
        ('4 (4.2, 95 % interval 4.0–4.4)', 'not estimated: too few samples')
        """
        if self.value is None or self.interval is None:
            return f"not estimated: {self.problem}"
        return f"{self.rounded} ({self.value:.1f}, 95 % interval {interval(self.interval, '.1f')})"


@dataclasses.dataclass(frozen=True)
class SeedResult(AbstractRecord):
    """Result of a method for one seed."""

    value: float | int | None
    """The answer; None if there is none (``notes`` contain the reason)."""
    interval: tuple[float | int, float | int] | None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    noise: Noise | None = None
    """Noise level of the answer's model; if None, :func:`polariscope.size` reads it from the candidates."""
    verdict: Verdict | None = None
    """State of the training and latents in use of the answer's model; if None, :func:`polariscope.size` reads them from
    the candidates."""
    basis: Basis = Basis()


COUNTS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
DIFFERENT = (
    "These numbers answer different questions: how many latents models of this kind need, how many the fitted model "
    "uses, and how many coordinates the data have"
)
FEWER_COORDINATES = "; to unfold curved data a net can need more latents than coordinates"
MORE_COORDINATES = "; noise has coordinates too, which a model need not encode"


@dataclasses.dataclass(frozen=True)
class Size(AbstractStoredRecord, remedy="size the data again"):
    """The number of latents that data need (or, for ``target`` beta, the largest β), with its evidence."""

    value: float | int | None
    """The number of latents, or β; None if the method has no answer (``notes`` contain the reason)."""
    interval: tuple[float | int, float | int] | None
    """Range of the answer; ``meaning_of_interval`` explains it."""
    method: str
    target: Target = "latents"
    statistic: str = TRACE
    """Quantity that ``trials`` measure."""
    threshold: float | int | None = None
    per_seed: tuple[float | int, ...] = ()
    """The answer of each seed."""
    trials: tuple[Trial, ...] = ()
    """Models of the search, in order."""
    n_steps: int = 0
    """Total number of gradient steps; steps of a resumed model count once."""
    meaning_of_interval: str = ""
    notes: tuple[str, ...] = ()
    summary: str = ""
    """Summary of the method in one line. It is stored with the answer, so pages need not import the method."""
    noise: Noise | None = None
    """Noise level of the answer's model: its γ, if that is one number for all values."""
    trains: bool = True
    """If True, models were trained; False for a closed form."""
    verdict: Verdict | None = None
    """The fit: state of the training and latents in use of the trained model with as many latents as the answer."""
    dimension: DataDimension | None = None
    """Intrinsic dimension of the data; None if it was not requested."""
    basis: Basis = Basis()
    """Evidence for the answer."""

    @property
    def state(self) -> str:
        """The state of the fit, in a sentence; empty if no model of this size was trained.

        >>> Size(7, (6, 8), "fondue").state
        ''
        """
        if self.verdict is None:
            return ""
        # The search decides how long its models are trained, so no number of steps is advised.
        return self.basis.state or state_text(self.verdict.training, advises=False)

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The answer, the number in use in the fit and the intrinsic dimension of the data, each with its label.

        >>> for label, text in Size(7, (6, 8), "fondue", dimension=DataDimension(4.2, (4.0, 4.4), 500)).numbers:
        ...     print(f"{label}: {text}")
        answer: 7 latents (6–8)
        in use in the fit: not measured, because no model of this size was trained
        intrinsic dimension of the data: 4 (4.2, 95 % interval 4.0–4.4)
        """
        rows = [("answer", self.answer)]
        if self.verdict is not None:
            low, high = self.verdict.interval
            span = "" if low == high else f" ({low}–{high})"
            rows.append(("in use in the fit", f"{self.verdict.n_in_use} of {self.verdict.n_latents}{span}"))
        elif self.trains and self.dimension is not None:
            rows.append(("in use in the fit", "not measured, because no model of this size was trained"))
        if self.dimension is not None:
            rows.append(("intrinsic dimension of the data", self.dimension.in_words))
        return tuple(rows)

    @property
    def differs(self) -> bool:
        """True if the answer, the number in use in the fit and the intrinsic dimension are not all equal."""
        if self.target != "latents" or self.value is None:
            return False
        fit = None if self.verdict is None else self.verdict.n_in_use
        dimension = None if self.dimension is None else self.dimension.rounded
        return any(number is not None and number != self.value for number in (fit, dimension))

    @property
    def about_differences(self) -> str:
        """A sentence about why the numbers differ; empty if they are equal."""
        if not self.differs or self.value is None:
            return ""
        dimension = self.value if self.dimension is None else self.dimension.rounded or self.value
        tail = FEWER_COORDINATES if dimension < self.value else ""
        tail = MORE_COORDINATES if dimension > self.value else tail
        return f"{DIFFERENT}{tail}."

    @property
    def n_latents(self) -> int:
        """The number of latents: the answer, or the number for which β was searched."""
        if self.target == "beta":
            return self.trials[0].n_latents
        if self.value is None:
            raise PolariscopeError(f"{self.method} has no answer: {' '.join(self.notes)}")
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
            return f"β = {self.value:.3g} ({interval(self.interval)})"
        return f"{self.value:g} {noun(self.value, 'latent')} ({span(low, high)})"

    @property
    def in_words(self) -> str:
        """The meaning of the answer, its dependencies, and advice if it is undecided; "" for other statistics.

        >>> import textwrap
        >>> print(textwrap.fill(Size(3, (3, 4), "fondue", threshold=1.0, per_seed=(3,)).in_words, 100))
        A model uses 3 latents; with 4, about one would be unused. This depends on what counts as noise (the
        likelihood), the threshold (1), the length of training and the seed (1 seed tried).
        """
        if self.target != "latents" or not self.value or self.statistic != TRACE or self.threshold is None:
            return ""
        n = self.n_latents
        noise = f"what counts as noise ({'the likelihood' if self.noise is None else 'γ'})"
        text = f"{self._meaning(n)} This depends on {noise}"
        if not self.trains:
            return f"{text} and the threshold ({self.threshold:g})."
        longest = max((trial.steps for trial in self.trials), default=0)
        text += (
            f", the threshold ({self.threshold:g}), the length of training"
            f"{f' (up to {longest:,} steps)' if longest else ''} and the seed "
            f"({plural(len(self.per_seed), 'seed')} tried)."
        )
        # Answers with another basis do not depend on undecided models.
        n_open = sum(trial.decision == "undecided" for trial in self.trials if self.basis.code == "search")
        if n_open:
            text += (
                f" {n_open} of {len(self.trials)} models {'is' if n_open == 1 else 'are'} undecided: rely on the "
                "interval more than on the number, or allow more steps."
            )
        return text

    def _meaning(self, n: int) -> str:
        """Return the meaning of the answer n in a sentence or two."""
        if self.basis.code != "search":
            return self.basis.in_words
        last = [trial.statistic for trial in self.trials if trial.n_latents == n + 1]
        is_wider = any(trial.n_latents > n for trial in self.trials)
        beyond = f"{f'a model with {n + 1} was' if is_wider else 'larger models were'} not trained"
        if last or not self.trials:
            # An unused latent adds about 1 to the statistic.
            n_left = min(n + 1, max(1, round(last[-1]))) if last else 1
            beyond = f"with {n + 1}, about {COUNTS.get(n_left, n_left)} would be unused"
            if self.threshold != 1:
                beyond = f"with {n + 1}, more would be unused than the threshold allows"
        uses = f"uses {plural(n, 'latent')}"
        if self.trials and not any(trial.n_latents == n for trial in self.trials):
            uses = f"{uses}, as wider models predict (none of this size was trained)"
        about = f" {self.basis.in_words}" if self.basis.in_words else ""
        return f"A model {uses}; {beyond}.{about}"

    def __str__(self) -> str:
        spent = f"{self.n_steps:,} gradient steps" if self.trains else "no training"
        if self.trains and not self.n_steps:  # trained by the caller's function, whose steps are not known
            spent = plural(len(self.trials), "model")
        rows = [self.state] if self.state else []
        rows += [f"{self.answer} by {self.method}, {spent}."]
        rows += [f"{label}: {text}" for label, text in self.numbers[1:]]
        rows += [self.about_differences] if self.differs else []
        rows += [self.in_words] if self.in_words else []
        rows += [] if self.noise is None else [f"{self.noise.in_words}."]
        rows += ["", str(path_table(self))] if self.trials else []
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

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Size:
        """Rebuild an answer from the output of :meth:`to_dict`, equal bit for bit; other input raises an error."""
        # Version 0.2.0 stored the text of a note instead of role and cause.
        trials = stored.get("trials") if isinstance(stored, Mapping) else None
        if isinstance(trials, list) and all(isinstance(trial, Mapping) for trial in trials):
            stored = {**stored, "trials": [coded(trial) for trial in trials]}
        return super().from_dict(stored)


def path_table(size: Size) -> TextTable:
    """Return a table with a row for each model; without gradient steps there are no columns about training.

    :param size: an answer.
    """
    from polariscope.core.tables import TextTable

    seeds = len({trial.seed for trial in size.trials}) > 1
    is_beta = size.target == "beta"
    # A closed form does not train, and the steps of the caller's own trainer are not known.
    has_steps = any(trial.steps for trial in size.trials)
    trained = ["steps", "decision", "projected"] if has_steps else ["decision"]
    heading = ["β" if is_beta else "latents", size.statistic, *trained]
    has_gamma = any(trial.gamma is not None for trial in size.trials)
    heading += ["γ"] if has_gamma else []
    heading = [*(["seed"] if seeds else []), *heading]
    table = TextTable(*heading, numbers=[name for name in heading if name != "decision"])
    for trial in size.trials:
        first = f"{trial.beta:.3g}" if is_beta and trial.beta is not None else str(trial.n_latents)
        projected = interval(trial.projected, ".2f")
        trained = [f"{trial.steps:,}", trial.decision, projected] if has_steps else [trial.decision]
        cells = [first, f"{trial.statistic:.3f}", *trained]
        cells += ["" if trial.gamma is None else f"{trial.gamma:.3g}"] if has_gamma else []
        table.add_row(*([str(trial.seed)] if seeds else []), *cells)
    return table


def median_answer(answers: Sequence[float | int]) -> float | int:
    """Return the median answer of several seeds; of two medians the larger, because a surplus latent does less harm.

    >>> median_answer([10, 11, 11, 13]), median_answer([10, 11])
    (11, 11)
    """
    ordered = sorted(answers)
    return ordered[len(ordered) // 2]
