"""The plain autoencoder."""

from __future__ import annotations

import dataclasses

from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective


@objective("ae")
@dataclasses.dataclass(frozen=True)
class AeObjective(AbstractObjective):
    r"""Reconstruction only, with a deterministic encoder.

    .. math:: -\log p(x \mid z = \mu(x))

    The contrast to every variational objective: nothing prunes latents and nothing aligns them with the data's
    directions (zietlow2022 §2.2, where it is the random-alignment baseline). bonheme2023 Fig. 8.6: the number of
    latents chosen for a VAE suits the autoencoder of the same architecture.
    """

    defaults = {"posterior": "deterministic"}
    needs_density = False

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        z = model.encode(batch.x, batch.auxiliary).mean
        return {"reconstruction": Term(-model.decode(z).log_density(batch.x))}
