"""Comparison of the layers of models, runs and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polariscope.analysis.code_view import Pool
from polariscope.analysis.representation import check_same_samples
from polariscope.core.errors import InputError
from polariscope.core.progress import AnyProgress, listener
from polariscope.core.types import OptionValue
from polariscope.data.data_like import DataLike
from polariscope.data.observations import LAYER_SAMPLES
from polariscope.layers.compare import compare_layers
from polariscope.layers.comparison import Comparison
from polariscope.runs.comparison_sources import (
    find_data,
    find_sources,
    open_foreign,
    refuse_step_and_checkpoints,
)
from polariscope.runs.results import CachedResults
from polariscope.runs.run_like import CheckpointsLike, RunsLike
from polariscope.runs.trained_run import TrainedRun


def compare(
    models: RunsLike,
    data: DataLike | None = None,
    measure: str = "cka",
    n_samples: int | None = LAYER_SAMPLES,
    seed: int = 0,
    *,
    checkpoints: CheckpointsLike = False,
    step: int | None = None,
    folder: str | Path | None = None,
    memory: float | int = 4.0,
    progress: AnyProgress | None = None,
    pool: Pool = "none",
    **options: OptionValue,
) -> Comparison:
    """Compute the similarity of every layer of every model with every other, on the same observations.

    Each model is encoded once and each layer is compressed once. Layers that are equal in all models (the input, a
    flattening) are compressed only once. Errors come from five disjoint fifths of the samples: they are the standard
    deviation of the measure over the fifths, divided by √5. Scores of a fifth are biased upwards, because fewer samples
    score higher, so only their deviation is used.

    Levels are comparable between layers of the same kind. Between kinds (a convolution and a dense layer), compare only
    changes; if measures disagree, trust the smaller score (§7.2.2).

    Reference: bonheme2023 §7.3, with 5 000 observations.

    :param models: models of any library, runs, run folders, representations (with the layers mean, variance and
        sampled), or mappings from layer names to arrays ``(sample, feature)`` of activations; one or a list of them, or
        a mapping from a group's name to its members (the seeds of one setting): ``compare({"β = 1": [run, run],
        "β = 8": [run, run]}).average()`` is the heat map of Eq. 7.9. Samples whose ids differ raise an error.
    :param data: (default: the data of the runs) a dataset or an array.
    :param measure: (default "cka") a member of ``polariscope.similarity``.
    :param n_samples: (default 5,000) number of observations; None for all.
    :param seed: (default 0) seed of the choice of observations and of the noise of the sampled layers.
    :param checkpoints: (default False) if True, or a list of steps, compare a run (or several, averaged) with itself
        at other steps: :meth:`Comparison.course` and :meth:`Comparison.between_steps`. This requires the checkpoints
        (``keep_checkpoints="all"``).
    :param step: (default None: the finished models) compare the models of runs at this step.
    :param folder: (default: the system's folder) folder for temporary files.
    :param memory: (default 4) gigabytes of memory for layers; the rest is stored in temporary files.
    :param progress: (default None) function called with a progress message, or with an event if it takes a
        :class:`polariscope.core.progress.ProgressEvent`.
    :param pool: (default "none") features of layers with positions, such as (channel, height, width): "none" for all
        values, "mean" for the mean over the positions of each channel. The input is never pooled.
    :param options: options of the measure by name: ``bandwidth=0.4``.
    """
    models, data = open_foreign(models, data)
    sources = find_sources(models, checkpoints, step)
    arrays = [source for source in sources if source.layers is not None]
    if arrays and len(arrays) < len(sources):
        raise InputError(
            "models",
            (
                "be all models or all arrays, since representations and mappings of layers contain samples "
                "that are already encoded"
            ),
        )
    check_same_samples({source.label: source.ids for source in arrays})
    if arrays and data is not None:
        raise InputError("data", "be left out with arrays of activations, which are already encoded")
    dataset = None if arrays else find_data(sources, data)
    events = listener(progress, lambda event: (event.message,))
    return compare_layers(
        sources,
        dataset,
        measure,
        n_samples,
        seed,
        folder=folder,
        memory=memory,
        progress=events,
        pool=pool,
        **options,
    )


def comparison_of(
    results: CachedResults,
    others: str | Path | TrainedRun | Sequence[str | Path | TrainedRun],
    measure: str,
    n_samples: int | None,
    seed: int,
    *,
    part: str,
    checkpoints: CheckpointsLike,
    step: int | None,
    progress: AnyProgress | None,
    options: dict[str, Any],
) -> Comparison:
    """Return the comparison of a run with itself or with others, cached with the run.

    The arguments are those of :meth:`polariscope.runs.run.Run.comparison`.

    :param results: cached results of the run.
    :param others: runs, or their folders.
    :param measure: a member of ``polariscope.similarity``.
    :param n_samples: number of observations; None for all.
    :param seed: seed of the choice of observations and of the noise of the sampled layers.
    :param part: part of the split in the key of the cached comparison.
    :param checkpoints: False, True, or a list of steps.
    :param step: compare the models of this step; None for the finished models.
    :param progress: function called with progress messages.
    :param options: options of the measure by name.
    """
    refuse_step_and_checkpoints(step, checkpoints)
    several = [others] if isinstance(others, (str, Path, TrainedRun)) else others
    opened = (other if isinstance(other, TrainedRun) else TrainedRun(other) for other in several)
    runs = [results.run, *opened]
    steps = {run: _steps_of(run, checkpoints, step) for run in runs}
    settings: dict[str, Any] = {
        "measure": measure,
        "options": options,
        "n_samples": n_samples,
        "seed": seed,
        # CachedResults.newest finds a comparison by the digests of all its models.
        "models": [run.digest(each) for run in runs for each in steps[run]],
        "names": [run.name for run in runs],
        "steps": [steps[run] for run in runs] if checkpoints is not False else None,
    }
    key = results.key_of("comparison", steps[results.run][-1], part, settings)

    def compute() -> Comparison:
        return compare(
            runs,
            results.run.other_data,
            measure,
            n_samples,
            seed,
            checkpoints=checkpoints,
            step=step,
            progress=progress,
            **options,
        )

    return results.read_or_compute(key, Comparison, compute)


def _steps_of(run: TrainedRun, checkpoints: Any, step: int | None) -> list[int | None]:
    if checkpoints is False:
        return [step]
    return list(run.folder.checkpoints.steps if checkpoints is True else checkpoints) or [None]
