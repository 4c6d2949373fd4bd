"""Scores from the command line."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import polariscope as ps
from kept import artefacts, contents
from polariscope.analysis.metrics import Scores
from polariscope.analysis.score import NONE_IN_USE

QUICK = "--metrics mig,modularity,tc"


@pytest.fixture
def codes(elsewhere):
    """Two factors in two latents, beside a passive one, as another library would write them."""
    rng = np.random.default_rng(0)
    factors = rng.integers(3, size=(400, 2))
    mean = np.hstack([factors, np.zeros((400, 1))]) + 0.01 * rng.normal(size=(400, 3))
    variance = np.tile([0.01, 0.01, 1.0], (400, 1))
    np.savez("codes.npz", mean=mean, variance=variance, factors=factors, factor_names=["shape", "scale"])
    np.savez("bare.npz", mean=mean, variance=variance)
    np.savez("measured.npz", mean=mean, variance=variance, factors=mean[:, :2])
    return elsewhere / "codes.npz"


def rows(printed: str) -> dict[str, list[str]]:
    """Rows of the first table, that of all latents, by metric: variant, value, interval …"""
    first = printed.split("in use (")[0]
    lines = [re.split(r" {2,}", line.strip()) for line in first.splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) >= 5}


def test_arrays_alone_are_scored(call, codes):
    printed = call(f"score codes.npz {QUICK}")
    assert printed.code == 0
    assert "The mean representation: all 3 latents, 400 samples; factors: shape, scale." in printed.out
    shown = rows(printed.out)
    assert shown["metric"] == ["variant", "value", "95 %", "chance", "better", "range"]
    assert shown["mig"][0] == "locatello"
    assert float(shown["mig"][1]) > 0.9
    assert shown["mig"][-2:] == ["higher", "0 to 1"]
    assert shown["tc"][-2] == "lower"
    assert "2/3 modularity" in printed.err
    assert sorted(path.name for path in codes.parent.iterdir()) == ["bare.npz", "codes.npz", "measured.npz"]


def test_json_holds_every_score_with_its_evidence(call, codes):
    call(f"score codes.npz {QUICK} --json all.json --seed 3 --source sampled")
    stored = json.loads((codes.parent / "all.json").read_text())
    assert list(stored["scores"]) == ["mig", "modularity", "tc"]
    assert np.shape(stored["scores"]["mig"]["matrix"]) == (3, 2)
    assert (stored["seed"], stored["source"]) == (3, "sampled")


def test_metrics_that_do_not_apply_are_listed_with_the_reason(call, codes):
    printed = call(f"score bare.npz {QUICK}")
    assert printed.code == 0
    assert set(rows(printed.out)) == {"metric", "tc"}
    assert "Not scored (mig, modularity): factors are required, and these samples have none" in printed.out


def test_measured_factors_of_a_file_are_declared(call, codes):
    refused = call("score measured.npz --metrics mig").err
    assert "must contain integers" in refused
    assert "if it is measured, name it in --continuous." in refused
    assert "factor_kinds" not in refused
    printed = call("score measured.npz --metrics mig --continuous 0,1")
    assert float(rows(printed.out)["mig"][1]) > 0.5
    assert "no factor named '2'" in call("score measured.npz --continuous 2").err


def test_a_file_may_say_the_kinds_of_its_factors(call, codes):
    kept = dict(np.load("measured.npz"))
    np.savez("kinds.npz", **kept, factor_kinds=["continuous", "continuous"])
    told = call("score measured.npz --metrics mig --continuous 0,1")
    assert call("score kinds.npz --metrics mig").out == told.out
    del kept["variance"]
    np.savez("lean.npz", **kept, factor_kinds=["continuous", "continuous"])
    assert rows(call("score lean.npz --metrics mig").out) == rows(told.out)


def test_a_run_is_scored_and_keeps_its_scores(call, trained, elsewhere):
    """Of two directions of variance 4 and 0.01 with noise 0.1, one is coded: the dataset's factors are continuous."""
    run = shutil.copytree(trained, elsewhere / "run")
    printed = call("score run --samples 500 --metrics active-units,mcc,tc --latents all")
    assert printed.code == 0
    (stored,) = contents(run, "scores")
    assert stored["n_samples"] == 500
    assert stored["scores"]["active-units"]["value"] == 1
    assert rows(printed.out)["active-units"][1] == "1"
    assert "polariscope report run" in printed.out
    (file,) = [one.path for one in artefacts(run, "scores")]
    again = file.read_bytes()
    repeated = call("score run --samples 500 --metrics active-units,mcc,tc --latents all")
    assert file.read_bytes() == again
    assert repeated.err == ""  # nothing was computed
    assert repeated.out == printed.out


