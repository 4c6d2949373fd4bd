"""Reconstruction loss, split into the error at the posterior mean and the error added by posterior noise."""

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
from polariscope.geometry.decoder_function import decoder_function, opened
from polariscope.geometry.jacobian import decoder_metric
from polariscope.models.inference import choose_observations, encode_batches, inference_mode
from polariscope.models.protocol import WholeModel
from polariscope.numerics.intervals import interval_of_mean

if TYPE_CHECKING:
    import pandas

LARGE = 0.1  # relative to the two losses; larger interactions are noted


@dataclasses.dataclass(frozen=True, eq=False)
class LossSplit(AbstractRecord):
    """Squared error, summed over the values of an observation and averaged over observations."""

    total: float
    """E‖Dec(z) − x‖² = deterministic + stochastic + interaction."""
    interval: tuple[float, float] | None
    """95 % interval of the total over observations; None for a single observation."""
    deterministic: float
    """‖Dec(μ) − x‖², the error at the posterior mean."""
    stochastic: float
    """E‖Dec(z) − Dec(μ)‖², the error added by posterior noise."""
    interaction: float
    """2 E⟨Dec(z) − Dec(μ), Dec(μ) − x⟩, of either sign; 0 if the mean of Dec(z) is Dec(μ)."""
    linearised: float | None
    """tr(J Σ Jᵀ), the stochastic loss of the decoder's linear approximation; None unless requested."""
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
        """Stochastic loss divided by the sum of deterministic and stochastic loss; 0 if both are 0.

        It is the share of the total only if the interaction is 0.
        """
        both = self.deterministic + self.stochastic
        return self.stochastic / both if both > 0 else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Note about a large interaction, beyond rounding and sampling error."""
        both, error = self.deterministic + self.stochastic, self.deviation[2]
        if abs(self.interaction) <= max(LARGE * both, 2 * error):
            return ()
        sign = "less" if self.interaction < 0 else "more"
        share = abs(self.interaction) / both
        return (
            f"The decoder is not linear within the posterior's noise: the total is {share:.0%} {sign} than the sum of "
            "the two losses, so they are not shares of the total.",
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
    r"""Split the squared reconstruction error of a model into a deterministic and a stochastic part.

    .. math:: \mathrm{E}\|\mathrm{Dec}(z) - x\|^2 = \|\mathrm{Dec}(\mu) - x\|^2
        + \mathrm{E}\|\mathrm{Dec}(z) - \mathrm{Dec}(\mu)\|^2
        + 2\,\mathrm{E}\langle \mathrm{Dec}(z) - \mathrm{Dec}(\mu), \mathrm{Dec}(\mu) - x \rangle

    with z ~ q(z|x) and μ its mean. The last term is 0 if E Dec(z) = Dec(μ), as in a linear model; it is included, so
    the parts always add up. It is negative if the mean of the noisy outputs is nearer to x than the output of the mean
    code. A note is added if it exceeds a tenth of the others. The stochastic part makes the decoder's columns
    orthogonal; to first order it is tr(J Σ Jᵀ), with the posterior covariance Σ and the Jacobian J at μ. Dec is the
    decoder's mean for any likelihood; for a Gaussian one with variance γ the loss in nats is this error divided by 2γ.

    For each observation, ``n_draws`` draws and their mirror images 2μ − z, which are equally likely, are used. Odd
    orders of the noise then cancel, so the interaction of a linear model is exactly 0.

    Reference: zietlow2022 Eqs 3.6, 3.8–3.10 (Prop. 4), 3.13. Ours: the interaction.
    """
    if n_draws < 1:
        raise InputError("n_draws", "be at least 1", got=n_draws)
    model, data = opened(model, data)
    decoder_function(model)  # raises an error for a model without a decoder
    dataset, indices = choose_observations(model, data, n_samples, seed)
    parts, codes, covariances = [], [], []
    with inference_mode(model):
        for encoded in encode_batches(model, dataset, indices):
            x, q = encoded.x, encoded.posterior
            output_of_mean = decoded(model, q.mean, x)
            error = (output_of_mean - x).flatten(1).double()
            stochastic, interaction = torch.zeros(2, len(x), dtype=torch.float64, device=x.device)
            for draw in range(n_draws):
                z = encoded.draw(seed, "geometry", "loss split", draw)
                for code in (z, 2 * q.mean - z):
                    change = (decoded(model, code, x) - output_of_mean).flatten(1).double()
                    stochastic += (change**2).sum(1) / (2 * n_draws)
                    interaction += 2 * (change * error).sum(1) / (2 * n_draws)
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
    """Return the decoder's mean for observations with these latents; counts are scaled to the observations' sizes.

    :param model: model with a decoder.
    :param z: latents.
    :param x: observations.
    """
    return model.decode(z).like(x).mean


def _linearised(model: Any, codes: list[np.ndarray], covariances: list[np.ndarray]) -> float:
    metric = decoder_metric(model, np.concatenate(codes))
    # tr(J Σ Jᵀ) = Σ_ij (JᵀJ)_ij Σ_ij, so the large matrix J is not needed.
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
