"""Sections on the aggregate posterior and on positions of channels."""

import dataclasses
import html as html_text
import re

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.analysis.aggregate_posterior import aggregate_posterior
from polariscope.core.text import readable
from polariscope.pages.record import record_of_codes, record_of_model
from polariscope.pages.report import report_page
from polariscope.pages.sections.positions import heat_map


def channels(variance: float = 0.2) -> ps.Representation:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(300, 2, 3, 3)) * np.array([0.9, 0.01])[:, None, None]
    noise = np.broadcast_to(np.array([variance, variance and 1.0])[:, None, None], mean.shape)
    sampled = mean + np.sqrt(noise) * rng.normal(size=mean.shape)
    flat = [array.reshape(300, -1) for array in (mean, noise, sampled)]
    return ps.Representation(*flat, code_shape=(2, 3, 3))


def text_of(html: str) -> str:
    body = html[html.index("<main") if "<main" in html else html.index("<body") :]
    # Spaces that do not break are part of numbers.
    return re.sub(r"[ \n]+", " ", html_text.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_the_page_of_channels_names_channels_and_shows_their_maps():
    rep = channels()
    record = record_of_codes(rep, "codes.npz")
    # The glossary at the end of the page defines terms with the word latent.
    html = dataclasses.replace(report_page(record), explains_terms=False).render()
    assert "2 channels" in html
    assert html.count('class="map"') == 2
    shown = re.sub(r"<(style|script|code|svg).*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\blatents?\b", text_of(shown), flags=re.IGNORECASE)


def test_numbers_of_the_page_are_those_of_python():
    rep = channels()
    page = report_page(record_of_codes(rep, "codes.npz"))
    html = dataclasses.replace(page, explains_terms=False).render()
    result, regime = aggregate_posterior(rep), ps.diagnose(rep)
    for marginal in result.marginals:
        assert f"<td>{readable(marginal.moments.scale)}</td>" in html
    assert result.summary in text_of(html)
    for latent in regime.latents:
        assert readable(latent.kl) in text_of(html)
    assert f"<td>{round(regime.positions.n_effective[0]):,}</td>" in html


def test_every_page_has_the_section_and_a_deterministic_encoder_has_no_kl():
    plain = ps.Representation(*[np.random.default_rng(0).normal(size=(200, 3)) ** 2] * 3)
    assert 'id="aggregate"' in report_page(record_of_codes(plain, "codes")).render()
    assert 'id="positions"' not in report_page(record_of_codes(plain, "codes")).render()
    point = channels(variance=0.0)
    html = report_page(record_of_codes(point, "codes")).render()
    assert 'id="aggregate"' in html
    assert 'class="map"' not in html
    assert "KL at each position" not in html
    assert record_of_codes(point, "codes").parts["aggregate"].distance is not None


def test_the_view_by_value_is_that_of_latents():
    record = record_of_codes(channels(), "codes", per="value")
    assert record.regime.n_latents == 18
    assert "18 latents" in report_page(record).render()


def test_a_convolutional_model_is_reported_per_channel():
    encoder, decoder = torch.nn.Conv2d(1, 4, 4, 4), torch.nn.ConvTranspose2d(2, 1, 4, 4)
    torch.manual_seed(0)
    for part in (encoder, decoder):
        torch.nn.init.normal_(part.weight, std=0.3)
    model = ps.wrap(lambda x: encoder(x).chunk(2, dim=1), decoder, likelihood="gaussian", name="conv")
    images = (np.random.default_rng(0).random((60, 8, 8)) * 255).astype(np.uint8)
    record = record_of_model(model, images)
    assert dict(record.facts)["channels"] == "2, with 2 × 2 positions"
    assert record.views.traversals.outputs.shape[:2] == (2, 10)
    html = report_page(record).render()
    assert "The mean over positions of one channel" in html
    assert "angle between two channels" in html


def test_maps_have_the_shape_of_the_positions():
    assert heat_map(np.arange(6.0).reshape(2, 3), 5.0).shape == (2, 3, 3)
    assert heat_map(np.arange(4.0), 3.0).shape == (1, 4, 3)
    # Two frames of a video and the gap between them.
    assert heat_map(np.zeros((2, 4, 5)), 0.0).shape == (4, 11, 3)
    low, high = heat_map(np.array([[0.0, 5.0]]), 5.0)[0]
    assert low.tolist() != high.tolist()


@pytest.mark.parametrize("per", ["channel", "value"])
def test_the_command_line_takes_files_with_positions(tmp_path, monkeypatch, per: str):
    from polariscope.cli import main

    monkeypatch.chdir(tmp_path)
    rep = channels()
    np.savez(
        "codes.npz",
        **{name: getattr(rep, name).reshape(300, 2, 3, 3) for name in ("mean", "variance", "sampled")},
        factors=np.arange(300)[:, None] % 3,
    )
    assert main(["report", "codes.npz", "--per", per]) == 0
    html = (tmp_path / "codes.html").read_text()
    assert ("Channels, by KL" in html) is (per == "channel")
    assert main(["diagnose", "codes.npz", "--per", per, "--aggregate", "--json", "out.json"]) == 0
    written = (tmp_path / "out.json").read_text()
    assert ('"unit": "channel"' in written) is (per == "channel")
    assert main(["score", "codes.npz", "--metrics", "mig", "--pool", "mean"]) == 0
