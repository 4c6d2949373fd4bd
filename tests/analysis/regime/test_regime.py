import dataclasses
import json
import math

import numpy as np
import pytest

from analysis.regime.linear_vae import linear_vae
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.sentences import REDUNDANT, about_passive_means, stability
from polariscope.analysis.representation import Representation
from polariscope.core.errors import PolariscopeError
from polariscope.core.text import number


def regime(**changes):
    mean, variance, sampled = linear_vae([2.0, 50.0, 0.5, 20.0, 0.1], noise=1.0)
    return diagnose(Representation(mean, variance, sampled, **changes))


def infinite():
    rng = np.random.default_rng(0)
    mean, variance = np.repeat(rng.normal(size=(100, 1)), 2, axis=1), rng.uniform(0.1, 1, size=(100, 2))
    variance[0, 1] = 0
    return diagnose(mean=mean, variance=variance)


@pytest.mark.parametrize("make", [regime, infinite])
def test_json_gives_the_same_record_back_bit_for_bit(make):
    found = make()
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert Regime.from_dict(json.loads(text)) == found
    assert json.dumps(Regime.from_dict(json.loads(text)).to_dict()) == text


def test_infinite_numbers_are_words_in_json():
    stored = infinite().to_dict()
    assert stored["kl"] == stored["mean"]["total_correlation"] == "Infinity"
    assert stored["polarisation"]["delta"] is None
    assert infinite().mean.total_correlation == math.inf


def test_a_record_of_another_version_is_refused():
    stored = regime().to_dict()
    del stored["latents"][0]["kl"]
    words = r"this is not a stored Regime: latents\[0\] must have the field kl; diagnose the model again"
    with pytest.raises(PolariscopeError, match=words):
        Regime.from_dict(stored)
    stored = regime().to_dict()
    stored["latents"][0]["type"] = "dead"
    with pytest.raises(PolariscopeError, match="type must be one of active, mixed, passive, got 'dead'"):
        Regime.from_dict(stored)


def test_types_counts_and_selections_say_the_same():
    found = regime()
    assert found.types == ["mixed", "active", "passive", "active", "passive"]
    assert found.counts == {"active": 2, "mixed": 1, "passive": 2}
    assert found.select("active+mixed") == [0, 1, 3]
    assert [partner.latent for partner in found.passive_partners] == [2, 4]


def test_the_record_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        regime().kl = 0.0


def test_it_prints_the_verdict_first_and_aligned_tables_by_kl():
    text = str(regime())
    verdict, summary, *_ = text.split("\n\n")
    assert verdict == ("Convergence is unknown: there is no training log.\n3 of 5 latents are in use.")
    assert summary.startswith("5 latents: 2 active, 1 mixed, 2 passive. KL ")
    block = next(part for part in text.split("\n\n") if part.startswith("Latents by KL"))
    header, *rows = block.splitlines()[1:]
    assert [row.split()[:2] for row in rows][:3] == [["1", "active"], ["3", "active"], ["0", "mixed"]]
    assert {len(line) for line in (header, *rows)} == {len(header)}
    # ½ log 50 = 1.956 nats stands under its heading.
    end = header.index(" KL ") + 3
    assert rows[0][:end].endswith("1.956")
    assert "Notes\n- " in text


def test_the_share_of_the_kl_in_active_latents_is_printed():
    active, all_latents = 0.5 * math.log(50 * 20), 0.5 * math.log(50 * 20 * 2)
    assert f"KL {all_latents:.2f} nats, {active / all_latents:.0%} of it in active latents." in str(regime())


def test_it_prints_without_other_latents_and_with_infinite_numbers():
    one = diagnose(mean=np.zeros((10, 1)), variance=np.ones((10, 1)))
    assert "0 of 1 latent is in use.\nPosterior collapse: " in str(one)
    assert "\n\n1 latent: 0 active, 0 mixed, 1 passive. The KL is 0" in str(one)
    assert "The KL is infinite." in str(infinite())
    assert "∞" in str(infinite())
    assert "nan" not in str(one) + str(infinite())


def test_html_escapes_what_could_be_markup():
    found = regime(meaning_of_passive="<script>alert(1)</script> & more")
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert page.count("<table>") == page.count("</table>") == 6
    assert "3 of 5 latents are in use.</strong></p><p>5 latents: 2 active" in page


