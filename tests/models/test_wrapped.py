"""Models of other libraries: every customary output gives the same codes, and analyses take them like ours."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.estimators.evidence import log_evidence
from polariscope.geometry.loss_split import split_reconstruction
from polariscope.geometry.orthogonality import decoder_orthogonality
from polariscope.models.adapters.support.outputs import read_posterior
from polariscope.training.plan import plan

ROWS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
WEIGHTS = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32))


def mean_of(x):
    return x @ WEIGHTS


def log_variance_of(x):
    return -1 - torch.tanh(x @ WEIGHTS)


def draw_of(x):
    return mean_of(x) + torch.exp(0.5 * log_variance_of(x)) * torch.randn(len(x), 4)


@dataclasses.dataclass
class Output:
    embedding: torch.Tensor
    log_covariance: torch.Tensor


class Latent:
    """As diffusers has it: a distribution with mean, logvar, std and var."""

    def __init__(self, mean, log_variance):
        self.mean, self.logvar = mean, log_variance
        self.std, self.var = torch.exp(0.5 * log_variance), torch.exp(log_variance)

    def sample(self):
        raise AssertionError("we draw ourselves")


KINDS = {
    "pair": lambda x: (mean_of(x), log_variance_of(x)),
    "triple": lambda x: (mean_of(x), log_variance_of(x), draw_of(x)),
    "triple of the draw first": lambda x: (draw_of(x), mean_of(x), log_variance_of(x)),
    "arrays": lambda x: (mean_of(x).numpy(), log_variance_of(x).numpy()),
    "dict mu logvar": lambda x: {"mu": mean_of(x), "logvar": log_variance_of(x), "z": x},
    "dict mean variance": lambda x: {"mean": mean_of(x), "variance": torch.exp(log_variance_of(x))},
    "dict mean std": lambda x: {"mean": mean_of(x), "std": torch.exp(0.5 * log_variance_of(x))},
    "object": lambda x: Output(mean_of(x), log_variance_of(x)),
    "namespace": lambda x: SimpleNamespace(latent_dist=Latent(mean_of(x), log_variance_of(x))),
    "normal": lambda x: torch.distributions.Normal(mean_of(x), torch.exp(0.5 * log_variance_of(x))),
    "independent": lambda x: torch.distributions.Independent(
        torch.distributions.Normal(mean_of(x), torch.exp(0.5 * log_variance_of(x))), 1
    ),
    "image codes": lambda x: (mean_of(x).reshape(-1, 1, 2, 2), log_variance_of(x).reshape(-1, 1, 2, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_customary_output_gives_the_same_codes(kind):
    rep = ps.encode(KINDS[kind], ROWS)
    x = torch.from_numpy(ROWS)
    np.testing.assert_allclose(rep.mean, mean_of(x).numpy(), atol=1e-6)
    np.testing.assert_allclose(rep.variance, torch.exp(log_variance_of(x)).numpy(), rtol=1e-5)
    expected = ps.encode(KINDS["pair"], ROWS)
    np.testing.assert_allclose(rep.sampled, expected.sampled, atol=1e-5)
    np.testing.assert_allclose(rep.rate, expected.rate, rtol=1e-4, atol=1e-5)
    assert rep.code_shape == ((1, 2, 2) if kind == "image codes" else (4,))
    assert ps.diagnose(rep).has_note("channels") is (kind == "image codes")


def test_the_second_array_may_be_a_variance_or_a_standard_deviation():
    expected = ps.encode(KINDS["pair"], ROWS)
    for second, power in (("variance", 1.0), ("std", 0.5)):
        encoder = lambda x, power=power: (mean_of(x), torch.exp(power * log_variance_of(x)))  # noqa: E731
        rep = ps.encode(encoder, ROWS, second=second)
        np.testing.assert_array_equal(rep.mean, ps.encode(ps.wrap(encoder, second=second), ROWS).mean)
        np.testing.assert_allclose(rep.variance, expected.variance, rtol=1e-5)
        with pytest.raises(InputError, match=rf"{second} must not be negative.*looks like a log-variance"):
            ps.encode(ps.wrap(KINDS["pair"], second=second), ROWS)
    with pytest.raises(InputError, match=r"no second named 'sigma'"):
        ps.wrap(KINDS["pair"], second="sigma")
    with pytest.raises(InputError, match=r"variance reaches .* implausibly large"):
        ps.encode(lambda x: (mean_of(x), mean_of(x) * 0 + 100), ROWS)


@pytest.fixture(scope="module")
def ours():
    return (
        plan(ps.from_arrays(ROWS), net="mlp", n_latents=4, likelihood_variance=0.5).blueprint.build(3).eval()
    )


@pytest.fixture(scope="module")
def wrapped(ours):
    """Our own model, taken apart and wrapped as if it came from elsewhere."""

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = ours.encoder.trunk, ours.encoder.head

        def forward(self, x):
            q = self.head(self.body(x))
            return q.mean, q.log_variance

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = ours.decoder.trunk

        def forward(self, z):
            return SimpleNamespace(reconstruction=self.body(z))

    return ps.wrap(Encoder(), Decoder(), likelihood="gaussian", variance=0.5, shape=(6,))


def test_analyses_take_a_wrapped_model_like_ours(ours, wrapped):
    mine, theirs = (ps.encode(model, ROWS) for model in (ours, wrapped))
    for name in ("mean", "variance", "sampled", "rate"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(mine, name), rtol=1e-5, atol=1e-6)
    assert ps.diagnose(theirs).types == ps.diagnose(mine).types
    splits = [split_reconstruction(model, ROWS).total for model in (ours, wrapped)]
    assert splits[0] == pytest.approx(splits[1], rel=1e-5)
    distances = [decoder_orthogonality(model, mine.mean, n_points=20).value for model in (ours, wrapped)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-5)
    x = torch.from_numpy(ROWS[:5])
    with torch.inference_mode():
        z = ours.encode(x).mean
        torch.testing.assert_close(wrapped.decode(z).log_density(x), ours.decode(z).log_density(x))


def test_layers_are_compared_by_the_names_of_the_modules(ours, wrapped):
    found = ps.compare([ours, wrapped], ROWS, n_samples=100)
    names = found.layers_of[1]
    assert names[0] == "input"
    assert any(name.startswith("encoder/body") for name in names)
    assert [name for name in names if "/" not in name] == ["input", "mean", "variance", "sampled"]
    assert found.average().matching()["mean"][0] == pytest.approx(1, abs=1e-6)
    chosen = ps.wrap(
        wrapped.encoder, wrapped.decoder, likelihood="gaussian", shape=(6,), layers=["head.mean"]
    )
    assert ps.compare([chosen], ROWS, n_samples=100).layers == (
        *("input", "encoder/head.mean", "mean", "variance", "sampled"),
    )
    with pytest.raises(InputError, match="no layer named 'bodyy'"):
        ps.wrap(wrapped.encoder, layers=["bodyy"])


@pytest.mark.parametrize("likelihood", ["bernoulli", "bernoulli-logits", "auto"])
def test_probabilities_and_logits_are_the_same_likelihood(likelihood):
    weights = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    squash = (lambda x: x) if likelihood == "bernoulli-logits" else torch.sigmoid
    model = ps.wrap(KINDS["pair"], lambda z: squash(z @ weights), likelihood=likelihood, shape=(6,))
    z, x = torch.randn(8, 4), torch.rand(8, 6)
    expected = -nn.functional.binary_cross_entropy_with_logits(z @ weights, x, reduction="none").sum(1)
    torch.testing.assert_close(model.decode(z).log_density(x), expected, rtol=1e-4, atol=1e-4)
    if likelihood == "auto":
        assert "interpreted as probabilities: the likelihood is bernoulli" in model.notes[0]


@pytest.mark.usefixtures("unannotated")
def test_what_cannot_be_wrapped_is_refused_in_words():
    with pytest.raises(InputError, match="encoder must be a module or a function, got int"):
        ps.wrap(3)
    with pytest.raises(
        InputError, match=r"requires probabilities as outputs of the decoder.*bernoulli-logits"
    ):
        ps.wrap(KINDS["pair"], lambda z: z[:, :1].expand(-1, 6) + 5, likelihood="bernoulli", shape=(6,))
    with pytest.raises(InputError, match=r"must return observations of shape \(6,\), got \(4,\)"):
        ps.wrap(KINDS["pair"], lambda z: z, shape=(6,))
    with pytest.raises(InputError, match="it was wrapped without one"):
        ps.wrap(KINDS["pair"], shape=(6,)).decode(torch.zeros(1, 4))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_decoder_without_finite_values_is_refused(wrong):
    """A likelihood of NaN must not count as a latent that the decoder does not use."""
    for likelihood in ("auto", "gaussian", "bernoulli", "bernoulli-logits"):
        model = ps.wrap(KINDS["pair"], lambda z: torch.full((len(z), 6), wrong), likelihood=likelihood)
        with pytest.raises(InputError, match=r"decoder returned values that are not finite .*have diverged"):
            ps.diagnose(model, ROWS)


def test_the_jacobian_of_a_wrapped_decoder_is_computed_in_forward_mode():
    model = ps.wrap(KINDS["pair"], nn.Linear(4, 6), likelihood="gaussian", shape=(6,))
    assert decoder_orthogonality(model, ps.encode(model, ROWS).mean, n_points=20).value >= 0
    assert not any("forward derivative" in note for note in model.notes)


def test_codes_of_several_axes_reach_the_decoder_in_their_shape():
    seen = []

    def decoder(z):
        seen.append(tuple(z.shape[1:]))
        return z.flatten(1) @ torch.ones(4, 6)

    model = ps.wrap(KINDS["image codes"], decoder, likelihood="gaussian", shape=(6,))
    assert model.n_latents == 4
    assert model.decode(torch.zeros(3, 4)).mean.shape == (3, 6)
    assert set(seen) == {(1, 2, 2)}


def test_a_wrapped_model_says_what_it_is_and_its_digest_follows_its_weights(wrapped):
    assert "encoder Encoder; decoder Decoder, likelihood gaussian; observations of 6; 4 latents" in repr(
        wrapped
    )
    before = wrapped.digest
    weight = next(wrapped.encoder.parameters())
    with torch.no_grad():
        weight += 1
        assert wrapped.digest != before
        weight -= 1


class Noisy(nn.Module):
    """Dropout and batch normalisation, which differ between training and evaluation."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(self.first(x))).chunk(2, dim=1)

    def encode(self, x):
        return self(x)