def test_scores_with_the_same_settings_are_added_and_with_others_kept_apart(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    call("score run --samples 300 --metrics tc,hoyer --latents all")
    printed = call("score run --samples 300 --metrics mcc,tc --latents all")
    assert printed.err == "1/1 mcc\n"
    assert list(rows(printed.out)) == ["metric", "mcc", "tc"]
    call("score run --samples 200 --metrics tc --seed 1 --latents all")
    first, second = (Scores.from_dict(stored) for stored in contents(run, "scores"))
    assert list(first.scores) == ["tc", "hoyer", "mcc"]
    assert (first.seed, first.n_samples, len(first.fingerprint)) == (0, 300, 64)
    assert (second.seed, second.n_samples, list(second.scores)) == (1, 200, ["tc"])


def test_a_changed_score_is_named_not_shown_and_scored_again(call, trained, elsewhere, caplog):
    run = shutil.copytree(trained, elsewhere / "run")
    call("score run --samples 300 --metrics tc --latents all")
    (file,) = [one.path for one in artefacts(run, "scores")]
    value = contents(run, "scores")[0]["scores"]["tc"]["value"]
    file.write_text(file.read_text().replace(str(value), "0.987"))
    call("report run --samples 200")
    page = (run / "report.html").read_text()
    assert f"{file.name} is damaged: its content does not match its hash" in caplog.text
    assert f"Damaged files, whose content does not match their hash, are not shown: {file.name}" in page
    assert "0.987" not in page
    checked = call("check run")
    assert checked.code == 1
    assert f"damaged: {file.relative_to(elsewhere)}" in checked.out
    assert "run polariscope score run with the same settings to compute it again" in checked.out
    assert call("score run --samples 300 --metrics tc").code == 0
    assert contents(run, "scores")[0]["scores"]["tc"]["value"] == value


@pytest.mark.usefixtures("undrawn")
def test_scores_of_both_representations_are_kept_and_shown_side_by_side(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    call("score run --samples 300 --metrics tc,mcc")
    call("score run --samples 300 --metrics mcc --source sampled --latents all")
    (sampled,) = contents(run, "scores", source="sampled")
    value = sampled["scores"]["mcc"]["value"]
    call("report run --samples 200")
    page = (run / "report.html").read_text()
    rows_of_page = dict(re.findall(r'<tr><th scope="row" class="left">(mcc|tc) (.*?)</tr>', page))
    assert f"<td>{value:.3f} (" in rows_of_page["mcc"]
    assert "<td>–</td>" in rows_of_page["tc"]


def test_a_file_without_variances_is_scored_but_for_what_needs_them(call, codes):
    kept = np.load("codes.npz")
    np.savez("lean.npz", mean=kept["mean"], factors=kept["factors"], factor_names=kept["factor_names"])
    lean, full = (call(f"score {file} --metrics modularity,mig:chen") for file in ("lean.npz", "codes.npz"))
    assert rows(lean.out)["modularity"] == rows(full.out)["modularity"]
    assert "Not scored (mig:chen): this variant requires posterior variances" in lean.out
    assert "pass them as variance" in lean.out
    assert "factors: shape, scale" in lean.out


def test_factors_that_are_not_finite_are_the_datas_fault(call, codes):
    kept = dict(np.load("codes.npz"))
    kept["factors"] = np.where(np.arange(800).reshape(400, 2) == 7, np.nan, kept["factors"])
    np.savez("gaps.npz", **kept)
    printed = call("score gaps.npz --metrics mig,tc")
    assert printed.code == 2
    assert "factors must be finite, got 1 NaN or infinite" in printed.err
    assert "diverged" not in printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("score missing", "there is no run and no file at missing; train a model"),
        ("score codes.npz --metrics migg", "no metric named 'migg'.*Did you mean 'mig'"),
        ("score codes.npz --metric mig", "No such option.*--metrics"),
        ("score codes.npz --samples 10", "--samples requires a run"),
        ("score codes.npz --source variance", "no source named 'variance'"),
        ("score codes.npz --json .", "--json must be a file"),
        ("score codes.npz --continuous shap", "no factor named 'shap'.*Did you mean 'shape'"),
        ("score bad.npz", "must contain 'mean' and 'variance'"),
        ("score lean.npz --source sampled", "--source sampled requires the array 'sampled' in lean.npz"),
        ("score flat.npz --metrics mig", r"factors must have shape \(sample, factor\), got \(3, 1, 1\)"),
        ("score empty", "is not a run folder"),
        (
            "score codes.npz --set mig.n_binz=3",
            "no option of metric 'mig' named 'n_binz'.*Did you mean 'n_bins'",
        ),
        ("score codes.npz --set migg.n_bins=3", "no metric named 'migg'.*Did you mean 'mig'"),
        (
            "score codes.npz --set mig.n_bins=1",
            "n_bins must lie between 2 and 1,000, got 1",
        ),
        ("score codes.npz --set n_bins=3", "--set must be NAME.OPTION=VALUE, got 'n_bins=3'"),
        (
            "score codes.npz --metrics tc --set mig.n_bins=3",
            "options of 'mig' were passed, but the metrics are tc",
        ),
    ],
)
def test_a_wrong_call_is_refused_in_words(call, codes, words, message):
    np.savez("bad.npz", codes=np.zeros((3, 2)))
    np.savez("lean.npz", mean=np.zeros((3, 2)))
    np.savez("flat.npz", mean=np.zeros((3, 2)), factors=np.arange(3)[:, None, None])
    (codes.parent / "empty").mkdir()
    before = sorted(codes.parent.rglob("*"))
    refused = call(words)
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert refused.out == ""
    assert sorted(codes.parent.rglob("*")) == before


