"""The VAE with controlled capacity."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge

from polariscope.core.option_values import Advice
from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective, run_forward


@objective("annealed")
@dataclasses.dataclass(frozen=True)
class AnnealedObjective(AbstractObjective):
    r"""VAE whose rate is held at a capacity that grows during training.

    .. math:: -\mathbb{E}_{q(z|x)} \log p(x|z) + \gamma\, |\overline{\mathrm{KL}} - C(t)|,
              \qquad C(t) = C_{\max} \min(1, t/T)

    with :math:`\overline{\mathrm{KL}}` the rate KL(q(z|x) ‖ p(z)) averaged over the batch, t the number of steps, γ
    ``gamma``, :math:`C_{\max}` ``capacity`` in nats and T ``ramp_steps``. Capacity 0 is the β-VAE with β = γ; a larger
    capacity regularises less. A large γ fixes the rate at C(t), so the reconstruction determines only how the nats are
    distributed over latents.

    Reference: Burgess et al., Understanding disentangling in β-VAE (burgess2018);
    bonheme2023 Eq. 4.26 and Tab. C.2 for γ = 1000 and T = 100,000. The mean is taken before the absolute value, as
    in the authors' code; 25 nats is the middle of their sweep over 5 … 100. bonheme2023 App. B.1 finds many passive
    latents at every capacity.
    """

    gamma: Annotated[float, Ge(0), Advice("with 0 only the reconstruction is left, 1000 is the default")] = (
        1000.0
    )
    """Weight γ of the distance between rate and capacity; with 0 only the reconstruction is left."""
    capacity: Annotated[float, Ge(0), Advice("0 nats is the β-VAE with β = gamma, 25 is the default")] = 25.0
    """Capacity C_max in nats at the end of the ramp; larger values let latents carry more information."""
    ramp_steps: Annotated[int, Ge(0), Advice("0 means full capacity from the start")] = 100_000
    """Number of steps T over which the capacity rises linearly from 0; 0 means full capacity from the start."""

    @property
    def schedule_steps(self) -> int:
        return self.ramp_steps

    def capacity_at(self, step: int) -> float:
        """Return the capacity C(t) after ``step`` steps.

        :param step: number of steps.
        """
        return self.capacity * min(1.0, step / self.ramp_steps) if self.ramp_steps else self.capacity

    def terms(self, step: Step) -> Terms:
        forward = run_forward(step)
        mean_rate = forward.rate.sum(1).mean()
        return {
            "reconstruction": Term(forward.reconstruction),
            # Only logged: the rate is trained through the capacity gap.
            "rate": Term(forward.rate.detach(), weight=0.0),
            "capacity_gap": Term((mean_rate - self.capacity_at(step.batch.step)).abs(), weight=self.gamma),
        }
