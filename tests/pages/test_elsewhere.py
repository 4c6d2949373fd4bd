"""Pages of models that were trained elsewhere, and of codes alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from pages.test_report import Checker
from polariscope.core.errors import InputError
from tooltips import without_tooltips

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 6)).astype(np.float32)
WEIGHTS = torch.from_numpy(RNG.normal(size=(3, 6)).astype(np.float32))
LOG_VARIANCE = torch.tensor([-5.0, -1.0, 0.0])


def encoder(x):
    return x[:, :3] * torch.tensor([1.0, 0.8, 0.0]), LOG_VARIANCE.expand(len(x), 3)


def model(**options):
    return ps.wrap(encoder, lambda z: z @ WEIGHTS, likelihood="gaussian", shape=(6,), **options)


def ids_of(page: str) -> list[str]:
    return [attributes["id"] for _, attributes in Checker(page).tags if "id" in attributes]


def test_a_wrapped_model_has_everything_but_the_training(tmp_path: Path) -> None:
    page = ps.report(model(name="theirs"), ROWS, out=tmp_path / "page.html", n_samples=200).read_text()
    assert {"latents", "decoder", "distributions", "dependence", "geometry"} <= set(ids_of(page))
    assert not {"training", "settings", "scores", "similarity"} & set(ids_of(page))
    verdict = ps.diagnose(ps.encode(model(), ROWS, 200)).verdict
    assert verdict.evidence == "decoder"
    assert f"<h1>{verdict.short}</h1>" in page
    assert verdict.short.endswith("latents in use, convergence unknown")
    assert "theirs" in page
    assert "200 observations" in page
    again = ps.report(model(name="theirs"), ROWS, out=tmp_path / "again.html", n_samples=200).read_text()
    assert again == page


@pytest.mark.usefixtures("undrawn")
def test_an_encoder_alone_has_no_decoder_to_show(tmp_path: Path) -> None:
    page = ps.report(ps.wrap(encoder), ROWS, out=tmp_path / "page.html").read_text()
    assert "This model has no decoder" in without_tooltips(page)
    assert "geometry" not in ids_of(page)


def test_codes_alone_have_what_arrays_allow(tmp_path: Path) -> None:
    mean = RNG.normal(size=(200, 2)) * [1.0, 0.01]
    np.savez(tmp_path / "codes.npz", mean=mean, variance=np.tile([0.01, 1.0], (200, 1)))
    file = ps.report(tmp_path / "codes.npz")
    assert file == tmp_path / "codes.html"
    page = file.read_text()
    assert {"latents", "distributions", "dependence", "decomposition"} <= set(ids_of(page))
    assert not {"training", "settings", "decoder", "geometry"} & set(ids_of(page))
    # The page explains why there are two total correlations.
    assert 'The total correlation under <a href="#dependence">Structure</a>' in page
    assert "1 of 2 latents in use, convergence unknown" in page
    rep = ps.Representation(mean, np.tile([0.01, 1.0], (200, 1)), mean)
    other = ps.report(rep, out=tmp_path / "rep.html").read_text()
    assert "1 of 2 latents in use, convergence unknown" in other


def test_a_page_of_something_else_is_refused_in_words(tmp_path: Path) -> None:
    rep = ps.encode(encoder, ROWS)
    for call, words in (
        (
            lambda: ps.report(3),
            "model must be a model, a run folder or a function .* got an object of type int",
        ),
        (lambda: ps.report(rep), "requires the path of the page"),
        (lambda: ps.report(model()), "data must be given for the page of a model"),
        (lambda: ps.report(rep, ROWS, out=tmp_path / "x.html"), "all rows of codes are used"),
        (lambda: ps.report(rep, out=tmp_path / "x.html", step=3), "step requires a run folder"),
    ):
        with pytest.raises(InputError, match=words):
            call()
    assert list(tmp_path.iterdir()) == []