def test_options_of_metrics_are_set_shown_and_stored(call, codes):
    plain = rows(call("score codes.npz --metrics mig,tc").out)
    printed = call(
        "score codes.npz --metrics mig,tc --set mig.n_bins=5 --set mig.n_samples=50 --json set.json"
    )
    assert rows(printed.out)["mig"][0] == "locatello, n_bins 5, n_samples 50"
    assert rows(printed.out)["mig"][1] != plain["mig"][1]
    assert rows(printed.out)["tc"] == plain["tc"]
    stored = json.loads((codes.parent / "set.json").read_text())["scores"]
    assert stored["mig"]["options"] == {"n_bins": 5, "n_samples": 50}
    assert stored["tc"]["options"] == {}


@pytest.mark.usefixtures("undrawn")
def test_scores_with_other_options_are_kept_apart(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    call("score run --samples 300 --metrics mi,tc --latents all")
    printed = call("score run --samples 300 --metrics mi --set mi.n_bins=5 --latents all")
    assert printed.err == "1/1 mi\n"
    assert call("score run --samples 300 --metrics mi --set mi.n_bins=5 --latents all").err == ""
    assert (
        call("score run --samples 300 --metrics mi --set mi.n_bins=20 --latents all").err == ""
    )  # the default
    plain, other = (Scores.from_dict(stored) for stored in contents(run, "scores"))
    assert plain["mi"].options == {}
    assert other["mi"].options == {"n_bins": 5}
    assert other["mi"].value != plain["mi"].value
    assert [one.key.settings.get("options") for one in artefacts(run, "scores")] == [
        None,
        {"mi": {"n_bins": 5}},
    ]
    call("score run --samples 300 --metrics mi --set mi.n_bins=5 --latents all")  # asked for last
    call("report run --samples 200")
    assert "corrected, n_bins 5" in (run / "report.html").read_text()


CONFIG = """
[score.mig]
n_bins = 5
n-samples = 50

[score.mi]
n_bins = 3

[compare.knn]
neighbours = 20
"""


def test_options_come_from_a_file_and_the_line_wins(call, codes):
    (codes.parent / "options.toml").write_text(CONFIG, encoding="utf-8")
    words = "score codes.npz --metrics mig,tc --json set.json"

    def options_of(more: str) -> dict:
        assert call(words, more).code == 0
        stored = json.loads((codes.parent / "set.json").read_text())["scores"]
        assert stored["tc"]["options"] == {}
        return stored["mig"]["options"]

    assert options_of("--config options.toml") == {"n_bins": 5, "n_samples": 50}
    assert options_of("--config options.toml --set mig.n_bins=7") == {"n_bins": 7, "n_samples": 50}
    assert options_of("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[scores.mig]\nn_bins = 5", "options.toml: no table named 'scores'.*Did you mean 'score'"),
        ("[score.migg]\nn_bins = 5", r"options.toml: \[score.migg\]: no metric named 'migg'.*mean 'mig'"),
        (
            "[score.mig]\nn_binz = 5",
            r"\[score.mig\]: no option of metric 'mig' named 'n_binz'.*mean 'n_bins'",
        ),
        ("[score.mig]\nn_bins = 1", r"\[score.mig\]: n_bins must lie between 2 and 1,000, got 1"),
        ("[score]\nmig = 5", r"score.mig must be a table, \[score.mig\], got 5"),
        ("score = 5", r"score must be tables of members, \[score.NAME\], got 5"),
        ("[score.mig", "--config must be a TOML file, got options.toml"),
        (None, "--config must be a file that can be read, got options.toml: No such file"),
    ],
)
def test_a_wrong_file_of_options_is_refused_in_words(call, codes, text, message):
    if text is not None:
        (codes.parent / "options.toml").write_text(text, encoding="utf-8")
    refused = call("score codes.npz --metrics mig --config options.toml")
    assert refused.code == 2
    assert re.search(message, refused.err)


