import itertools

import numpy as np
import pytest

from analysis.regime.linear_vae import linear_vae
from polariscope.analysis.convergence import TrainingState
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.notes import EXCLUSIVE, choose, possible
from polariscope.analysis.regime.posterior import relative_posterior
from polariscope.analysis.representation import Representation
from polariscope.numerics.dependence import covariance


def polarised(n=2000, seed=0):
    """Two active and two passive latents, drawn as an encoder would."""
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.95, 1.05, size=(n, 4)) * [0.01, 0.02, 1.0, 1.0]
    mean = rng.normal(size=(n, 4)) * [1, 1, 0.01, 0.01]
    return {
        "mean": mean,
        "variance": variance,
        "sampled": mean + np.sqrt(variance) * rng.normal(size=mean.shape),
    }


def said(codes, **options):
    return " ".join(diagnose(**codes, **options).notes)


def test_a_clean_polarised_model_has_no_notes():
    assert diagnose(**polarised()).notes == ()
    floats = {name: array.astype(np.float32) for name, array in polarised().items()}
    assert diagnose(**floats).notes == ()


def test_a_variance_exponentiated_twice_is_noticed():
    codes = polarised()
    codes["variance"] = np.exp(codes["variance"])
    assert diagnose(**codes).types[:2] == ["passive", "passive"]  # what the mistake does
    assert "exponentiated twice" in said(codes)
    assert "does not look like draws" in said(codes)


@pytest.mark.parametrize("mistake", [np.sqrt, lambda v: np.abs(np.log(v)), lambda v: v**2])
def test_a_variance_that_is_something_else_does_not_fit_the_samples(mistake):
    codes = polarised()
    codes["variance"] = mistake(codes["variance"])
    assert "does not look like draws from N(mean, variance)" in said(codes)


def test_a_mean_passed_as_sampled_is_noticed():
    codes = polarised()
    assert "latents 0, 1, 2, 3" in said({**codes, "sampled": codes["mean"]})


def test_rounding_of_a_tiny_variance_is_not_taken_for_a_mistake():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(1000, 1)) + 10, np.full((1000, 1), 1e-13)
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    codes = {"mean": mean, "variance": variance, "sampled": sampled}
    assert "draws" not in said({name: array.astype(np.float32) for name, array in codes.items()})


def test_few_samples_are_noticed():
    few = {name: array[:30] for name, array in polarised().items()}
    assert "30 samples are few for 4 latents" in said(few)
    fewest = {name: array[:4] for name, array in polarised().items()}
    assert "4 samples of 4 latents are always linearly dependent" in said(fewest)
    assert "few for" not in said({name: array[:40] for name, array in polarised().items()})


def test_an_unsure_type_is_named_with_its_shares():
    codes = polarised()
    codes["variance"][:, 1] = np.tile([0.05, 0.15], 1000)
    regime = diagnose(**codes)
    assert "The type of latent 1 is uncertain: it is active in" in " ".join(regime.notes)
    assert "The type of latent 1 is uncertain: the confidence is below 90%." in str(regime)


def test_a_type_that_hangs_on_alpha_is_named():
    codes = polarised()
    codes["variance"][:, 1] = 0.09
    assert "The type of latent 1 depends on α: it changes at α = 0.090." in said(codes)
    codes["variance"][:, 1] = 0.11
    assert "The type of latent 1 depends on α: it changes at α = 0.110." in said(codes)
    codes["variance"][:, 0] = 0.095
    both = "The types of latents 0, 1 depend on α: they change at α = 0.095, 0.110, respectively."
    assert both in said(codes)


def test_a_latent_of_intermediate_variance_is_told_from_one_that_switches():
    mean, variance, sampled = linear_vae([100.0, 2.0, 0.1], noise=1.0)
    codes = {"mean": mean, "variance": variance, "sampled": sampled}
    assert "Latent 1 has an intermediate variance. The rule calls it mixed, but it does not switch" in said(
        codes
    )
    assert "that switch" not in said(codes)
    variance[:, 1] = np.tile([0.02, 1.0], 1000)
    assert "intermediate variance" not in said(codes)
    assert "Mixed latents that switch are not Gaussian: latent 1" in said(codes)