@pytest.mark.parametrize("mode", ["eval", "train", "frozen"])
@pytest.mark.parametrize("how", ["module", "method", "wrapped"])
def test_modules_are_looked_at_in_evaluation_and_left_as_they_were(mode, how):
    torch.manual_seed(0)
    module = Noisy().train(mode != "eval")
    if mode == "frozen":
        module.norm.eval()
    before = [part.training for part in module.modules()]
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    given = {"module": module, "method": module.encode, "wrapped": ps.wrap(module)}[how]
    first, again = (ps.encode(given, ROWS).mean for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert [part.training for part in module.modules()] == before
    assert all(torch.equal(value, weights[name]) for name, value in module.state_dict().items())


def test_a_method_of_a_model_in_double_precision_gets_its_own_type():
    module = Noisy().double()
    assert ps.encode(module.encode, ROWS).mean.shape == (300, 4)


def test_the_evidence_of_a_noisy_model_is_that_of_its_evaluation():
    torch.manual_seed(0)
    decoder = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5)).double()
    model = ps.wrap(Noisy().double(), decoder, likelihood="gaussian")
    x = torch.from_numpy(ROWS[:20])
    whole, again = (log_evidence(model, x, 5, 0) for _ in range(2))
    torch.testing.assert_close(whole, again, rtol=0, atol=0)
    torch.testing.assert_close(log_evidence(model, x[:1], 5, 0), whole[:1])


