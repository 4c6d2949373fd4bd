"""Results of a run in words."""

from __future__ import annotations

import dataclasses

import pytest

from polariscope.analysis.regime.rule import TypeRule
from polariscope.runs import listing


def test_resamples_are_named_unless_they_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the default is changed in its one place."""
    assert listing._settings({"n_bootstrap": TypeRule().n_bootstrap}) == []
    monkeypatch.setattr(listing, "TypeRule", lambda: dataclasses.replace(TypeRule(), n_bootstrap=30))
    assert listing._settings({"n_bootstrap": 30}) == []
    assert listing._settings({"n_bootstrap": 200}) == ["n_bootstrap 200"]
