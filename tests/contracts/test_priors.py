"""Every prior keeps the contract of its family."""

from __future__ import annotations

from polariscope.models.priors import prior
from polariscope.testing import PriorContract


class TestPriors(PriorContract):
    names = list(prior)
