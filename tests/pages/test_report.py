"""The page is one well-formed file that needs nothing else, for every kind of run."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from polariscope.analysis.representation import Representation
from polariscope.data.own.arrays import ArraysDataset
from polariscope.pages.record import ReportRecord, make_record, record_of_codes
from polariscope.pages.report import report, report_page
from tooltips import without_tooltips

VOID = {"meta", "img", "br", "col", "link", "input", "hr"}
RUNS = (
    *("image_run", "flat_run", "colour_run", "busy_run"),
    *("conditional_run", "headless_run", "point_run", "adversarial_run"),
)


class Checker(HTMLParser):
    """Collects tags, ids, links and text; complains about a tag closed out of order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.folded: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "img" and "details" in self.open:
            self.folded.append(dict(attrs)["alt"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> out of order"


@pytest.fixture(params=RUNS)
def page(request: pytest.FixtureRequest) -> str:
    run: Path = request.getfixturevalue(request.param)
    return (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("undrawn")
def test_the_page_promises_the_same_bytes_only_where_the_threads_stayed_the_same(
    flat_record: ReportRecord,
) -> None:
    environment = flat_record.settings["environment"]
    page = report_page(flat_record).render()
    assert "On the same machine with 1 thread, the result is identical byte for byte" in page
    changed = {**flat_record.settings, "environment": {**environment, "threads": 2, "threads_before": [1, 4]}}
    page = report_page(dataclasses.replace(flat_record, settings=changed)).render()
    assert "resumed with another number of threads (1, 4, then 2)" in page
    assert "the result is identical byte for byte" not in page


def test_tags_are_balanced_and_ids_unique(page: str) -> None:
    checker = Checker(page)
    assert checker.open == []
    ids = [attributes["id"] for _, attributes in checker.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = [a["href"][1:] for tag, a in checker.tags if tag == "a" and a["href"]]
    assert wanted
    assert set(wanted) <= set(ids)
    assert page.startswith("<!DOCTYPE html>")


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    assert not re.search(r"https?://", page)
    checker = Checker(page)
    assert not any(tag in ("script", "link", "iframe", "object") for tag, _ in checker.tags)
    sources = [attributes["src"] or "" for tag, attributes in checker.tags if tag == "img"]
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    references = [a["href"] or "" for _, a in checker.tags if "href" in a]
    assert all(reference.startswith(("#", "data:image/png;base64,")) for reference in references)
    assert "default-src 'none'" in page


def test_figures_and_images_have_words_and_headers_a_scope(page: str) -> None:
    checker = Checker(page)
    assert all(attributes.get("alt") for tag, attributes in checker.tags if tag == "img")
    charts = [
        attributes for tag, attributes in checker.tags if tag == "svg" and attributes.get("role") == "img"
    ]
    assert len(charts) >= 4
    assert all(attributes["aria-label"] for attributes in charts)
    assert all("scope" in attributes for tag, attributes in checker.tags if tag == "th")


def test_the_page_is_light(page: str) -> None:
    assert len(page.encode()) < 3_000_000


def test_passive_traversals_are_folded_and_the_rest_sorted_by_kl(
    image_run: Path, image_record: ReportRecord
) -> None:
    checker = Checker((image_run / "report.html").read_text(encoding="utf-8"))
    alternatives = [a["alt"] or "" for tag, a in checker.tags if tag == "img"]
    rows = [re.search(r"while latent (\d+) \((\w+)\) moves", text) for text in alternatives]
    shown = [
        (int(row.group(1)), row.group(2), text) for row, text in zip(rows, alternatives, strict=True) if row
    ]
    assert {kind for _, kind, _ in shown} >= {"passive"}, "the run should have passive latents"
    assert len({kind for _, kind, _ in shown}) >= 2, "and others"
    for latent, kind, text in shown:
        assert image_record.regime.types[latent] == kind
        assert (text in checker.folded) == (kind == "passive")
    in_use = [latent for latent, kind, _ in shown if kind != "passive"]
    assert in_use == [j for j in image_record.regime.order if image_record.regime.types[j] != "passive"]


def test_names_from_outside_are_escaped(colour_run: Path) -> None:
    page = (colour_run / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(" in page
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


def test_a_page_about_one_collapsed_latent_says_so(colour_run: Path) -> None:
    page = (colour_run / "report.html").read_text(encoding="utf-8")
    assert "<h1>0 of 1 latent in use, " in page
    assert "No latent is in use." in page


def test_a_page_without_passive_latents_says_so(busy_run: Path) -> None:
    page = (busy_run / "report.html").read_text(encoding="utf-8")
    heading = page[page.index("<h1>") : page.index("</h1>")]
    assert heading.startswith("<h1>2 of 2 latents in use, ")
    assert "passive" not in heading
    assert "There is no passive latent." in page


def test_flat_data_show_features_and_images_show_images(flat_run: Path, image_run: Path) -> None:
    flat, image = ((run / "report.html").read_text(encoding="utf-8") for run in (flat_run, image_run))
    assert "Reconstruction of each feature" in flat
    assert "Samples from the prior" not in flat
    assert "Samples from the prior" in image
    assert "Reconstruction of each feature" not in image


def test_the_numbers_of_the_table_are_those_of_the_diagnosis(
    image_run: Path, image_record: ReportRecord
) -> None:
    page = (image_run / "report.html").read_text(encoding="utf-8")
    first = image_record.regime.latents[image_record.regime.order[0]]
    table = page[page.index('<table class="latents">') :]
    row = table[table.index("<tbody>") : table.index("</tr>", table.index("<tbody>"))]
    assert f'<th scope="row">{first.index}</th>' in row
    assert f">{first.kl:.3f}</span>" in row
    assert f"<td>{first.std_of_mean:.3f}</td>" in row


def text_of(run: Path) -> str:
    return without_tooltips((run / "report.html").read_text(encoding="utf-8"))


def test_a_model_without_a_decoder_says_so_and_shows_no_images(headless_run: Path) -> None:
    page = text_of(headless_run)
    assert "This model has no decoder, so there are no traversals" in page
    assert "Samples from the prior" not in page
    assert not any(tag == "img" for tag, _ in Checker(page).tags)
    assert "R²" not in page


def test_a_deterministic_encoder_has_no_kl_and_is_sorted_by_spread(
    headless_run: Path, point_run: Path
) -> None:
    for run in (headless_run, point_run):
        page, record = text_of(run), make_record(run, n_samples=500)
        assert "The encoder is deterministic" in page
        assert "A deterministic encoder has no KL and no posterior variance." in page
        assert "∞" not in page[page.index('<table class="latents">') : page.index("</table>")]
        amounts = re.findall(r'<span class="amount">([^<]*)</span>', page)
        assert amounts == ["–"] * record.regime.n_latents
        spreads = [record.regime.latents[j].std_of_mean for j in record.regime.order]
        assert spreads == sorted(spreads, reverse=True)
        assert "Δ<sub>KL</sub>" not in page


def test_an_autoencoder_is_traversed_over_its_own_codes_and_its_prior_samples_are_doubted(
    point_run: Path, flat_run: Path
) -> None:
    page = text_of(point_run)
    assert "unless its objective matches" not in text_of(flat_run)
    assert "standard deviations of its distribution over the data" in page
    assert "unless its objective matches the codes with the prior" in page


def test_what_is_watched_has_no_unit_and_is_called_so(headless_run: Path, adversarial_run: Path) -> None:
    page = text_of(headless_run)
    assert "Logged but not part of the loss: accuracy shape, accuracy scale" in page
    card = page[page.index('<span class="name">accuracy shape</span>') :]
    assert "nats" not in card[: card.index("</div>")]
    assert "not in the loss" in card[: card.index("</div>")]
    assert "Logged but not part of the loss: discriminator" in text_of(adversarial_run)


def test_latents_that_nothing_trains_come_with_a_caution(headless_run: Path) -> None:
    assert "the latents shown are an untrained map of the encoder" in text_of(headless_run).replace(
        "&#39;", "'"
    )


def test_a_conditional_prior_is_shown_with_its_moments(conditional_run: Path) -> None:
    page = text_of(conditional_run)
    assert "with the auxiliary values u of random observations" in page
    assert "The conditional prior</h3>" in page
    assert "prior mean μ†(u)" in page
    assert "prior variance Σ†(u)" in page
    assert "standard deviations of the prior over all u" in page


def test_the_same_run_gives_the_same_bytes(
    image_run: Path, colour_run: Path, colour_data: ArraysDataset
) -> None:
    before = (image_run / "report.html").read_bytes()
    assert report(image_run, n_samples=1000) == image_run / "report.html"
    assert (image_run / "report.html").read_bytes() == before
    assert report_page(make_record(colour_run, colour_data)).render() == (
        colour_run / "report.html"
    ).read_text(encoding="utf-8")


def test_the_page_tells_kinds_of_mixed_latents_where_types_depend_on_alpha_and_what_passive_means_hold() -> (
    None
):
    rng = np.random.default_rng(0)
    variance = np.tile([0.098, 0.5, 0.01, 1.0], (400, 1))
    variance[::2, 2] = 1.0
    mean = rng.normal(size=variance.shape)
    mean[:, 3] = 0.02 * mean[:, 0]
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    page = report_page(record_of_codes(Representation(mean, variance, sampled), "codes")).render()
    for kind in ("switching", "intermediate"):
        assert f'<span class="pill mixed">mixed</span> <span class="quiet">{kind}</span>' in page
    assert "1 switching: active for some inputs and passive for others" in page
    assert "but 1 of 4 types changes if α changes by up to 20%." in page
    assert 'title="another type for an α within 20 % of 0.1">0.098–0.5</td>' in page
    assert page.count('title="another type for an α within') == 1
    assert "vary little (std μ at most 0.02" in page
    assert "are redundant: they can be predicted linearly from the other latents (R² 1.00)." in page
    assert "noise that" not in page


@pytest.mark.usefixtures("undrawn")
def test_what_was_chosen_for_the_user_is_on_the_page(image_record: ReportRecord) -> None:
    chosen = image_record.settings["chosen"]
    assert chosen
    assert dict(image_record.facts)["chosen for you"] == "; ".join(chosen)
    assert "<dt>chosen for you</dt>" in report_page(image_record).render()
