"""Settings of a run and how two of them differ."""

from __future__ import annotations

from polariscope.storage.documents import IDENTITY, differences


def test_a_missing_option_equals_none_and_is_called_unset_next_to_a_value() -> None:
    """An earlier version has no record of a newer option, which must not keep a run from being resumed."""
    same: dict[str, object] = {key: {} for key in IDENTITY}
    earlier = {**same, "training_identity": {"seed": 0, "schedule": "linear"}}
    assert (
        differences(earlier, {**same, "training_identity": {"seed": 0, "schedule": "linear", "new": None}})
        == []
    )
    now = {**same, "training_identity": {"seed": 0, "adam_beta1": 0.5}}
    assert differences(earlier, now) == [
        "training.adam_beta1: unset then, 0.5 now",
        "training.schedule: linear then, unset now",
    ]
