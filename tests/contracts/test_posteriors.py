"""Every posterior keeps the contract of its family."""

from __future__ import annotations

from polariscope.models.posteriors import posterior
from polariscope.testing import PosteriorContract


class TestPosteriors(PosteriorContract):
    names = list(posterior)
