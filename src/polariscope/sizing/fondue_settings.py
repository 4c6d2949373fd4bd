"""Constants of FONDUE's search, each with its meaning and where its value comes from."""

from __future__ import annotations

import dataclasses
from typing import Any

from polariscope.core.options import options_of
from polariscope.core.tables import TextTable


def constant(value: Any, source: str) -> Any:
    """Return a field with a value and where it comes from.

    :param value: the value.
    :param source: the data on which it was chosen, or the argument for it.
    """
    return dataclasses.field(default=value, metadata={"source": source})


@dataclasses.dataclass(frozen=True)
class FondueSettings:
    """Constants of the search; :func:`constants_table` makes the table in docs/sizing.md from them."""

    # Wide and narrow models
    first_width: int = constant(16, "the published data need fewer than 16 latents (sprites, MNIST)")
    """Latents of the first model, unless the initial guess is larger."""
    first_look: int = constant(400, "earlier, the last quarter has fewer than four measurements")
    """Steps before the first prediction."""
    min_surplus: int = constant(
        1, "digits: 16 latents predict 15, and 32 latents predict the same after more steps"
    )
    """Unused latents that a wide model must have to predict where the threshold is crossed; otherwise it is widened."""
    seed_margin: int = constant(
        1, "MNIST and digits: 13 and 16 latents ended 0.4 to 0.7 apart, whether trained from scratch or not"
    )
    """Latents by which models trained from scratch can differ from models initialised from a wide one."""
    first_look_narrow: int = constant(
        600, "MNIST, gaussian: models initialised from a wide one decide as they do after 900 steps"
    )
    """Steps before the first verdict on a model that is initialised from a wide one."""
    max_width_ratio: int = constant(8, "sprites: 200 latents spread their noise")
    """Ratio of width to predicted size above which a wide model is rejected: noise is spread over all latents."""

    # Prediction of the wide model
    min_steps: int = constant(1800, "MNIST: before, the prediction changes at every look")
    """Steps before a wide model can have converged: what looks stable earlier can be slow."""
    max_drift: float = constant(1.0, "MNIST: from 3,750 steps on the prediction stays 12")
    """Change of the statistic per doubling of the steps, in thresholds, below which a wide model has converged."""
    max_gamma_fall: float = constant(0.2, "digits: γ halves from 900 to 3,000 steps, and the answer changes")
    """Relative fall of γ per doubling of the steps below which a wide model has converged."""
    wave_divisor: int = constant(3, "argument: more than a third at once is a wave, and another can follow")
    """More than 1/3 of the latents that become active within two doublings count as a wave."""
    half_active: tuple[float, float] = constant(
        (0.25, 0.75),
        "shapes3d: seven latents near one half, where a model with 12 trained from scratch uses all",
    )
    """Posterior variances of latents that share information which one latent could carry alone."""
    forecast_doublings: float = constant(1.0, "argument: a trend over one doubling predicts about one more")
    """Doublings of the steps over which trends are extrapolated."""

    # Verdict on a narrow model
    trend_windows: tuple[float, float] = constant(
        (0.5, 0.25), "sprites: the shorter window has turned when the curve has"
    )
    """Final shares of the training over which trends are fitted; the verdicts of both must agree."""
    min_looks: int = constant(4, "argument: two for the line, two for its error")
    """Measurements in the last quarter of the training below which no line is fitted."""
    trend_errors: float = constant(2.5, "1 % of trends are false")
    """Standard errors beyond which a trend counts."""
    min_carry: float = constant(0.25, "sprites: the least that a rising latent did")
    """Share of a latent's rise that continues at least over the next doubling: curves flatten at their end."""
    max_acceleration: int = constant(2, "sprites: the most that a rising latent did")
    """Factor by which a latent can rise faster than before: pruning starts slowly."""
    min_doublings: float = constant(0.5, "argument")
    """Doublings of the steps over which a verdict looks ahead at least."""
    steep_fall: float = constant(0.2, "sprites")
    """Fall of the statistic per doubling, in thresholds, above which the first descent is not over."""
    threshold_margin: float = constant(0.1, "gaussian, power law: 1.01 measured at an optimum of 0.98")
    """Relative error of the statistic from the noise of training."""
    active_below: float = constant(0.5, "argument: half of the prior's variance")
    """Posterior variance below which a latent becomes active."""
    silent_above: float = constant(0.9, "as in the types of latents, α = 0.1")
    """Posterior variance above which a latent carries no information about the input."""
    unsettled_above: float = constant(1.1, "argument: a tenth above the prior's variance")
    """Posterior variance above which a latent has not reached the prior's yet, so its type is open."""
    pruned_rise: float = constant(0.15, "sprites")
    """Rise of the posterior variance after which a latent counts as pruned; one that never fell can still wait."""
    activation_patience: int = constant(4, "sprites")
    """Multiple of the last activation's step after which latents that never fell count as passive."""

    # Length of a training
    first_verdict: int = constant(900, "sprites: surplus latents learn something before they are pruned")
    """Steps before the first verdict on a model that is trained from scratch."""
    steps_growth: float = constant(1.25, "argument: a decision comes at most a quarter late")
    """Factor of the steps from one verdict to the next."""
    min_step_limit: int = constant(8000, "digits, gaussian, power law: nothing has converged at 3,000 steps")
    """Lower bound of the maximum number of steps of a model."""
    step_limit_epochs: int = constant(10, "MNIST")
    """Maximum number of steps of a model, in passes over the data."""
    max_step_limit: int = constant(16_000, "time")
    """Upper bound of the maximum number of steps of a model."""
    horizon_factor: int = constant(2, "argument: what twice the training would show")
    """Multiple of the present steps that a verdict is about."""

    # Next number of latents
    min_slope: float = constant(0.25, "digits: a smaller slope led from 14 to 20 latents")
    """Smallest slope of the measured statistic against the prediction that is used."""
    max_guided: int = constant(5, "argument: bisection is sure to end")
    """Models after which the search no longer follows the prediction and bisects."""

    # Training of the models
    probe_samples: int = constant(512, "the standard error of a mixed latent's variance is below 0.02")
    """Samples from which posterior variances are measured during training."""
    log_every: int = constant(25, "four measurements in the last quarter of 400 steps")
    """Steps from one measurement to the next."""
    n_averaged_looks: int = constant(8, "argument: only the order of the latents counts")
    """Measurements over which variances are averaged to rank latents."""
    first_piece: int = constant(100, "time only")
    """Steps after which the time of one step is known, if minutes are limited."""
    min_work_for_pairs: int = constant(
        60_000_000, "time only: tables have far fewer, images of 32 × 32 pixels three times as many"
    )
    """Multiply-adds of a forward pass from which two models are faster in parallel. Below, most of a step is Python,
    which runs one thread at a time."""

    # Comparison with the closed form
    max_features: int = constant(300, "time: about 1 s")
    """Features above which the closed form is not computed: its time grows with their third power."""
    min_samples: int = constant(20, "argument: with fewer, a fold has one observation")
    """Observations below which the closed form is not computed."""
    min_gain_nats: float = constant(0.5, "as in the state of a training")
    """Difference of held-out losses, in nats, above which one is clearly lower."""
    min_gain_share: float = constant(0.05, "as in the state of a training")
    """The same, relative to what the latents gain; both must be exceeded."""


SETTINGS = FondueSettings()
"""The constants in use."""


def constants_table() -> str:
    """Return the constants as a table of Markdown: name, value, meaning and source."""
    table = TextTable("constant", "value", "meaning", "source")
    documented = options_of(FondueSettings)
    for field in dataclasses.fields(FondueSettings):
        meaning = " ".join(documented[field.name].help.split())
        table.add_row(f"`{field.name}`", str(field.default), meaning, field.metadata["source"])
    return table.to_markdown().rstrip()
