"""Training ends where theory says, and says what happened on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import polariscope as ps
from long_training import unchecked
from polariscope.core.errors import DivergedError, InputError
from polariscope.data.dataset import AbstractDataset
from polariscope.objectives import Term
from polariscope.objectives.vae import VaeObjective
from polariscope.storage.folder import RunFolder, read_log
from polariscope.training.loop import fit, gradient_norm
from polariscope.training.plan import plan
from polariscope.training.settings import TrainSettings
from polariscope.training.train import train

EIGENVALUES = (4.0, 2.0, 1.0, 0.5, 0.2, 0.1)


def gaussian_data(n_samples: int = 2000) -> AbstractDataset:
    return ps.load_dataset("gaussian", eigenvalues=EIGENVALUES, n_samples=n_samples)


@pytest.mark.parametrize(("beta", "gamma"), [(1.0, 0.3), (4.0, 0.075), (2.0, 0.4)])
@unchecked()
def test_a_linear_vae_ends_in_the_polarised_regime_known_in_closed_form(beta, gamma):
    """σ² = min(1, βγ/λ), KL = ½ log max(1, λ/βγ), active iff λ > βγ: objective, loop, encoder and diagnosis.

    The data have exactly the chosen sample covariance, and the learning rate decays to 0, so what is left is
    the noise of the last small steps: a few percent of a standard deviation of the log-variance.
    """
    data = gaussian_data()
    model = train(
        data, "beta", "linear", 6, beta=beta, likelihood="gaussian", variance=gamma, keep_units=True,
        steps=2500, batch_size=256, learning_rate=2e-2, schedule="cosine", train_fraction=0.98, seed=1,
    )  # fmt: skip
    representation = ps.encode(model, data, n_samples=None)
    regime = ps.diagnose(representation, alpha=0.1)

    eigenvalues = np.array(EIGENVALUES)
    variance = np.minimum(1, beta * gamma / eigenvalues)
    rate = 0.5 * np.log(np.maximum(1, eigenvalues / (beta * gamma)))
    np.testing.assert_allclose(np.sort(representation.variance.mean(0)), np.sort(variance), rtol=0.06)
    measured = np.array([latent.kl for latent in regime.latents])
    np.testing.assert_allclose(np.sort(measured), np.sort(rate), atol=0.03)
    # Var[μ] + σ² = 1 for every latent: the aggregate posterior is the prior.
    np.testing.assert_allclose(representation.mean.var(0) + representation.variance.mean(0), 1, atol=0.05)
    n_alive = int((eigenvalues > beta * gamma).sum())
    assert int((measured > 0.02).sum()) == n_alive
    assert regime.counts["passive"] == 6 - n_alive - int((np.abs(variance[:n_alive] - 1) <= 0.1).sum())
    assert regime.counts["active"] == int((variance <= 0.1).sum())


def test_training_is_the_same_to_the_byte_for_the_same_seed_and_differs_for_another(tmp_path):
    settings = {"net": "mlp", "steps": 30, "log_every": 10, "validate_every": 10}
    digests = [train(gaussian_data(300), seed=seed, **settings).digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_looking_more_often_changes_no_weight():
    rare = train(gaussian_data(300), net="mlp", steps=20, log_every=20, validate_every=20)
    often = train(gaussian_data(300), net="mlp", steps=20, log_every=1, validate_every=1)
    assert rare.digest == often.digest


def test_training_leaves_the_global_generators_alone():
    torch.manual_seed(7)
    np_state = np.random.get_state()[1].tolist()  # noqa: NPY002 (it is the legacy global state that is checked)
    before = torch.get_rng_state()
    train(gaussian_data(300), net="mlp", steps=3)
    assert torch.equal(before, torch.get_rng_state())
    assert np.random.get_state()[1].tolist() == np_state  # noqa: NPY002


def test_the_log_holds_named_terms_the_latents_and_the_regime(tmp_path):
    train(
        gaussian_data(300),
        "beta",
        "mlp",
        3,
        beta=2.0,
        steps=25,
        log_every=10,
        validate_every=20,
        out=tmp_path / "run",
    )
    log = read_log(tmp_path / "run")
    assert [line["step"] for line in log] == [10, 20, 25]
    for line in log:
        weighted = sum(line["weights"][name] * value for name, value in line["terms"].items())
        assert line["loss"] == pytest.approx(weighted, rel=1e-5)
        assert line["weights"] == {"reconstruction": 1.0, "rate": 2.0}
        assert len(line["kl"]) == len(line["variance"]) == 3
        assert line["trace"] == pytest.approx(sum(line["variance"]))
        assert line["active"] + line["mixed"] + line["passive"] == 3
    assert [("validation" in line) for line in log] == [False, True, True]


def test_a_line_of_the_log_is_the_mean_over_the_steps_since_the_last(tmp_path):
    every = tmp_path / "every"
    train(gaussian_data(300), net="mlp", steps=20, log_every=1, validate_every=20, out=every)
    train(gaussian_data(300), net="mlp", steps=20, log_every=10, validate_every=20, out=tmp_path / "tenth")
    singles = np.array([line["loss"] for line in read_log(every)])
    means = [line["loss"] for line in read_log(tmp_path / "tenth")]
    np.testing.assert_allclose(means, singles.reshape(2, 10).mean(1), rtol=1e-12)


def test_a_diverged_run_names_the_term_and_keeps_the_last_good_checkpoint(tmp_path):
    job = plan(gaussian_data(300), net="linear", steps=50, checkpoint_every=4)
    model = job.blueprint.build(0)

    def break_the_decoder(step, line):
        if step == 10:
            with torch.no_grad():
                model.decoder.trunk.layers[0][0].bias.fill_(1e30)  # its square is beyond float32

    with RunFolder(tmp_path / "run") as run:
        run.begin(job.describe("cpu"))
        expected = (
            "training diverged at step 11: the term 'reconstruction' is not finite. "
            "The last good checkpoint is step 8 in"
        )
        with pytest.raises(DivergedError, match=expected):
            fit(model, job.objective, job.data, job.split, job.settings, run, (break_the_decoder,))
    assert run.checkpoints.steps == [4, 8]
    assert not run.model_file.exists()


def test_divergence_of_the_gradient_alone_is_found_and_the_checkpoint_named(tmp_path):
    with pytest.raises(
        DivergedError, match=r"The last good checkpoint is step \d+ in .*Try a lower learning rate"
    ):
        train(
            gaussian_data(300), "beta", "mlp", 3, beta=1.0, steps=400, optimiser="sgd", learning_rate=1e4,
            checkpoint_every=1, out=tmp_path / "run",
        )  # fmt: skip


def test_tensorboard_gets_the_terms_and_the_counts(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(
        gaussian_data(300),
        net="mlp",
        steps=20,
        log_every=10,
        validate_every=10,
        out=tmp_path / "run",
        tensorboard=True,
    )
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    log = read_log(tmp_path / "run")
    for name, key in (("terms/rate", "rate"), ("terms/reconstruction", "reconstruction")):
        logged = [event.value for event in events.Scalars(name)]
        np.testing.assert_allclose(logged, [line["terms"][key] for line in log], rtol=1e-6)
    assert {"latents/active", "latents/mixed", "latents/passive", "validation/rate"} <= set(
        events.Tags()["scalars"]
    )


def test_clipping_bounds_the_step():
    data = gaussian_data(300)
    start = plan(data, net="linear").blueprint.build(0)
    model = train(data, net="linear", steps=1, optimiser="sgd", learning_rate=1.0, clip_gradient=1e-3)
    pairs = zip(model.parameters(), start.parameters(), strict=True)
    moved = torch.cat([(after - before).detach().flatten() for after, before in pairs])
    assert float(moved.norm()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_schedules_start_high_and_end_where_they_should(schedule):
    settings = TrainSettings(steps=100, learning_rate=1.0, schedule=schedule, warmup_steps=10)
    rates = [settings.learning_rate_at(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1.0)
    assert rates[100] == pytest.approx(1.0 if schedule == "constant" else 0.0, abs=1e-12)


def test_epochs_become_steps_over_the_training_split():
    job = plan(gaussian_data(1000), net="linear", epochs=2, batch_size=30)
    assert job.settings.steps == 2 * (900 // 30)


@pytest.mark.usefixtures("unannotated")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"betta": 3}, r"no option named 'betta'.*Did you mean 'beta'\?"),
        ({"objective": "bета"}, "no objective named"),
        ({"steps": 0}, "steps must lie between 1 and 1,000,000,000, got 0"),
        (
            {"steps": "many"},
            "option steps of training must be an integer, at least 1 and at most 1,000,000,000, got 'many'",
        ),
        ({"learning_rate": -1}, "learning_rate must be positive, got -1"),
        ({"beta": -2}, "beta must not be negative, got -2"),
        ({"n_latents": 0}, "n_latents must be at least 1 and at most 1,000,000, got 0"),
        ({"net": "conv"}, "net 'conv' requires images, got flat rows of 6 features"),
        ({"likelihood": "bernoulli"}, r"requires values in \[0, 1\]"),
        ({"device": "gpu"}, "device must be auto, or one of cpu, cuda, mps that this machine has, got 'gpu'"),
        ({"train_fraction": 1.5}, "train_fraction must be above 0 and at most 1, got 1.5"),
        ({"epochs": 1, "steps": 5}, "steps and epochs both set the length"),
        ({"n_latents": 2.5}, "n_latents must be an integer, got 2.5"),
        ({"net": 3}, "net must be a name, a mapping with a 'name', or an object of the family, got 3"),
        ({"likelihood": None}, "likelihood must be a name"),
        ({"device": 7.5}, "device must be auto"),
        ({"validate_every": 150}, "validate_every must be a multiple of log_every"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_written(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        train(gaussian_data(100), out=tmp_path / "run", **{"objective": "beta", "net": "linear", **options})
    assert not (tmp_path / "run").exists()


def test_numbers_of_numpy_are_numbers(tmp_path):
    data = ps.load_dataset("gaussian", n_samples=np.int64(300))
    model = train(
        data, ps.objectives["beta"](beta=np.float64(2)), "mlp", np.int64(3), steps=2, out=tmp_path / "run"
    )
    assert model.digest == train(gaussian_data_default(300), "beta", "mlp", 3, beta=2.0, steps=2).digest


def gaussian_data_default(n_samples: int) -> AbstractDataset:
    return ps.load_dataset("gaussian", n_samples=n_samples)


def test_the_term_that_blew_up_is_named_even_when_a_rare_draw_did_it():
    class RareObjective(VaeObjective):
        def terms(self, step):
            draw = torch.rand((), generator=step.generator)
            return {
                **super().terms(step),
                "rare": Term(torch.where(draw > 0.8, torch.inf, 0.0)),
            }

    job = plan(gaussian_data(300), net="linear", steps=200)
    with pytest.raises(DivergedError, match="the term 'rare' is not finite"):
        fit(job.blueprint.build(0), RareObjective(), job.data, job.split, job.settings)


def test_an_array_is_taken_as_it_is_and_anything_else_refused():
    rows = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    assert train(rows, steps=2).digest == train(ps.from_arrays(rows), steps=2).digest
    with pytest.raises(InputError, match=r"use load_dataset\('sprites'\)"):
        train("sprites")


@pytest.mark.parametrize(("log_every", "every"), [(70, 1050), (100, 1000), (2500, 2500), (1, 1000)])
def test_how_often_is_validated_follows_from_how_often_is_logged(log_every, every):
    """A value that nobody gave is never the reason for a refusal."""
    job = plan(gaussian_data(300), net="linear", steps=50, log_every=log_every)
    assert job.settings.validate_every == every
    assert (
        plan(
            gaussian_data(300), net="linear", steps=50, log_every=7, validate_every=14
        ).settings.validate_every
        == 14
    )
    with pytest.raises(InputError, match="validate_every must be a multiple of log_every, got 10 and 7"):
        plan(gaussian_data(300), net="linear", steps=50, log_every=7, validate_every=10)


def test_the_norm_of_the_gradient_is_pytorchs() -> None:
    draw = torch.Generator().manual_seed(0)
    weights = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((7, 5), (3,), ())]
    assert gradient_norm(weights, None) == 0  # none has a gradient yet
    for weight in weights[:2]:
        weight.grad = torch.randn(weight.shape, generator=draw)
    expected = torch.nn.utils.get_total_norm([weight.grad for weight in weights[:2]])
    assert torch.equal(gradient_norm(weights, None), expected)
    gradient_norm(weights, 0.5)
    assert gradient_norm(weights, None) == pytest.approx(0.5, rel=1e-4)


@unchecked()
def test_a_folder_that_is_not_a_path_is_refused():
    with pytest.raises(InputError, match="out must be the path of a run folder, got 3"):
        train(gaussian_data(100), n_latents=2, steps=2, out=3)  # type: ignore[arg-type]
