"""Settings of a run as titled lists of names and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polariscope.pages.formatting import value_of


def settings_groups(settings: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings of a run as titled lists of names and values."""
    model = settings["model"]
    parts = {key: value for key, value in model.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in model.items() if key not in parts}
    groups = {
        "data": data_in_words(settings["data"]),
        "objective": settings["objective"],
        **parts,
        "model": plain,
        "training": settings["training"],
        "environment": {"polariscope": settings["polariscope"], **settings["environment"]},
    }
    return [
        (title, [(key.replace("_", " "), value_of(value)) for key, value in group.items()])
        for title, group in groups.items()
    ]


def data_in_words(data: Mapping[str, object]) -> dict[str, object]:
    """Return the record of a dataset without hashes and long lists of numbers."""
    shown = {key: value for key, value in data.items() if key not in ("fingerprint", "root_fingerprint")}
    if "variants" not in shown:
        return shown
    from polariscope.data.chain import in_words, variants_of

    return {**shown, "variants": in_words(variants_of(data))}
