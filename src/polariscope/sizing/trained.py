"""Candidates trained by this package, each stored as a run."""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from polariscope.analysis.convergence import held_out_loss
from polariscope.analysis.noise import Noise
from polariscope.analysis.regime.use import MAX_OBSERVATIONS
from polariscope.analysis.representation import Representation
from polariscope.analysis.verdict import Verdict
from polariscope.core.errors import InputError
from polariscope.core.progress import Progress
from polariscope.core.seeds import generator
from polariscope.core.text import plural
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset
from polariscope.data.observations import Part, Subset
from polariscope.models.inference import batch_size, chunks, decode_codes
from polariscope.models.model import Model
from polariscope.runs.run import Run
from polariscope.sizing.candidates import AbstractCandidates, Curves, Losses, OutOfTimeError
from polariscope.sizing.fondue_settings import SETTINGS
from polariscope.sizing.own_trainer import Memo
from polariscope.sizing.search_progress import candidate_event
from polariscope.storage.search_folder import SeedFolder
from polariscope.training.loop import n_validated
from polariscope.training.plan import RunPlan, plan
from polariscope.training.planner import IMAGES
from polariscope.training.threads import available_cores
from polariscope.training.together import together
from polariscope.training.train import begin_narrow, build, choose_device, choose_threads, train, work_of

TRAIN = "train"
"""Key of the training time among the times of a run, the same as in studies."""


def max_latents(job: RunPlan) -> int | None:
    """Return the maximum number of latents if the decoder variance is one learned number; None if there is no limit.

    At least one direction of the features, or of the samples, must remain to estimate the variance.

    :param job: the plan of a model's training.
    """
    if not job.blueprint.likelihood.learns_one_variance:
        return None
    return max(1, min(_n_varying(job.data), len(job.data)) - 1)


def _n_varying(data: AbstractDataset) -> int:
    """Return the number of features of a table that vary; for images, the number of all values."""
    if len(data.shape) != 1:
        return data.n_features
    first = data.values(np.zeros(1, dtype=np.int64))
    varies = np.zeros(data.n_features, dtype=bool)
    for rows in chunks(len(data), batch_size(data.n_features)):
        varies |= (data.values(np.arange(rows.start, rows.stop)) != first).any(axis=0)
        if varies.all():
            break
    return int(varies.sum())


