"""Every objective keeps the contract of its family."""

from __future__ import annotations

from polariscope.objectives import objective
from polariscope.testing import ObjectiveContract


class TestObjectives(ObjectiveContract):
    names = list(objective)