def test_what_passive_means_hold_is_said_from_data():
    mean, variance, sampled = linear_vae([50.0, 20.0, 0.1, 0.1], noise=1.0)
    rng = np.random.default_rng(0)
    mean[:, 2:] = 0.05 * rng.normal(size=(len(mean), 2))
    codes = {"variance": variance, "sampled": sampled}
    independent = diagnose(mean=mean, **codes)
    assert "are not linear functions of the other latents" in str(independent)
    mean[:, 2] = 0.01 * mean[:, 0]
    partly = diagnose(mean=mean, **codes)
    assert partly.latents[2].redundancy == pytest.approx(1)
    assert "partly redundant: 1 of 2 can be predicted linearly" in str(partly)
    mean[:, 3] = 0.01 * mean[:, 1]
    assert "are redundant: they can be predicted linearly from the other latents" in str(
        diagnose(mean=mean, **codes)
    )
    assert "Means of passive latents" not in str(diagnose(mean=mean[:, :2], variance=variance[:, :2]))


def test_confidence_over_resamples_comes_with_the_dependence_on_alpha():
    variance = np.tile([0.01, 0.09, 0.11, 1.0], (500, 1))
    mean = np.random.default_rng(0).normal(size=variance.shape)
    found = diagnose(mean=mean, variance=variance)
    assert found.fragile == [1, 2]
    assert [latent.confidence for latent in found.latents] == [1.0] * 4
    sentence = (
        "Every type is the same in at least 90% of 200 bootstrap resamples, but 2 of 4 types change if α changes by "
        "up to 20%."
    )
    assert sentence in str(found)
    assert "0.09–0.5" in str(found)
    assert "0–0.11" in str(found)
    steady = diagnose(mean=mean[:, :1], variance=variance[:, :1])
    assert (
        "Every type is the same in at least 90% of 200 bootstrap resamples, and if α changes by up to 20%."
        in str(steady)
    )


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.45])
def test_fragile_latents_are_those_whose_type_changes_within_a_fifth_of_alpha(alpha):
    rng = np.random.default_rng(0)
    variance = rng.uniform(0, 1.2, size=(1, 30)) * rng.uniform(0.8, 1.2, size=(100, 1))
    mean = rng.normal(size=variance.shape)
    found = diagnose(mean=mean, variance=variance, alpha=alpha, n_bootstrap=1)
    near = [
        diagnose(mean=mean, variance=variance, alpha=float(a), n_bootstrap=1).types
        for a in np.linspace(0.8 * alpha + 1e-9, min(1.2 * alpha, 0.5) - 1e-9, 9)
    ]
    changing = {j for types in near for j in range(30) if types[j] != found.types[j]}
    assert changing == set(found.fragile) != set()


def test_a_record_without_the_newest_fields_is_still_read():
    stored = regime().to_dict()
    for latent in stored["latents"]:
        del latent["mixedness"], latent["redundancy"]
    assert Regime.from_dict(stored).types == regime().types


def changed(found, *changes):
    """The record with some fields of its latents replaced, latent by latent."""
    latents = [
        dataclasses.replace(latent, **change) for latent, change in zip(found.latents, changes, strict=True)
    ]
    return dataclasses.replace(found, latents=tuple(latents), use=())


def two_latents(**settings):
    mean, variance, sampled = linear_vae([50.0, 0.1], noise=1.0)
    return diagnose(Representation(mean, variance, sampled), **settings)


@pytest.mark.parametrize(
    ("type_", "std", "variance", "idle"),
    [
        ("active", 0.0, 0.5, True),
        ("mixed", 0.0625, 0.5, True),  # 0.0039 of the 0.005 that a hundredth of the variance is
        ("mixed", 0.0625, 0.390625, False),  # the bound itself, exact
        ("mixed", 0.0625, 0.3, False),
        ("active", 1.0, 0.01, False),
        ("passive", 0.0, 1.0, False),
    ],
)
def test_a_latent_that_is_not_passive_is_idle_below_a_hundredth_of_its_noise(type_, std, variance, idle):
    change = {"type": type_, "std_of_mean": std, "mean_of_variance": variance}
    assert changed(two_latents(), change, {}).latents[0].is_idle is idle


