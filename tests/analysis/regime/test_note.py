"""Codes of notes: what decisions read, and the notes that version 0.2.0 stored as text."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.note import ABOUT_LATENTS, ABOUT_LIKELIHOOD, ABOUT_VIEW, OTHER, WRITERS, Note
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.errors import InputError, PolariscopeError

FIXTURES = Path(__file__).parents[2] / "fixtures"
EARLIER = json.loads((FIXTURES / "notes-0.2.0.json").read_text(encoding="utf-8"))
"""Code, latents and text of notes that version 0.2.0 wrote, of every kind."""


def test_every_kind_of_note_of_0_2_0_is_there():
    assert {code for code, _, _ in EARLIER} == set(WRITERS) - {OTHER} - ABOUT_LIKELIHOOD - ABOUT_VIEW


@pytest.mark.parametrize(("code", "latents", "text"), EARLIER)
def test_a_note_of_0_2_0_is_read_with_its_code_and_latents(code: str, latents: list[int] | None, text: str):
    note = Note.from_dict(text)
    assert (note, note.code) == (text, code)
    # 0.2.0 did not record which latents are constant, but its text names them.
    if not code.startswith("constant"):
        assert note.latents == (None if latents is None else tuple(latents))
    assert Note.from_dict(json.loads(json.dumps(note.to_dict()))) == note


def test_other_texts_are_notes_without_a_code_of_their_own():
    note = Note.from_text("Codes of shape 4 × 4 were flattened to 16 latents.")
    assert (note.code, note.latents) == (OTHER, None)


def representation(n_factors: int = 3, **known) -> Representation:
    """Two latents in use, and one that is the prior."""
    rng = np.random.default_rng(0)
    variance = np.tile([0.01, 0.02, 1.0], (300, 1))
    mean = rng.normal(size=(300, 3)) * [1, 1, 0.001]
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    return Representation(mean, variance, sampled, factors=rng.integers(3, size=(300, n_factors)), **known)


def test_notes_are_texts_that_survive_json_copies_and_pickles_with_their_codes():
    regime = diagnose(representation(), n_bootstrap=5)
    (note,) = regime.notes
    assert (note.code, note.latents, note.facts["n_in_use"]) == ("over-pruned", None, 2)
    assert isinstance(note, str)
    for same in (copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (same, same.code, same.facts) == (note, note.code, note.facts)
    read = Regime.from_dict(json.loads(json.dumps(regime.to_dict())))
    assert read == regime
    assert [note.code for note in read.notes] == ["over-pruned"]


def test_stored_are_code_and_facts_so_a_better_text_reaches_earlier_results(monkeypatch: pytest.MonkeyPatch):
    stored = diagnose(representation(), n_bootstrap=5).to_dict()
    assert stored["notes"] == [
        {
            "code": "over-pruned",
            "latents": None,
            "facts": {"n_in_use": 2, "n_factors": 3, "n_not_passive": 2},
        }
    ]
    monkeypatch.setitem(WRITERS, "over-pruned", lambda _, **facts: f"Only {facts['n_in_use']}.")
    assert Regime.from_dict(stored).notes == ("Only 2.",)


@pytest.mark.parametrize("is_still_learning", [False, True])
@pytest.mark.parametrize(("n_factors", "expected"), [(1, False), (2, False), (3, True), (5, True)])
def test_over_pruned_follows_the_variances_whichever_note_is_shown(
    n_factors: int, expected: bool, is_still_learning: bool
):
    """The published rule: fewer latents with E[σ²] < 0.8 than factors. A note about something else hides its note."""
    regime = diagnose(
        representation(
            n_factors, training=TrainingState("still-learning" if is_still_learning else "unknown")
        ),
        n_bootstrap=5,
    )
    assert regime.over_pruned is expected
    assert sum(latent.mean_of_ratio < 0.8 for latent in regime.latents) == 2
    if expected:
        assert regime.has_note("over-pruned") is (not is_still_learning and n_factors == 3)


@pytest.mark.parametrize(
    "text",
    [
        "Over-pruned: 2 latents with … for 3 varying factors (…)",
        "Still learning: 2 latents … for 3 varying factors, …",
    ],
)
def test_over_pruned_of_a_diagnosis_by_0_2_0_is_read_from_the_factors_that_its_note_names(text: str):
    stored = {**diagnose(representation(), n_bootstrap=5).to_dict(), "notes": [text]}
    del stored["n_factors"]
    regime = Regime.from_dict(stored)
    assert (regime.n_factors, regime.over_pruned) == (3, True)
    assert not Regime.from_dict({**stored, "notes": []}).over_pruned


@pytest.mark.parametrize("stored", [{"code": "wide"}, {"code": "new", "latents": None, "facts": {}}, 3])
def test_what_is_not_a_note_is_refused(stored: object):
    with pytest.raises(InputError):
        Note.from_dict(stored)
    regime = diagnose(representation(), n_bootstrap=5).to_dict()
    with pytest.raises(PolariscopeError, match=r"notes\[0\] must be a stored Note"):
        Regime.from_dict({**regime, "notes": [stored]})


def test_notes_about_latents_name_them():
    assert all(code in WRITERS for code in ABOUT_LATENTS)
    assert Note("wide", [2, 4]).latents == (2, 4)
    assert "Latents 2, 4 have" in Note("wide", [2, 4])
