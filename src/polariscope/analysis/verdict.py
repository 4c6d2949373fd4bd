"""Verdict on a model: the state of its training and the number of latents in use."""

from __future__ import annotations

import dataclasses
from typing import Literal

from polariscope.analysis.code_view import Unit, in_units
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.regime.note import name_latents
from polariscope.core.records import AbstractRecord
from polariscope.core.text import capitalised, interval, plural

MAX_NAMED = 5
"""Maximum number of undecided latents that are listed by number."""
Finding = Literal["posterior-collapse", "ignored-codes", "nearly-deterministic"]


@dataclasses.dataclass(frozen=True)
class Verdict(AbstractRecord):
    """Summary of a diagnosis for users, printed by the command line, notebooks and pages; ``str`` returns its text."""

    n_latents: int
    in_use: tuple[int, ...]
    """Latents in use, the most informative first."""
    interval: tuple[int, int]
    """Smallest and largest number of latents in use that are consistent with the evidence."""
    training: TrainingState = dataclasses.field(default_factory=TrainingState)
    evidence: Literal["decoder", "information"] = "information"
    unused: tuple[int, ...] = ()
    """Latents that are active or mixed by the rule, but not in use."""
    undecided: tuple[int, ...] = ()
    """Latents that might be in use: their upper limit exceeds the threshold, their lower limit does not."""
    silent_means: tuple[int, ...] = ()
    """Latents in use whose posterior means carry almost no information, so mean codes miss them."""
    findings: tuple[Finding, ...] = ()
    unit: Unit = "latent"
    """Unit of the diagnosis: "latent", or "channel" for codes with positions."""

    @property
    def n_in_use(self) -> int:
        """Number of latents in use."""
        return len(self.in_use)

    @property
    def allows_advice(self) -> bool:
        """If True, advice about the number of latents can be given."""
        return self.training.allows_advice and not self.findings

    @property
    def state(self) -> str:
        """Sentence about the state of the training. A collapsed model is not called converged."""
        if self._has_collapsed_at_rest:
            return "The loss has stopped falling, although the model has learned nothing about the input."
        return in_units(state_text(self.training), self.unit)

    @property
    def _has_collapsed_at_rest(self) -> bool:
        """If True, no latent carries information and the loss has stopped falling."""
        return "posterior-collapse" in self.findings and self.training.code == "converged"

    @property
    def use(self) -> str:
        """Sentences about the number of latents in use: "5 of 10 latents are in use (4–5)."."""
        low, high = self.interval
        span = "" if low == high else f" ({interval(self.interval, 'd')})"
        verb = "is" if self.n_in_use == 1 or self.n_latents == 1 else "are"
        so_far = "So far, " if self.training.code == "still-learning" else ""
        clauses = [self._about_unused()] if self.unused and "ignored-codes" not in self.findings else []
        if self.undecided:
            n = len(self.undecided)
            which = name_latents(self.undecided) if n <= MAX_NAMED else f"{n} latents"
            clauses.append(f"{which} {'is' if n == 1 else 'are'} undecided with these observations")
        if self.silent_means:
            is_one = len(self.silent_means) == 1
            are, means = ("is", "its mean carries") if is_one else ("are", "their means carry")
            clauses.append(f"{name_latents(self.silent_means)} {are} in use, but {means} little information")
        sentences = [
            f"{so_far}{self._count} {verb} in use{span}.",
            *(f"{capitalised(clause)}." for clause in clauses),
        ]
        return in_units(" ".join(sentences), self.unit)

    @property
    def _count(self) -> str:
        return f"{self.n_in_use} of {plural(self.n_latents, 'latent')}"

    def _about_unused(self) -> str:
        """Return the clause about latents that are not passive by the rule, but not in use."""
        is_one = len(self.unused) == 1
        are, their = ("is", "its") if is_one else ("are", "their")
        subject = f"{name_latents(self.unused)} {are} not passive by {their}"
        if self.evidence == "decoder":
            return f"{subject} variance, but the decoder hardly uses {'it' if is_one else 'them'}"
        return f"{subject} variance, but carr{'ies' if is_one else 'y'} almost no information"

    @property
    def remedies(self) -> tuple[str, ...]:
        """Advice for each finding."""
        texts: dict[Finding, str] = {
            "posterior-collapse": collapse_text(self.training),
            "ignored-codes": IGNORED,
            "nearly-deterministic": DETERMINISTIC,
        }
        return tuple(in_units(texts[finding], self.unit) for finding in self.findings)

    @property
    def short(self) -> str:
        """Short form for a title: "5 of 10 latents in use, converged"."""
        if self.training.code == "diverged":
            return "training diverged"
        state = (
            "convergence unknown" if self.training.code == "unknown" else self.training.code.replace("-", " ")
        )
        state = "posterior collapse" if self._has_collapsed_at_rest else state
        return in_units(f"{self._count} in use, {state}", self.unit)

    @property
    def lines(self) -> tuple[str, ...]:
        """Text in at most three lines: state, use, remedies. A diverged model has only its state."""
        if self.training.code == "diverged":
            return (self.state,)
        rest = " ".join(self.remedies)
        return (self.state, self.use, *([rest] if rest else []))

    def __str__(self) -> str:
        return " ".join(self.lines)


