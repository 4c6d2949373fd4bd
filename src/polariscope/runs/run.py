"""A run, opened: its model, its data, and everything that was measured of it.

What is asked for is computed once and kept beside the model under its key: model, data, part, step and settings
(:class:`~polariscope.storage.artefacts.Key`). Asked again with the same key it is read; with another it is computed,
and both are kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
from jaxtyping import Int

from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.errors import Argument, Call, InputError, PolariscopeError
from polariscope.core.options import from_record, spelled_out
from polariscope.data.dataset import AbstractDataset
from polariscope.data.missing import Missing
from polariscope.data.observations import (
    LAYER_SAMPLES,
    ObservationOptions,
    Observations,
    Part,
    Subset,
    SubsetOptions,
)
from polariscope.data.sources import as_dataset, load_recorded
from polariscope.data.splits import Split
from polariscope.storage import MANIPULATION, is_run, model_file, readable_name
from polariscope.storage.artefacts import Artefact, Key
from polariscope.storage.folder import RunFolder
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from polariscope.analysis.convergence import TrainingState
    from polariscope.analysis.course import Course
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.likelihood_fit import LikelihoodFit, Source
    from polariscope.analysis.metrics import Scores
    from polariscope.analysis.noise import Noise
    from polariscope.analysis.regime.regime import Regime
    from polariscope.analysis.score import Progress
    from polariscope.analysis.verdict import Verdict
    from polariscope.geometry.summary import Geometry
    from polariscope.layers.comparison import Comparison
    from polariscope.models.model import Model
    from polariscope.models.protocol import AbstractModel

logger = logging.getLogger("polariscope")

Record = TypeVar("Record")


class NotKeptError(PolariscopeError):
    """What was asked for is not kept with the run, and nothing may be computed."""


class Run:
    """A training run in a folder. Opening it checks its settings; everything else is read or computed when asked for.

    :param guard: (default None) called before every write, as :class:`~polariscope.storage.folder.RunFolder` has it.
    :param computes: (default True) whether what was not measured yet is measured when it is asked for; else a
        :class:`NotKeptError` is raised, and nothing is written.
    :param path: the run's folder.
    :param data: a dataset or an array instead of the recorded data; needed when the run was trained on arrays in
        memory. A table is put into the units of the training data, where these were standardised or scaled.
    """

    def __init__(
        self,
        path: str | Path,
        data: object = None,
        *,
        guard: files.Guard | None = None,
        computes: bool = True,
    ) -> None:
        self.folder = RunFolder(path, guard)
        self.folder.remove_leftovers()
        self.computes = computes
        """Whether what is not kept is computed; else :class:`NotKeptError` is raised."""
        self.settings: dict[str, Any] = self.folder.settings
        """What the run was asked for, all resolved."""
        if self.folder.kind == MANIPULATION:
            raise InputError(
                problem=f"{path} holds a manipulation of data, and no model",
                remedy=f"train one on the variant manipulated:{path}",
            )
        self._given: AbstractDataset | None = None
        if data is not None:
            from polariscope.data.chain import restore

            # An array is treated as the one the run was trained on.
            missing: Missing = self.settings["data"].get("missing", "refuse")
            given = data if isinstance(data, AbstractDataset) else as_dataset(data, missing)
            self._given = restore(self.settings["data"], given)
        self._data = self._given
        self._models: dict[int | None, Model] = {}  # never handed out, so they stay as they are on disk
        self._digests: dict[int | None, tuple[str, int]] = {}
        self.used: set[Path] = set()
        """Files of the artefacts that were read or made through this object."""

    # What it is made of.

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.folder.path

    @property
    def name(self) -> str:
        """Name of the folder; of a run of a study the readable one."""
        return readable_name(self.path)

    @property
    def n_steps(self) -> int:
        """Number of gradient steps that were asked for."""
        return self.settings["training"]["steps"]

    @property
    def steps(self) -> list[int]:
        """Steps of which there is a model: the checkpoints that were kept, and the finished model."""
        finished = self.folder.finished_steps
        return sorted({*self.folder.checkpoints.steps, *([] if finished is None else [finished])})

    @property
    def is_finished(self) -> bool:
        """Whether training has ended: see :meth:`RunFolder.is_finished_for`."""
        return self.folder.is_finished

    def noise(self, step: int | None = None) -> Noise | None:
        """What the model takes for noise, the variance γ of its decoder; None where the log has none.

        :param step: (default None: the last) of which model.
        """
        from polariscope.analysis.noise import Noise

        lines = self.log_until(step)
        return Noise.of_run(self.settings, lines[-1]) if lines else None

    def data(self) -> AbstractDataset:
        """The data given when the run was opened, or those it was trained on, made again from their record."""
        if self._data is None:
            self._data = load_recorded(self.settings["data"])
        return self._data

    @property
    def fingerprint(self) -> str:
        """Hash of the data; known without opening them, unless others were given."""
        return self.settings["data"]["fingerprint"] if self._given is None else self._given.fingerprint

    @property
    def n_observations(self) -> int:
        """Number of observations in the data; known without opening them."""
        return self.settings["n_observations"] if self._given is None else len(self._given)

    @property
    def has_its_own_data(self) -> bool:
        """Whether :meth:`data` are those the run was trained on."""
        return self.fingerprint == self.settings["data"]["fingerprint"]

    def split(self) -> Split:
        """Training, validation and test indices of :meth:`data`."""
        training = from_record(TrainSettings, self.settings["training"])
        if self.settings.get("split", {}).get("by", "random") == "random":
            return training.deal_at_random(self.n_observations)  # known without opening the data
        return training.deal(self.data())

    def indices_of(self, part: Part) -> Int[np.ndarray, " sample"]:
        """Return the indices of all observations in a part of the split; an empty part is refused.

        :param part: "all", "train", "validation" or "test".
        """
        return self._indices(Subset(n_samples=None, part=part))

    def _indices(self, subset: Subset) -> Int[np.ndarray, " sample"]:
        return subset.choose(self.n_observations, self.split)

    def model(self, step: int | None = None, device: str = "cpu") -> Model:
        """The finished model, or the one of a checkpoint.

        :param step: (default None: the finished model) a step of which a checkpoint was kept; see :attr:`steps`.
        :param device: (default "cpu") where to put it, as PyTorch names it.
        """
        from polariscope.models.model import read_model

        model = read_model(self._model_file(step), device)
        model.folder = self.path
        return model

    def _model(self, step: int | None) -> Model:
        """The model that is measured; callers get others, which they may change."""
        if step not in self._models:
            self._models[step] = self.model(step)
        return self._models[step]

    def _model_file(self, step: int | None) -> Path:
        if step is not None and (isinstance(step, bool) or not isinstance(step, int | np.integer)):
            raise InputError("step", "be an integer", got=f"{step!r}")
        finished = self.folder.finished_steps
        if step is None and finished is None:
            self.folder.model_header()  # names a model that is there and damaged
            if self.folder.is_held:
                raise InputError(
                    problem=f"{self.path} is being trained by another process, and has no finished model yet",
                    remedy=("wait for it", *self._or_a_step()),
                )
            if (diverged_at := self.folder.diverged_at) is not None:
                raise InputError(
                    problem=f"{self.path} has no finished model: training diverged at step {diverged_at:,}",
                    remedy=("train in another folder with a lower learning rate", *self._or_a_step()),
                )
            raise InputError(
                problem=f"{self.path} has no finished model: the run was interrupted",
                remedy=("run the same train command again to resume it", *self._or_a_step()),
            )
        if step is None and not self.is_finished:
            raise InputError(
                problem=(
                    f"{self.path} has a model of {finished} steps, but {self.n_steps} were asked for "
                    "since: the run was interrupted"
                ),
                remedy=("run the same train command again to resume it", *self._or_a_step()),
            )
        if step is None or step == finished:
            return self.folder.model_file
        if step not in self.folder.checkpoints.steps:
            raise InputError(
                problem=(
                    f"{self.path} has models of the steps {', '.join(map(str, self.steps)) or 'none'}, "
                    f"not of step {step}"
                ),
                remedy=(
                    "runs keep every checkpoint only when trained with ",
                    Argument("keep_checkpoints", "all"),
                ),
            )
        return self.folder.checkpoints.model_file(step)

    def _or_a_step(self) -> tuple[str | Argument, ...]:
        return (", or choose ", Argument("step", self.steps[-1])) if self.steps else ()

    def digest(self, step: int | None = None) -> str:
        """Hash of architecture and weights of the finished model, or of that of a checkpoint."""
        return self._digest(step)[0]

    def _digest(self, step: int | None) -> tuple[str, int]:
        """The digest and the step it belongs to, from the file alone: nothing is built."""
        if step not in self._digests:
            tensors, header = files.read_tensors(self._model_file(step))
            digest = files.digest([header["blueprint"], files.digest_tensors(tensors)])
            self._digests[step] = digest, header["step"]
        return self._digests[step]

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log, checked: loss terms, KL and variance of each latent, counts of types."""
        return self.folder.read_log()

    def log_until(self, step: int | None = None) -> list[dict[str, Any]]:
        """Return the lines of the log up to a model. If training stopped early, later lines are about other models.

        :param step: (default None: the finished model, or the last line) a step of which there is a model.
        """
        if step is None and self.folder.stopped_at is not None and self.is_finished:
            step = self.folder.finished_steps
        return [line for line in self.log() if step is None or line["step"] <= step]

    def training(self, step: int | None = None) -> TrainingState:
        """Return the state of the training at its end, or at a step; unknown if the log cannot be read.

        :param step: (default None: the last) judge the log up to this step.
        """
        from polariscope.analysis.convergence import TrainingState, training_state
        from polariscope.analysis.regime.use import INFORMATION
        from polariscope.core.options import rebuild
        from polariscope.objectives import family as objectives

        try:
            lines = self.log_until(step)
        except (PolariscopeError, OSError):
            return TrainingState()
        ended_early = self.folder.stopped_at is not None and step in (None, self.folder.finished_steps)
        is_last = step in (None, max(self.folder.checkpoints.steps, default=None))
        return training_state(
            lines,
            threshold=INFORMATION,
            ramp_until=rebuild(objectives, self.settings["objective"]).schedule_steps,
            stopped_at=self.folder.finished_steps if ended_early else None,
            diverged_at=self.folder.diverged_at if is_last and not self.is_finished else None,
            noise_share=self._noise_share(step),
        )

    def _noise_share(self, step: int | None) -> float | None:
        """Return the fixed variance of the decoder over that of the features; None if either is not known."""
        noise = self.noise(step)
        if noise is None or noise.learned or not noise.feature_variance:
            return None
        return noise.gamma / noise.feature_variance

    @spelled_out(Observations)
    def verdict(self, **observations: Unpack[ObservationOptions]) -> Verdict:
        """Return the state of the training and the latents in use: the verdict that every surface prints.

        :param observations: the observations, as in :meth:`representation`.
        """
        return self.regime(**observations).verdict

    def with_evidence(self, rep: Representation, model: AbstractModel, seed: int) -> Representation:
        """Return a representation with the decoder effect on held-out observations and the state of the training.

        Held out are validation and test together, since of a small table one of them is a few rows; and all of data
        that the model was not trained on.

        :param rep: codes of a model of this run.
        :param model: the model.
        :param seed: seed of the effect.
        """
        from polariscope.analysis.regime.use import MAX_OBSERVATIONS, Effect

        if self.has_its_own_data:
            split = self.split()
            held_out = np.concatenate([split.test, split.validation])
        else:
            held_out = np.arange(self.n_observations)
        settings = {"n_samples": min(len(held_out), MAX_OBSERVATIONS), "seed": seed}
        key = Key("effect", model.digest, self.fingerprint, "held-out", model.step, settings)

        def compute() -> Effect:
            from polariscope.models.effect import decoder_effect

            return decoder_effect(model, self.data(), held_out, seed)

        effect = self._record(key, Effect, compute)
        fit = self._likelihood_fit(model, held_out, seed)
        return dataclasses.replace(rep, **effect.as_fields(), training=self.training(model.step), fit=fit)

    def _likelihood_fit(
        self, model: AbstractModel, indices: Int[np.ndarray, " sample"], seed: int
    ) -> LikelihoodFit:
        """Return residuals of held-out observations against the likelihood of a model, cached with the run."""
        from polariscope.analysis.likelihood_fit import MAX_OBSERVATIONS, LikelihoodFit

        is_held_out = not self.has_its_own_data or self.split().is_held_out
        settings = {"n_samples": min(len(indices), MAX_OBSERVATIONS), "seed": seed}
        key = Key("likelihood-fit", model.digest, self.fingerprint, "held-out", model.step, settings)

        def compute() -> LikelihoodFit:
            from polariscope.models.likelihood_fit import likelihood_fit
            from polariscope.training.likelihood import natural_likelihood

            source: Source = "held-out" if is_held_out else "training"
            return likelihood_fit(model, self.data(), indices, seed, source, natural_likelihood(self.data()))

        return self._record(key, LikelihoodFit, compute)

    # What was measured of it.

    def representation(
        self,
        n_samples: int | None = Observations.n_samples,
        seed: int = Observations.seed,
        part: Part = Observations.part,
        step: int | None = Observations.step,
    ) -> Representation:
        """Return mean, variance and sampled representation of some observations.

        :param n_samples: (default 10,000) how many, drawn without replacement; None for all, in their order.
        :param seed: (default 0) seed of the choice and of the draws.
        :param part: (default "all") or "train", "validation", "test".
        :param step: (default None: the finished model) the checkpoint of this step.
        """
        return self._representation(Observations(n_samples, seed, part, step))

    def _representation(self, observations: Observations) -> Representation:
        model = self._model(observations.step)
        return self.with_evidence(self.representation_of(model, observations), model, observations.seed)

    def representation_of(self, model: AbstractModel, subset: Subset = Subset()) -> Representation:  # noqa: B008
        """Return the representation of a model at hand, which can differ from the run's: it is cached by its digest.

        :param model: the model.
        :param subset: (default: as in :meth:`representation`) the observations.
        """
        indices, part, seed = self._indices(subset), subset.part, subset.seed
        settings = {"n_samples": len(indices), "seed": seed}
        key = Key("representation", model.digest, self.fingerprint, part, model.step, settings)
        self.used.add(self.folder.artefacts.file(key, ".safetensors"))
        kept = self.folder.artefacts.read_arrays(key)
        if kept is not None:
            return Representation.from_arrays(*kept)
        self._may_compute(key)
        from polariscope.models.inference import represent

        representation = represent(model, self.data(), indices, seed)  # refuses data of another shape
        with self._keeping("representation"):
            self.folder.artefacts.keep_arrays(key, *representation.to_arrays())
        return representation

    @spelled_out(Observations)
    def regime(
        self,
        alpha: float = TypeRule.alpha,
        n_bootstrap: int = TypeRule.n_bootstrap,
        **observations: Unpack[ObservationOptions],
    ) -> Regime:
        """Which latents are active, mixed and passive; see :func:`polariscope.diagnose`.

        :param alpha: (default: that of ``TypeRule``) tolerance of the rule.
        :param n_bootstrap: (default 200) resamples behind each confidence.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.regime.regime import Regime

        which, rule = Observations(**observations), TypeRule(alpha, n_bootstrap)

        def compute() -> Regime:
            from polariscope.analysis.regime.diagnose import diagnose

            rep = self._representation(which)
            return diagnose(rep, alpha=rule.alpha, n_bootstrap=rule.n_bootstrap, seed=which.seed)

        return self._record(self._key("regime", which, dataclasses.asdict(rule)), Regime, compute)

    @spelled_out(Observations)
    def decomposition(
        self, n_points: int | None = 5000, **observations: Unpack[ObservationOptions]
    ) -> Decomposition:
        """The rate in parts: mutual information, total correlation, the rest; see :func:`polariscope.decompose`.

        :param n_points: (default 5,000) samples of the representation that are used; None for all of them.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.decomposition import Decomposition, decompose

        which = Observations(**observations)

        def compute() -> Decomposition:
            return decompose(self._representation(which), n_points, which.seed)

        key = self._key("decomposition", which, {"n_points": n_points})
        return self._record(key, Decomposition, compute)

    @spelled_out(Observations)
    def scores(
        self,
        metrics: str | Sequence[str] = "all",
        source: str = "mean",
        *,
        latents: str = "all",
        options: Mapping[str, Mapping[str, object]] | None = None,
        progress: Progress | None = None,
        **observations: Unpack[ObservationOptions],
    ) -> Scores:
        """Disentanglement metrics and probes; see :func:`polariscope.score`.

        Metrics that were scored before with the same settings are read, the others are computed and kept with them.

        :param metrics: (default "all") names joined by commas or in a list; a variant follows a colon.
        :param source: (default "mean") which codes: "mean" or "sampled".
        :param latents: (default "all") which latents: "all" or "in-use". Without a latent in use no metric applies.
        :param options: (default none) options of metrics by name: ``{"mig": {"n_bins": 10}}``. Scores with other
            options are kept apart.
        :param observations: the observations, as in :meth:`representation`.
        :param progress: told the name of each metric before it is computed, its number and how many there are.
        """
        from polariscope.analysis.metrics import Scores
        from polariscope.analysis.score import options_of_words, score, words_of

        words, options = words_of(metrics), options_of_words(metrics, options)
        # The kinds of the factors are part of the data's fingerprint.
        which = Observations(**observations)
        # As in 0.2.0, neither default is part of the key.
        chosen = {
            **({"options": options} if options else {}),
            **({"latents": latents} if latents != "all" else {}),
        }
        key = self._key("scores", which, {"source": source, **chosen})
        self.used.add(self.folder.artefacts.file(key))
        stored = self.folder.artefacts.read(key)
        earlier = None if stored is None else Scores.from_dict(stored)
        missing = [word for word in words if earlier is None or not earlier.holds(word)]
        if not missing and earlier is not None:
            self._ask(key)
            return earlier.only(words)
        self._may_compute(key)
        rep = self._representation(which)
        asked = {word.partition(":")[0] for word in missing}
        given = {name: options[name] for name in options if name in asked}
        found = score(
            rep, missing, which.seed, options=given, source=source, latents=latents, progress=progress
        )

        def join(one: Any, other: Any) -> Any:
            return Scores.from_dict(other).joined(Scores.from_dict(one)).to_dict()

        if earlier is not None:
            found = found.joined(earlier)
        if found.scores or not found.covered:
            with self._keeping("scores"):
                found = Scores.from_dict(self.folder.artefacts.keep(key, found.to_dict(), join))
                self._ask(key)
        return found.only(words)

    @spelled_out(Observations)
    def geometry(
        self,
        alpha: float = TypeRule.alpha,
        *,
        n_points: int = 500,
        n_observations: int = 200,
        **observations: Unpack[ObservationOptions],
    ) -> Geometry:
        """How orthogonal the decoder is at some codes, and what the posterior's noise costs.

        :param alpha: (default: that of ``TypeRule``) tolerance of the rule that says which latents are in use.
        :param n_points: (default 500) codes at which the decoder's Jacobian is taken.
        :param n_observations: (default 200) observations whose reconstruction loss is split.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.geometry.summary import Geometry, summarise

        which = Observations(**observations)
        settings = {"alpha": alpha, "n_points": n_points, "n_observations": n_observations}

        def compute() -> Geometry:
            return summarise(
                self._model(which.step),
                self.data(),
                self._representation(which),
                self.regime(alpha, **which.options()),
                n_points=n_points,
                n_observations=n_observations,
                seed=which.seed,
            )

        return self._record(self._key("geometry", which, settings), Geometry, compute)

    @spelled_out(Observations)
    def measurement(
        self,
        kind: str,
        record: type[Record],
        compute: Callable[[], Record],
        settings: Mapping[str, object],
        **observations: Unpack[ObservationOptions],
    ) -> Record:
        """A record of another kind than those above: read if it is kept with these settings, else computed and kept.

        :param kind: what it is, in lower-case words joined by "-".
        :param record: its class, which has ``to_dict`` and ``from_dict``.
        :param compute: makes it.
        :param settings: all that it depends on beside the model, the data and what follows.
        :param observations: the observations, as in :meth:`representation`.
        """
        return self._record(self._key(kind, Observations(**observations), settings), record, compute)

    def comparison(
        self,
        others: str | Path | Run | Sequence[str | Path | Run] = (),
        measure: str = "cka",
        n_samples: int | None = LAYER_SAMPLES,
        seed: int = Observations.seed,
        *,
        checkpoints: object = False,
        step: int | None = None,
        progress: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Comparison:
        """The layers of this run with each other, or with those of other runs; see :func:`polariscope.compare`.

        :param others: (default none) runs, or their folders.
        :param measure: (default "cka") a member of ``polariscope.similarity``, with its ``options``.
        :param n_samples: (default 5,000) observations.
        :param seed: (default 0) seed of their choice and of the noise of the sampled layers.
        :param checkpoints: (default False) True, or a list of steps: compare checkpoints instead.
        :param step: (default None: the finished models) compare the models of this step.
        :param progress: told what is being done.
        """
        from polariscope.layers.comparison import Comparison
        from polariscope.runs.compare import compare

        if checkpoints is not False and step is not None:
            raise InputError(
                problem=(
                    Argument("step"),
                    " and ",
                    Argument("checkpoints"),
                    " both say which models of a run are meant",
                ),
                remedy="give one of them",
            )
        several = [others] if isinstance(others, (str, Path, Run)) else others
        runs = [self, *(other if isinstance(other, Run) else Run(other) for other in several)]
        wanted = {run: _steps_of(run, checkpoints, step) for run in runs}
        digests = [run.digest(one) for run in runs for one in wanted[run]]
        settings: dict[str, Any] = {
            "measure": measure,
            "options": options,
            "n_samples": n_samples,
            "seed": seed,
            "models": digests,
            "names": [run.name for run in runs],
            "steps": [wanted[run] for run in runs] if checkpoints is not False else None,
        }
        key = self._key_of("comparison", wanted[self][-1], Observations.part, settings)

        def compute() -> Comparison:
            made = compare(
                runs,
                self._given,
                measure,
                n_samples,
                seed,
                checkpoints=checkpoints,
                step=step,
                progress=progress,
                **options,
            )
            return Comparison.from_dict(made.to_dict())  # as it will be read, so both are the same

        return self._record(key, Comparison, compute)

    @spelled_out(Subset)
    def course(
        self,
        latent: int | None = None,
        *,
        steps: Sequence[int] | None = None,
        layers: bool = False,
        against: str | Path | Run | None = None,
        measure: str = "cka",
        alpha: float = TypeRule.alpha,
        n_layer_samples: int = 1000,
        memory: float | int = 2.0,
        progress: Callable[[int, int], None] | None = None,
        **observations: Unpack[SubsetOptions],
    ) -> Course:
        """What the codes, and the layers, were like at every step of which there is a model.

        Types, KL, Σ E[σ²], Δ_KL and how long it was below 3 %, correlations, total correlation and mutual information
        of mean and sampled; with ``layers`` also the intrinsic dimension of every layer, and how similar each is to
        its last state. One checkpoint is in memory at a time. What was measured of it is kept at once, so a course that
        was interrupted, or asked for again after more training, measures only what is missing.

        :param latent: (default: that of the largest KL at the end) the latent whose correlations are followed.
        :param steps: (default None: all in :attr:`steps`) only the models of these steps.
        :param layers: (default False) follow the layers too.
        :param against: (default None) another run on the same data, or its folder: each layer is also compared with
            the layer of the same name of its finished model. Implies ``layers``.
        :param measure: (default "cka") a member of ``polariscope.similarity``.
        :param alpha: (default: that of ``TypeRule``) tolerance of the rule that names the types.
        :param n_layer_samples: (default 1,000) how many of these observations the layers are looked at with; the time
            grows with its square.
        :param memory: (default 2) gigabytes for layers; what does not fit goes to temporary files.
        :param progress: told how many checkpoints are done, and how many there are to do.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.course import Course, check_latent
        from polariscope.analysis.similarity import similarity
        from polariscope.runs.course import K, Plan, follow

        subset, rule = Subset(**observations), TypeRule(alpha)
        if latent is not None:
            check_latent(latent, self.settings["model"]["n_latents"])
        _ = similarity[measure]
        wanted = tuple(self.steps if steps is None else sorted(set(steps)))
        if not wanted:
            raise InputError(
                problem=f"{self.path} has no model yet", remedy="wait for its first checkpoint, or train it"
            )
        if len(wanted) == 1 and steps is None:
            raise InputError(
                problem=f"{self.path} has a model of step {wanted[0]} only, so there is no course to follow",
                remedy=(
                    "train with ",
                    Argument("keep_checkpoints", "all"),
                    " and a smaller ",
                    Argument("checkpoint_every"),
                ),
            )
        indices = self._indices(subset)
        if len(indices) < 2:
            raise InputError("n_samples", "be at least 2", got=len(indices))
        other = against if against is None or isinstance(against, Run) else Run(against)
        seen = min(n_layer_samples, len(indices))
        if (layers or other is not None) and seen <= K:
            raise InputError(
                "n_layer_samples",
                f"be more than {K}, the neighbours behind each dimension",
                got=seen,
                remedy="look at more observations",
            )
        plan = Plan(
            steps=wanted,
            latent=latent,
            n_samples=len(indices),
            seed=subset.seed,
            alpha=rule.alpha,
            part=subset.part,
            layers=layers or other is not None,
            n_layer_samples=seen,
            measure=measure,
            memory=memory,
        )
        models = [self.digest(step) for step in wanted]
        settings = {**plan.settings(other), "models": models}
        key = self._key_of("course", wanted[-1], subset.part, settings)

        def compute() -> Course:
            return follow(self, plan, indices, given=self._given, other=other, progress=progress)

        return self._record(key, Course, compute)

    # What is kept.

    def artefacts(self) -> tuple[Artefact, ...]:
        """Everything that was measured and kept, in the order in which it was made."""
        return tuple(self.folder.artefacts)

    def newest(
        self, kind: str, step: int | None = None, part: str | None = None, **settings: object
    ) -> Artefact | None:
        """The artefact of a kind that was asked for last, of a model with these settings; None without one.

        Those of other data than :meth:`data` do not count.

        :param kind: "regime", "scores" …
        :param step: (default None: the finished model) the checkpoint of this step.
        :param part: (default None: any) the part of the split it was measured on.
        :param settings: what it was measured with.
        """
        digest, data = self.digest(step), self.fingerprint
        found = [
            artefact
            for artefact in self.folder.artefacts.by_asking()
            if artefact.kind == kind
            and artefact.matches(**settings)
            and part in (None, artefact.key.part)
            and artefact.key.data == data
            and (artefact.key.model in (digest, None) or digest in artefact.key.settings.get("models", ()))
        ]
        return found[-1] if found else None

    def read(self, artefact: Artefact) -> Any | None:
        """The content of a record that was kept, as JSON has it; None if it is damaged."""
        self.used.add(artefact.path)
        return self.folder.artefacts.read(artefact.key)

    def _key(self, kind: str, which: Observations, settings: Mapping[str, Any]) -> Key:
        """Return the key of a result, with the number of observations that there are."""
        counted = {"n_samples": len(self._indices(which)), "seed": which.seed}
        return self._key_of(kind, which.step, which.part, {**counted, **settings})

    def _key_of(self, kind: str, step: int | None, part: str, settings: Mapping[str, Any]) -> Key:
        digest, done = self._digest(step)
        return Key(kind, digest, self.fingerprint, part, done, settings)

    def _record(self, key: Key, kind: type[Record], compute: Callable[[], Record]) -> Record:
        """The record kept under a key; computed and kept if there is none that can be read."""
        self.used.add(self.folder.artefacts.file(key))
        stored = self.folder.artefacts.read(key)
        if stored is None:
            self._may_compute(key)
            stored = compute().to_dict()  # type: ignore[attr-defined]
            with self._keeping(key.kind):
                stored = self.folder.artefacts.keep(key, stored)
        self._ask(key)
        return kind.from_dict(stored)  # type: ignore[attr-defined]

    def _may_compute(self, key: Key) -> None:
        if not self.computes:
            raise NotKeptError(f"{self.path} has no {key.kind} with these settings.")

    def _ask(self, key: Key) -> None:
        if self.computes:
            self.folder.artefacts.ask(self.folder.artefacts.file(key))

    @contextlib.contextmanager
    def _keeping(self, what: str) -> Iterator[None]:
        """A run on a full or read-only disk can still be looked at; that nothing is kept is said."""
        try:
            yield
        except OSError as error:
            logger.warning("the %s could not be kept beside the run: %s", what, error)

    @property
    def is_kept(self) -> bool:
        """Whether everything that was asked for through this object is on disk."""
        return all(path.exists() for path in self.used)

    # How it looks.

    def __repr__(self) -> str:
        return "\n".join(f"{label:<11}{words}" for label, words in self._summary())

    def _repr_html_(self) -> str:
        from polariscope.core.text import summary_as_html

        return summary_as_html(self._summary())

    def _summary(self) -> list[tuple[str, str]]:
        model, training, data = (self.settings[part] for part in ("model", "training", "data"))
        done = self.steps[-1] if self.steps else 0
        state = "finished" if self.is_finished else f"{done:,} done"
        if self.is_finished and (stopped := self.folder.stopped_at) is not None:
            state = f"stopped early at {stopped:,}, model of step {self.folder.finished_steps:,}"
        elif not self.is_finished and (diverged := self.folder.diverged_at) is not None:
            state = f"diverged at {diverged:,}, {state}"
        kinds: dict[str, int] = {}
        for artefact in self.artefacts():
            kinds[artefact.kind] = kinds.get(artefact.kind, 0) + 1
        kept = ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in kinds.items())
        rows = [
            ("run", str(self.path)),
            ("data", _concept(data, "fingerprint", "root_fingerprint", "shape", "variants")),
            ("objective", _concept(self.settings["objective"])),
            ("model", f"{model['net']['name']}, {model['n_latents']} latents"),
            ("training", f"{self.n_steps:,} steps ({state}), seed {training['seed']}"),
            ("artefacts", kept or "none yet"),
        ]
        if "variants" in data:
            from polariscope.data.chain import in_words

            rows.insert(2, ("variants", in_words(data["variants"])))
        if damaged := self.folder.artefacts.damaged():
            rows.append(("damaged", ", ".join(path.name for path in damaged)))
        return rows


