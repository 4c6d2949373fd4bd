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
        "which have not found what generalises. So the answer is that of linear models, cross-validated."
    ),
}
INTERVALS: dict[BasisCode, str] = {
    "early-stopped": "one latent more or fewer, and the number that the wide model has come to since",
    "closed-form": "one latent more or fewer than the answers without one tenth of the observations",
}
"""Meaning of the interval of one seed, if the answer does not rest on a search."""
STATES: dict[BasisCode, str] = {
    "early-stopped": (
        "The wide model overfits, so the fit was stopped at its lowest held-out loss, after {step:,} steps."
    ),
    "closed-form": "The trained models have not reached the held-out loss of linear models.",
}
"""State of the fit, if the answer does not rest on a search: the training loss can still fall then, and that is no
reason to train longer."""
BELOW_CLOSED_FORM = (
    "Linear models with {closed_form} latents, in closed form, have a lower held-out loss, so up to {closed_form} "
    "latents can carry information that generalises; the interval includes them."
)
INCLUDES_CLOSED_FORM = "; its upper end includes the {closed_form} latents of linear models in closed form"


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
        return self._filled(" ".join(text for text in texts if text))

    @property
    def state(self) -> str:
        """The state of the fit in a sentence; empty if the state of its training is the right one to show.

        >>> Basis("early-stopped", step=3000).state.split(", ")[-1]
        'after 3,000 steps.'
        """
        return self._filled(STATES.get(self.code, ""))

    def meaning_of_interval(self, usual: str) -> str:
        """Return the meaning of the interval of one seed.

        :param usual: the meaning for an answer that rests on a search.
        """
        end = INCLUDES_CLOSED_FORM if self.is_below else ""
        return self._filled(INTERVALS.get(self.code, usual) + end)

    def _filled(self, text: str) -> str:
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
        return f"{self.rounded} ({self.value:.1f}, 95 % interval {interval(self.interval, '.1f')})"


@dataclasses.dataclass(frozen=True)
class SeedResult(AbstractRecord):
    """Result of a method for one seed."""

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
class Size(AbstractStoredRecord, remedy="size the data again"):
    """How many latents the data need (or, for ``target`` beta, how large β may be): the answer first."""

    value: float | int | None
    """The number of latents, or β; None if the method has no answer (``notes`` say why)."""
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
    """What the method does, in a line. It is stored with the answer, so a page need not open the method."""
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
        puts = f"puts {plural(n, 'latent')} to use"
        if self.trials and not any(trial.n_latents == n for trial in self.trials):
            puts = f"{puts}, by what wider ones show (none of this size was trained)"
        about = f" {self.basis.in_words}" if self.basis.in_words else ""
        return f"A model {puts}; {beyond}.{about}"

    def __str__(self) -> str:
        spent = f"{self.n_steps:,} gradient steps" if self.trains else "no training"
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
        """What :meth:`to_dict` wrote, equal in every bit; anything else is refused."""
        trials = stored.get("trials") if isinstance(stored, Mapping) else None
        if isinstance(trials, list) and all(isinstance(trial, Mapping) for trial in trials):
            stored = {**stored, "trials": [coded(trial) for trial in trials]}
        return super().from_dict(stored)


def path_table(size: Size) -> TextTable:
    """Return the path taken: a row for each model; a closed form has no columns about training.

    :param size: an answer.
    """
    from polariscope.core.tables import TextTable

    seeds = len({trial.seed for trial in size.trials}) > 1
    is_beta = size.target == "beta"
    trained = ["steps", "decision", "may become"] if size.trains else ["decision"]
    heading = ["β" if is_beta else "latents", size.statistic, *trained]
    has_gamma = any(trial.gamma is not None for trial in size.trials)
    heading += ["γ"] if has_gamma else []
    heading = [*(["seed"] if seeds else []), *heading]
    table = TextTable(*heading, numbers=[name for name in heading if name != "decision"])
    for trial in size.trials:
        first = f"{trial.beta:.3g}" if is_beta and trial.beta is not None else str(trial.n_latents)
        projected = interval(trial.projected, ".2f")
        trained = [f"{trial.steps:,}", trial.decision, projected] if size.trains else [trial.decision]
        cells = [first, f"{trial.statistic:.3f}", *trained]
        cells += ["" if trial.gamma is None else f"{trial.gamma:.3g}"] if has_gamma else []
        table.add_row(*([str(trial.seed)] if seeds else []), *cells)
    return table


def median_answer(answers: Sequence[float | int]) -> float | int:
    """One answer for several seeds: the median; between two, the larger, since a latent too many does less harm.

    >>> median_answer([10, 11, 11, 13]), median_answer([10, 11])
    (11, 11)
    """
    ordered = sorted(answers)
    return ordered[len(ordered) // 2]