class TrainedCandidates(AbstractCandidates):
    """Models trained by :func:`polariscope.train` in ``folder``, which are reused."""

    def __init__(
        self,
        data: AbstractDataset,
        folder: Path,
        seed: int,
        recipe: Mapping[str, Any] = {},
        progress: Progress | None = None,
        deadline: float | None = None,
        part: Part = Subset.part,
    ) -> None:
        self.data = data
        self.part = part
        """Part of the split whose observations are encoded."""
        self.deadline = deadline
        self._pace: float | None = None
        self.folder = SeedFolder(folder)
        self.seed = seed
        self.progress = progress
        self.recipe = {
            "log_every": SETTINGS.log_every,
            "probe_samples": SETTINGS.probe_samples,
            **recipe,
            "seed": seed,
        }
        # Not part of the stored recipe, so a search can resume on another machine.
        self.device = self.recipe.pop("device", "auto")
        self._requested_threads: int | None = self.recipe.pop("threads", None)
        self.folder.check_recipe({"data": data.fingerprint, "recipe": self.recipe}, self._is_recipe)
        self.folder.repair()
        self._spent: dict[str, int] = {}
        self._measured: set[tuple[str, str]] = set()
        """Names of models and their measurements, whose time is counted."""
        self._models: dict[tuple[str, int], Model] = {}
        # watch_together trains several models in threads.
        self._changing = threading.Lock()
        self._noise: dict[tuple[int, int, Any], Noise | None] = {}
        self._changes: dict[tuple[int, int, Any], Mapping[str, Any]] = {}
        """Changes of the models that were measured, by latents, steps and β."""

    def _is_recipe(self, stored: Mapping[str, Any]) -> bool:
        """Return True if a stored recipe gives the same models: the command line of 0.2.0 stored numbers as text."""
        if stored.get("data") != self.data.fingerprint:
            return False
        try:
            # Recipes are equal if they plan the same run, however their values are written.
            before = plan(self.data, n_latents=1, pace=IMAGES, **{"steps": 1, **stored["recipe"]})
        except (InputError, KeyError):
            return False
        return before.describe("cpu")["hash"] == self._plan.describe("cpu")["hash"]

    def _threads(self, name: str) -> int | None:
        """Return the number of threads of a model: as requested, or None to resume with the same number."""
        is_begun = bool(self.folder.model(name).checkpoints.steps)
        return None if self._requested_threads is None and is_begun else self.threads

    @functools.cached_property
    def threads(self) -> int:
        """Number of threads of a new model: as requested, as for earlier models, or chosen from work and cores."""
        if self._requested_threads is not None:
            return self._requested_threads
        for begun in self.folder.models():
            if begun.checkpoints.steps:
                return int(begun.settings["environment"]["threads"])
        return choose_threads(self._plan, build(self._plan, choose_device("cpu")))

    @functools.cached_property
    def _plan(self) -> RunPlan:
        """The plan that all models share, apart from width and length."""
        return plan(self.data, n_latents=1, pace=IMAGES, **{"steps": 1, **self.recipe})

    @functools.cached_property
    def benefits_from_parallel(self) -> bool:
        if self._requested_threads is not None:  # two models would use more cores than requested
            return False
        if choose_device(self.device).type != "cpu" or self.threads > 1 or available_cores() < 2:
            return False
        return work_of(self._plan, build(self._plan, choose_device("cpu"))) >= SETTINGS.min_work_for_pairs

    @property
    def steps_per_epoch(self) -> int:
        job = plan(self.data, n_latents=1, pace=IMAGES, **{**self.recipe, "epochs": 1})
        return job.settings.steps

    @property
    def n_gamma_values(self) -> int | None:
        likelihood = self._plan.blueprint.likelihood
        return self.data.n_features if likelihood.learns_one_variance else None

    @property
    def fixed_variance(self) -> float | None:
        blueprint = self._plan.blueprint
        return blueprint.likelihood.fixed_variance if blueprint.posterior.has_density else None

    @property
    def max_latents(self) -> int | None:
        return max_latents(self._plan)

    @property
    def n_steps(self) -> int:
        return sum(self._spent.values())

    @property
    def n_models(self) -> int:
        return len(self._spent)

    @property
    def n_seconds(self) -> float | None:
        # Models can have been trained by another search in the same folder, and further than here, so time is prorated.
        total = 0.0
        for name, steps in self._spent.items():
            run = self.folder.model(name)
            seconds, trained = run.seconds(), max(run.checkpoints.steps, default=0)
            if TRAIN not in seconds or not trained:
                return None
            total += seconds[TRAIN] * steps / trained
            total += sum(seconds.get(part, 0.0) for model, part in self._measured if model == name)
        return total

    @property
    def can_prune(self) -> bool:
        return self._plan.blueprint.posterior.is_diagonal

    def _name(self, n_latents: int, changes: Mapping[str, Any]) -> str:
        changes = dict(changes)
        if (wide := changes.pop("pruned_from", None)) is not None:
            return f"{_prefix(*wide)}{self._name(n_latents, changes)}"
        # The name of a folder: a change would train all models of earlier searches again.
        text = "".join(f"-{key}-{value:g}" if isinstance(value, float) else f"-{key}-{value}"
                       for key, value in sorted(changes.items()))  # fmt: skip
        return f"n-{n_latents:03d}" + re.sub(r"[^\w.+-]", "_", text)

    def model(self, n_latents: int, steps: int, **changes: OptionValue) -> Model:
        """Return the model after ``steps`` steps, training it further if necessary."""
        name = self._name(n_latents, changes)
        if (name, steps) not in self._models:
            # A search with fewer steps must see the model as it was then.
            if (earlier := self._earlier(name, steps)) is not None:
                self._spent[name] = max(steps, self._spent.get(name, 0))
                return earlier
            self._prune(n_latents, steps, changes)

            def listen(step: int, line: dict[str, Any] | None) -> None:
                if line is not None and self.progress is not None:
                    # Models can train in parallel, and the caller's function is called by one of them at a time.
                    with self._changing:
                        self.progress(candidate_event(self.seed, n_latents, step, line["trace"]))

            with self._timed(name, TRAIN):
                model = train(
                    self.data,
                    n_latents=n_latents,
                    out=self.folder.model(name).path,
                    device=self.device,
                    threads=self._threads(name),
                    progress=listen,
                    **self._options(steps, changes),
                )
            with self._changing:
                # Only the last state of a model stays in memory.
                self._models = {key: value for key, value in self._models.items() if key[0] != name}
                self._models[name, steps] = model
            self._spent[name] = max(steps, self._spent.get(name, 0))
            self._read_log(Run(self.folder.model(name).path), n_latents, steps, changes)
        return self._models[name, steps]

    def _earlier(self, name: str, steps: int) -> Model | None:
        """Return an earlier state of a model that has more steps, if that checkpoint exists."""
        run = self.folder.model(name)
        if steps >= max(run.checkpoints.steps, default=0) or steps not in run.checkpoints.steps:
            return None
        return Run(run.path).model(steps, str(choose_device(self.device)))

    @contextmanager
    def _timed(self, name: str, part: str) -> Iterator[None]:
        """Add the time of a block to the times of a model; training without a new step is not counted."""
        run = self.folder.model(name)
        before, begin = max(run.checkpoints.steps, default=0), time.monotonic()
        try:
            yield
        finally:
            if part != TRAIN or max(run.checkpoints.steps, default=0) > before:
                seconds = run.seconds()
                run.keep_seconds({**seconds, part: seconds.get(part, 0.0) + time.monotonic() - begin})

    def _options(self, steps: int, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the training options of a model; without a learning rate it is that of the published methods."""
        changed = {key: value for key, value in changes.items() if key != "pruned_from"}
        return {"pace": IMAGES, **self.recipe, **changed, "steps": steps}

    def _prune(self, n_latents: int, steps: int, changes: Mapping[str, Any]) -> None:
        """Initialise a model from the most informative latents of a wide one.

        If the requested state of the wide model is gone because it was trained further, its last state is used. Models
        that already exist, or are trained from scratch, are left alone.
        """
        name = self._name(n_latents, changes)
        if "pruned_from" not in changes or self.folder.model(name).checkpoints.steps:
            return
        changed = {key: value for key, value in changes.items() if key != "pruned_from"}
        width, trained = changes["pruned_from"]
        trained = self._available_steps(width, trained, changed)
        variances = self.watch(width, trained, **changed).variances[-SETTINGS.n_averaged_looks :].mean(axis=0)
        begin_narrow(
            self.data,
            self.folder.model(name).path,
            self.model(width, trained, **changed),
            # The latents with the smallest posterior variance are the most informative ones.
            sorted(np.argsort(variances)[:n_latents].tolist()),
            n_latents=n_latents,
            device=self.device,
            threads=self._threads(name),
            **self._options(steps, changes),
        )

    def _read_log(
        self, run: Run, n_latents: int, steps: int, changes: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the log of a model up to a step, and store its noise level at this step."""
        # An earlier search can have trained the model further.
        lines = [line for line in run.log() if line["step"] <= steps]
        last = lines[-1] if lines else {}
        key = (n_latents, steps, changes.get("beta"))
        self._noise[key], self._changes[key] = Noise.of_run(run.settings, last), dict(changes)
        return lines

    def noise(self, n_latents: int, steps: int, beta: float | None = None) -> Noise | None:
        return self._noise.get((n_latents, steps, beta))

    def verdict(self, n_latents: int, steps: int, beta: float | None = None) -> Verdict | None:
        from polariscope.analysis.regime.diagnose import diagnose

        if (changes := self._changes.get((n_latents, steps, beta))) is None:
            return None
        model = self.model(n_latents, self._available_steps(n_latents, steps, changes), **changes)
        run = Run(self.folder.model(self._name(n_latents, changes)).path, self.data)
        subset = Subset(min(MAX_OBSERVATIONS, len(self.data)), self.seed, self.part)
        representation = run.with_evidence(run.representation_of(model, subset), model, self.seed)
        return diagnose(representation, seed=self.seed).verdict

    def n_watched(self, n_latents: int, **changes: OptionValue) -> int:
        return self._spent.get(self._name(n_latents, changes), 0)

    def has_gone_beyond(self, n_latents: int, steps: int, **changes: OptionValue) -> bool:
        """Return True if a model has more than ``steps`` steps and no checkpoint at ``steps``.

        :param n_latents: number of latents of the model.
        :param steps: requested steps.
        :param changes: options that differ from the recipe.
        """
        steps_on_disk = self.folder.model(self._name(n_latents, changes)).checkpoints.steps
        return max(steps_on_disk, default=0) > steps and steps not in steps_on_disk

    def nearest_steps(self, n_latents: int, steps: int, **changes: OptionValue) -> int:
        # Narrow models that this search initialised before are reused, even if the checkpoint is gone.
        if self.folder.has_any(_prefix(n_latents, steps)):
            return steps
        return self._available_steps(n_latents, steps, changes)

    def _available_steps(self, n_latents: int, steps: int, changes: Mapping[str, Any]) -> int:
        """Return ``steps`` if the model can be had with so many, otherwise the last step it has."""
        if not self.has_gone_beyond(n_latents, steps, **changes):
            return steps
        return max(self.folder.model(self._name(n_latents, changes)).checkpoints.steps)

    def watch(self, n_latents: int, steps: int, **changes: OptionValue) -> Curves:
        name = self._name(n_latents, changes)
        run = self.folder.model(name)
        done = max(run.checkpoints.steps, default=0)
        while done < steps:
            done = self._train_further(n_latents, done, steps, changes)
        self._spent[name] = max(steps, self._spent.get(name, 0))
        lines = self._read_log(Run(run.path), n_latents, steps, changes)
        has_gamma = all("gamma" in line for line in lines)
        return Curves(
            np.array([line["step"] for line in lines]),
            np.array([line["variance"] for line in lines], dtype=float),
            np.array([line["gamma"] for line in lines], dtype=float) if has_gamma else None,
            tuple(
                (line["step"], held_out_loss(line), line["loss"]) for line in lines if "validation" in line
            ),
            all(_is_elbo(line) for line in lines),
        )

    def watch_together(self, widths: Sequence[int], steps: int, **changes: OptionValue) -> None:
        for n_latents in widths:  # not in parallel, because all of them load the wide model
            self._prune(n_latents, steps, changes)
        if self._pace is not None:  # each model can be slower in parallel
            self._pace *= len(widths)
        together([functools.partial(self.watch, n_latents, steps, **changes) for n_latents in widths])

    def _train_further(self, n_latents: int, done: int, steps: int, changes: Mapping[str, Any]) -> int:
        """Train a model further, as far as the time limit allows, and return its last step."""
        if self.deadline is None:
            self.model(n_latents, steps, **changes)
            return steps
        begin = time.monotonic()
        # Without a measured pace a short piece is trained first.
        reach = SETTINGS.first_piece if self._pace is None else int((self.deadline - begin) / self._pace)
        # A piece ends at a multiple of log_every, because watch() reads the state from the log.
        piece = min(
            steps - done, reach // SETTINGS.log_every * SETTINGS.log_every - done % SETTINGS.log_every
        )
        if begin >= self.deadline or piece <= 0:
            raise OutOfTimeError(
                f"The time limit was reached at {plural(n_latents, 'latent')} after {done:,} steps. Allow more "
                "minutes for a more certain answer."
            )
        self.model(n_latents, done + piece, **changes)
        self._pace = (time.monotonic() - begin) / piece
        return done + piece

    def remember(self, key: str, n_latents: int, steps: int, measure: Callable[[], float]) -> float:
        name = self._name(n_latents, {})
        memo = Memo(self.folder.memo(key), key)
        value = memo.get(n_latents, steps)
        part = f"{key} at {steps}"
        if value is None:
            self.model(
                n_latents, steps
            )  # trained before the timer starts, because training is timed separately
            with self._timed(name, part):
                value = memo.put(n_latents, steps, measure())
        self._measured.add((name, part))
        self._spent[name] = max(steps, self._spent.get(name, 0))
        return value

    def representation(self, n_latents: int, steps: int, **changes: OptionValue) -> Representation:
        model = self.model(n_latents, steps, **changes)
        run = Run(self.folder.model(self._name(n_latents, changes)).path, self.data)
        return run.representation_of(model, Subset(self._n_samples, self.seed, self.part))

    def losses(self, n_latents: int, steps: int, **changes: OptionValue) -> Losses:
        self.watch(n_latents, steps, **changes)
        lines = Run(self.folder.model(self._name(n_latents, changes)).path).log()
        # The last step of a training is always validated, so this line has held-out terms.
        line = next(line for line in lines if line["step"] == steps)
        terms = line["validation"]
        # Objectives without a rate still log the KL of each latent.
        rate = terms.get("rate", None if line["kl"] is None else sum(line["kl"]))
        return Losses(
            held_out_loss(line), float(terms["reconstruction"]), None if rate is None else float(rate)
        )

    def reconstructions(
        self, n_latents: int, steps: int, **changes: OptionValue
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "sample feature"]]:
        model = self.model(n_latents, steps, **changes)
        representation = self.representation(n_latents, steps, **changes)
        assert representation.indices is not None
        inputs = self.data.values(representation.indices)
        outputs = decode_codes(model, representation.sampled)
        return _rows(inputs), _rows(outputs)

    def observations(self) -> Float[np.ndarray, "sample feature"]:
        sample = generator(self.seed, "observations").permutation(len(self.data))[: self._n_samples]
        return _rows(self.data.values(sample))

    def split_rows(
        self,
    ) -> tuple[Float[np.ndarray, "sample feature"], Float[np.ndarray, "other feature"]] | None:
        split = self._plan.split
        validation = split.validation[: n_validated(self._plan.settings)]
        training = generator(self.seed, "observations").permutation(split.train)[: self._n_samples]
        return _rows(self.data.values(training)), _rows(self.data.values(validation))

    @property
    def _n_samples(self) -> int:
        return min(Subset.n_samples or len(self.data), len(self.data))


def _prefix(n_latents: int, steps: int) -> str:
    """Return the prefix of the names of models that are initialised from a wide one."""
    return f"from-{n_latents:03d}-after-{steps}-"


def _is_elbo(line: Mapping[str, Any]) -> bool:
    """Return True if the loss of a line is reconstruction plus rate, each with weight 1."""
    return bool(line["weights"] == {"reconstruction": 1.0, "rate": 1.0})


def _rows(array: np.ndarray) -> Float[np.ndarray, "sample feature"]:
    return array.reshape(len(array), -1).astype(np.float32, copy=False)
