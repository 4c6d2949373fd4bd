"""Normal prior with trained variances, initialised from the data's principal components."""

from __future__ import annotations

import dataclasses

from polariscope.models.priors import prior
from polariscope.models.priors.support.diagonal_normal import AbstractAnisotropicPrior


@prior("anisotropic-learned")
@dataclasses.dataclass(frozen=True)
class AnisotropicLearnedPrior(AbstractAnisotropicPrior):
    r"""Independent normal latents with variances that are trained together with the model.

    .. math:: p(z) = N(0, \mathrm{diag}\, v), \qquad v_j = T\, \mathrm{softmax}_j(a)

    with trained logits a, initialised as in ``anisotropic`` (the logarithms of the data's squared singular values, or
    of ``variances``), and the fixed total T = D s² for D latents of scale s. Without a fixed total, latents and prior
    could shrink together at no cost. With the initial logits it equals ``anisotropic``.

    Reference: mathieu2019 App. B, in which it disentangles best for a given reconstruction (Fig. 2, top).
    """

    learned = True
