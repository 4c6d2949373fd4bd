"""InfoVAE: less rate, and a discrepancy that keeps q(z) at the prior."""

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
    r"""Evidence lower bound with a lighter rate and a discrepancy between q(z) and the prior instead.

    The rate is mutual information plus KL(q(z) ‖ p(z)). Lowering its weight leaves information between x and z
    alone, and the discrepancy takes over what kept q(z) at the prior. Two ways to write the same weights:

    * ``original`` (zhao2019), with α on the information that is spared and λ on q(z) as a whole,

      .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + (1 - \alpha)\, \mathrm{KL}(q(z|x) \,\|\, p(z))
                + (\alpha + \lambda - 1)\, \mathrm{MMD}^2(q(z), p(z))

    * ``printed`` (mushom2020 Table 4.1), with weights in addition to the VAE's,

      .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + (1 + \lambda)\, \mathrm{KL}(q(z|x) \,\|\, p(z))
                + \lambda' \mathrm{MMD}^2(q(z), p(z))

    They are equal for λ_printed = −α and λ' = α + λ − 1. No change (α = 0, λ = 1; λ = λ' = 0) is the VAE; α = 1 (λ =
    −1) drops the rate. The printed λ is the sign to watch: positive adds rate, as a larger β does; InfoVAE's own is
    negative. Settings that would reward a rate or a discrepancy (a negative weight) are refused, since the loss
    then has no minimum.

    Reference: Zhao et al., InfoVAE (zhao2019); mushom2020 §4.3. The
    original form is the default since it is what the name stands for elsewhere. The default numbers are ours: half
    the rate, and on the discrepancy the 10 of ``wae``.
    """

    form: Form = "original"
    """Which two numbers set the weights: alpha and lambda_aggregate, or lambda_rate and lambda_mmd."""
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
        own = NUMBERS[self.form]
        for form, names in NUMBERS.items():
            for name in names:
                value = getattr(self, name)
                if value is not None and form != self.form:
                    raise InputError(
                        problem=(Argument(name), f" belongs to the form {form!r}"),
                        got=(f"{value} with ", Argument("form", self.form)),
                        remedy=(
                            "set ",
                            Argument(own[0]),
                            " and ",
                            Argument(own[1]),
                            ", or ",
                            Argument("form", form),
                        ),
                    )
        rate, discrepancy = self.weights
        if rate < 0:
            raise InputError(
                own[0],
                "be at most 1" if self.form == "original" else "be at least -1",
                got=(
                    f"{self._number(own[0])}: the rate's weight would be {rate:g}, a reward for leaving "
                    "the prior without bound"
                ),
                remedy="weight 0 drops the rate",
            )
        if discrepancy < 0:
            least = f"be at least 1 - alpha = {1 - self._number('alpha'):g}"
            raise InputError(
                own[1],
                least if self.form == "original" else "not be negative",
                got=(
                    f"{self._number(own[1])}: the discrepancy's weight would be {discrepancy:g}, a reward "
                    "for leaving the prior"
                ),
                remedy="weight 0 drops it",
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
        apart = self.discrepancy(step, forward.z)
        return {**forward.terms(rate), "aggregate": Term(apart, weight=discrepancy)}
