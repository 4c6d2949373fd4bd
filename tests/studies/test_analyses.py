"""What analyses of a study measure is what their functions say, for any run; and a table shows it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polariscope as ps
from polariscope.analysis.metrics.hoyer import hoyer
from polariscope.core.errors import InputError
from polariscope.core.options import build
from polariscope.core.seeds import generator
from polariscope.data.observations import Subset
from polariscope.geometry.decoder_use import decoder_use
from polariscope.models.inference import draw_prior
from polariscope.models.kernels import mmd
from polariscope.runs.run import Run
from polariscope.studies.analyses import family
from polariscope.studies.analyses.coordinates import CoordinatesAnalysis
from polariscope.studies.analyses.decoder_use import DecoderUseAnalysis
from polariscope.studies.analyses.prior_fit import PriorFitAnalysis
from polariscope.studies.analyses.probes import ProbesAnalysis
from polariscope.studies.analyses.score import ScoreAnalysis
from polariscope.studies.analyses.sparsity import SparsityAnalysis
from polariscope.studies.table_rows import runs_table

EACH = [name for name in family if family.traits(name)["scope"] == "each"]


def trained(out: Path, **settings: Any) -> Run:
    """A tiny run on labelled points, which any objective and prior can be trained on."""
    given: dict[str, Any] = {"net": "linear", "n_latents": 2, "batch_size": 16, "steps": 5, "seed": 1}
    ps.train(ps.load_dataset("pinwheel", n_samples=60), out=out, **{**given, **settings})
    return Run(out)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("run") / "mixture", prior="mixture")


def test_the_fit_to_the_prior_is_that_of_encodings_and_draws(run: Run) -> None:
    analysis = PriorFitAnalysis(n_samples=40, n_draws=300, n_compared=30, part="train", seed=2, kernel="rbf")
    found = analysis.measure(run)
    rep = run.representation(40, 2, "train")
    assert (found.n_samples, found.n_draws) == (40, 300)
    z, log_p = draw_prior(run.model(), 300, seed=2) or pytest.fail("the mixture has draws")
    squares = (z[:, None] - rep.mean) ** 2 / rep.variance + np.log(2 * np.pi * rep.variance)
    gaps = log_p - np.log(np.exp(-0.5 * squares.sum(axis=2)).mean(axis=1))
    assert found.divergence == pytest.approx(gaps.mean(), rel=1e-5)  # float32 moments
    assert found.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(300), rel=1e-4)
    assert analysis.columns(found) == {
        "kl.prior_to_aggregate": found.divergence,
        "kl.prior_to_aggregate.error": found.error,
        "mmd": found.discrepancy,
        "encodings.overlap": found.overlap,
    }
    everything = PriorFitAnalysis(n_samples=40, n_draws=300, n_compared=300, part="train", seed=2)
    # All 40 draws of q(z) in any order, since the discrepancy is that of two sets.
    sampled = torch.from_numpy(rep.sampled.astype(np.float64))
    assert everything.measure(run).discrepancy == pytest.approx(
        float(mmd(sampled, torch.from_numpy(z), "imq", 1.0))
    )


def test_sparsity_is_that_of_the_codes_and_of_the_prior(run: Run) -> None:
    analysis = SparsityAnalysis(n_samples=40, n_draws=500, source="sampled", variant="raw")
    found = analysis.measure(run)
    score = hoyer(run.representation(40).sampled, variant="raw")
    assert (found.value, found.interval) == (score.value, score.interval)
    drawn = draw_prior(run.model(), 500, seed=0) or pytest.fail("the mixture has draws")
    assert found.prior == hoyer(drawn[0], variant="raw").value
    assert list(analysis.columns(found)) == [
        *("sparsity.sampled", "sparsity.sampled.low", "sparsity.sampled.high", "sparsity.prior"),
    ]


def test_latents_are_grouped_by_what_the_decoder_makes_of_them(run: Run) -> None:
    found = DecoderUseAnalysis(n_samples=None, n_points=60).measure(run)
    rep = run.representation(None)
    order = generator(0, "decoder-use", "rows").permutation(60)
    use = decoder_use(run.model(), rep.mean[order], run.data().values(order))
    assert found.use == pytest.approx(use)
    between = DecoderUseAnalysis(unused_below=float(use.mean())).columns(found)
    first, second = np.argsort(-use)
    assert (between["used"], between["unused"]) == (1, 1)
    assert between["used.mean_square"] == pytest.approx((rep.mean[:, first] ** 2).mean(), rel=1e-6)
    assert between["unused.variance"] == pytest.approx(rep.variance[:, second].mean(), rel=1e-6)
    assert between["largest.mean"] == pytest.approx(np.abs(rep.mean).max())
    none = DecoderUseAnalysis(unused_below=1e6).columns(found)
    assert (none["used"], none["unused"], none["used.match"]) == (0, 2, None)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "ivae"},
        {"objective": "wae", "posterior": "deterministic"},
        {"objective": "beta-full", "posterior": "full"},
    ],
    ids=lambda settings: settings["objective"],
)
def test_models_of_any_kind_can_be_measured(settings: dict[str, Any], tmp_path: Path) -> None:
    run = trained(tmp_path / "run", **settings)
    fit = PriorFitAnalysis(n_draws=50).measure(run)
    sparsity, use = SparsityAnalysis(n_draws=50).measure(run), DecoderUseAnalysis().measure(run)
    conditional, deterministic = (
        settings["objective"] == "ivae",
        settings.get("posterior") == "deterministic",
    )
    assert (fit.divergence is None) == (conditional or deterministic)
    assert (fit.discrepancy is None) == (sparsity.prior is None) == conditional
    assert (fit.overlap is None) == deterministic
    assert len(use.use) == len(use.latents) == 2


@pytest.mark.parametrize("name", [name for name in EACH if family[name].record is not None])
def test_a_table_of_any_runs_has_the_columns_of_whatever_was_measured(name: str, run: Run) -> None:
    options = {"metrics": "hoyer"} if "metrics" in family[name].__dataclass_fields__ else {}
    analysis = family[name](n_samples=50, **options)
    columns = analysis.columns(analysis.measure(run))
    (row,) = runs_table([run.path]).rows
    assert {column: row[column] for column in columns} == columns


def test_probes_are_those_of_the_metric_for_both_codes_and_are_no_scores_of_the_run(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    run.scores("mig", n_samples=50)
    analysis = ProbesAnalysis(n_samples=50)
    found = analysis.measure(run)
    rep, cells = run.representation(50), analysis.columns(found)
    for source in ("mean", "sampled"):
        score = ps.score(rep, "probe", source=source, options={"probe": {"kinds": "classes"}}).scores["probe"]
        by_types = score.details["accuracy_by_types"]
        assert by_types["full"] == pytest.approx(score.value)
        assert found.accuracy[source] == pytest.approx(by_types)
        assert cells[f"probes.{source}.chance"] == pytest.approx(1 / 4)  # the pinwheel has four arms
    assert Run(run.path, read_only=True).scores("mig", n_samples=50).scores  # kept apart
    newest = run.newest("scores")
    assert newest is not None
    assert list(run.read(newest)["scores"]) == ["mig"]


def test_only_codes_are_not_shown_in_a_table() -> None:
    assert [name for name in EACH if family[name].record is None] == ["encode"]


@pytest.mark.parametrize("kind", ["polar", "cartesian"])
def test_coordinates_of_an_encoder_that_copies_the_data_are_those_of_the_data(
    kind: str, tmp_path: Path
) -> None:
    """Factors radius and angle, and one that nothing tells of; the data are (r cos φ, r sin φ) or (r, φ)."""
    radius, angle = np.divmod(np.arange(400), 20)
    other = generator(0, "other").integers(7, size=400)
    r, phi = 1 + radius / 10, 2 * np.pi * angle / 20
    plane = [r * np.cos(phi), r * np.sin(phi)] if kind == "polar" else [r, phi]
    rows = np.stack([generator(0, "noise").normal(size=400), *plane], axis=1)
    factors = np.stack([other, radius, angle], axis=1)
    kinds = ("ordinal", "ordinal", "cyclic")
    np.savez(tmp_path / "x.npz", X=rows, factors=factors, factor_names=("o", "r", "phi"), factor_kinds=kinds)
    data = ps.load_dataset(tmp_path / "x.npz")
    settings = {"net": "linear", "n_latents": 3, "steps": 1, "keep_units": True, "out": tmp_path / "run"}
    ps.train(data, **settings)  # type: ignore[arg-type]
    run = Run(tmp_path / "run")
    model = run.model()
    with torch.no_grad():
        model.encoder.head.mean.weight.copy_(torch.eye(3))
        model.encoder.head.mean.bias.zero_()
    model.save(run.folder.model_file, step=1, log=run.folder.model_header()["log"])
    analysis = CoordinatesAnalysis(n_samples=400)
    found = analysis.measure(Run(tmp_path / "run"))
    assert (found.verdict, found.latents, found.factors) == (kind, (1, 2), ("r", "phi"))
    assert analysis.columns(found)["coordinates.factors"] == "r+phi"
    named = CoordinatesAnalysis(n_samples=400, factors="phi, o").measure(Run(tmp_path / "run"))
    assert named.factors == ("phi", "o")
    with pytest.raises(ps.InputError, match="no factor named 'psi'"):
        CoordinatesAnalysis(n_samples=400, factors="r,psi").measure(Run(tmp_path / "run"))


def test_the_observations_of_an_analysis_are_those_of_every_other_result() -> None:
    """The defaults are written once, in Subset; two observations are needed for a variance."""
    for name in EACH:
        assert family[name]().where == dataclasses.asdict(Subset())
        with pytest.raises(InputError, match="n_samples must be at least 2"):
            build(family, name, {"n_samples": 1})


def test_scores_of_the_latents_in_use_have_columns_of_their_own(tmp_path: Path) -> None:
    run = trained(
        tmp_path / "run", steps=400, learning_rate=0.02, likelihood="gaussian", likelihood_variance=0.01
    )
    analysis = ScoreAnalysis(metrics="hoyer,mcc", latents="both", n_samples=50)
    cells = analysis.columns(analysis.measure(run))
    expected = run.scores("hoyer", latents="in-use", n_samples=50)
    assert cells["in_use"] == len(expected.covered) > 0
    assert cells["n_factors"] == 1
    assert cells["hoyer.in_use"] == expected["hoyer"].value
    assert cells["hoyer"] == run.scores("hoyer", n_samples=50)["hoyer"].value


def test_a_collapsed_run_has_no_scores_of_latents_in_use_and_a_table_can_be_made(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", objective="beta", beta=1e4, steps=200, learning_rate=0.02)
    analysis = ScoreAnalysis(metrics="hoyer,mcc", latents="both", n_samples=50)
    cells = analysis.columns(analysis.measure(run))
    assert cells["in_use"] == 0
    assert "hoyer" in cells
    assert "hoyer.in_use" not in cells
    # That there are none is stored: a table computes nothing.
    assert analysis.columns(analysis.measure(Run(run.path, read_only=True))) == cells