def test_layers_are_those_before_an_activation_that_writes_in_place():
    def build(inplace):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(6, 8), nn.ReLU(inplace=inplace), nn.Linear(8, 8), nn.Unflatten(1, (2, 4))
        )

    nets = [ps.wrap(_Split(build(flag))) for flag in (False, True)]
    found = ps.compare(nets, ROWS, n_samples=100)
    scores = {name: score[0] for name, score in found.average().matching().items() if name != "sampled"}
    assert scores == pytest.approx(dict.fromkeys(scores, 1.0), abs=1e-6)


class _Split(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).unbind(1)


def test_auto_goes_over_to_a_gaussian_when_an_output_is_no_probability():
    model = ps.wrap(KINDS["pair"], lambda z: torch.relu(z @ torch.ones(4, 6)), shape=(6,))
    assert model.likelihood == "bernoulli"  # at zeros nobody can tell
    before = model.digest
    assert model.decode(torch.full((2, 4), 3.0)).mean.max() > 1
    assert model.likelihood == "gaussian"
    assert [note for note in model.notes if "likelihood" in note] == [
        "The decoder's outputs are not all in [0, 1]: the likelihood is gaussian."
    ]
    assert model.digest == before


@pytest.mark.usefixtures("unannotated")
@pytest.mark.parametrize("variance", [-1.0, 0.0, float("nan"), float("inf")])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(InputError, match=r"variance must be (positive|finite)"):
        ps.wrap(KINDS["pair"], variance=variance)