def test_a_passive_latent_with_a_mean_that_moves_is_in_use_and_named():
    """½ log(1 + 0.25/1) = 0.11 nats: the rule of types looks at variances only."""
    found = changed(two_latents(), {}, {"std_of_mean": 0.5, "mean_of_variance": 1.0})
    assert found.types == ["active", "passive"]
    assert found.in_use == [0, 1]
    assert "latent 1 is passive by that rule, yet in use" in found.passive_in_words
    still = changed(two_latents(), {}, {"std_of_mean": 0.1, "mean_of_variance": 1.0})
    assert still.in_use == [0]  # ½ log 1.01 = 0.005 nats
    assert "all the same" not in still.passive_in_words


def test_in_use_are_latents_with_information_by_kl_whatever_their_type():
    idle, moving = {"std_of_mean": 0.0}, {"std_of_mean": 0.9, "kl": 0.5}
    found = changed(regime(), {}, idle, {}, {}, moving)
    assert found.types == ["mixed", "active", "passive", "active", "passive"]
    assert found.in_use == [index for index in found.order if index in (0, 3, 4)]
    assert found.select("in-use") == [0, 3, 4]
    assert found.verdict.unused == (1,)
    both = changed(found, {}, {}, moving, {}, {})
    assert "latents 2, 4 are passive by that rule, yet in use" in both.passive_in_words


def test_numbers_have_three_decimals_and_large_ones_three_digits():
    values = (None, math.inf, -math.inf, 9999.5, -9999.5, 10_000.0, -123456.0, 0.0004)
    words = ["–", "∞", "−∞", "9999.500", "-9999.500", "1e+04", "-1.23e+05", "0.000"]
    assert [number(value) for value in values] == words


def test_stability_is_told_in_one_sentence_for_each_case():
    steady, shaky = {"confidence": 0.9, "alpha_range": (0.0, 0.5)}, {"confidence": 0.89}
    fragile = {"alpha_range": (0.09, 0.5)}
    near = "if α changes by up to 20%"
    found = changed(two_latents(), steady, steady)
    sure = "Every type is the same in at least 90% of 200 bootstrap resamples"
    assert stability(found) == f"{sure}, and {near}."
    assert stability(changed(found, fragile, {})) == f"{sure}, but 1 of 2 types changes {near}."
    assert stability(changed(found, fragile, fragile)) == f"{sure}, but 2 of 2 types change {near}."
    unsure = "The type of latent 0 is uncertain: the confidence is below 90%."
    assert stability(changed(found, shaky, {})) == f"{unsure} None of 2 types changes {near}."
    assert stability(changed(found, shaky, fragile)) == f"{unsure} 1 of 2 types changes {near}."
    assert stability(changed(found, shaky | fragile, fragile)) == f"{unsure} 2 of 2 types change {near}."
    mean = np.random.default_rng(0).normal(size=(100, 1))
    alone = changed(diagnose(mean=mean, variance=np.full((100, 1), 0.01)), steady)
    assert stability(changed(alone, shaky | fragile)) == unsure
    single = "The type is the same in at least 90% of 200 bootstrap resamples"
    assert stability(changed(alone, fragile)) == f"{single}, but not {near}."
    assert stability(alone) == f"{sure}, and {near}."


def test_what_passive_means_hold_is_told_from_the_widest_and_from_shares_of_a_half_on():
    passive = {"std_of_mean": 0.25, "redundancy": REDUNDANT}
    found = changed(regime(), {}, {}, passive, {}, {"std_of_mean": 0.1, "redundancy": 0.9})
    first = "Means of passive latents vary little (std μ at most 0.250)"
    assert about_passive_means(found) == (
        f"{first} and are redundant: they can be predicted linearly from the other latents (R² 0.50 to 0.90)."
    )
    less = changed(found, {}, {}, {"redundancy": 0.49}, {}, {})
    assert "partly redundant: 1 of 2 can be predicted linearly" in about_passive_means(less)
    unknown = changed(found, {}, {}, {}, {}, {"redundancy": None})
    assert about_passive_means(unknown) == f"{first}."
    wide = dataclasses.replace(changed(found, {}, {}, {"std_of_mean": 0.5}, {}, {}), alpha=0.25)
    assert "vary, although their variance is the prior's (std μ at most 0.500)" in about_passive_means(wide)
    alone = changed(found, *[{"type": "passive", "redundancy": 0.9}] * 5)
    assert about_passive_means(alone).endswith(").")