def test_a_passive_latent_with_a_displaced_mean_is_named():
    codes = polarised()
    for name in ("mean", "sampled"):
        codes[name][:, 3] += 1
    assert (
        "Latent 3 is passive by its variance, but its mean differs from the prior's: the mean squared difference is at "
        "least 0.1 of the prior's variance." in said(codes)
    )


def test_constant_and_linearly_dependent_latents_are_named():
    codes = polarised()
    codes["mean"][:, 3] = 0.25
    codes["mean"][:, 2] = 2 * codes["mean"][:, 0]
    notes = said(codes)
    assert "Constant in the mean representation: latent 3." in notes
    assert "In the mean representation a latent is a linear function of others" in notes


def test_a_point_posterior_is_named():
    codes = polarised()
    codes["variance"][0, 1] = 0
    assert "A posterior variance of 0 makes the KL infinite in latent 1." in said(codes)


def test_a_skewed_sampled_latent_is_named_and_a_gaussian_one_is_not():
    codes = polarised()
    codes["mean"][:, 0] = np.random.default_rng(1).exponential(size=2000)
    codes["sampled"][:, 0] = codes["mean"][:, 0] + np.sqrt(codes["variance"][:, 0]) * codes["sampled"][:, 2]
    assert "The skewness or excess kurtosis of samples of latent 0 is above 1 or below −1." in said(codes)


def test_a_conditional_prior_and_a_rate_of_the_models_own_come_with_a_caution():
    codes = polarised()
    prior = np.random.default_rng(0).uniform(0.9, 1.1, size=(2000, 4))
    assert "a small KL does not make a latent passive" in said(codes, prior_variance=prior)
    regime = diagnose(Representation(**codes, rate=np.full((2000, 4), 0.5)))
    assert "The KLs are those of the model" in " ".join(regime.notes)


def test_fewer_latents_in_use_than_factors_is_over_pruned():
    factors = np.random.default_rng(0).integers(3, size=(2000, 4))
    factors[:, 3] = 1  # does not vary
    noted = " ".join(diagnose(Representation(**polarised(), factors=factors)).notes)
    assert "Over-pruned: 2 latents" in noted
    assert "3 varying factors" in noted
    assert diagnose(Representation(**polarised(), factors=factors[:, 2:])).notes == ()


def test_fewer_latents_than_factors_is_not_called_over_pruned():
    factors = np.random.default_rng(0).integers(3, size=(2000, 5))
    noted = " ".join(diagnose(Representation(**polarised(), factors=factors)).notes)
    assert "Fewer latents than factors: 4 for 5 varying factors." in noted
    assert "Over-pruned" not in noted


def test_counts_of_two_rules_are_said_together():
    codes = polarised()
    codes["variance"][:, 2] = 0.85  # mixed by the rule, not in use by E[σ²] < 0.8
    factors = np.random.default_rng(0).integers(3, size=(2000, 3))
    noted = " ".join(diagnose(Representation(**codes, factors=factors)).notes)
    assert (
        "Over-pruned: 2 latents with a mean posterior variance below 0.8 of the prior's (3 are not" in noted
    )


def test_a_deterministic_encoder_has_one_note_about_its_kl():
    codes = polarised()
    codes |= {"variance": np.zeros((2000, 4)), "sampled": codes["mean"]}
    about = [note for note in diagnose(**codes).notes if "KL" in note]
    assert len(about) == 1
    assert about[0].startswith("Every posterior variance is 0: the encoder is deterministic")


def test_finite_kls_of_the_models_own_are_not_called_infinite():
    codes = polarised()
    codes["variance"][0, 1] = 0
    codes["sampled"][0, 1] = codes["mean"][0, 1]
    noted = " ".join(diagnose(Representation(**codes, rate=np.full((2000, 4), 0.5))).notes)
    assert "makes the Gaussian KL infinite in latent 1; the KLs shown are those of the model." in noted


VARIANCES = {
    "active": lambda n: np.full(n, 0.01),
    "edge": lambda n: np.full(n, 0.095),
    "unsure": lambda n: np.resize([0.05, 0.15], n),
    "intermediate": lambda n: np.full(n, 0.5),
    "switching": lambda n: np.resize([0.01, 1.0], n),
    "wide": lambda n: np.full(n, 1.5),
    "passive": lambda n: np.full(n, 1.0),
    "point": lambda n: np.zeros(n),
}


