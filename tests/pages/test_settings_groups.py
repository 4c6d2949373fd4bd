"""Every setting of a run is on its page."""

from __future__ import annotations

from polariscope.pages.record import ReportRecord
from polariscope.pages.settings_groups import settings_groups


def test_every_part_of_the_settings_is_listed(flat_record: ReportRecord) -> None:
    groups = {title: dict(rows) for title, rows in settings_groups(flat_record.settings)}
    assert groups["prior"] == {"name": "isotropic", "scale": "2"}
    assert groups["likelihood"]["variance"] == "0.2"
    assert groups["training"]["learning rate"] == "0.02"
    assert set(groups) >= {
        "data",
        "objective",
        "net",
        "posterior",
        "prior",
        "likelihood",
        "training",
        "environment",
    }