def open_run(path: str | Path, data: object = None) -> Run:
    """Open a training run: its model, data, log and everything that was measured of it.

    :param path: the run's folder.
    :param data: a dataset or an array instead of the recorded data; needed when the run was trained on arrays in
        memory.
    """
    return Run(path, data)


def load_model(path: str | Path, step: int | None = None, device: str = "cpu") -> Model:
    """The model of a run, finished or at a checkpoint, or of a model file; loading never runs code from the file.

    :param path: the folder of a run, a checkpoint or an estimator, or a file that ``Model.save`` wrote.
    :param step: (default None: the finished model) a step of which the run kept a checkpoint.
    :param device: (default "cpu") where to put it, as PyTorch names it.
    """
    path = Path(path)
    if is_run(path):
        return Run(path).model(step, device)
    file = model_file(path) if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            problem=f"{path} is not a run folder or a model file",
            remedy=("train one with ", Call("train", "data", out=str(path))),
        )
    if step is not None:
        raise InputError(
            problem=f"a step is chosen in run folders, and {path} is none", remedy="leave it out"
        )
    from polariscope.models.model import read_model

    return read_model(file, device)


def _steps_of(run: Run, checkpoints: Any, step: int | None) -> list[int | None]:
    if checkpoints is False:
        return [step]
    return list(run.folder.checkpoints.steps if checkpoints is True else checkpoints) or [None]


def _concept(record: dict[str, Any], *hidden: str) -> str:
    options = [f"{key}={value}" for key, value in record.items() if key not in ("name", *hidden)]
    return f"{record['name']} ({', '.join(options)})" if options else record["name"]
