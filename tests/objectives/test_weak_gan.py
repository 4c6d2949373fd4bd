"""The weakly supervised GAN: shared latents are shared, and each term trains its own network."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from long_training import unchecked
from oracles import directional_derivatives
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.own.arrays import from_arrays
from polariscope.data.pairs import Transition
from polariscope.data.sources import load_dataset
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model, read_model
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.normalisation import normalisations
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.objectives import Batch, Step, total
from polariscope.objectives.weak_gan import PairDiscriminator, WeakGanObjective, shared_draws
from polariscope.training.feed import Feed
from polariscope.training.loop import make_optimisers, step_gradients
from polariscope.training.monitor import Probe
from polariscope.training.plan import plan
from polariscope.training.threads import work_of_step
from polariscope.training.train import train

N_FACTORS = 2


def model(net=None, n_latents: int = 3, n_features: int = 4, normalises: bool = True) -> Model:
    blueprint = Blueprint(
        net or MlpNet((6,), (6,), "tanh"),
        DiagonalPosterior(),
        IsotropicPrior(),
        GaussianLikelihood(),
        n_latents,
        (n_features,),
        normalises=normalises,
    )
    return blueprint.build(seed=0).double()


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(n: int = 6) -> Batch:
    shared = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).repeat(n // 2, 1)
    return Batch(normal(n, 4, seed=1), step=0, pair=normal(n, 4, seed=2), shared=shared)


def judge(made: Model, width: int = 8, **options: object) -> PairDiscriminator:
    """The companion, on data with two factors."""
    data = from_arrays(np.zeros((4, 4)), np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    objective = WeakGanObjective(width=width, **options)  # type: ignore[arg-type]
    return objective.companion(made, data, torch.Generator().manual_seed(5))


def test_pairs_share_the_latents_of_their_factors_and_no_others():
    shared = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]).double().repeat(500, 1)
    z, partner = shared_draws(model(), shared, torch.Generator().manual_seed(0))
    assert torch.equal(z == partner, torch.nn.functional.pad(shared, (0, 1)) > 0)  # the third latent never
    # what is not shared is drawn on its own: correlation 0 within 5/√n
    free = ~(shared[:, 0] > 0)
    correlation = np.corrcoef(z[free, 0], partner[free, 0])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(int(free.sum()))
    assert float(partner.var()) == pytest.approx(1, abs=0.1)


def test_the_terms_are_logistic_losses_and_a_log_density():
    made, given = model(), batch()
    companion = judge(made)
    terms = WeakGanObjective(inversion=0.5).terms(
        Step(made, given, torch.Generator().manual_seed(0), companion)
    )
    z, partner = shared_draws(made, given.shared, torch.Generator().manual_seed(0))
    fakes = made.decode(torch.cat([z, partner])).mean.chunk(2)
    true = torch.sigmoid(companion(given.x, given.pair, given.shared))
    false = torch.sigmoid(companion(*fakes, given.shared))
    torch.testing.assert_close(terms["generation"].value, -false.log())
    torch.testing.assert_close(terms["discriminator"].value, -true.log() - (1 - false).log())
    q = made.encode(fakes[0])
    expected = -torch.distributions.Normal(q.mean, q.variance.sqrt()).log_prob(z)
    torch.testing.assert_close(terms["inversion"].value, expected)
    assert {name: (term.weight, term.trains) for name, term in terms.items()} == {
        "generation": (1.0, "model"),
        "inversion": (0.5, "model"),
        "discriminator": (1.0, "companion"),
    }


def test_a_discriminator_that_cannot_tell_costs_log_2_each_way():
    def undecided(x: Tensor, partner: Tensor, shared: Tensor) -> Tensor:
        return torch.zeros(len(x), dtype=x.dtype)

    terms = WeakGanObjective().terms(Step(model(), batch(), torch.Generator(), undecided))
    assert float(terms["generation"].per_batch) == pytest.approx(math.log(2))
    assert float(terms["discriminator"].per_batch) == pytest.approx(2 * math.log(2))
    assert terms["inversion"].weight == 1  # by default, as the others


def gradients_of(value: Tensor, parameters: list[Tensor]) -> bool:
    """Whether ``value`` would train any of these."""
    if not value.requires_grad:
        return False
    found = torch.autograd.grad(value, parameters, allow_unused=True, retain_graph=True)
    return any(g is not None and (g != 0).any() for g in found)


def test_each_term_trains_its_own_network_and_no_other():
    made, given = model(), batch()
    companion = judge(made)
    terms = WeakGanObjective().terms(Step(made, given, torch.Generator().manual_seed(0), companion))
    parts = {"encoder": made.encoder, "decoder": made.decoder, "discriminator": companion}
    reached = {
        name: {
            part for part, module in parts.items() if gradients_of(term.per_batch, list(module.parameters()))
        }
        for name, term in terms.items()
    }
    assert reached["inversion"] == {"encoder"}
    assert reached["discriminator"] == {"discriminator"}
    # The decoder learns through the discriminator, whose own weights the loop leaves out of this loss.
    assert reached["generation"] == {"decoder", "discriminator"}


def test_the_gradient_is_that_of_the_loss():
    made, given = model(), batch()
    companion = judge(made)

    def loss() -> Tensor:
        return total(WeakGanObjective().terms(Step(made, given, torch.Generator().manual_seed(0), companion)))

    # along the decoder only: the encoder sees a detached copy of what it makes
    objective = WeakGanObjective(inversion=0.0)

    def generation() -> Tensor:
        return total(objective.terms(Step(made, given, torch.Generator().manual_seed(0), companion)))

    for function, part in ((generation, made.decoder), (loss, made.encoder)):
        analytic, difference = directional_derivatives(function, list(part.parameters()), seed=0, step=1e-7)
        assert analytic == pytest.approx(difference, rel=1e-5, abs=1e-6)


def test_the_logit_is_linear_in_what_is_shared_with_a_vector_of_length_1_for_each_factor():
    made, given = model(), batch()
    companion = judge(made)
    none, one, other, both = (
        companion(given.x, given.pair, torch.tensor([each], dtype=torch.float64).expand(6, 2))
        for each in ([0, 0], [1, 0], [0, 1], [1, 1])
    )
    torch.testing.assert_close(both - none, (one - none) + (other - none))
    with torch.no_grad():
        companion.of_factor *= 5  # only its direction counts
    torch.testing.assert_close(companion(given.x, given.pair, given.shared)[::2], one[::2])


@pytest.mark.parametrize("is_normalised", [True, False])
def test_every_layer_of_the_discriminator_has_a_largest_singular_value_of_1(is_normalised):
    companion = judge(model(), spectral_norm=is_normalised)
    wrapped = normalisations(companion)
    n_affine = sum(isinstance(each, torch.nn.Linear) for each in companion.modules())
    assert len(wrapped) == (n_affine if is_normalised else 0)
    for layer in wrapped:
        weight = layer.layer.weight.detach() / layer.norm.detach()
        assert float(torch.linalg.matrix_norm(weight, ord=2)) == pytest.approx(1, rel=1e-12)


def test_the_discriminator_sees_both_observations_and_the_set():
    made, given = model(), batch()
    companion = judge(made)
    logits = companion(given.x, given.pair, given.shared)
    assert logits.shape == (6,)
    assert not torch.allclose(logits, companion(given.pair, given.x, given.shared))
    assert not torch.allclose(logits, companion(given.x, given.x, given.shared))
    assert not torch.allclose(logits, companion(given.x, given.pair, 1 - given.shared))


@unchecked()
def test_a_linear_generator_moves_to_the_moments_of_the_data_with_a_latent_for_each_factor():
    # Two independent factors, x = (1.5 + w₀, −1 + ½ w₁); pairs share one of them. Four seeds ended with a mean within
    # 0.04, a covariance within 0.18, off-diagonal weights below 0.11 and an encoder's error below 0.1.
    made = model(LinearNet(), n_latents=2, n_features=2)
    objective = WeakGanObjective()
    companion = judge(made, width=32)
    optimisers = {
        "model": torch.optim.Adam(made.parameters(), lr=1e-2, betas=(0.5, 0.999)),
        "companion": torch.optim.Adam(companion.parameters(), lr=1e-2, betas=(0.5, 0.999)),
    }
    trained = {"model": list(made.parameters()), "companion": list(companion.parameters())}
    draw = torch.Generator().manual_seed(0)
    centre, scale = torch.tensor([1.5, -1.0]).double(), torch.tensor([1.0, 0.5]).double()
    layer = made.decoder.trunk.layers[0][0]

    def distances() -> tuple[float, float]:
        """From the mean and the covariance of the data to those of what is generated."""
        weight, bias = layer.weight.detach(), layer.bias.detach()
        return float((bias - centre).norm()), float((weight @ weight.T - torch.diag(scale**2)).norm())

    assert distances() > (1.5, 2.0)
    for step in range(400):
        first, second = (torch.randn(64, 2, generator=draw, dtype=torch.float64) for _ in range(2))
        kept = torch.nn.functional.one_hot(torch.randint(2, (64,), generator=draw), 2).double()
        x, pair = (centre + scale * factors for factors in (first, torch.where(kept > 0, first, second)))
        terms = objective.terms(Step(made, Batch(x, step=step, pair=pair, shared=kept), draw, companion))
        step_gradients(terms, trained)
        for optimiser in optimisers.values():
            optimiser.step()
        for each in normalisations(companion):
            each.advance()
    mean, covariance = distances()
    assert mean < 0.3
    assert covariance < 0.6
    weight = layer.weight.detach().abs()
    assert weight[0, 0] > 3 * weight[0, 1]
    assert weight[1, 1] > 3 * weight[1, 0]
    with (
        torch.no_grad()
    ):  # the encoder has learned to undo the decoder: 1 is the error of one that knows nothing
        z = made.prior.sample(1000, draw)
        assert float(((made.encode(made.decode(z).mean).mean - z) ** 2).mean()) < 0.3


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match=r"inversion must not be negative, got -1\.0"):
        WeakGanObjective(inversion=-1.0)
    with pytest.raises(InputError, match="width must be at least 1"):
        WeakGanObjective(width=0)
    sprites = load_dataset("sprites", image_size=16)
    with pytest.raises(
        InputError, match="n_latents must be at least 5, got 4: objective 'weak-gan' has a latent for"
    ):
        plan(sprites, objective="weak-gan", n_latents=4)
    with pytest.raises(InputError, match="pairs need a dataset"):
        plan(from_arrays(np.zeros((20, 4))), objective="weak-gan")
    with pytest.raises(InputError, match="use posterior='diagonal'"):
        plan(sprites, objective="weak-gan", posterior="deterministic")
    assert WeakGanObjective().transition == Transition("share-one")
    assert WeakGanObjective(sharing="sets").transition == Transition("share")
    with pytest.raises(InputError, match=r"sharing must be 'each' or 'sets', got 'set'; did you mean 'sets'"):
        WeakGanObjective(sharing="set")


SPRITES = {"net": MlpNet((16,), (16,)), "n_latents": 6, "batch_size": 16, "probe_samples": 8, "device": "cpu"}


def test_by_default_a_pair_shares_one_factor_and_its_latent_and_no_other_latent():
    sprites = load_dataset("sprites", image_size=16)
    job = plan(sprites, "weak-gan", "mlp", 6)
    made = job.blueprint.build(seed=0)
    indices = np.random.default_rng(0).integers(len(sprites), size=600)
    given = Feed(sprites, job.objective, made, len(sprites), seed=0).batch(indices, step=0)
    assert (given.shared.sum(dim=1) == 1).all()
    # each of the five factors in turn: 600 · ⅕ within 5 binomial standard errors
    assert (given.shared.sum(dim=0) - 120).abs().max() < 5 * math.sqrt(600 * 0.2 * 0.8)
    z, partner = shared_draws(made, given.shared, torch.Generator().manual_seed(0))
    assert torch.equal(z == partner, torch.nn.functional.pad(given.shared, (0, 1)) > 0)
    partners, shared = job.objective.transition.draw(sprites, indices, generator(0, "pairs", "train", 0))
    assert np.array_equal(shared, given.shared.numpy() > 0)
    assert torch.equal(given.pair, made.place(torch.from_numpy(sprites.values(partners))))
    assert (sprites.factors(indices) == sprites.factors(partners))[shared].all()


def test_training_takes_its_adam_says_so_and_is_overruled():
    sprites = load_dataset("sprites", image_size=16)
    job = plan(sprites, "weak-gan", n_latents=5)
    assert "optimiser adam, learning rate 0.001, adam beta1 0.5 (the objective's)" in job.chosen
    made = job.blueprint.build(seed=0)
    companion = job.objective.companion(made, sprites, torch.Generator().manual_seed(0))
    _, optimisers = make_optimisers(made, companion, job.objective, job.settings)
    for optimiser in optimisers.values():
        assert optimiser.defaults["lr"] == 1e-3
        assert optimiser.defaults["betas"] == (0.5, 0.999)
        assert optimiser.defaults["eps"] == 1e-8
    slower = plan(sprites, "weak-gan", n_latents=5, learning_rate=1e-4, adversary_learning_rate=2e-4)
    assert (slower.settings.learning_rate, slower.settings.adam_beta1) == (1e-4, 0.5)
    assert "optimiser adam, adam beta1 0.5 (the objective's)" in slower.chosen
    assert slower.objective.companion_optimiser(companion.parameters()).defaults["lr"] == 2e-4
    other = plan(sprites, "weak-gan", n_latents=5, optimiser="sgd")
    assert (other.settings.learning_rate, other.settings.adam_beta1) == (1e-4, 0.9)  # as of any objective
    assert not any("the objective's" in words for words in other.chosen)


def test_other_objectives_train_and_are_named_as_before():
    sprites = load_dataset("sprites", image_size=16)
    job = plan(sprites, "vae", n_latents=5)
    record = job.describe("cpu")
    assert (job.settings.learning_rate, job.settings.adam_beta1) == (1e-4, 0.9)
    assert "adam_beta1" not in record["training"] | record["training_identity"]
    assert not {"normalises", "defaults_of_objective"} & (record["model"].keys() | record.keys())
    assert plan(sprites, "weak-gan", n_latents=5).describe("cpu")["model"]["normalises"] is True
    off = plan(sprites, "weak-gan", n_latents=5, batch_norm=False)
    assert "normalises" not in off.describe("cpu")["model"]
    with pytest.raises(InputError, match="adam_beta1 has no effect with optimiser='sgd'; leave it out"):
        plan(sprites, "vae", optimiser="sgd", adam_beta1=0.5)
    with pytest.raises(InputError, match="adam_beta1 must be at least 0 and below 1, got 1"):
        plan(sprites, "vae", adam_beta1=1.0)


def test_looking_at_it_more_often_changes_no_weight():
    sprites = load_dataset("sprites", image_size=16)
    digests = {
        train(sprites, "weak-gan", steps=6, log_every=each, validate_every=each, **SPRITES).digest
        for each in (1, 3)
    }
    assert len(digests) == 1


def test_what_follows_the_training_is_kept_with_it(tmp_path):
    """Running moments of the decoder, and singular vectors that are still close after so many steps."""
    sprites = load_dataset("sprites", image_size=16)
    made = train(sprites, "weak-gan", steps=40, out=tmp_path / "run", **SPRITES)
    state, _ = files.read_tensors(tmp_path / "run" / "checkpoints" / "step-40" / "state.safetensors")
    layers = [name.removesuffix(".left") for name in state if name.endswith(".left")]
    assert len(layers) == 4  # one of the net's encoder, two of the pair, and the last
    for layer in layers:
        left, weight, right = (
            state[f"{layer}.{name}"].double() for name in ("left", "layer.weight", "right")
        )
        weight = weight.flatten(1)
        # 0.2 % at most, measured; with the vectors of the start the second is 24 % off and the third has another sign.
        assert 1 - 1e-6 < float(torch.linalg.matrix_norm(weight, ord=2) / (left @ weight @ right)) < 1.02
    loaded = read_model(tmp_path / "run" / "model.safetensors")
    (moments,) = normalisations(loaded)
    assert float(moments.mean.abs().max()) > 0.01
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(loaded.decode(z).mean, made.decode(z).mean)
    alone = torch.cat([loaded.decode(row[None]).mean for row in z])
    torch.testing.assert_close(loaded.decode(z).mean, alone)


def test_neither_norm_changes_how_much_work_a_step_is_counted_as():
    sprites = load_dataset("sprites", image_size=16)
    work = set()
    for options in ({}, {"batch_norm": False}, {"spectral_norm": False}):
        job = plan(sprites, "weak-gan", "conv", 5, **options)
        made = job.blueprint.build(seed=0)
        before = made.digest
        work.add(work_of_step(made, job.objective, sprites, np.arange(4)))
        assert made.digest == before
    assert len(work) == 1


def test_validation_is_of_the_model_as_it_is_used():
    sprites = load_dataset("sprites", image_size=16)
    job = plan(sprites, "weak-gan", MlpNet((6,), (6,)), 5)
    made = job.blueprint.build(seed=0).train()
    companion = job.objective.companion(made, sprites, torch.Generator().manual_seed(0))
    probe = Probe(Feed(sprites, job.objective, made, 100, seed=0), np.arange(0, 7000, 700), companion)
    watched = probe.validation(job.objective, 0)
    assert made.training
    made.eval()
    assert watched == probe.validation(job.objective, 0)
    given = probe.feed.batch(probe.indices, 0, stream="probe")
    terms = job.objective.terms(Step(made.train(), given, probe._generator("validation"), companion))
    assert float(terms["generation"].per_batch.detach()) != watched["generation"]  # with moments of the batch
