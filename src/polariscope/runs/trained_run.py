"""A run as its training left it: settings, data, models and log. Nothing is measured here."""

from __future__ import annotations

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
from polariscope.data.observations import Part, Subset
from polariscope.data.sources import load_recorded
from polariscope.data.splits import Split
from polariscope.storage import MANIPULATION, readable_name
from polariscope.storage.folder import RunFolder
from polariscope.training.settings import TrainSettings

if TYPE_CHECKING:
    from polariscope.analysis.convergence import TrainingState
    from polariscope.analysis.noise import Noise
    from polariscope.models.model import Model


class TrainedRun:
    """A training run in a folder. Opening it checks its settings; the rest is read when it is needed.

    :param path: the run's folder.
    :param data: a dataset or an array instead of the recorded data; needed when the run was trained on arrays in
        memory. A table is put into the units of the training data, where these were standardised or scaled.
    :param guard: (default None) called before every write, as :class:`~polariscope.storage.folder.RunFolder` has it.
    """

    def __init__(
        self, path: str | Path, data: DataLike | None = None, *, guard: files.Guard | None = None
    ) -> None:
        self.folder = RunFolder(path, guard)
        self.folder.remove_leftovers()
        self.settings: dict[str, Any] = self.folder.settings
        """What the run was asked for, all resolved."""
        if self.folder.kind == MANIPULATION:
            raise InputError(
                problem=f"{path} holds a manipulation of data, and no model",
                remedy=f"train one on the variant manipulated:{path}",
            )
        self.other_data: AbstractDataset | None = None
        """Data that were passed instead of the recorded ones; None without any."""
        if data is not None:
            from polariscope.data.chain import restore

            # An array is treated as the one the run was trained on.
            missing: Missing = self.settings["data"].get("missing", "refuse")
            dataset = data if isinstance(data, AbstractDataset) else as_dataset(data, missing)
            self.other_data = restore(self.settings["data"], dataset)
        self._data = self.other_data
        self._models: dict[int | None, Model] = {}  # never handed out, so they stay as they are on disk
        self._digests: dict[int | None, tuple[str, int]] = {}

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
        """Steps of which there is a model: the checkpoints, and the finished model."""
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
        return (
            self.settings["data"]["fingerprint"] if self.other_data is None else self.other_data.fingerprint
        )

    @property
    def n_observations(self) -> int:
        """Number of observations in the data; known without opening them."""
        return self.settings["n_observations"] if self.other_data is None else len(self.other_data)

    @property
    def has_its_own_data(self) -> bool:
        """Whether :meth:`data` are those the run was trained on."""
        return self.fingerprint == self.settings["data"]["fingerprint"]

    def split(self) -> Split:
        """Training, validation and test indices of :meth:`data`."""
        training = from_record(TrainSettings, self.settings["training"])
        if self.settings.get("split", {}).get("by", "random") == "random":
            return training.random_split(self.n_observations)  # known without opening the data
        return training.split_of(self.data())

    def indices_of(self, part: Part) -> Int[np.ndarray, " sample"]:
        """Return the indices of all observations in a part of the split; an empty part is refused.

        :param part: "all", "train", "validation" or "test".
        """
        return self.choose(Subset(n_samples=None, part=part))

    def choose(self, subset: Subset) -> Int[np.ndarray, " sample"]:
        """Return the indices of the observations in a subset, known without opening the data if the split is random.

        :param subset: how many, of which part.
        """
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

    def measured_model(self, step: int | None) -> Model:
        """Return the model that is measured; never hand it to a caller, who may change it.

        :param step: (None: the finished model) a step of which there is a model.
        """
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
        return self.digest_and_step(step)[0]

    def digest_and_step(self, step: int | None) -> tuple[str, int]:
        """Return the digest of a model and the step it belongs to, from the file alone: nothing is built.

        :param step: (None: the finished model) a step of which there is a model.
        """
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
