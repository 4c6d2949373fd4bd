"""The reconstruction loss, split into what the mean code leaves and what the noise adds."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from polariscope.core.errors import InputError
from polariscope.core.records import AbstractRecord
from polariscope.data.data_like import DataLike
from polariscope.geometry.decoder_function import decoder_function
from polariscope.geometry.jacobian import decoder_metric
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import WholeModel
from polariscope.numerics.intervals import interval_of_mean

if TYPE_CHECKING:
    import pandas

LARGE = 0.1  # of the two losses, from which an interaction has a note


@dataclasses.dataclass(frozen=True, eq=False)
class LossSplit(AbstractRecord):
    """Square error, summed over the values of an observation and averaged over observations."""

    total: float
    """E‖Dec(z) − x‖² = deterministic + stochastic + interaction."""
    interval: tuple[float, float] | None
    """95 % interval of the total over observations; None for a single one."""
    deterministic: float
    """‖Dec(μ) − x‖², what the posterior mean does not reconstruct."""
    stochastic: float
    """E‖Dec(z) − Dec(μ)‖², what the posterior's noise adds."""
    interaction: float
    """2 E⟨Dec(z) − Dec(μ), Dec(μ) − x⟩, of either sign: 0 when Dec(z) is unbiased around Dec(μ)."""
    linearised: float | None
    """tr(J Σ Jᵀ), the stochastic loss of the decoder's linear approximation; None unless asked for."""
    deviation: tuple[float, float, float]
    """Standard errors over observations of the three parts."""
    n_samples: int

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with a row for each part of the loss, with its standard error."""
        import pandas

        parts = ("deterministic", "stochastic", "interaction")
        columns = {"value": [getattr(self, part) for part in parts], "error": self.deviation}
        return pandas.DataFrame(columns, index=pandas.Index(parts, name="part"))

    @property
    def stochastic_share(self) -> float:
        """Stochastic loss over the two losses that are never negative; 0 when both are 0.

        It is the share of the total only where the interaction is 0.
        """
        both = self.deterministic + self.stochastic
        return self.stochastic / both if both > 0 else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the parts should be read with care: an interaction that is no rounding error or luck of the draw."""
        both, error = self.deterministic + self.stochastic, self.deviation[2]
        if abs(self.interaction) <= max(LARGE * both, 2 * error):
            return ()
        sign = "less" if self.interaction < 0 else "more"
        share = abs(self.interaction) / both
        return (
            f"The decoder bends within the posterior's noise, so the total is {share:.0%} {sign} than its two "
            "losses together. They are no shares of the total.",
        )


def split_reconstruction(
    model: WholeModel,
    data: DataLike,
    *,
    n_samples: int | None = 1000,
    n_draws: int = 2,
    linearise: bool = False,
    seed: int = 0,
) -> LossSplit:
    r"""Deterministic and stochastic part of the square reconstruction error of a model.

    .. math:: \mathrm{E}\|\mathrm{Dec}(z) - x\|^2 = \|\mathrm{Dec}(\mu) - x\|^2
        + \mathrm{E}\|\mathrm{Dec}(z) - \mathrm{Dec}(\mu)\|^2
        + 2\,\mathrm{E}\langle \mathrm{Dec}(z) - \mathrm{Dec}(\mu), \mathrm{Dec}(\mu) - x \rangle

    with z ~ q(z|x) and μ its mean. The last term is 0 if E Dec(z) = Dec(μ), as in a linear model; it is included, so
    the parts always add up. It is negative where training has put the mean of the noisy outputs nearer to x
    than the output of the mean code; a note says when it is over a tenth of the others. The stochastic part is what
    pushes the decoder's columns to be orthogonal; to first order it is tr(J Σ Jᵀ), with the posterior covariance Σ
    and the Jacobian J at μ. Dec is the decoder's mean, whatever the likelihood; a Gaussian one with variance γ has
    this loss over 2γ, in nats.

    Each observation gets ``n_draws`` draws and their mirror images 2μ − z, which are as likely: odd orders of the
    noise cancel, so the interaction of a linear model is 0 and not just small.

    Reference: zietlow2022 Eqs 3.6, 3.8–3.10 (Prop. 4), 3.13. Ours: the interaction.
    """
    if n_draws < 1:
        raise InputError("n_draws", "be at least 1", got=n_draws)
    decoder_function(model)  # refuses a model without one
    dataset, indices = choose_observations(model, data, n_samples, seed)
    parts, codes, covariances = [], [], []
    with inference_mode(model):
        for seen in encode_batches(model, dataset, indices):
            x, q = seen.x, seen.posterior
            still = decoded(model, q.mean, x)
            error = (still - x).flatten(1).double()
            stochastic, interaction = torch.zeros(2, len(x), dtype=torch.float64, device=x.device)
            for draw in range(n_draws):
                z = seen.draw(seed, "geometry", "loss split", draw)
                for code in (z, 2 * q.mean - z):
                    moved = (decoded(model, code, x) - still).flatten(1).double()
                    stochastic += (moved**2).sum(1) / (2 * n_draws)
                    interaction += 2 * (moved * error).sum(1) / (2 * n_draws)
            parts.append(torch.stack([(error**2).sum(1), stochastic, interaction], dim=1).cpu().numpy())
            if linearise:
                codes.append(q.mean.cpu().numpy())
                covariances.append(q.covariance.double().cpu().numpy())
    table = np.concatenate(parts)
    linearised = _linearised(model, codes, covariances) if linearise else None
    return _summarise(table, linearised)


def decoded(
    model: WholeModel, z: Float[Tensor, "sample latent"], x: Float[Tensor, "sample *shape"]
) -> Float[Tensor, "sample *shape"]:
    """The decoder's mean for observations that have these latents; counts in the observations' sizes.

    :param model: a model with a decoder.
    :param z: latents.
    :param x: the observations.
    """
    return model.decode(z).like(x).mean


def _linearised(model: Any, codes: list[np.ndarray], covariances: list[np.ndarray]) -> float:
    metric = decoder_metric(model, np.concatenate(codes))
    return float(np.einsum("nij,nij->n", metric, np.concatenate(covariances)).mean())


def _summarise(table: Float[np.ndarray, "sample 3"], linearised: float | None) -> LossSplit:
    n = len(table)
    totals = table.sum(axis=1)
    parts = table.mean(axis=0)
    errors = table.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.zeros(3)
    return LossSplit(
        total=float(totals.mean()),
        interval=interval_of_mean(totals),
        deterministic=float(parts[0]),
        stochastic=float(parts[1]),
        interaction=float(parts[2]),
        linearised=linearised,
        deviation=(float(errors[0]), float(errors[1]), float(errors[2])),
        n_samples=n,
    )
