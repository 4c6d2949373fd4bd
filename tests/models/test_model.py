"""A model: made from a blueprint, kept with it on disk."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import resource
from pathlib import Path

import pytest
import torch

from oracles import TinyDataset
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.model import Blueprint, Model
from polariscope.models.nets.conv import ConvNet
from polariscope.models.nets.fc import FcNet
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.runs.run import load_model

FLAT = Blueprint(
    net=MlpNet(encoder_widths=(6,), decoder_widths=(5, 4)),
    posterior=DiagonalPosterior(),
    prior=IsotropicPrior(scale=2.0),
    likelihood=GaussianLikelihood(variance=0.3, learned="shared"),
    n_latents=3,
    shape=(5,),
    initialisation="kaiming",
)
IMAGES = dataclasses.replace(
    FLAT, net=ConvNet(kernel34=4), likelihood=BernoulliLikelihood(), shape=(2, 16, 32)
)
BLUEPRINTS = {
    "flat": FLAT,
    "images": IMAGES,
    "fc": dataclasses.replace(FLAT, net=FcNet(width=4), shape=(1, 3, 2)),
    "generator": dataclasses.replace(IMAGES, normalises=True),
    "linear": dataclasses.replace(FLAT, net=LinearNet(), likelihood=GaussianLikelihood(learned="per-value")),
}


def observations(blueprint: Blueprint) -> torch.Tensor:
    return torch.from_numpy(TinyDataset(blueprint.shape, n_samples=4).values(range(4)))


def same_weights(a: Model, b: Model) -> bool:
    return files.digest_tensors(a.state_dict()) == files.digest_tensors(b.state_dict())


@pytest.fixture(params=sorted(BLUEPRINTS))
def blueprint(request: pytest.FixtureRequest) -> Blueprint:
    return BLUEPRINTS[request.param]


def test_a_blueprint_comes_back_from_its_json_record(blueprint: Blueprint) -> None:
    record = json.loads(json.dumps(blueprint.describe(), allow_nan=False))
    assert Blueprint.from_record(record) == blueprint


def test_the_seed_decides_the_weights(blueprint: Blueprint) -> None:
    assert same_weights(blueprint.build(seed=3), blueprint.build(seed=3))
    assert not same_weights(blueprint.build(seed=3), blueprint.build(seed=4))


def test_building_leaves_the_global_generator_alone(blueprint: Blueprint) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    blueprint.build(seed=0)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_global_generator_does_not_touch_the_weights(blueprint: Blueprint) -> None:
    torch.manual_seed(5)
    first = blueprint.build(seed=0)
    torch.manual_seed(6)
    assert same_weights(first, blueprint.build(seed=0))


def test_no_two_layers_share_their_draw(blueprint: Blueprint) -> None:
    weights = [w for w in blueprint.build(seed=0).parameters() if w.ndim > 1]
    starts = {tuple(w.detach().flatten()[:2].mul(w.shape[1] ** 0.5).tolist()) for w in weights}
    assert len(starts) == len(weights)


def test_saving_and_loading_is_exact(tmp_path: Path, blueprint: Blueprint) -> None:
    model = blueprint.build(seed=1)
    model.save(tmp_path / "model.safetensors", step=7)
    loaded = load_model(tmp_path)
    assert same_weights(model, loaded)
    assert loaded.blueprint == blueprint
    assert loaded.digest == model.digest
    assert loaded.step == 7
    assert loaded.folder is None  # a model alone is no run
    assert not loaded.training
    x = observations(blueprint)
    with torch.no_grad():
        # The layout in memory may differ, so sums may be taken in another order.
        torch.testing.assert_close(loaded.encode(x).mean, model.encode(x).mean, rtol=1e-5, atol=1e-6)


def test_a_model_in_double_precision_stays_so(tmp_path: Path) -> None:
    model = FLAT.build(seed=1).double()
    model.save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path)
    assert loaded.dtype == torch.float64
    assert loaded.digest == model.digest


def test_buffers_that_follow_from_the_blueprint_are_restored(tmp_path: Path) -> None:
    fixed = dataclasses.replace(FLAT, likelihood=GaussianLikelihood(variance=0.25))
    fixed.build(seed=0).save(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path)
    assert float(loaded.decoder.head.log_variance.exp()) == pytest.approx(0.25, rel=1e-6)
    assert loaded.prior.normal()[1].exp().tolist() == pytest.approx([4.0] * 3, rel=1e-6)


def test_the_digest_follows_weights_and_architecture() -> None:
    model = FLAT.build(seed=0)
    digests = {model.digest, FLAT.build(seed=1).digest}
    digests.add(dataclasses.replace(FLAT, prior=IsotropicPrior(scale=3.0)).build(seed=0).digest)
    digests.add(dataclasses.replace(FLAT, initialisation="glorot").build(seed=0).digest)
    with torch.no_grad():
        weight = next(model.parameters())
        weight.view(-1)[0] = torch.nextafter(weight.view(-1)[0], torch.tensor(9.0))
    digests.add(model.digest)
    assert len(digests) == 5
    assert FLAT.build(seed=1).digest in digests


def test_a_place_without_a_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"is not a run folder or a model file; train one with polariscope.train"
    ):
        load_model(tmp_path)
    with pytest.raises(InputError, match="is not a run folder or a model file"):
        load_model(tmp_path / "nowhere")


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    FLAT.build(seed=0).save(file)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]):
        file.write_bytes(damaged)
        with pytest.raises(PolariscopeError, match="is damaged"):
            load_model(tmp_path)


def test_a_blueprint_changed_by_hand_is_refused(tmp_path: Path) -> None:
    # Were it not in the hash, another variance would load without a word.
    file = tmp_path / "model.safetensors"
    dataclasses.replace(FLAT, likelihood=GaussianLikelihood(variance=0.3)).build(seed=0).save(file)
    changed = re.sub(rb'(variance[\\"]+: 0\.)3', rb"\g<1>4", file.read_bytes())
    assert changed != file.read_bytes()
    file.write_bytes(changed)
    with pytest.raises(PolariscopeError, match="its hash does not match"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "metadata",
    [
        {"key": "a representation"},
        {"blueprint": None},
        {"blueprint": {"net": {"name": "conv"}}},
        {"blueprint": {**FLAT.describe(), "net": {"name": "from-the-future"}}},
        {"blueprint": {**FLAT.describe(), "n_latents": 4}},
    ],
)
def test_a_file_that_holds_no_model_of_ours_is_refused_by_name(tmp_path: Path, metadata: dict) -> None:
    file = tmp_path / "model.safetensors"
    files.write_tensors(file, FLAT.build(seed=0).state_dict(), metadata)
    with pytest.raises(
        PolariscopeError, match=r"model\.safetensors was written by another version .* or is not a model"
    ):
        load_model(tmp_path)


class Bomb:
    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was opened",))


def test_loading_never_opens_a_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(PolariscopeError, match="is damaged"):
        load_model(file)
    torch.save({"weight": torch.ones(2)}, file)
    for module, name in ((torch, "load"), (pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("a pickle was opened"))
    with pytest.raises(PolariscopeError, match="is damaged"):
        load_model(file)
    FLAT.build(seed=0).save(file)
    load_model(file)


def test_activations_come_in_network_order_and_are_those_of_a_forward_pass(blueprint: Blueprint) -> None:
    model, x = blueprint.build(seed=0), observations(blueprint)
    with torch.no_grad():
        found = dict(
            model.activations(
                x, torch.randn(len(x), model.n_latents, generator=torch.Generator().manual_seed(2))
            )
        )
        q = model.encode(x)
        z = q.sample(torch.Generator().manual_seed(2))
        output = model.decoder.trunk(z)
    assert tuple(found) == model.layer_names
    assert torch.equal(found["input"], x)
    assert torch.equal(found["mean"], q.mean)
    assert torch.equal(found["variance"], q.variance)
    assert torch.equal(found["sampled"], z)
    assert torch.equal(found[model.layer_names[-1]], output)
    encoder = [name for name in found if name.startswith("encoder/")]
    assert encoder == [f"encoder/{number + 1}" for number in range(len(model.encoder.trunk.layers))]
    layer = x
    for name, module in zip(encoder, model.encoder.trunk.layers, strict=True):
        layer = module(layer)
        assert torch.equal(found[name], layer)


def test_a_batch_is_placed_in_the_models_type_and_layout() -> None:
    model = IMAGES.build(seed=0).double()
    placed = model.place(observations(IMAGES))
    assert placed.dtype == torch.float64
    assert placed.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(placed, observations(IMAGES).double())
    assert FLAT.build(seed=0).place(observations(FLAT)).is_contiguous()


@pytest.mark.parametrize("n_latents", [0, -2])
def test_a_model_without_latents_is_refused(n_latents: int) -> None:
    with pytest.raises(
        InputError, match=f"n_latents must be at least 1 and at most 1,000,000, got {n_latents}"
    ):
        dataclasses.replace(FLAT, n_latents=n_latents)


def test_a_small_file_that_declares_a_huge_model_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    huge = dataclasses.replace(FLAT, net=MlpNet(encoder_widths=(30_000, 30_000), decoder_widths=(5, 4)))
    files.write_tensors(file, FLAT.build(seed=0).state_dict(), {"blueprint": huge.describe()})  # 3.6 GB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PolariscopeError, match=r"encoder\.\S+ must have the shape|differ in encoder"):
        load_model(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # in kB


def test_weights_of_another_type_are_not_a_model(tmp_path: Path) -> None:
    """Loading would turn integers into floats, so a file of integers would be diagnosed like a model."""
    blueprint = Blueprint(
        LinearNet(), DiagonalPosterior(), IsotropicPrior(), GaussianLikelihood(), n_latents=2, shape=(4,)
    )
    blueprint.build(seed=0).save(tmp_path / "model.safetensors")
    tensors, header = files.read_tensors(tmp_path / "model.safetensors")
    for kind in (torch.int32, torch.float16):
        weights = {**tensors, "encoder.head.mean.weight": tensors["encoder.head.mean.weight"].to(kind)}
        files.write_tensors(tmp_path / "other.safetensors", weights, header)
        with pytest.raises(PolariscopeError, match=f"encoder.head.mean.weight is {kind}, and torch.float32"):
            load_model(tmp_path / "other.safetensors")
    whole = {name: tensor.to(torch.int64) for name, tensor in tensors.items()}
    files.write_tensors(tmp_path / "other.safetensors", whole, header)
    with pytest.raises(PolariscopeError, match=r"is not a model .*torch\.int64"):
        load_model(tmp_path / "other.safetensors")
