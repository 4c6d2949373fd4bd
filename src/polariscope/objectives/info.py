"""InfoVAE: a smaller weight of the rate, and a discrepancy between q(z) and the prior."""

from __future__ import annotations

import dataclasses
from typing import Literal

from polariscope.core.errors import Argument, InputError
from polariscope.objectives import Step, Term, Terms, objective, run_forward
from polariscope.objectives.support.mmd import AbstractMmdObjective

Form = Literal["original", "printed"]
NUMBERS: dict[str, tuple[str, str]] = {
    "original": ("alpha", "lambda_aggregate"),
    "printed": ("lambda_rate", "lambda_mmd"),
}
DEFAULTS = {"alpha": 0.5, "lambda_aggregate": 10.5, "lambda_rate": -0.5, "lambda_mmd": 10.0}


@objective("info")
@dataclasses.dataclass(frozen=True)
class InfoObjective(AbstractMmdObjective):
    r"""Evidence lower bound with a smaller weight of the rate, and a discrepancy between q(z) and the prior.

    The rate is mutual information plus KL(q(z) ‖ p(z)). A smaller weight penalises the information between x and z
    less, and the discrepancy keeps q(z) close to the prior. The weights can be written in two ways:

    * ``original`` (zhao2019), with α for the mutual information and λ for q(z),

      .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + (1 - \alpha)\, \mathrm{KL}(q(z|x) \,\|\, p(z))
                + (\alpha + \lambda - 1)\, \mathrm{MMD}^2(q(z), p(z))

    * ``printed`` (mushom2020 Table 4.1), with weights in addition to the VAE's,

      .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + (1 + \lambda)\, \mathrm{KL}(q(z|x) \,\|\, p(z))
                + \lambda' \mathrm{MMD}^2(q(z), p(z))

    They are equal for λ_printed = −α and λ' = α + λ − 1. α = 0, λ = 1 (printed: λ = λ' = 0) is the VAE; α = 1 (printed:
    λ = −1) removes the rate. Note the sign of the printed λ: a positive one adds rate, like a larger β; that of InfoVAE
    is negative. Negative weights of the rate or the discrepancy raise an error, because the loss would have no minimum.

    Reference: Zhao et al., InfoVAE (zhao2019); mushom2020 §4.3. The original form is the default because the name
    InfoVAE usually refers to it. The default numbers are ours: half of the rate, and the weight 10 of ``wae`` for the
    discrepancy.
    """

    form: Form = "original"
    """Parameters that define the weights: alpha and lambda_aggregate, or lambda_rate and lambda_mmd."""
    alpha: float | None = None
    """α of the original form, at most 1: the rate has weight 1 − α. None: 0.5."""
    lambda_aggregate: float | None = None
    """λ of the original form: the discrepancy has weight α + λ − 1. None: 10.5."""
    lambda_rate: float | None = None
    """λ of the printed form, at least −1: the rate has weight 1 + λ. None: −0.5."""
    lambda_mmd: float | None = None
    """λ' of the printed form: the weight of the discrepancy. None: 10."""

    def __post_init__(self) -> None:
        super().__post_init__()
        parameters = NUMBERS[self.form]
        for form, names in NUMBERS.items():
            for name in names:
                value = getattr(self, name)
                if value is not None and form != self.form:
                    raise InputError(
                        problem=(Argument(name), f" belongs to the form {form!r}"),
                        got=(f"{value} with ", Argument("form", self.form)),
                        remedy=(
                            "set ",
                            Argument(parameters[0]),
                            " and ",
                            Argument(parameters[1]),
                            ", or ",
                            Argument("form", form),
                        ),
                    )
        rate, discrepancy = self.weights
        if rate < 0:
            raise InputError(
                parameters[0],
                "be at most 1" if self.form == "original" else "be at least -1",
                got=(
                    f"{self._number(parameters[0])}: the rate's weight would be {rate:g}, so the loss would have no "
                    "minimum"
                ),
                remedy="weight 0 removes the rate",
            )
        if discrepancy < 0:
            rule = f"be at least 1 - alpha = {1 - self._number('alpha'):g}"
            raise InputError(
                parameters[1],
                rule if self.form == "original" else "not be negative",
                got=(
                    f"{self._number(parameters[1])}: the discrepancy's weight would be {discrepancy:g}, which rewards "
                    "a distance from the prior"
                ),
                remedy="weight 0 removes it",
            )

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        return DEFAULTS[name] if value is None else value

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the rate and of the discrepancy."""
        first, second = (self._number(name) for name in NUMBERS[self.form])
        return (1 - first, first + second - 1) if self.form == "original" else (1 + first, second)

    def terms(self, step: Step) -> Terms:
        rate, discrepancy = self.weights
        forward = run_forward(step)
        distance = self.discrepancy(step, forward.z)
        return {**forward.terms(rate), "aggregate": Term(distance, weight=discrepancy)}
