"""A training run: its model, data and results.

Results are cached with the run (:class:`~polariscope.runs.results.CachedResults`). The same call reads them back;
results with other settings are stored next to them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from polariscope.analysis.regime.rule import TypeRule
from polariscope.analysis.representation import Representation
from polariscope.core import files
from polariscope.core.errors import Call, InputError
from polariscope.core.options import spelled_out
from polariscope.core.paths import user_path
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.data.observations import (
    LAYER_SAMPLES,
    ObservationOptions,
    Observations,
    Part,
    Subset,
    SubsetOptions,
)
from polariscope.runs.results import CachedResults
from polariscope.runs.run_like import CheckpointsLike
from polariscope.runs.trained_run import TrainedRun
from polariscope.storage import is_run, model_file
from polariscope.storage.artefacts import Artefact, Key

if TYPE_CHECKING:
    from polariscope.analysis.course import Course
    from polariscope.analysis.decomposition import Decomposition
    from polariscope.analysis.metrics import Scores
    from polariscope.analysis.regime.regime import Regime
    from polariscope.analysis.verdict import Verdict
    from polariscope.core.progress import AnyProgress
    from polariscope.geometry.summary import Geometry
    from polariscope.layers.comparison import Comparison
    from polariscope.models.model import Model
    from polariscope.models.protocol import AbstractModel

Record = TypeVar("Record")


class Run(TrainedRun):
    """A training run in a folder. Opening it checks the settings; everything else is read or computed when needed.

    :param path: folder of the run.
    :param data: (default None) a dataset or an array to use instead of the recorded data; required if the run was
        trained on arrays in memory. If the training data were standardised or scaled, a table is put into their units.
    :param guard: (default None) function called before every write, as in
        :class:`~polariscope.storage.folder.RunFolder`.
    :param read_only: (default False) if True, a :class:`~polariscope.runs.results.NotCachedError` is raised for missing
        results, and nothing is computed or written.
    """

    def __init__(
        self,
        path: str | Path,
        data: DataLike | None = None,
        *,
        guard: files.Guard | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(path, data, guard=guard)
        self.folder.artefacts.read_only = read_only
        self.results = CachedResults(self, read_only)
        """Cached results of the run."""

    @property
    def read_only(self) -> bool:
        """If True, missing results are not computed, and nothing is written."""
        return self.results.read_only

    @property
    def used(self) -> set[Path]:
        """Files of the results that were read or computed by this object."""
        return self.results.used

    @spelled_out(Observations)
    def verdict(self, **observations: Unpack[ObservationOptions]) -> Verdict:
        """Return the verdict: the state of the training and the latents in use.

        :param observations: the observations, as in :meth:`representation`.
        """
        return self.regime(**observations).verdict

    def with_evidence(self, rep: Representation, model: AbstractModel, seed: int) -> Representation:
        """Return a representation with the decoder effect on held-out observations and the state of the training.

        :param rep: codes of a model of this run.
        :param model: the model.
        :param seed: seed of the effect.
        """
        from polariscope.runs.held_out_evidence import add_evidence

        return add_evidence(self.results, rep, model, seed)

    def representation(
        self,
        n_samples: int | None = Observations.n_samples,
        seed: int = Observations.seed,
        part: Part = Observations.part,
        step: int | None = Observations.step,
    ) -> Representation:
        """Return mean, variance and sampled representation of some observations.

        :param n_samples: (default 10,000) number of observations, drawn without replacement; None for all, in their
            order.
        :param seed: (default 0) seed of the choice of observations and of posterior samples.
        :param part: (default "all") part of the split: "all", "train", "validation" or "test".
        :param step: (default None: the finished model) step of the checkpoint.
        """
        return self._representation(Observations(n_samples, seed, part, step))

    def _representation(self, observations: Observations) -> Representation:
        model = self.measured_model(observations.step)
        return self.with_evidence(self.representation_of(model, observations), model, observations.seed)

    def representation_of(self, model: AbstractModel, subset: Subset = Subset()) -> Representation:  # noqa: B008
        """Return the representation of a model object, cached by its digest because it can differ from the run's model.

        :param model: the model.
        :param subset: (default: as in :meth:`representation`) the observations.
        """
        indices, part, seed = self.choose(subset), subset.part, subset.seed
        settings = {"n_samples": len(indices), "seed": seed}
        key = Key("representation", model.digest, self.fingerprint, part, model.step, settings)
        self.used.add(self.folder.artefacts.file(key, ".safetensors"))
        cached = self.folder.artefacts.read_arrays(key, Representation.from_arrays)
        if cached is not None:
            return cached
        self.results.check_may_compute(key)
        # Imported only if the codes are not cached, because PyTorch is slow to import.
        from polariscope.models.inference import represent

        representation = represent(
            model, self.data(), indices, seed
        )  # raises an error for data of another shape
        with self.results.writing("representation"):
            self.folder.artefacts.keep_arrays(key, *representation.to_arrays())
        return representation

    @spelled_out(Observations)
    def regime(
        self,
        alpha: float = TypeRule.alpha,
        n_bootstrap: int = TypeRule.n_bootstrap,
        **observations: Unpack[ObservationOptions],
    ) -> Regime:
        """Return the type and use of each latent; see :func:`polariscope.diagnose`.

        :param alpha: (default: that of ``TypeRule``) tolerance of the rule.
        :param n_bootstrap: (default 200) number of bootstrap resamples for the confidence of types.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.regime.regime import Regime

        which, rule = Observations(**observations), TypeRule(alpha, n_bootstrap)

        def compute() -> Regime:
            from polariscope.analysis.regime.diagnose import diagnose

            rep = self._representation(which)
            return diagnose(rep, alpha=rule.alpha, n_bootstrap=rule.n_bootstrap, seed=which.seed)

        return self.results.read_or_compute(
            self.results.key("regime", which, dataclasses.asdict(rule)), Regime, compute
        )

    @spelled_out(Observations)
    def decomposition(
        self, n_points: int | None = 5000, **observations: Unpack[ObservationOptions]
    ) -> Decomposition:
        """Decompose the rate into mutual information, total correlation and dimension-wise KL.

        See :func:`polariscope.decompose`.

        :param n_points: (default 5,000) number of samples of the representation to use; None for all.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.decomposition import Decomposition, decompose

        which = Observations(**observations)

        def compute() -> Decomposition:
            return decompose(self._representation(which), n_points, which.seed)

        key = self.results.key("decomposition", which, {"n_points": n_points})
        return self.results.read_or_compute(key, Decomposition, compute)

    @spelled_out(Observations)
    def scores(
        self,
        metrics: str | Sequence[str] = "all",
        source: str = "mean",
        *,
        latents: str = "all",
        options: Mapping[str, Mapping[str, object]] | None = None,
        progress: AnyProgress | None = None,
        **observations: Unpack[ObservationOptions],
    ) -> Scores:
        """Compute disentanglement metrics and probes; see :func:`polariscope.score`.

        Cached scores with the same settings are read; only missing metrics are computed.

        :param metrics: (default "all") names in a list or separated by commas; a variant follows a colon.
        :param source: (default "mean") codes: "mean" or "sampled".
        :param latents: (default "all") latents: "all" or "in-use". If no latent is in use, no metric applies.
        :param options: (default none) options of metrics by name: ``{"mig": {"n_bins": 10}}``. Scores with other
            options are cached separately.
        :param progress: (default None) function called with the name of each metric before it is computed, its number
            and the number of metrics.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.runs.scoring import scores_of

        which = Observations(**observations)
        return scores_of(
            self.results, which, self._representation, metrics, source, latents, options, progress
        )

    @spelled_out(Observations)
    def geometry(
        self,
        alpha: float = TypeRule.alpha,
        *,
        n_points: int = 500,
        n_observations: int = 200,
        **observations: Unpack[ObservationOptions],
    ) -> Geometry:
        """Compute the orthogonality of the decoder's Jacobian, and the error that posterior noise adds.

        :param alpha: (default: that of ``TypeRule``) tolerance of the rule that names the types.
        :param n_points: (default 500) number of codes at which the Jacobian is computed.
        :param n_observations: (default 200) number of observations whose reconstruction error is decomposed.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.geometry.summary import Geometry, summarise

        which = Observations(**observations)
        settings = {"alpha": alpha, "n_points": n_points, "n_observations": n_observations}

        def compute() -> Geometry:
            return summarise(
                self.measured_model(which.step),
                self.data(),
                self._representation(which),
                self.regime(alpha, **which.options()),
                n_points=n_points,
                n_observations=n_observations,
                seed=which.seed,
            )

        return self.results.read_or_compute(self.results.key("geometry", which, settings), Geometry, compute)

    @spelled_out(Observations)
    def measurement(
        self,
        kind: str,
        record: type[Record],
        compute: Callable[[], Record],
        settings: Mapping[str, object],
        **observations: Unpack[ObservationOptions],
    ) -> Record:
        """Return a cached result of any other kind, or compute and cache it.

        :param kind: kind of result, in lower-case words joined by "-".
        :param record: class of the result, with ``to_dict`` and ``from_dict``.
        :param compute: function that computes the result.
        :param settings: settings that the result depends on, besides the model, the data and the observations.
        :param observations: the observations, as in :meth:`representation`.
        """
        return self.results.read_or_compute(
            self.results.key(kind, Observations(**observations), settings), record, compute
        )

    def comparison(
        self,
        others: str | Path | Run | Sequence[str | Path | Run] = (),
        measure: str = "cka",
        n_samples: int | None = LAYER_SAMPLES,
        seed: int = Observations.seed,
        *,
        checkpoints: CheckpointsLike = False,
        step: int | None = None,
        progress: AnyProgress | None = None,
        **options: Any,
    ) -> Comparison:
        """Compare the layers of this run with each other, or with those of other runs; see :func:`polariscope.compare`.

        :param others: (default none) runs, or their folders.
        :param measure: (default "cka") a member of ``polariscope.similarity``.
        :param n_samples: (default 5,000) number of observations.
        :param seed: (default 0) seed of the choice of observations and of the noise of the sampled layers.
        :param checkpoints: (default False) if True, or a list of steps, compare checkpoints instead of finished models.
        :param step: (default None: the finished models) compare the models of this step.
        :param progress: (default None) function called with progress messages, as in :func:`polariscope.compare`.
        :param options: options of the measure by name.
        """
        from polariscope.runs.compare_models import comparison_of

        return comparison_of(
            self.results,
            others,
            measure,
            n_samples,
            seed,
            part=Observations.part,
            checkpoints=checkpoints,
            step=step,
            progress=progress,
            options=options,
        )

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
        progress: AnyProgress | None = None,
        **observations: Unpack[SubsetOptions],
    ) -> Course:
        """Compute results on codes and layers at every step with a saved model.

        The results are types, KL, Σ E[σ²], Δ_KL and when it was below 3 %, correlations, and total correlation and
        mutual information of the mean and sampled codes. With ``layers`` they include the intrinsic dimension of every
        layer, and its similarity with the same layer at the last step. One checkpoint is in memory at a time. The
        results of each checkpoint are cached immediately, so after an interruption or more training only missing
        results are computed.

        :param latent: (default: the one with the largest KL at the end) latent whose correlations are tracked.
        :param steps: (default None: all in :attr:`steps`) steps of the models to use.
        :param layers: (default False) if True, compute results for layers too.
        :param against: (default None) another run on the same data, or its folder; each layer is also compared with
            the layer of the same name in its finished model. Implies ``layers``.
        :param measure: (default "cka") a member of ``polariscope.similarity``.
        :param alpha: (default: that of ``TypeRule``) tolerance of the rule that names the types.
        :param n_layer_samples: (default 1,000) number of observations for the results on layers; the time grows with
            its square.
        :param memory: (default 2) gigabytes of memory for layers; the rest is stored in temporary files.
        :param progress: (default None) function called with the number of checkpoints done and the number to do.
        :param observations: the observations, as in :meth:`representation`.
        """
        from polariscope.analysis.course import Course
        from polariscope.runs.course_plan import plan_course
        from polariscope.runs.follow_course import follow

        subset = Subset(**observations)
        plan, indices, other = plan_course(
            self,
            subset,
            latent=latent,
            steps=steps,
            layers=layers,
            against=against,
            measure=measure,
            alpha=TypeRule(alpha).alpha,
            n_layer_samples=n_layer_samples,
            memory=memory,
        )
        settings = {**plan.settings(other), "models": [self.digest(step) for step in plan.steps]}
        key = self.results.key_of("course", plan.steps[-1], subset.part, settings)

        def compute() -> Course:
            from polariscope.core.progress import listener  # not required to read a cached course

            events = listener(progress, lambda event: (event.done, event.total))
            return follow(self, plan, indices, other_data=self.other_data, other=other, progress=events)

        return self.results.read_or_compute(key, Course, compute)

    def artefacts(self) -> tuple[Artefact, ...]:
        """Return all cached results, in the order in which they were computed."""
        return tuple(self.folder.artefacts)

    def newest(
        self, kind: str, step: int | None = None, part: str | None = None, **settings: OptionValue
    ) -> Artefact | None:
        """Return the cached result of a kind that was used last; None if there is none.

        Results on other data than :meth:`data` are ignored.

        :param kind: kind of result: "regime", "scores" …
        :param step: (default None: the finished model) step of the checkpoint.
        :param part: (default None: any) part of the split.
        :param settings: settings that the result must have.
        """
        return self.results.newest(kind, step, part, settings)

    def read(self, artefact: Artefact) -> Any | None:
        """Return the content of a cached result as JSON values; None if it is damaged.

        :param artefact: a cached result of this run.
        """
        return self.results.read(artefact)

    @property
    def is_saved(self) -> bool:
        """If True, all results that were read or computed by this object are on disk."""
        return all(path.exists() for path in self.used)

    def __repr__(self) -> str:
        return "\n".join(f"{label:<11}{text}" for label, text in self._summary())

    def _repr_html_(self) -> str:
        from polariscope.core.text import summary_as_html

        return summary_as_html(self._summary())

    def _summary(self) -> list[tuple[str, str]]:
        from polariscope.runs.overview import summary_rows

        return summary_rows(self)


def open_run(path: str | Path, data: DataLike | None = None) -> Run:
    """Open a training run: its model, data, log and cached results.

    :param path: folder of the run.
    :param data: (default None) a dataset or an array to use instead of the recorded data; required if the run was
        trained on arrays in memory.
    """
    return Run(path, data)


def load_model(path: str | Path, step: int | None = None, device: str = "cpu") -> Model:
    """Load the model of a run, of a checkpoint or of a model file; loading never executes code from the file.

    :param path: folder of a run, a checkpoint or an estimator, or a file written by ``Model.save``.
    :param step: (default None: the finished model) step of a checkpoint of the run.
    :param device: (default "cpu") PyTorch device.
    """
    path = user_path(path)
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
            problem=f"a step requires a run folder, and {path} is not one", remedy="leave it out"
        )
    from polariscope.models.model import read_model

    return read_model(file, device)
