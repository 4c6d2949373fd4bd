"""Contract of every objective."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike
from torch import nn

from polariscope.core.errors import InputError
from polariscope.core.options import build, options_of, to_record
from polariscope.data.dataset import AbstractGridDataset
from polariscope.models.model import Model
from polariscope.models.nets import AbstractNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.objectives import AbstractObjective, Step, Terms, objective, total
from polariscope.storage.folder import RunFolder
from polariscope.testing.contract import AbstractContract, each
from polariscope.testing.members import assert_is_a_good_member, label, variants
from polariscope.training.feed import Feed
from polariscope.training.loop import make_optimisers, step_gradients
from polariscope.training.plan import plan
from polariscope.training.settings import TrainSettings
from polariscope.training.train import train

N_SAMPLES, N_LATENTS = 8, 3
N_TRAIN = 54


@dataclasses.dataclass(frozen=True)
class TinyGrid(AbstractGridDataset):
    """Sixty observations of any shape with a factor of each kind, as input for every objective."""

    observation: tuple[int, ...] = (5,)

    factor_names = ("colour", "size", "angle")
    factor_sizes = (3, 4, 5)
    factor_kinds = ("categorical", "ordinal", "cyclic")
    name = "tiny-grid"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.observation

    def values(self, indices: ArrayLike | int) -> np.ndarray:
        everything = np.random.default_rng(0).random((len(self), *self.observation), dtype=np.float32)
        return everything[self.check_indices(indices)]


DATA = {"flat": TinyGrid(), "image": TinyGrid((1, 16, 16))}
SMOOTH = MlpNet((6,), (6,), "tanh")


def changed(recipe: AbstractObjective, **options: float | int) -> AbstractObjective:
    """Return the objective with other options."""
    return build(objective, {**to_record(recipe, objective), **options})


def narrow(recipe: AbstractObjective) -> AbstractObjective:
    """Return the objective with a small companion, since the contract does not depend on its width."""
    return changed(recipe, width=8) if hasattr(recipe, "width") else recipe


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """An objective with the model, the companion network and the feed of the data."""

    recipe: AbstractObjective
    model: Model
    companion: nn.Module | None
    feed: Feed

    def terms(self, seed: int = 0, step: int = 0) -> Terms:
        # Spread over the grid, so every factor varies within the batch.
        indices = np.arange(0, 7 * N_SAMPLES, 7)
        batch = self.feed.batch(indices, step)
        return self.recipe.terms(Step(self.model, batch, torch.Generator().manual_seed(seed), self.companion))

    @property
    def parts(self) -> dict[str, list[nn.Parameter]]:
        """Weights by network; networks without weights are left out."""
        modules = {
            "encoder": self.model.encoder,
            "decoder": self.model.decoder,
            "prior": self.model.prior,
            "companion": self.companion,
        }
        parameters_of = {
            name: list(module.parameters()) for name, module in modules.items() if module is not None
        }
        return {name: parameters for name, parameters in parameters_of.items() if parameters}

    @property
    def has_adversary(self) -> bool:
        return self.companion is not None and self.recipe.companion_is_adversary


def prepare(recipe: AbstractObjective, kind: str, net: AbstractNet | None = None) -> Case:
    """Return an objective with a model, a companion and a feed."""
    default = "conv" if kind == "image" else MlpNet((6,), (6,))
    # The estimator 'exact' requires all observations in one batch.
    job = plan(DATA[kind], recipe, net or default, N_LATENTS, batch_size=len(DATA[kind]))
    model = job.blueprint.build(seed=0, data=job.data).double()
    companion = recipe.companion(model, job.data, torch.Generator().manual_seed(0))
    return Case(recipe, model, companion, Feed(job.data, recipe, model, N_TRAIN, seed=0))


def name_of(case: Case) -> str:
    """Return the name of a case in the list of tests."""
    return f"{'image' if len(case.feed.data.shape) == 3 else 'flat'}-{label(case.recipe)}"


@functools.cache
def prepared(recipe: AbstractObjective, kind: str) -> Case:
    """Return a case that is shared by all tests that do not change it."""
    return prepare(recipe, kind)


def recipes(contract: AbstractContract) -> list[AbstractObjective]:
    """Return every choice of every option of the members."""
    return [narrow(recipe) for recipe in variants(objective, contract.names)]


def members(contract: AbstractContract) -> list[AbstractObjective]:
    """Return the members with their defaults."""
    return [narrow(build(objective, name)) for name in contract.names]


def with_density(contract: AbstractContract) -> list[AbstractObjective]:
    """Return the members whose rate requires the density of a posterior."""
    return [recipe for recipe in members(contract) if recipe.needs_density]


def flat(contract: AbstractContract) -> list[Case]:
    """Return every choice of every option on flat rows, for checks that depend on options but not on the data."""
    return [prepared(recipe, "flat") for recipe in recipes(contract)]


def once(contract: AbstractContract) -> list[Case]:
    """Return every member on flat rows, for checks that depend neither on options nor on the data."""
    return [prepared(recipe, "flat") for recipe in members(contract)]


def cases(contract: AbstractContract) -> list[Case]:
    """Return every choice of every option on flat rows, and every member with its defaults on images."""
    return [*flat(contract), *(prepared(recipe, "image") for recipe in members(contract))]


def with_companion(contract: AbstractContract) -> list[Case]:
    """Return the cases that train a second network."""
    inherited = AbstractObjective.companion
    return [case for case in cases(contract) if type(case.recipe).companion is not inherited]


def once_or_with_companion(contract: AbstractContract) -> list[Case]:
    """Return the members on flat rows, and all cases with a companion."""
    selected = {*once(contract), *with_companion(contract)}
    return [case for case in cases(contract) if case in selected]


def directional_derivatives(
    terms: Callable[[], Terms], parameters: list[nn.Parameter], seed: int, step: float = 1e-6
) -> tuple[dict[str, float | None], dict[str, float]]:
    """Differentiate each term by backpropagation (None if it does not reach the weights) and by difference."""
    draw = torch.Generator().manual_seed(seed)
    direction = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in parameters]
    analytic: dict[str, float | None] = {}
    for name, term in terms().items():
        analytic[name] = None
        if term.value.requires_grad:
            gradients = torch.autograd.grad(term.per_batch, parameters, retain_graph=True, allow_unused=True)
            if any(gradient is not None for gradient in gradients):
                analytic[name] = sum(
                    float((g * d).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None
                )

    def shifted(sign: float) -> dict[str, float]:
        with torch.no_grad():
            for p, d in zip(parameters, direction, strict=True):
                p.add_(d, alpha=sign * step)
            values = {name: float(term.per_batch) for name, term in terms().items()}
            for p, d in zip(parameters, direction, strict=True):
                p.sub_(d, alpha=sign * step)
        return values

    above, below = shifted(1.0), shifted(-1.0)
    return analytic, {name: (above[name] - below[name]) / (2 * step) for name in above}


class KilledError(Exception):
    """Error that simulates a crash of the machine."""


class ObjectiveContract(AbstractContract):
    """Contract of every objective, with its model, its feed and its companion network."""

    def test_it_is_documented_built_by_name_and_kept_as_json(self, name: str) -> None:
        assert_is_a_good_member(objective, name)

    @each("case", cases, ids=name_of)
    def test_the_loss_is_one_finite_number_at_every_step(self, case: Case) -> None:
        # At the start, and after every schedule.
        for step in (0, 1_000_000):
            loss = total(case.terms(step=step))
            assert loss.shape == ()
            assert torch.isfinite(loss)

    @each("case", cases, ids=name_of)
    def test_after_its_schedule_the_loss_does_not_depend_on_the_step(self, case: Case) -> None:
        """Early stopping compares losses after ``schedule_steps``; before that, a schedule can make them differ."""
        batch = case.feed.batch(np.arange(0, 7 * N_SAMPLES, 7), 0)

        def loss(step: int) -> float:
            at = dataclasses.replace(batch, step=step)
            noise = torch.Generator().manual_seed(0)
            return float(total(case.recipe.terms(Step(case.model, at, noise, case.companion))).detach())

        end = case.recipe.schedule_steps
        assert loss(end) == loss(10 * end + 1_000_000)
        assert (loss(0) != loss(end)) == (end > 0)

    @each("case", cases, ids=name_of)
    def test_a_loss_to_monitor_is_there_unless_it_is_declared_otherwise(self, case: Case) -> None:
        assert case.recipe.is_adversarial == case.has_adversary
        if case.recipe.is_adversarial:
            assert ("reconstruction" in case.terms()) == case.recipe.has_held_out_loss
        else:
            assert case.recipe.has_held_out_loss

    @each("case", cases, ids=name_of)
    def test_terms_are_per_sample_per_latent_or_per_batch(self, case: Case) -> None:
        terms = case.terms()
        for name, term in terms.items():
            assert term.value.shape in {(), (N_SAMPLES,), (N_SAMPLES, N_LATENTS)}, name
            assert torch.isfinite(term.value).all(), name
            assert term.value.dtype == torch.float64, name
        if "reconstruction" in terms:
            assert terms["reconstruction"].value.shape == (N_SAMPLES,)
        if "rate" in terms:
            assert terms["rate"].value.shape == (N_SAMPLES, N_LATENTS)

    @each("case", once, ids=name_of)
    def test_the_loss_is_the_weighted_sum_of_its_terms(self, case: Case) -> None:
        """The sum is the same code for every objective; only the kinds of its terms differ between members."""
        terms = case.terms()
        for part in ("model", "companion"):
            selected = [term for term in terms.values() if term.trains == part]
            if not selected:
                continue
            expected = sum(
                term.weight * float(term.value.detach().sum()) / (N_SAMPLES if term.value.ndim else 1)
                for term in selected
            )
            assert float(total(terms, part).detach()) == pytest.approx(expected, rel=1e-11, abs=1e-11)

    @each("case", once_or_with_companion, ids=name_of)
    def test_only_an_adversary_has_terms_of_its_own(self, case: Case) -> None:
        has_own = any(term.trains == "companion" for term in case.terms().values())
        assert has_own == case.has_adversary

    @each("case", cases, ids=name_of)
    def test_the_gradient_reaches_every_network_that_is_trained(self, case: Case) -> None:
        terms = case.terms()
        for name in {"encoder", "decoder"} & case.parts.keys():
            all_gradients = torch.autograd.grad(
                total(terms), case.parts[name], retain_graph=True, allow_unused=True
            )
            gradients = [gradient for gradient in all_gradients if gradient is not None]
            assert all(torch.isfinite(gradient).all() for gradient in gradients)
            assert any((gradient != 0).any() for gradient in gradients), name
        companion_weights = (
            [] if case.companion is None or case.has_adversary else list(case.companion.parameters())
        )
        for name, term in terms.items():
            if term.weight and term.trains == "model":
                trained = [*case.model.parameters(), *companion_weights]
                of_term = torch.autograd.grad(term.per_batch, trained, retain_graph=True, allow_unused=True)
                assert any(gradient is not None for gradient in of_term), (
                    f"{name} has a weight and trains nothing"
                )

    @each("case", once, ids=name_of)
    def test_a_decoder_is_there_where_the_objective_trains_one(self, case: Case) -> None:
        decided_by_the_class = {"trains_decoder", "companion_is_adversary"}
        assert not decided_by_the_class & options_of(type(case.recipe)).keys()
        assert (case.model.decoder is not None) == case.recipe.trains_decoder

    @each("recipe", recipes, ids=label)
    def test_the_gradient_of_every_term_is_that_of_its_value(self, recipe: AbstractObjective) -> None:
        """Check along a random direction of each network's weights, unless the term does not depend on that network.

        The net is smooth and the weights are moved from their initial values: a difference across the kink of a ReLU is
        not a derivative, and initial layers without bias put the input 0 exactly on it. A kernel width that follows the
        batch is a constant for the gradient by design, so it is constant here.
        """
        if hasattr(recipe, "kernel_width"):
            recipe = changed(recipe, kernel_width=1.0)
        case = prepare(recipe, "flat", SMOOTH)
        draw = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in (p for parameters in case.parts.values() for p in parameters):
                parameter.add_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64), alpha=0.1)
        checked = set()
        for seed, (part, parameters) in enumerate(case.parts.items()):
            analytic, difference = directional_derivatives(case.terms, parameters, seed)
            for name, slope in analytic.items():
                if slope is not None:
                    # Rounding of about 100 nats over a step of 1e-6 is about 1e-8; the h² error is about 1e-10.
                    assert slope == pytest.approx(difference[name], rel=1e-6, abs=1e-6), (name, part)
                    checked.add((name, part))
        assert any(part == "encoder" for _, part in checked)

    @each("case", with_companion, ids=name_of)
    def test_an_adversary_does_not_see_the_model_and_a_helper_is_trained_with_it(self, case: Case) -> None:
        assert case.companion is not None
        terms = case.terms()
        weights, companion_weights = list(case.model.parameters()), list(case.companion.parameters())
        if not case.has_adversary:
            gradients = torch.autograd.grad(total(terms), companion_weights, allow_unused=True)
            assert any(gradient is not None and (gradient != 0).any() for gradient in gradients)
            return
        gradients = torch.autograd.grad(
            total(terms, "companion"), [*weights, *companion_weights], allow_unused=True
        )
        assert all(gradient is None for gradient in gradients[: len(weights)])
        assert any((gradient != 0).any() for gradient in gradients[len(weights) :] if gradient is not None)

    @each("case", with_companion, ids=name_of)
    def test_a_step_gives_each_part_the_gradient_of_its_own_loss_only(self, case: Case) -> None:
        trained, _ = make_optimisers(case.model, case.companion, case.recipe, TrainSettings())
        terms = case.terms()
        step_gradients(terms, trained)
        for part, parameters in trained.items():
            fresh = torch.autograd.grad(total(case.terms(), part), parameters, allow_unused=True)
            for parameter, expected in zip(parameters, fresh, strict=True):
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                expected = torch.zeros_like(parameter) if expected is None else expected
                torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)

    @each("case", flat, ids=name_of)
    def test_the_generator_alone_decides_the_terms(self, case: Case) -> None:
        torch.manual_seed(1)
        first = case.terms(seed=7)
        torch.manual_seed(2)
        again, other = case.terms(seed=7), case.terms(seed=8)
        assert first.keys() == again.keys() == other.keys()
        assert all(torch.equal(first[name].value, again[name].value) for name in first)
        if (
            "rate" in first
        ):  # a posterior with a density is sampled; a deterministic encoder requires no noise
            assert not torch.equal(first["reconstruction"].value, other["reconstruction"].value)

    def test_its_terms_take_one_step_record(self, name: str) -> None:
        parameters = inspect.signature(type(build(objective, name)).terms).parameters
        assert {name: parameter.annotation for name, parameter in parameters.items() if name != "self"} == {
            "step": "Step"
        }

    @each("case", with_companion, ids=name_of)
    def test_a_step_without_its_companion_is_refused(self, case: Case) -> None:
        with pytest.raises(InputError, match="requires a companion network, and this step has none"):
            dataclasses.replace(case, companion=None).terms()

    @each("case", with_companion, ids=name_of)
    def test_the_seed_alone_decides_the_companion(self, case: Case) -> None:
        assert case.companion is not None
        torch.manual_seed(1)
        before = torch.get_rng_state()
        made = [
            case.recipe.companion(case.model, case.feed.data, torch.Generator().manual_seed(s))
            for s in (0, 0)
        ]
        assert torch.equal(before, torch.get_rng_state())
        for first, second in zip(
            *(module.state_dict().values() for module in made if module is not None), strict=True
        ):
            assert torch.equal(first, second)
            assert first.dtype == case.model.dtype

    @each("case", flat, ids=name_of)
    def test_taking_the_terms_leaves_everything_as_it_was(self, case: Case) -> None:
        before = case.model.digest
        weights = {} if case.companion is None else case.companion.state_dict()
        copies = {name: value.clone() for name, value in weights.items()}
        case.terms()
        assert case.model.digest == before
        assert all(torch.equal(value, weights[name]) for name, value in copies.items())

    @each("recipe", with_density, ids=label)
    def test_a_rate_needs_a_density(self, recipe: AbstractObjective) -> None:
        with pytest.raises(InputError, match="a deterministic encoder"):
            plan(DATA["flat"], recipe, "mlp", N_LATENTS, posterior="deterministic", batch_size=60)

    @each("recipe", members, ids=label)
    def test_it_trains_and_resumes_to_the_same_bytes(self, recipe: AbstractObjective, tmp_path: Path) -> None:
        settings: dict[str, Any] = {
            "steps": 3,
            "log_every": 1,
            "validate_every": 1,
            "checkpoint_every": 1,
            "batch_size": 60,
        }

        def run(out: str, progress: Any = False) -> None:
            train(DATA["flat"], recipe, SMOOTH, N_LATENTS, out=tmp_path / out, progress=progress, **settings)

        def kill(step: int, _: Any) -> None:
            if step == 2:  # before its checkpoint is written
                raise KilledError

        run("whole")
        with pytest.raises(KilledError):
            run("killed", kill)
        run("killed")
        whole, killed = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "killed")
        assert whole.model_file.read_bytes() == killed.model_file.read_bytes()
        assert whole.log.path.read_bytes() == killed.log.path.read_bytes()
        files_of = [sorted(run.checkpoints.path(3).iterdir()) for run in (whole, killed)]
        for one, other in zip(*files_of, strict=True):
            assert one.read_bytes() == other.read_bytes(), one.name

        states = [whole.checkpoints.read(step).state for step in (2, 3)]
        parts = {name.split("/")[0] for name in states[1]}
        case = prepare(recipe, "flat", SMOOTH)
        assert ("companion" in parts) == (case.companion is not None)
        for part in parts & {"model", "companion"}:
            moved = [
                not torch.equal(states[0][name], states[1][name])
                for name in states[1]
                if name.startswith(f"{part}/")
            ]
            assert any(moved), part
