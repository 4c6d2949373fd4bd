"""All metrics of a representation in one pass."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
from unittest import mock

import numpy as np
import pytest

from analysis.metrics.known import noise
from long_training import unchecked
from polariscope.analysis import code_table as _table
from polariscope.analysis.course import snapshot
from polariscope.analysis.metrics import Score, Scores, family
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.representation import Representation
from polariscope.analysis.score import score
from polariscope.core.errors import InputError, PolariscopeError

QUICK = ("mig", "modularity", "tc", "active-units")


def represent(factors: np.ndarray | None, names: tuple[str, ...] = (), seed: int = 0) -> Representation:
    """Two latents that carry factors of three values, one of noise with the prior's variance."""
    draw = np.random.default_rng(seed)
    known = draw.integers(3, size=(400, 2)) if factors is None else factors[:, :2]
    mean = np.hstack([known + 0.1 * draw.normal(size=known.shape), 0.01 * draw.normal(size=(400, 1))])
    variance = np.tile([0.01, 0.01, 1.0], (400, 1))
    sampled = mean + np.sqrt(variance) * draw.normal(size=mean.shape)
    return Representation(mean, variance, sampled, factors, names)


@pytest.fixture
def factors() -> np.ndarray:
    return np.random.default_rng(1).integers(3, size=(400, 2))


@pytest.fixture
def representation(factors: np.ndarray) -> Representation:
    return represent(factors, ("shape", "scale"))


def test_a_pass_gives_the_scores_that_each_metric_gives_alone(representation: Representation) -> None:
    found = score(representation, ["mig", "dci:lasso", "modularity", "tc"], seed=3)
    z, w = representation.mean, representation.factors
    alone = {
        "mig": family["mig"](z, w, factor_names=("shape", "scale"), seed=3),
        "dci:lasso": family["dci"](z, w, variant="lasso", factor_names=("shape", "scale"), seed=3),
        "modularity": family["modularity"](z, w, factor_names=("shape", "scale"), seed=3),
        "tc": family["tc"](z, variance=representation.variance, seed=3),
    }
    assert found.scores.keys() == alone.keys()
    for name, expected in alone.items():
        assert found[name].to_dict() == expected.to_dict(), name


def test_what_metrics_share_is_computed_once(representation: Representation) -> None:
    with mock.patch.object(_table, "discretise", wraps=_table.discretise) as discretise:
        score(representation, "mig,modularity")
    assert discretise.call_count == 1


def test_all_scores_every_metric_or_says_why_not(representation: Representation) -> None:
    told = []
    found = score(representation, progress=lambda *news: told.append(news))
    assert set(found.scores) | set(found.not_applicable) == set(family)
    assert list(found.not_applicable) == ["udr"]
    assert "it compares several models" in found.not_applicable["udr"]
    assert told == [(name, number, len(family)) for number, name in enumerate(family)]
    assert found["mig"].value > 0.8
    assert found["probe"].details["types"] == ["active", "active", "passive"]
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["scores"]["dci"]["value"] == found["dci"].value
    assert stored["factor_names"] == ["shape", "scale"]
    assert "udr does not apply" in str(found)


def test_without_factors_only_what_needs_none_is_scored() -> None:
    found = score(represent(None), QUICK)
    assert set(found.scores) == {"tc", "active-units"}
    assert "factors are required, and these samples have none" in found.not_applicable["mig"]
    with pytest.raises(InputError, match="metric 'mig' does not apply here: factors are required"):
        found["mig"]


def test_a_factor_with_one_value_is_left_out_with_a_note(factors: np.ndarray) -> None:
    colour = np.hstack([factors, np.zeros((400, 1), dtype=int)])
    found = score(represent(colour, ("shape", "scale", "colour")), "mig")
    assert found.factor_names == ("shape", "scale")
    assert found.notes == ("Factor 'colour' has a single value in these samples and is left out.",)
    assert found["mig"].value == score(represent(factors, ("shape", "scale")), "mig")["mig"].value
    nothing = score(represent(colour[:, [2, 2]]), QUICK)
    assert "no factor varies in these 400 samples" in nothing.not_applicable["mig"]


