"""The plain autoencoder."""

from __future__ import annotations

import dataclasses

from polariscope.objectives import AbstractObjective, Step, Term, Terms, objective


@objective("ae")
@dataclasses.dataclass(frozen=True)
class AeObjective(AbstractObjective):
    r"""Reconstruction only, with a deterministic encoder.

    .. math:: -\log p(x \mid z = \mu(x))

    The baseline for variational objectives: latents are neither pruned nor aligned with directions of the data
    (zietlow2022 §2.2 uses it as the random-alignment baseline). According to bonheme2023 Fig. 8.6, the number of
    latents selected for a VAE also suits the autoencoder of the same architecture.
    """

    defaults = {"posterior": "deterministic"}
    needs_density = False

    def terms(self, step: Step) -> Terms:
        model, batch = step.model, step.batch
        z = model.encode(batch.x, batch.auxiliary).mean
        return {"reconstruction": Term(-model.decode(z).log_density(batch.x))}
