"""scikit-learn's own suite for estimators: no check is expected to fail."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from polariscope.estimators import VAE

# Ten steps leave most latents passive; that the estimator says so is not what is checked here.
pytestmark = pytest.mark.filterwarnings("ignore:none of the .* latents is:UserWarning")

SHORT = {"steps": 10, "batch_size": 16, "n_draws": 8}


@parametrize_with_checks(
    [
        VAE(n_latents=2, **SHORT),
        VAE(n_latents=3, variables="all", standardise=True, objective="beta", posterior="full", **SHORT),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator: VAE, check: Any) -> None:
    check(estimator)
