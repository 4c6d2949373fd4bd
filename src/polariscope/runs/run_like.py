"""Named unions of the runs, models and codes that public functions accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from polariscope.analysis.representation import Representation
    from polariscope.core.types import ArrayInput
    from polariscope.models.protocol import ModelLike
    from polariscope.runs.trained_run import TrainedRun

    RunLike: TypeAlias = TrainedRun | str | PathLike[str] | ModelLike | Representation
    """A run, its folder, a model, a representation, or an .npz file of codes."""
    LayersLike: TypeAlias = RunLike | ArrayInput | Mapping[str, ArrayInput]
    """A run or model, or activations by the name of their layer."""
    RunsLike: TypeAlias = LayersLike | Sequence[LayersLike] | Mapping[str, LayersLike | Sequence[LayersLike]]
    """Several runs, models or codes: a list, or a mapping from names to them."""
    CheckpointsLike: TypeAlias = bool | Sequence[int]
    """Checkpoints of a run: all (True), none (False), or those of some steps."""
else:
    # Other objects are refused with a message that names the remedy, so they must reach the function.
    RunLike = LayersLike = RunsLike = CheckpointsLike = object