def test_factors_that_are_wrong_are_refused_where_they_are_asked_for(factors: np.ndarray) -> None:
    measured = np.hstack([factors, noise(400, 1)])
    with pytest.raises(InputError, match=r"factor '2' must contain integers \(classes\)"):
        score(represent(measured), QUICK)
    assert set(score(represent(measured), "tc,active-units").scores) == {"tc", "active-units"}
    with pytest.raises(InputError, match="must contain integers"):  # a caller who gives them means them
        score(represent(factors).mean, "tc", factors=measured)
    kinds = ("categorical", "categorical", "continuous")
    assert "mig" in score(represent(measured), "mig", factor_kinds=kinds).scores


def test_the_sampled_codes_are_scored_when_asked_for(representation: Representation) -> None:
    sampled = score(representation, "mig", source="sampled")
    assert sampled["mig"].value == family["mig"](representation.sampled, representation.factors).value
    assert sampled.source == "sampled"


def test_types_for_the_probe_are_relative_to_the_prior(factors: np.ndarray) -> None:
    """A posterior variance of 0.01 under a prior of 0.01 is passive."""
    plain = represent(factors)
    narrow = Representation(
        plain.mean,
        plain.variance,
        plain.sampled,
        factors,
        prior_mean=np.zeros(3),
        prior_variance=np.array([1.0, 0.01, 1.0]),
    )
    assert score(narrow, "probe")["probe"].details["types"] == ["active", "passive", "passive"]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("migg", "no metric named 'migg'.*Did you mean 'mig'"),
        (["mig", "dcii"], "no metric named 'dcii'.*Did you mean 'dci'"),
        ("dci:laso", "option variant of metric 'dci' must be one of boosted, .*lasso, got 'laso'"),
        ("", "must contain at least one metric"),
        ([], "metrics must contain at least one metric"),
    ],
)
def test_an_unknown_name_is_refused_before_anything_is_computed(
    representation: Representation, metrics: str | list[str], message: str
) -> None:
    told: list[str] = []
    with pytest.raises(InputError, match=message):
        score(representation, metrics, progress=lambda name, *_: told.append(name))
    assert told == []


@unchecked()
@pytest.mark.parametrize("metrics", [5, ["mig", 5]])
def test_metrics_that_are_not_names_are_refused(representation: Representation, metrics: Any) -> None:
    with pytest.raises(
        InputError, match="metrics must be names as a list or joined by commas, or 'all', got"
    ):
        score(representation, metrics)


def test_metrics_of_posteriors_refuse_sampled_codes_and_other_priors() -> None:
    draw = np.random.default_rng(0)
    mean, variance = draw.normal(size=(50, 2)), np.full((50, 2), 0.1)
    rep = Representation(mean, variance, mean)
    scores = score(rep, "active-units,tc:noise-free", source="sampled")
    assert not scores.scores
    assert "score the mean representation" in scores.not_applicable["active-units"]
    other = Representation(mean, variance, mean, prior_variance=np.array([2.0, 1.0]))
    assert "this model has another" in score(other, "active-units").not_applicable["active-units"]


def test_names_and_kinds_must_fit_the_factors() -> None:
    arrays = np.zeros((5, 1)), np.ones((5, 1)), np.zeros((5, 1)), np.arange(10).reshape(5, 2)
    with pytest.raises(InputError, match="a name for each of the 2 factors, got 1"):
        Representation(*arrays, ("a",))
    with pytest.raises(InputError, match="a kind for each of the 2 factors, got 1"):
        score(Representation(*arrays), "mig", factor_kinds=["continuous"])


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_codes_whose_squares_are_no_numbers_are_refused(size: float) -> None:
    rep = Representation(
        size * np.random.default_rng(0).normal(size=(20, 2)), np.ones((20, 2)), np.zeros((20, 2))
    )
    with pytest.raises(InputError, match="rescale them"):
        score(rep, "hoyer")


