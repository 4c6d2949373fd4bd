"""Every likelihood keeps the contract of its family."""

from __future__ import annotations

from polariscope.models.likelihoods import likelihood
from polariscope.testing import LikelihoodContract


class TestLikelihoods(LikelihoodContract):
    names = list(likelihood)
