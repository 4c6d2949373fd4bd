"""Every measure of similarity keeps the contract of its family."""

from __future__ import annotations

from polariscope.analysis.similarity import similarity
from polariscope.testing import SimilarityContract


class TestSimilarity(SimilarityContract):
    names = list(similarity)
