"""The page of concepts, generated from the registries."""

from __future__ import annotations

import runpy
from pathlib import Path

import polariscope as ps


def test_every_member_of_every_family_is_on_the_page_with_its_options():
    page = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "concepts.py"))["page"]()
    for name in ps._FAMILIES:
        assert f"## {name}\n" in page
        for member in getattr(ps, name):
            assert f"### `{member}`" in page
    assert (
        "([kingma2014](references.md#kingma2014)); [bonheme2023](references.md#bonheme2023) Eq. 3.5." in page
    )
    assert "- `beta`: a number, at least 0, by default `4.0`. Weight β of the rate" in page


def test_results_name_mutual_information_that_is_not_corrected_raw():
    """Corrected values have their chance level next to them; older results without it are called raw."""
    files = sorted((Path(__file__).parents[1] / "docs" / "results").glob("*.csv"))
    assert files
    for file in files:
        columns = file.read_text().splitlines()[0].split(",")
        for source in ("mean", "sampled"):
            if f"mi.{source}" in columns:
                assert f"mi.{source}.chance" in columns, file.name