@pytest.mark.parametrize("kinds", [tuple(VARIANCES), *((kind,) for kind in VARIANCES)], ids="+".join)
@pytest.mark.parametrize("mistake", ["none", "sampled", "twice"])
def test_no_two_notes_of_one_group_are_about_the_same_latent(kinds, mistake):
    """Each kind of latent alone and all together, with a mean that moves and one that does not."""
    rng = np.random.default_rng(0)
    for n, n_factors in itertools.product([3, 60, 400], [0, 2, 20]):
        variance = np.repeat(np.stack([VARIANCES[kind](n) for kind in kinds], axis=1), 2, axis=1)
        variance = np.exp(variance) if mistake == "twice" else variance
        mean = rng.normal(size=variance.shape) * np.resize([1.0, 0.01], 2 * len(kinds))
        mean[:, 0] = 2 * mean[:, 1]  # linearly dependent
        sampled = mean if mistake == "sampled" else mean + np.sqrt(variance) * rng.normal(size=mean.shape)
        factors = rng.integers(3, size=(n, n_factors)) if n_factors else None
        codes = Representation(mean, variance, sampled, factors=factors)
        regime = diagnose(codes, n_bootstrap=20)
        matrices = {"mean": covariance(mean), "sampled": covariance(sampled)}
        chosen = choose(possible(codes, relative_posterior(codes), regime.latents, matrices, 0.1))
        assert tuple(chosen) == regime.notes
        assert [note.code for note in chosen] == [note.code for note in regime.notes]
        for group in EXCLUSIVE.values():
            of_group = [(note.code, note.latents) for note in chosen if note.code in group]
            for (one, some), (other, others) in itertools.combinations(of_group, 2):
                apart = some is not None and others is not None and not set(some) & set(others)
                assert apart, (kinds, n, one, other)


def test_the_choice_matters_where_notes_exclude_each_other():
    """Without it, the grid above would have found several of a group."""
    codes = polarised()
    codes["variance"][:, 1] = 0.5
    codes["mean"][:, 1] = 0.0
    codes["sampled"][:, 1] = np.sqrt(0.5) * np.random.default_rng(1).normal(size=2000)
    representation = Representation(**codes)
    regime = diagnose(representation)
    matrices = {name: covariance(codes[name]) for name in ("mean", "sampled")}
    found = possible(representation, relative_posterior(representation), regime.latents, matrices, 0.1)
    assert {"idle", "intermediate"} <= {draft.code for draft in found}
    assert "intermediate" not in {note.code for note in choose(found)}
    assert "carries almost no information" in " ".join(regime.notes)


def test_a_sampled_array_drawn_here_is_said_so():
    codes = polarised()
    del codes["sampled"]
    assert "sampled was not passed" in said(codes)


def untrained(**known):
    """A model after a few steps: all variances a little above 1, means that hardly move, three factors."""
    rng = np.random.default_rng(0)
    variance = rng.uniform(1.0, 1.4, size=(400, 3))
    mean = 0.05 * rng.normal(size=variance.shape)
    sampled = mean + np.sqrt(variance) * rng.normal(size=mean.shape)
    factors = rng.integers(3, size=(400, 3))
    return " ".join(diagnose(Representation(mean, variance, sampled, factors=factors, **known)).notes)


def test_a_model_of_ours_that_has_not_begun_is_not_told_that_its_variance_is_wrong():
    assert "exponentiated twice" in untrained()  # of arrays that could be anything
    said = untrained(variance_is_exact=True)
    assert "does not encode its inputs yet. Train it longer" in said
    assert "exponentiated" not in said
    assert "Over-pruned" not in said
    assert "Over-pruned" not in untrained()


def test_a_model_that_is_still_learning_is_not_told_to_lower_the_rate():
    rng = np.random.default_rng(0)
    codes = {**polarised(), "factors": rng.integers(3, size=(2000, 3))}
    assert "Over-pruned" in " ".join(diagnose(Representation(**codes)).notes)
    said = " ".join(diagnose(Representation(**codes, training=TrainingState("still-learning"))).notes)
    assert "Still learning: 2 latents" in said
    assert "Over-pruned" not in said


def test_several_idle_latents_are_spoken_of_in_the_plural():
    mean = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 0.0, 0.0]
    said = " ".join(diagnose(mean=mean, variance=np.full((300, 3), [0.01, 0.5, 0.5])).notes)
    assert (
        "Latents 1, 2 are not passive by their variance, but their means are nearly constant. Their posteriors"
        in said
    )
