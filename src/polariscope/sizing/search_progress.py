"""Progress of a search: an event for each candidate at every logging step."""

from __future__ import annotations

from polariscope.core.progress import Fact, ProgressEvent
from polariscope.core.text import plural
from polariscope.sizing.result import TRACE


def candidate_event(seed: int, n_latents: int, step: int, trace: float) -> ProgressEvent:
    """Return a progress event of a candidate; Σ E[σ²] is left out if it has no posterior variances.

    >>> print(candidate_event(0, 16, 1200, 1.0812))
    seed 0: 16 latents, step 1,200, Σ E[σ²] 1.08
    >>> print(candidate_event(0, 1, 1200, 0.0))
    seed 0: 1 latent, step 1,200

    :param seed: seed of the candidate.
    :param n_latents: number of its latents.
    :param step: number of its gradient steps so far.
    :param trace: Σ E[σ²], or 0.
    """
    task = f"seed {seed}: {plural(n_latents, 'latent')}"
    message = f"{task}, step {step:,}" + (f", {TRACE} {trace:.2f}" if trace else "")
    facts: dict[str, Fact] = {"seed": seed, "n_latents": n_latents, "trace": trace}
    return ProgressEvent(task, step, unit="step", facts=facts, message=message)


def candidate_arguments(event: ProgressEvent) -> tuple[int, int, int, float]:
    """Return the arguments of progress functions written for 0.2.0: seed, number of latents, step and Σ E[σ²].

    :param event: event of a candidate.
    """
    facts = event.facts
    return int(facts["seed"]), int(facts["n_latents"]), event.done, float(facts["trace"])
