"""Normal prior with the variances of the data's principal components."""

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

    with the first D singular values :math:`\varsigma_1 \ge \varsigma_2 \ge \dots` of the centred data, the number of
    latents D and the scale s. The variances sum to D s², like those of N(0, s² I). Equal singular values give that
    prior. Otherwise the latents are distinguishable, and rotating them has a cost.

    Reference: mathieu2019 App. B. According to the text, the singular values are standard deviations mapped through a
    softmax; the authors' code has the formula above, and its scale is s² here. Differences: descending order, centred
    data, at most 10,000 observations drawn from the whole dataset, and each singular value counts for at least 10⁻³ of
    the largest variance, so latents beyond the rank of the data have a density too.
    """

    learned = False