DETERMINISTIC = (
    "The encoder is nearly deterministic: the codes are spread more widely than the prior, with almost no variance, so "
    "the model is a plain autoencoder and samples from the prior will not look like data. Raise the weight of the "
    "rate, or the variance of the decoder."
)
"""Text about a nearly deterministic encoder."""
IGNORED = "The codes vary with the input, but the decoder does not use them, as in an untrained model."
"""Text about a model with informative codes that its decoder ignores."""
LARGE_NOISE = 0.5
"""Minimum variance of the decoder, relative to the mean variance of the features, to suspect it as cause of a
collapse."""


def collapse_text(state: TrainingState) -> str:
    """Return a text about a posterior collapse, its suspected cause and a remedy.

    In a linear model a direction of the data with variance λ is used if λ > βγ, with β the weight of the rate and γ the
    variance of the decoder. The suspected cause is therefore, in this order, β > 1, a large γ, latents that were in use
    and have been pruned, and training that never left its plateau.

    :param state: the state of the training.
    """
    return f"Posterior collapse: no latent carries information about the input. {_cause(state)}"


def _cause(state: TrainingState) -> str:
    if not state.step:
        return (
            "Common causes are a large weight of the rate (β), a large variance of the decoder, and training that is "
            "too short."
        )
    # In the order of the docstring: the first cause that applies is the most likely one.
    if state.rate_weight is not None and state.rate_weight > 1:
        return (
            f"Suspected cause: the weight of the rate, {state.rate_weight:g}. Lower it, or ramp it up from 0."
        )
    if state.noise_share is not None and state.noise_share >= LARGE_NOISE:
        return (
            f"Suspected cause: the variance of the decoder, {state.noise_share:.2g} times the mean variance of the "
            "features. Most of the data then counts as noise. Fix a smaller variance, or learn it."
        )
    if state.in_use_until is not None:
        return (
            f"Suspected cause: latents were in use until step {state.in_use_until:,} and have been pruned since, "
            "because they explain less than their rate costs. Lower the learning rate or the weight of the rate (β); "
            "if the decoder is Gaussian, fix a smaller variance."
        )
    try_first = (
        "Train again with a larger learning rate, or with the weight of the rate (β) ramped up from 0"
        if state.code == "converged"
        else "Train longer or with a larger learning rate"
    )
    return (
        "Suspected cause: no latent has ever been in use, so training might not have left its first plateau. "
        f"{try_first}. If that does not help, lower the weight of the rate (β); if the decoder is Gaussian, fix a "
        "smaller variance."
    )


def state_text(state: TrainingState, *, advises: bool = True) -> str:
    """Return the state of the training in a sentence or two.

    :param state: the state.
    :param advises: (default True) if True, recommend further steps for a model that is still learning.

    >>> state_text(TrainingState("converged", 2000)), state_text(TrainingState())
    ('Training has converged.', 'Convergence is unknown: there is no training log.')
    """
    if state.code == "converged":
        before = (
            ""
            if state.judged_until is None
            else (f" by step {state.judged_until:,}, before the learning rate decayed")
        )
        return f"Training has converged{before}."
    if state.code == "overfitting":
        return (
            f"The model overfits: its held-out loss has risen since step {state.since:,}. Train for fewer steps, or "
            "set patience to stop early."
        )
    if state.code == "diverged":
        if state.since is None:
            return "Training has diverged: the loss is rising and exceeds that of the first steps."
        return f"Training diverged at step {state.since:,}: the loss was not finite. The model is from an earlier step."
    if state.code == "stopped-early":
        return (
            f"Training stopped early; the model is from step {state.since:,}, with the lowest held-out loss."
        )
    if state.code == "unknown":
        if not state.step:
            return "Convergence is unknown: there is no training log."
        return "Convergence is unknown: the training log has too few lines."
    if state.ramp_until is not None:
        return (
            f"Training is not finished: the schedule of the objective ends at step {state.ramp_until:,}. Train for "
            f"{state.more_steps:,} more steps."
        )
    reasons = []
    if state.gain is not None and state.tolerance is not None and state.gain > state.tolerance:
        reasons.append(
            f"the loss would fall by about {state.gain:.2g} nats if the number of steps were doubled"
        )
    elif state.gain_limit is not None and state.tolerance is not None and state.gain_limit > state.tolerance:
        reasons.append(
            f"the loss could fall by up to {state.gain_limit:.2g} nats if the number of steps were doubled"
        )
    if state.moves:
        reasons.append(
            f"the information of {name_latents(state.moves)} is about to cross the threshold of use"
        )
    when = (
        ""
        if state.judged_until is None
        else f" at step {state.judged_until:,}, before the learning rate decayed"
    )
    text = f"The model is still learning{when}: {' and '.join(reasons)}."
    if state.lowest_at is not None:
        text += f" But its held-out loss has not fallen since step {state.lowest_at:,}"
        remedy = ", so longer training might overfit: set patience before you train longer."
        return f"{text}{remedy if advises else '.'}"
    return f"{text} Train for {state.more_steps:,} more steps." if advises else text