def test_what_means_nothing_is_refused_not_ignored():
    model = ps.wrap(KINDS["pair"], lambda z: torch.sigmoid(z @ torch.ones(4, 6)), shape=6)
    with pytest.raises(InputError, match="second is for functions"):
        ps.encode(model, ROWS, second="variance")
    with pytest.raises(InputError, match=r"a Bernoulli likelihood requires observations in \[0, 1\]"):
        log_evidence(model, torch.from_numpy(ROWS), 5, 0)
    split_reconstruction(ps.wrap(KINDS["pair"], lambda z: z @ torch.ones(4, 6)), ROWS)  # no shape given
    module = _Split(nn.Linear(6, 8))
    with pytest.raises(InputError, match="no layer named 'decoder/net'"):
        ps.wrap(module, layers=["decoder/net"])
    with pytest.raises(
        InputError,
        match=r"got 8 outputs, 0 of which could be codes; name them with polariscope.wrap\(model, outputs=",
    ):
        ps.report(module, ROWS, out="nowhere.html")


def test_parts_that_contradict_each_other_are_refused_and_those_that_agree_are_taken():
    mean, variance = torch.zeros(4, 2), torch.full((4, 2), 0.25)
    agreeing = {"mean": mean, "variance": variance, "logvar": variance.log(), "std": variance.sqrt()}
    assert torch.allclose(read_posterior(agreeing, 4).posterior.variance, variance)
    tiny = {"mean": mean, "variance": torch.zeros(4, 2), "logvar": torch.full((4, 2), -150.0)}  # 0 in float32
    assert read_posterior(tiny, 4).posterior.variance.max() == 0
    for name, wrong in (("logvar", variance), ("std", variance), ("logvar", variance.log()[:, :1])):
        with pytest.raises(InputError, match="do not agree"):
            read_posterior({"mean": mean, "variance": variance, name: wrong}, 4)