def test_codes_alone_are_scored_but_for_what_looks_at_posteriors(representation: Representation) -> None:
    words = "mig,probe,active-units,tc,mig:chen,tc:noise-free,active-units:kl-udr"
    names = {"factors": representation.factors, "factor_names": ("shape", "scale")}
    alone = score(representation.mean, words, **names)
    assert list(alone.not_applicable) == ["mig:chen", "tc:noise-free", "active-units:kl-udr"]
    assert all("requires posterior variances" in reason for reason in alone.not_applicable.values())
    full = score(representation, words)
    assert not full.not_applicable
    for name in ("mig", "active-units", "tc"):
        assert alone[name].to_dict() == full[name].to_dict()
    assert alone["probe"].value == full["probe"].value
    assert alone["probe"].details["types"] is None
    assert alone.factor_names == ("shape", "scale")


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ("run", {}, "must be a Representation or an array .sample, latent., got str"),
        (
            np.zeros((5, 2)),
            {"factors": np.ones((5, 2, 2))},
            r"factors must have shape \(sample, factor\), got \(5, 2, 2\)",
        ),
        (
            np.zeros((5, 2)),
            {"factors": np.ones((5, 2)), "factor_names": ("a",)},
            "each of the 2 factors, got 1",
        ),
        (represent(None), {"factors": np.ones((400, 1))}, "factors must be omitted with a Representation"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given: object, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        score(given, "tc", **options)


def test_factors_that_are_not_finite_are_the_datas_fault(factors: np.ndarray) -> None:
    broken = factors.astype(float)
    broken[3, 1] = np.nan
    with pytest.raises(
        InputError, match="factors must be finite, got 1 NaN or infinite of 800 values"
    ) as found:
        score(dataclasses.replace(represent(factors), factors=broken), "mig")
    assert "drop such samples" in str(found.value)
    assert "diverged" not in str(found.value)


def test_scores_come_back_from_json_as_they_were(representation: Representation) -> None:
    found = score(representation, "mig,dci:lasso,tc,udr", seed=3)
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    back = Scores.from_dict(stored)
    assert back.to_dict() == stored
    assert back["mig"].value == found["mig"].value
    np.testing.assert_array_equal(back["mig"].matrix, found["mig"].matrix)
    assert back["tc"].bounds == (0.0, np.inf)
    assert back.differences(found) == []
    for broken in ({}, [], {**stored, "scores": {"sap": stored["scores"]["mig"]}}):
        with pytest.raises(PolariscopeError, match="this is not a stored"):
            Scores.from_dict(broken)


def test_scores_of_the_same_settings_are_joined_and_others_are_not(representation: Representation) -> None:
    first, second = score(representation, "mig,tc"), score(representation, "modularity,tc,udr")
    both = second.joined(first)
    assert list(both.scores) == ["mig", "tc", "modularity"]
    assert list(both.not_applicable) == ["udr"]
    assert both.to_dict() == score(representation, "mig,tc,modularity,udr").to_dict()
    moved = dataclasses.replace(representation, mean=representation.mean + 1)
    for other, words in [
        (score(representation, "tc", seed=3), ["seed 3, now 0"]),
        (score(representation, "tc", source="sampled"), ["source sampled, now mean"]),
        (score(moved, "tc"), ["other codes or factors"]),
    ]:
        assert second.differences(other) == words
        with pytest.raises(InputError, match="must have the same settings"):
            second.joined(other)


def test_notes_that_several_share_are_grouped(factors: np.ndarray) -> None:
    colour = np.hstack([factors, np.zeros((400, 1), dtype=int)])
    colour[:, 1] = (factors[:, 0] + (factors[:, 1] == 0)) % 3
    found = score(represent(colour, ("shape", "scale", "colour")), "mig,modularity")
    about_all, *about_some = found.grouped_notes()
    assert about_all == ((), "Factor 'colour' has a single value in these samples and is left out.")
    (words,) = (words for words, note in about_some if "Factors depend on each other" in note)
    assert words == ("mig", "modularity")
    assert len({note for _, note in about_some}) == len(about_some)


def test_kinds_of_factors_come_with_the_representation(factors: np.ndarray) -> None:
    measured = np.hstack([factors, noise(400, 1)])
    kinds = ("categorical", "ordinal", "continuous")
    rep = dataclasses.replace(represent(measured), factor_kinds=kinds)
    found = score(rep, "mig,ds,probe")
    assert not found.not_applicable
    assert found.factor_kinds == kinds
    assert found.to_dict() == score(represent(measured), "mig,ds,probe", factor_kinds=kinds).to_dict()
    as_classes = score(rep, "ds", factor_kinds=("categorical", "categorical", "continuous"))
    assert as_classes["ds"].value != found["ds"].value


def test_with_a_single_factor_what_is_trivial_does_not_apply_and_the_rest_does(factors: np.ndarray) -> None:
    rep = represent(np.hstack([factors[:, :1], np.zeros((400, 1), dtype=int)]))
    found = score(rep, "mig,sap,dci,beta-vae,factor-vae,mcc")
    assert set(found.scores) == {"mig", "sap", "mcc"}
    assert "set the option part of dci" in found.not_applicable["dci"]
    for name in ("beta-vae", "factor-vae"):
        assert "any codes would score 1" in found.not_applicable[name]


def test_options_of_each_metric_are_used_checked_and_recorded(representation: Representation) -> None:
    found = score(representation, "mig,mig:rebinned,tc", options={"mig": {"n_bins": 5}})
    names = {"factor_names": ("shape", "scale")}
    alone = family["mig"](representation.mean, representation.factors, n_bins=5, **names)
    assert found["mig"].to_dict() == alone.to_dict()
    assert found["mig"].options == found["mig:rebinned"].options == {"n_bins": 5}
    assert found["tc"].options == {}
    assert "mig (locatello, n_bins 5)" in str(found)
    assert score(representation, "mig", options={"mig": {"n_bins": 20}})["mig"].options == {}  # the default
    assert "mig" in found
    assert "mi" not in found
    assert 3 not in found
    assert Scores.from_dict(found.to_dict())["mig"].options == {"n_bins": 5}
    for options, words in [
        ({"migg": {}}, "no metric named 'migg'.*Did you mean 'mig'"),
        ({"mig": {"binz": 3}}, "no option of metric 'mig' named 'binz'"),
        ({"dci": {"n_trees": 5}}, "options of 'dci' were passed, but the metrics are mig"),
    ]:
        with pytest.raises(InputError, match=words):
            score(representation, "mig", options=options)


def test_a_score_keeps_what_its_metric_says_of_itself_and_one_without_gets_it_when_read() -> None:
    found = score(noise(200, 3), "tc,hoyer")
    stored = found.to_dict()
    assert stored["scores"]["tc"]["summary"] == family.summary("tc")
    for one in stored["scores"].values():  # as files had it before
        for name in ("summary", "needs", "evidence"):
            del one[name]
    again = Scores.from_dict(stored)
    assert again.to_dict() == found.to_dict()
    assert Score.from_dict(stored["scores"]["hoyer"]).summary == family.summary("hoyer")
    assert again["tc"].needs == family.traits("tc")["needs"]


@pytest.mark.parametrize("source", ["mean", "sampled"])
def test_corrected_mutual_information_is_the_same_number_wherever_it_is_shown(source: str) -> None:
    """Diagnosis, course and score shuffle with the same seed."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3))
    variance = np.full_like(mean, 0.1)
    rep = Representation(mean, variance, mean + np.sqrt(variance) * rng.normal(size=mean.shape))
    scored = score(rep, ["mi"], source=source)["mi"]
    structure = getattr(diagnose(rep, n_bootstrap=5), source)
    assert scored.value == structure.corrected_mutual_information > 0
    assert scored.details["chance_of_averaged"] == structure.chance_mutual_information
    assert scored.value == getattr(snapshot(rep, 0), source).corrected_mutual_information