def test_an_option_given_with_set_is_named_as_it_was_typed(call, elsewhere):
    rng = np.random.default_rng(0)
    np.savez("codes.npz", mean=rng.normal(size=(100, 2)), factors=rng.integers(3, size=(100, 2)))
    refused = call("score codes.npz --metrics mig --set mig.n_bins=0")
    assert refused.code == 2
    assert "--set mig.n_bins must lie between 2 and 1,000, got 0" in refused.err


def test_a_run_of_too_few_samples_is_told_to_draw_more_and_nothing_a_run_refuses(call, elsewhere):
    ps.train(ps.load_dataset("sprites", image_size=16), net="linear", steps=2, out="run")
    scored = call("score run --metrics mig --samples 3")
    assert "draw more" in scored.out + scored.err
    assert "continuous" not in scored.out + scored.err


def test_scores_of_all_latents_and_of_those_in_use_are_shown_and_stored(call, codes):
    """The passive latent holds 0.01 of noise, which equal-width bins and k-NN cannot tell from a code."""
    both = call(f"score codes.npz {QUICK} --json both.json")
    assert "The mean representation: all 3 latents" in both.out
    assert "The mean representation: 2 latents in use (0, 1), 400 samples" in both.out
    stored = json.loads((codes.parent / "both.json").read_text())
    used = call(f"score codes.npz {QUICK} --latents in-use --json used.json")
    assert "all 3 latents" not in used.out
    assert json.loads((codes.parent / "used.json").read_text()) == stored["scores_in_use"]
    kept = np.load("codes.npz")
    alone = ps.score(kept["mean"][:, :2], "modularity", factors=kept["factors"])
    everything = Scores.from_dict(stored)
    assert stored["scores_in_use"]["scores"]["modularity"]["value"] == alone["modularity"].value
    assert everything["modularity"].value < alone["modularity"].value
    assert (everything.latents, everything.in_use, everything.covered) == ("all", (0, 1), (0, 1, 2))


def test_a_collapsed_model_has_scores_of_all_latents_and_none_of_those_in_use(call, elsewhere):
    rng = np.random.default_rng(0)
    mean = 0.001 * rng.normal(size=(200, 2))
    np.savez("codes.npz", mean=mean, variance=np.ones((200, 2)), factors=rng.integers(3, size=(200, 2)))
    both = call("score codes.npz --metrics mig,tc")
    assert both.code == 0
    assert set(rows(both.out)) == {"metric", "mig", "tc"}
    assert "no latent is in use, so there is no score for latents in use" in both.out
    used = call("score codes.npz --metrics mig,tc --latents in-use --json used.json")
    assert used.code == 0
    scores = Scores.from_dict(json.loads((elsewhere / "used.json").read_text()))
    assert scores.scores == {}
    assert scores.not_applicable["mig"] == NONE_IN_USE


def test_codes_without_variances_do_not_tell_which_latents_are_in_use(call, codes):
    kept = np.load("codes.npz")
    np.savez("lean.npz", mean=kept["mean"], factors=kept["factors"])
    assert "Without variances it is not known" in call("score lean.npz --metrics tc").out
    refused = call("score lean.npz --metrics tc --latents in-use")
    assert refused.code == 2
    assert "--latents must be 'all' for codes without variances" in refused.err


def test_scores_of_latents_in_use_are_cached_apart_and_shown_on_the_page(call, trained, elsewhere):
    run = shutil.copytree(trained, elsewhere / "run")
    words = "score run --samples 300 --metrics mcc,hoyer"
    printed = call(words)
    assert call(words).err == ""  # both were read
    assert call(words).out == printed.out
    settings = [one.key.settings.get("latents") for one in artefacts(run, "scores")]
    assert settings == [None, "in-use"]
    call("report run --samples 200")
    page = (run / "report.html").read_text()
    assert "The mean representation, all 2 latents, of 300 observations" in page
    (used,) = contents(run, "scores", latents="in-use")
    assert f"<td>{used['scores']['mcc']['value']:.3f} (" in page
    assert "1 latent in use" in page
    table = call("table run --columns mcc,mcc.in_use")
    assert f"{used['scores']['mcc']['value']:.4g}" in table.out
