"""Summary of a decoder for reports: orthogonality of its latents, and error added by posterior noise."""

from __future__ import annotations

import dataclasses

from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError
from polariscope.core.records import AbstractStoredRecord
from polariscope.data.dataset import AbstractDataset
from polariscope.geometry.loss_split import LossSplit, split_reconstruction
from polariscope.geometry.orthogonality import N_POINTS, Orthogonality, decoder_orthogonality
from polariscope.models.protocol import AbstractModel

N_OBSERVATIONS = 200


@dataclasses.dataclass(frozen=True, eq=False)
class Geometry(AbstractStoredRecord):
    """Orthogonality and loss split of a decoder."""

    orthogonality: Orthogonality | None
    reason: str
    """Reason why there is no orthogonality; empty if there is."""
    split: LossSplit


def summarise(
    model: AbstractModel,
    dataset: AbstractDataset,
    representation: Representation,
    regime: Regime,
    *,
    n_points: int = N_POINTS,
    n_observations: int = N_OBSERVATIONS,
    seed: int = 0,
) -> Geometry:
    """Compute the orthogonality at some codes and the loss split of some observations.

    :param regime: diagnosis; only latents in use are analysed.
    :param n_points: (default 500) number of codes at which the decoder's Jacobian is computed.
    :param n_observations: (default 200) number of observations whose reconstruction loss is split.
    :param seed: (default 0) seed of the selection of both, and of the noise.
    """
    in_use = regime.in_use
    orthogonality, reason = None, ""
    if representation.unit == "channel":
        reason = (
            "the codes have positions, and the angle between two channels, each with many values, is not defined. "
            "Diagnose them by value for the angles between values."
        )
    elif len(in_use) < 2:
        count = "no latent is" if not in_use else f"only latent {in_use[0]} is"
        reason = f"{count} in use, and an angle requires two latents."
    else:
        try:
            orthogonality = decoder_orthogonality(
                model, representation.mean, keep=sorted(in_use), n_points=n_points, seed=seed
            )
        except InputError as error:
            reason = str(error)
    split = split_reconstruction(model, dataset, n_samples=n_observations, seed=seed)
    return Geometry(orthogonality, reason, split)
