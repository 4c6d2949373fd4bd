"""Normal prior whose variances are the data's principal ones."""

from __future__ import annotations

import dataclasses

from polariscope.models.priors import prior
from polariscope.models.priors.support.diagonal_normal import AbstractAnisotropicPrior


@prior("anisotropic")
@dataclasses.dataclass(frozen=True)
class AnisotropicPrior(AbstractAnisotropicPrior):
    r"""Independent normal latents with the variances of the data's principal components, rescaled and fixed.

    .. math:: p(z) = N(0, \mathrm{diag}\, v), \qquad v_j = s^2 D\, \mathrm{softmax}_j(\log \varsigma^2)
        = s^2 D\, \varsigma_j^2 / \textstyle\sum_i \varsigma_i^2

    with :math:`\varsigma_1 \ge \varsigma_2 \ge \dots` the first D singular values of the centred data, D the
    number of latents and s the scale: the variances sum to D s², as those of N(0, s² I) do. Equal singular
    values give that prior; otherwise the latents are told apart, and rotating them costs.

    Reference: mathieu2019 App. B. The text has the singular values as standard deviations pushed through a
    softmax; the authors' code has the formula above, and what it calls scale is our s². Ours: descending order,
    centred data, at most 10,000 observations drawn from the whole dataset; no singular value counts for less
    than 10⁻³ of the largest variance, so latents beyond the rank of the data have a density too.
    """

    learned = False
