"""Constants of FONDUE's search, each with its meaning and the source of its value."""

from __future__ import annotations

import dataclasses
from typing import Any

from polariscope.core.options import options_of
from polariscope.core.tables import TextTable


def constant(value: Any, source: str) -> Any:
    """Return a dataclass field with a default value and the source of that value.

    :param value: the value.
    :param source: the data on which the value was chosen, or the argument for it.
    """
    return dataclasses.field(default=value, metadata={"source": source})


@dataclasses.dataclass(frozen=True)
class FondueSettings:
    """Constants of the search. :func:`constants_table` generates the table in docs/sizing.md from them."""

    # Wide and narrow models
    first_width: int = constant(16, "the published data need fewer than 16 latents (sprites, MNIST)")
    """Latents of the first model, unless the initial guess is larger."""
    first_look: int = constant(400, "earlier, the last quarter has fewer than four measurements")
    """Steps before the first prediction."""
    min_surplus: int = constant(
        1, "digits: 16 latents predict 15, and 32 latents predict the same after more steps"
    )
    """Minimum number of unused latents of a wide model; without them its width is doubled."""
    seed_margin: int = constant(
        1,
        "MNIST with 13 latents, digits with 16: final statistics of models of the same size differ by 0.4 to 0.7, "
        "trained from scratch or not",
    )
    """Latents by which models trained from scratch can differ from models initialised from a wide one."""
    first_look_narrow: int = constant(
        600,
        "MNIST, gaussian: the verdict on models initialised from a wide one is the same as after 900 steps",
    )
    """Steps before the first verdict on a model that is initialised from a wide one."""
    max_width_ratio: int = constant(8, "sprites: 200 latents spread their noise")
    """Ratio of width to predicted size above which a wide model is rejected: noise is spread over all latents."""

    # Prediction of the wide model
    min_steps: int = constant(1800, "MNIST: earlier, the prediction changes at every measurement")
    """Steps before a wide model can count as converged: a slow change can look like convergence earlier."""
    max_drift: float = constant(1.0, "MNIST: from 3,750 steps on the prediction stays 12")
    """Change of the statistic per doubling of the steps, divided by the threshold, below which a wide model has
    converged."""
    max_gamma_fall: float = constant(0.2, "digits: γ halves from 900 to 3,000 steps, and the answer changes")
    """Relative fall of γ per doubling of the steps below which a wide model has converged."""
    wave_divisor: int = constant(
        3, "argument: if more than a third become active at once, another group can follow"
    )
    """A wide model has not converged if more than 1/3 of the predicted number of latents became active within two
    doublings of the steps."""
    half_active: tuple[float, float] = constant(
        (0.25, 0.75),
        "shapes3d: seven latents are near one half, but a model with 12 latents trained from scratch uses all of them",
    )
    """Range of posterior variances of partially active latents, whose information fewer latents could carry."""
    forecast_doublings: float = constant(1.0, "argument: a trend over one doubling predicts about one more")
    """Doublings of the steps over which trends are extrapolated."""

    # Verdict on a narrow model
    trend_windows: tuple[float, float] = constant(
        (0.5, 0.25), "sprites: the shorter window shows a change of direction sooner"
    )
    """Final shares of the training over which trends are fitted; the verdicts of both must agree."""
    min_looks: int = constant(4, "argument: two for the line, two for its error")
    """Minimum number of measurements in a window for a line to be fitted."""
    trend_errors: float = constant(2.5, "1 % of trends are false")
    """Standard errors beyond which a trend counts."""
    min_carry: float = constant(0.25, "sprites: the smallest share observed for a rising latent")
    """Minimum share of its present slope that a rising posterior variance keeps over the next doubling of the steps:
    curves flatten towards the end."""
    max_acceleration: int = constant(2, "sprites: the largest factor observed for a rising latent")
    """Factor by which a latent can rise faster than before: pruning starts slowly."""
    min_doublings: float = constant(0.5, "argument")
    """Minimum number of doublings of the steps over which a verdict extrapolates."""
    steep_fall: float = constant(0.2, "sprites")
    """Fall of the statistic per doubling, divided by the threshold, above which the initial descent is not over."""
    threshold_margin: float = constant(0.1, "gaussian, power law: 1.01 measured at an optimum of 0.98")
    """Relative error of the statistic due to the noise of training."""
    active_below: float = constant(0.5, "argument: half of the prior's variance")
    """Posterior variance below which a latent counts as active."""
    silent_above: float = constant(0.9, "as in the types of latents, α = 0.1")
    """Posterior variance above which a latent carries no information about the input."""
    unsettled_above: float = constant(1.1, "argument: a tenth above the prior's variance")
    """Posterior variance above which a latent is still wider than the prior, so its type is undecided."""
    pruned_rise: float = constant(0.15, "sprites")
    """Rise of the posterior variance from its minimum after which a latent counts as pruned. A latent whose variance
    has never been lower can still become active."""
    activation_patience: int = constant(4, "sprites")
    """Multiple of the step at which a latent last became active. From then on, latents whose variance has never fallen
    count as passive."""

    # Length of training
    first_verdict: int = constant(900, "sprites: surplus latents learn something before they are pruned")
    """Steps before the first verdict on a model that is trained from scratch."""
    steps_growth: float = constant(1.25, "argument: a decision is at most a quarter late")
    """Factor of the steps from one verdict to the next."""
    min_step_limit: int = constant(8000, "digits, gaussian, power law: nothing has converged at 3,000 steps")
    """Lower bound of the maximum number of steps of a model."""
    step_limit_epochs: int = constant(10, "MNIST")
    """Maximum number of steps of a model, in passes over the data."""
    max_step_limit: int = constant(16_000, "time")
    """Upper bound of the maximum number of steps of a model."""
    horizon_factor: int = constant(2, "argument: a verdict should hold for twice the training")
    """Multiple of the present number of steps for which a verdict must hold."""

    # Next number of latents
    min_slope: float = constant(0.25, "digits: a smaller slope led from 14 to 20 latents")
    """Lower bound of the slope of the measured statistic against the prediction."""
    max_guided: int = constant(5, "argument: bisection always ends")
    """Number of models after which the search bisects instead of following the prediction."""

    # Training of the models
    probe_samples: int = constant(512, "the standard error of a mixed latent's variance is below 0.02")
    """Samples from which posterior variances are measured during training."""
    log_every: int = constant(25, "four measurements in the last quarter of 400 steps")
    """Steps from one measurement to the next."""
    n_averaged_looks: int = constant(8, "argument: only the order of the latents matters")
    """Measurements over which variances are averaged to rank latents."""
    first_piece: int = constant(100, "time only")
    """Steps after which the time per step is measured, if minutes are limited."""
    min_work_for_pairs: int = constant(
        60_000_000, "time only: tables require far fewer, images of 32 × 32 pixels three times as many"
    )
    """Multiply-adds of a forward pass above which training two models in parallel is faster. Below, most of a step is
    Python code, which runs one thread at a time."""

    # Comparison with the closed form
    max_features: int = constant(300, "time: about 1 s")
    """Maximum number of features for the closed form: its time grows with their third power."""
    min_samples: int = constant(20, "argument: with fewer, a fold contains one observation")
    """Minimum number of observations for the closed form."""
    min_gain_nats: float = constant(0.5, "as in the training state")
    """Difference between held-out losses, in nats, above which one is clearly lower."""
    min_gain_share: float = constant(0.05, "as in the training state")
    """The same, relative to the gain from all latents; both must be exceeded."""


SETTINGS = FondueSettings()
"""The constants in use."""


def constants_table() -> str:
    """Return the constants as a Markdown table: name, value, meaning and source."""
    table = TextTable("constant", "value", "meaning", "source")
    documented = options_of(FondueSettings)
    for field in dataclasses.fields(FondueSettings):
        meaning = " ".join(documented[field.name].help.split())
        table.add_row(f"`{field.name}`", str(field.default), meaning, field.metadata["source"])
    return table.to_markdown().rstrip()
