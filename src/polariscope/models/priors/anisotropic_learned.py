"""Normal prior whose variances start from the data's principal ones and are trained."""

from __future__ import annotations

import dataclasses

from polariscope.models.priors import prior
from polariscope.models.priors.support.diagonal_normal import AbstractAnisotropicPrior


@prior("anisotropic-learned")
@dataclasses.dataclass(frozen=True)
class AnisotropicLearnedPrior(AbstractAnisotropicPrior):
    r"""Independent normal latents with variances that are trained together with the model.

    .. math:: p(z) = N(0, \mathrm{diag}\, v), \qquad v_j = T\, \mathrm{softmax}_j(a)

    with trained logits a, which start as in ``anisotropic`` (the logarithms of the data's squared singular
    values, or of ``variances``), and the total T = D s² for D latents of scale s, which is fixed: without it,
    latents and prior could shrink together, at no cost. With the logits as they start it is ``anisotropic``.

    Reference: mathieu2019 App. B, where it disentangles best for a given reconstruction (Fig. 2, top).
    """

    learned = True