def test_what_the_second_array_is_cannot_be_said_of_outputs_that_say_it_themselves():
    mean, spread = torch.zeros(4, 2), torch.full((4, 2), 0.25)
    normal = torch.distributions.Normal(mean, spread)
    for output in ({"mean": mean, "variance": spread}, normal, torch.distributions.Independent(normal, 1)):
        with pytest.raises(InputError, match="second='std' is for pairs and triples"):
            read_posterior(output, 4, "std")
    assert torch.allclose(read_posterior((mean, spread), 4, "std").posterior.variance, spread**2)


@pytest.mark.usefixtures("unannotated")
def test_wrong_variances_and_shapes_are_refused_in_words():
    encoder = torch.nn.Linear(6, 4)

    def encode(x):
        return encoder(x).chunk(2, dim=1)

    for wrong in ("a", 0.0, float("nan")):
        with pytest.raises(InputError, match="variance must be"):
            ps.wrap(encode, variance=wrong)
    for shape in ("abc", (6, 0), (2.5,), True, {6}):
        with pytest.raises(InputError, match="shape must be positive integers, without the batch"):
            ps.wrap(encode, shape=shape)
    words = r"the encoder encode does not accept a batch of shape \(2, 5\) and type float32: RuntimeError.*reshapes"
    with pytest.raises(InputError, match=words):
        ps.wrap(encode, shape=5)
    with pytest.raises(InputError, match=r"the decoder Linear does not accept a batch of shape \(2, 2\)"):
        ps.wrap(encode, torch.nn.Linear(3, 6), shape=6)
    assert ps.wrap(encode, torch.nn.Linear(2, 6), shape=6).n_latents == 2


@pytest.mark.usefixtures("unannotated")
def test_a_tolerance_that_is_no_number_is_refused_in_words():
    codes = {"mean": np.zeros((4, 2)), "variance": np.ones((4, 2))}
    for alpha in ("a", None, float("nan"), True):
        with pytest.raises(InputError, match="alpha must be"):
            ps.diagnose(**codes, alpha=alpha)
    with pytest.raises(InputError, match="n_bootstrap must be an integer"):
        ps.diagnose(**codes, n_bootstrap=2.5)


def noisy(kind: str) -> nn.Sequential:
    layer = {"dropout": nn.Dropout(0.3), "batch norm": nn.BatchNorm1d(8), "nothing": nn.Identity()}[kind]
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), layer, nn.Linear(8, 4)).train()


@pytest.mark.parametrize("kind", ["dropout", "batch norm"])
def test_an_encoder_that_answers_differently_is_refused_with_the_remedy(kind: str) -> None:
    """A module is put into evaluation mode; that of a function stays in training mode."""
    data = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    module = noisy(kind)
    with pytest.raises(
        InputError,
        match=r"the encoder must return the same mean and variance .* differ by up to .*; .*eval\(\)",
    ):
        ps.encode(lambda x: module(x).chunk(2, dim=1), data)
    module.eval()
    ps.encode(lambda x: module(x).chunk(2, dim=1), data)


def test_a_draw_besides_mean_and_variance_can_differ_and_noise_in_the_mean_cannot() -> None:
    # The variances are close to 1, so few observations would not tell them from standard deviations.
    data = 10 * np.random.default_rng(0).normal(size=(1000, 6)).astype(np.float32)
    module = noisy("nothing").double()

    def with_draw(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, log_variance = module(x.double()).chunk(2, dim=1)
        return mean, log_variance, mean + torch.exp(log_variance / 2) * torch.randn_like(mean)

    def draw_as_mean(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _, log_variance, z = with_draw(x)
        return z, log_variance

    assert ps.encode(with_draw, data).n_samples == 1000
    with pytest.raises(InputError, match="means that differ by up to"):
        ps.encode(draw_as_mean, data)
    # A model that was tested on zeros, for which dropout does nothing, is checked on data as well.
    dropout = noisy("dropout")
    with pytest.raises(InputError, match="means that differ by up to"):
        ps.encode(ps.wrap(lambda x: dropout(x).chunk(2, dim=1), shape=(6,)), data)
