"""A run without its results: settings, data, models and log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from polariscope.core import files
from polariscope.core.errors import Argument, InputError, PolariscopeError
from polariscope.core.options import from_record
from polariscope.data.data_like import DataLike
from polariscope.data.dataset import AbstractDataset
from polariscope.data.inputs import as_dataset
from polariscope.data.missing import Missing
from polariscope.data.observations import Subset
from polariscope.data.sources import load_recorded
from polariscope.data.splits import Split
from polariscope.storage import MANIPULATION, SETTINGS, readable_name
from polariscope.storage.documents import DamagedError
from polariscope.storage.folder import RunFolder
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from polariscope.analysis.convergence import TrainingState
    from polariscope.analysis.noise import Noise
    from polariscope.models.model import Model


class TrainedRun:
    """A training run in a folder. Opening it checks the settings; everything else is read when needed.

    :param path: folder of the run.
    :param data: (default None) a dataset or an array to use instead of the recorded data; required if the run was
        trained on arrays in memory. If the training data were standardised or scaled, a table is put into their units.
    :param guard: (default None) function called before every write, as in
        :class:`~polariscope.storage.folder.RunFolder`.
    """

    def __init__(
        self, path: str | Path, data: DataLike | None = None, *, guard: files.Guard | None = None
    ) -> None:
        self.folder = RunFolder(path, guard)
        self.folder.remove_leftovers()
        self.settings: dict[str, Any] = self.folder.settings
        """All settings of the run, including defaults."""
        if self.folder.kind == MANIPULATION:
            raise InputError(
                problem=f"{path} contains a manipulation of data, not a model",
                remedy=f"train a model on the variant manipulated:{path}",
            )
        self.training_settings = self._checked_training()
        """Settings of the training as a record."""
        self.other_data: AbstractDataset | None = None
        """Data that the caller passed instead of the recorded data, or None."""
        if data is not None:
            from polariscope.data.chain import restore

            # Missing values of an array are treated as in training.
            missing: Missing = self.settings["data"].get("missing", "refuse")
            dataset = data if isinstance(data, AbstractDataset) else as_dataset(data, missing)
            self.other_data = restore(self.settings["data"], dataset)
        self._data = self.other_data
        self._models: dict[int | None, Model] = {}  # never returned to callers, who could change them
        self._digests: dict[int | None, tuple[str, int]] = {}

    def _checked_training(self) -> TrainSettings:
        """Return the settings of the training; options that cannot be in them mean that their file is damaged."""
        try:
            return from_record(TrainSettings, self.settings["training"])
        except (InputError, TypeError) as error:
            raise DamagedError(
                f"{self.path / SETTINGS} is damaged: training: {error} Repeat the run in another folder."
            ) from None

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.folder.path

    @property
    def name(self) -> str:
        """Name of the folder, or the readable name of a run of a study."""
        return readable_name(self.path)

    @property
    def n_steps(self) -> int:
        """Number of gradient steps in the settings."""
        return self.settings["training"]["steps"]

    @property
    def steps(self) -> list[int]:
        """Steps with a saved model: the checkpoints and the finished model."""
        finished = self.folder.finished_steps
        return sorted({*self.folder.checkpoints.steps, *([] if finished is None else [finished])})

    @property
    def is_finished(self) -> bool:
        """If True, training has finished; see :meth:`RunFolder.is_finished_for`."""
        return self.folder.is_finished

    def noise(self, step: int | None = None) -> Noise | None:
        """Return the variance γ of the decoder, below which variance counts as noise; None if it is not in the log.

        :param step: (default None: the last) step of the model.
        """
        from polariscope.analysis.noise import Noise

        lines = self.log_until(step)
        return Noise.of_run(self.settings, lines[-1]) if lines else None

    def data(self) -> AbstractDataset:
        """Return the data that the caller passed, or open the data that the run was trained on from their record."""
        if self._data is None:
            self._data = load_recorded(self.settings["data"])
        return self._data

    @property
    def fingerprint(self) -> str:
        """Hash of the data; recorded data are not opened."""
        return (
            self.settings["data"]["fingerprint"] if self.other_data is None else self.other_data.fingerprint
        )

    @property
    def n_observations(self) -> int:
        """Number of observations; recorded data are not opened."""
        return self.settings["n_observations"] if self.other_data is None else len(self.other_data)

    @property
    def has_its_own_data(self) -> bool:
        """If True, :meth:`data` are the data that the run was trained on."""
        return self.fingerprint == self.settings["data"]["fingerprint"]

    def split(self) -> Split:
        """Return the indices of the training, validation and test splits of :meth:`data`."""
        training = self.training_settings
        if self.settings.get("split", {}).get("by", "random") == "random":
            return training.random_split(self.n_observations)  # does not require the data
        return training.split_of(self.data())

    def choose(self, subset: Subset) -> Int[np.ndarray, " sample"]:
        """Return the indices of the observations in a subset; if the split is random, the data are not opened.

        :param subset: number of observations, seed and part.
        """
        return subset.choose(self.n_observations, self.split)

    def model(self, step: int | None = None, device: str = "cpu") -> Model:
        """Load the finished model, or that of a checkpoint.

        :param step: (default None: the finished model) step of a checkpoint; see :attr:`steps`.
        :param device: (default "cpu") PyTorch device.
        """
        # Imported here, because many uses of a run do not need PyTorch.
        from polariscope.models.model import read_model

        with self._remedy(step):
            model = read_model(self._model_file(step), device)
        model.folder = self.path
        return model

    def measured_model(self, step: int | None) -> Model:
        """Return the model for analyses, which is loaded once; do not return it to users, who could change it.

        :param step: step of the model; None for the finished model.
        """
        if step not in self._models:
            self._models[step] = self.model(step)
        return self._models[step]

    def _model_file(self, step: int | None) -> Path:
        """Return the file of a model; an error is raised if it is missing or belongs to another run."""
        file = self._find_model(step)
        self.folder.check_belongs(file)
        return file

    @contextlib.contextmanager
    def _remedy(self, step: int | None) -> Iterator[None]:
        """Add a remedy to errors about a model that is damaged or belongs to another run.

        :param step: step of the model; None for the finished model.
        """
        try:
            yield
        except InputError:  # it has a remedy already
            raise
        except PolariscopeError as error:
            others = [each for each in self.folder.checkpoints.steps if each != step]
            if step is None or step == self.folder.finished_steps:
                remedy = (
                    "Run the same train command again: the model is restored from the last checkpoint."
                    if others
                    else "The run has no checkpoint from which it can be restored; repeat it in another folder."
                )
            else:
                kept = f" (kept steps: {', '.join(map(str, others))})" if others else ""
                remedy = f"Use the model of another step{kept}, or repeat the run in another folder."
            raise DamagedError(f"{error} {remedy}") from error

    def _find_model(self, step: int | None) -> Path:
        if step is not None and (isinstance(step, bool) or not isinstance(step, int | np.integer)):
            raise InputError("step", "be an integer", got=f"{step!r}")
        finished = self.folder.finished_steps
        if step is None and finished is None:
            self.folder.model_header()  # raises an error if there is a model that is damaged
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
        # The model on disk is that of a shorter training.
        if step is None and not self.is_finished:
            raise InputError(
                problem=(
                    f"{self.path} has a model of {finished} steps, but the run was continued to {self.n_steps} "
                    "steps and is not finished"
                ),
                remedy=("run the same train command again to resume it", *self._or_a_step()),
            )
        if step is None or step == finished:
            return self.folder.model_file
        if step not in self.folder.checkpoints.steps:
            raise InputError(
                problem=(
                    f"{self.path} has no model of step {step} (kept steps: "
                    f"{', '.join(map(str, self.steps)) or 'none'})"
                ),
                remedy=("train with ", Argument("keep_checkpoints", "all"), " to keep every checkpoint"),
            )
        return self.folder.checkpoints.model_file(step)

    def _or_a_step(self) -> tuple[str | Argument, ...]:
        return (", or use ", Argument("step", self.steps[-1])) if self.steps else ()

    def digest(self, step: int | None = None) -> str:
        """Return the hash of the architecture and weights of a model.

        :param step: (default None: the finished model) step of the model.
        """
        return self.digest_and_step(step)[0]

    def digest_and_step(self, step: int | None) -> tuple[str, int]:
        """Return the digest and the step of a model; they are read from its file without building the model.

        :param step: step of the model; None for the finished model.
        """
        if step not in self._digests:
            with self._remedy(step):
                tensors, header = files.read_tensors(self._model_file(step))
            digest = files.digest([header["blueprint"], files.digest_tensors(tensors)])
            self._digests[step] = digest, header["step"]
        return self._digests[step]

    def log(self) -> list[dict[str, Any]]:
        """Return the checked lines of the log: loss terms, KL and variance of each latent, counts of types."""
        try:
            return self.folder.read_log()
        except DamagedError as error:
            raise DamagedError(
                f"{error} A log cannot be recomputed from the model; to restore it, repeat the run in another folder."
            ) from None

    def log_until(self, step: int | None = None) -> list[dict[str, Any]]:
        """Return the lines of the log up to a model. If training stopped early, later lines belong to other models.

        :param step: (default None: the finished model, or the last line) step of the model.
        """
        if step is None and self.folder.stopped_at is not None and self.is_finished:
            step = self.folder.finished_steps
        return [line for line in self.log() if step is None or line["step"] <= step]

    def training(self, step: int | None = None) -> TrainingState:
        """Return the state of the training at its end or at a step; it is unknown if the log cannot be read.

        :param step: (default None: the last) last step of the log to use.
        """
        from polariscope.analysis.convergence import TrainingState, training_state
        from polariscope.analysis.regime.use import INFORMATION
        from polariscope.objectives import family as objectives

        try:
            lines = self.log_until(step)
        except (PolariscopeError, OSError):
            return TrainingState()
        ended_early = self.folder.stopped_at is not None and step in (None, self.folder.finished_steps)
        # A divergence concerns the last model only, not earlier checkpoints.
        is_last = step in (None, max(self.folder.checkpoints.steps, default=None))
        return training_state(
            lines,
            threshold=INFORMATION,
            ramp_until=from_record(objectives, self.settings["objective"]).schedule_steps,
            stopped_at=self.folder.finished_steps if ended_early else None,
            diverged_at=self.folder.diverged_at if is_last and not self.is_finished else None,
            noise_share=self._noise_share(step),
        )

    def _noise_share(self, step: int | None) -> float | None:
        """Return the ratio of the decoder's fixed variance to that of the features; None if either is unknown."""
        noise = self.noise(step)
        if noise is None or noise.learned or not noise.feature_variance:
            return None
        return noise.gamma / noise.feature_variance
