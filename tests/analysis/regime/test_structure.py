import numpy as np

from polariscope.analysis.regime.regime import Partner
from polariscope.analysis.regime.structure import partners


def test_the_strongest_partner_keeps_the_sign_and_others_are_counted_above_a_fifth():
    correlation = np.array(
        [[1.0, 0.3, -0.6, 0.2], [0.3, 1.0, 0.1, 0.0], [-0.6, 0.1, 1.0, 0.0], [0.2, 0.0, 0.0, 1.0]]
    )
    assert partners(correlation) == (
        Partner(0, 2, -0.6, 2),
        Partner(1, 0, 0.3, 1),
        Partner(2, 0, -0.6, 1),
        Partner(3, 0, 0.2, 0),  # exactly 0.2 does not count
    )


def test_a_single_latent_has_no_partner():
    assert partners(np.ones((1, 1))) == (Partner(0, None, 0.0, 0),)


def test_a_latent_uncorrelated_with_all_others_still_names_another():
    assert partners(np.eye(3))[0] == Partner(0, 1, 0.0, 0)
