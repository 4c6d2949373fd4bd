"""Checkpoints of a run: each contains a model that can be loaded, and the state from which training resumes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from polariscope.core import files
from polariscope.core.types import Recordable
from polariscope.storage import MODEL, STATE
from polariscope.storage.documents import DamagedError
from polariscope.storage.log import Mark

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class Trained(Protocol):
    """An object trained in a folder: a model, or a manipulation of data."""

    @property
    def digest(self) -> str:
        """Hash of the architecture, which is ``blueprint`` in the header of its file, and of the weights."""

    def save(
        self, path: str | Path, step: int | None = None, guard: files.Guard | None = None, **about: Recordable
    ) -> None:
        """Write a safetensors file.

        :param path: the file.
        :param step: (default None) gradient steps of the training.
        :param guard: (default None) function called right before the file gets its name.
        :param about: further entries of the file's header, JSON values.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """Contents of a checkpoint."""

    step: int
    model: Mapping[str, Tensor]
    """Weights of the model."""
    state: Mapping[str, Tensor]
    """State of optimisers, companion and generators."""
    metadata: Mapping[str, Any]
    """Parts of the state that are not tensors."""
    mark: Mark
    """End of the log at this step."""


class Checkpoints:
    """Folder of a run's checkpoints."""

    def __init__(self, folder: Path, guard: files.Guard | None = None) -> None:
        self.folder = folder
        self.guard = guard

    @property
    def steps(self) -> list[int]:
        """Steps of the checkpoints, ascending."""
        matches = [re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.glob("step-*")]
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step: int) -> Path:
        """Return the folder of the checkpoint at a step."""
        return self.folder / f"step-{step}"

    def model_file(self, step: int) -> Path:
        """Return the path of the model at a step."""
        return self.path(step) / MODEL

    def write(
        self,
        step: int,
        model: Trained,
        state: Mapping[str, Tensor],
        metadata: Mapping[str, object],
        mark: Mark,
        run: str,
    ) -> None:
        """Write a checkpoint atomically; ``run`` is the identity of the run (:meth:`RunFolder.check_belongs`)."""
        with files.atomic_folder(self.path(step), self.guard) as part:
            model.save(part / MODEL, step=step, log=mark.to_dict(), run=run)
            about = {"step": step, "words": dict(metadata), "model": model.digest, "log": mark.to_dict()}
            files.write_tensors(part / STATE, state, about)

    def read(self, step: int) -> Checkpoint:
        """Read the checkpoint at a step; the error about a damaged one names it."""
        folder = self.path(step)
        missing = [name for name in (MODEL, STATE) if not (folder / name).exists()]
        if missing:
            raise DamagedError(f"{folder} is damaged: it has no {missing[0]}.")
        model, header = files.read_tensors(folder / MODEL)
        state, about = files.read_tensors(folder / STATE)
        # Each file can be whole and still belong to another checkpoint, so the state names the weights it was
        # saved with.
        digest = files.digest([header.get("blueprint"), files.digest_tensors(model)])
        if about.get("step") != step or about.get("model") != digest:
            raise DamagedError(f"{folder} is damaged: its files were not saved together.")
        return Checkpoint(step, model, state, about["words"], Mark.from_dict(about["log"]))

    def mark(self, step: int) -> Mark:
        """Return the end of the log at a step, from the header only."""
        return Mark.from_dict(files.read_header(self.path(step) / STATE)["log"])

    def prune(
        self, keep: int, step: int, every: int = 1, is_last: bool = False, finished: int | None = None
    ) -> None:
        """Delete old checkpoints: ``keep`` remain, that of ``step`` and before it multiples of ``every``.

        The last checkpoint of a shorter training that is extended remains like a multiple. Other checkpoints were
        saved when training was interrupted. They are deleted at the next multiple of ``every``, so an interrupted run
        ends with the same files as one that was not interrupted.

        :param keep: number of checkpoints that remain.
        :param step: step of the training. Later checkpoints are damaged and will be replaced, so they are not counted.
        :param every: (default 1) steps between two checkpoints of a training that is not interrupted.
        :param is_last: (default False) if True, training ends with this step, which need not be a multiple.
        :param finished: (default None) last step of a finished training that is being extended.
        """
        earlier = [each for each in self.steps if each < step]
        if is_last or step % every == 0:
            candidates = [each for each in earlier if each % every == 0 or each == finished]
        else:
            # Training could need another one if the newest is damaged, so without multiples the latest remain.
            candidates = sorted(earlier, key=lambda each: (each % every == 0, each))
        remaining = candidates[max(0, len(candidates) - keep + 1) :]
        for old in [each for each in earlier if each not in remaining]:
            if self.guard is not None:
                self.guard()
            files.remove_folder(self.path(old))
