"""Computation of a course: each checkpoint is encoded once, and its results are cached immediately."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.course import Course, LayerCourse, LayerSimilarity, Snapshot, snapshot
from polariscope.analysis.dimension.mle import mle
from polariscope.analysis.layer_checks import is_constant
from polariscope.analysis.layer_forms import AbstractForm
from polariscope.analysis.representation import Representation
from polariscope.analysis.similarity import similarity
from polariscope.core import files
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.progress import Progress, Task
from polariscope.core.records import from_plain, to_plain
from polariscope.core.seeds import generator
from polariscope.core.text import joined
from polariscope.core.types import Recordable
from polariscope.data.dataset import AbstractDataset
from polariscope.layers.layer_sources import Source
from polariscope.layers.scratch import Scratch, scratch
from polariscope.layers.tap import LayerTap
from polariscope.models.inference import check_shape, encode_batches, inference_mode, represent
from polariscope.models.model import Model
from polariscope.runs.comparison_sources import find_data
from polariscope.runs.course_plan import K, Plan
from polariscope.storage.artefacts import Key
from polariscope.storage.journal import Journal

if TYPE_CHECKING:
    from polariscope.runs.trained_run import TrainedRun

logger = logging.getLogger("polariscope")

CODES, DIMENSION, FINAL, OTHER = "codes", "dimension", "final", "other"
"""Kinds of results of a checkpoint. The last two are similarities of layers with the run's last checkpoint and with
another run."""


def follow(
    run: TrainedRun,
    plan: Plan,
    indices: Int[np.ndarray, " sample"],
    *,
    other_data: AbstractDataset | None = None,
    other: TrainedRun | None = None,
    progress: Progress | None = None,
) -> Course:
    """Compute and cache missing results of each checkpoint, and return the course.

    :param run: the run.
    :param plan: plan of the course.
    :param indices: indices of the observations.
    :param other_data: (default None) data to use instead of those of the run.
    :param other: (default None) another run; layers are compared with its finished model.
    :param progress: (default None) function called with the number of checkpoints done, of those that were not cached.
    """
    follower = _Follower(run, plan, indices, other_data, other)
    task = Task(progress, f"{run.name}: measuring checkpoints", "checkpoint")
    if follower.pending:
        task(0, len(follower.pending))
    with scratch(None, plan.memory * 1e9 / 2) as space:
        follower.compress_references(space)
        for number, step in enumerate(follower.pending, start=1):
            with follower.passing_over_pruned(step):
                follower.measure(step, space)
            task(number, len(follower.pending))
    return follower.course()


class _Follower:
    """Computation of the results of all checkpoints, and the journals that cache them."""

    def __init__(
        self,
        run: TrainedRun,
        plan: Plan,
        indices: Int[np.ndarray, " sample"],
        other_data: AbstractDataset | None,
        other: TrainedRun | None,
    ) -> None:
        self.run, self.plan, self.indices, self.other_data, self.other = run, plan, indices, other_data, other
        self.can_write = True
        self._at_first = frozenset(run.steps)
        self.pruned: list[int] = []
        """Steps whose checkpoints were deleted while they were read."""
        self.digests: dict[int, str] = {}
        for step in plan.steps:
            with self.passing_over_pruned(step):
                self.digests[step] = run.digest(step)
        last = self.plan.steps[-1]
        self.references: dict[str, tuple[str, str]] = {}
        """Name and digest of the model that layers are compared with, for each kind of similarity."""
        if plan.layers:
            self.references[FINAL] = f"itself at step {last}", self.digests[last]
        if other is not None:
            self.references[OTHER] = other.name, other.digest()
        self.journals = {part: self._journal(part) for part in self._parts()}
        self.cached: dict[str, dict[str, Any]] = {
            part: journal.read() for part, journal in self.journals.items()
        }
        self.pending = [step for step in self.plan.steps if self.missing(step)]
        """Steps with missing results, in the order of computation."""
        if FINAL in self.missing(last):  # first, because the other steps are compared with it
            self.pending = [last, *self.pending[:-1]]
        self._dataset: AbstractDataset | None = None
        self._compressed: dict[str, dict[str, np.ndarray]] = {}
        self._dimensions: dict[str, tuple[str, dict[str, Any]]] = {}
        """Hash of the last array of each layer, and its dimension."""

    @contextlib.contextmanager
    def passing_over_pruned(self, step: int) -> Iterator[None]:
        """Drop a step if a process that trains the run deletes its checkpoint while it is read.

        :param step: the step.
        """
        try:
            yield
        except (PolariscopeError, OSError):
            was_deleted = step in self._at_first and step not in self.run.steps
            # The last one is kept while training continues, and layers are compared with it.
            if not was_deleted or step == self.plan.steps[-1]:
                raise
            remaining = tuple(each for each in self.plan.steps if each != step)
            self.plan = dataclasses.replace(self.plan, steps=remaining)
            self.pruned.append(step)

    def _parts(self) -> list[str]:
        return [CODES, *([DIMENSION] if self.plan.layers else []), *self.references]

    def _journal(self, part: str) -> Journal:
        plan = self.plan
        settings: dict[str, Any] = dict(plan.observations)
        if part == CODES:
            settings |= {"alpha": plan.alpha}
        else:
            settings |= {"layer_samples": plan.n_layer_samples}
            settings |= {"k": K} if part == DIMENSION else {"measure": plan.measure}
        reference = self.references[part][1] if part in self.references else None
        kind = "similarity" if part in self.references else part
        # A journal holds results of many models, so its key contains only the model they are compared with.
        key = Key(f"course-{kind}", reference, self.run.fingerprint, plan.part, None, settings)
        return Journal(self.run.folder.artefacts, key)

    def missing(self, step: int) -> list[str]:
        """Return the kinds of results of a checkpoint that are not cached."""
        return [part for part, cached in self.cached.items() if self.digests[step] not in cached]

    @property
    def dataset(self) -> AbstractDataset:
        """Data of the run, which must be equal to those of the other run."""
        if self._dataset is None:
            if self.other is None:
                self._dataset = self.run.data()
            else:
                both = [Source(run.name, run.name, None, None, run.path) for run in (self.run, self.other)]
                self._dataset = find_data(both, self.other_data)
        return self._dataset

    @property
    def rows(self) -> Int[np.ndarray, " row"]:
        """Positions among ``indices`` of the observations for the results on layers, ascending."""
        n = self.plan.n_samples
        drawn = generator(self.plan.seed, "course", "layers").permutation(n)[: self.plan.n_layer_samples]
        # LayerTap requires ascending rows.
        return np.sort(drawn)

    def compress_references(self, space: Scratch) -> None:
        """Compress the layers of the models that checkpoints are compared with, if comparisons are missing.

        The last checkpoint is omitted if its own results are missing, because :meth:`measure` then encodes it.
        """
        for part, (_, digest) in self.references.items():
            missing = [step for step in self.pending if part in self.missing(step)]
            if not missing or (part == FINAL and missing[0] == self.plan.steps[-1]):
                continue
            if part == OTHER:
                assert self.other is not None
                model = self.other.model()
            else:
                model = self.run.model(self.plan.steps[-1])
            check_shape(model, self.dataset)
            # The layers of a reference are needed only until they are compressed.
            with scratch(None, self.plan.memory * 1e9 / 2) as passing:
                self._compress(part, self._layers_of(model, passing, digest), space)

    def _compress(self, part: str, layers: Mapping[str, np.ndarray], space: Scratch) -> None:
        """Store compressed layers that checkpoints are compared with; constant layers are omitted."""
        self._compressed[part] = {}
        for name, array in layers.items():
            if not is_constant(array):
                small = self._form.compress(array)
                self._compressed[part][name] = stored = space.array(small.shape, self._form.stored_as)
                stored[...] = small

    @property
    def _form(self) -> AbstractForm:
        return similarity.traits(self.plan.measure)["form"]

    def _layers_of(self, model: Model, space: Scratch, digest: str) -> dict[str, np.ndarray]:
        """Return the layers for the selected rows, from a pass over these observations only."""
        indices = self.indices[self.rows]
        tap = LayerTap(model, np.arange(len(indices)), self.plan.seed, self._stream(digest), space)
        with inference_mode(model):
            for batch in encode_batches(model, self.dataset, indices):
                tap(batch)
        return tap.layers

    def _stream(self, digest: str) -> tuple[object, ...]:
        """Return the key of the noise of a model's sampled layer: the same for all steps of this run.

        With different noise at every step, the similarity of a model that does not change would be less than 1.
        """
        is_of_run = digest in self.digests.values()
        return ("course", "sampled") if is_of_run else ("course", "sampled", digest)

    def measure(self, step: int, space: Scratch) -> None:
        """Compute and cache the missing results of a checkpoint, in one pass.

        :param step: step of the checkpoint.
        :param space: storage for the layers of the last checkpoint, which the others are compared with.
        """
        missing = self.missing(step)
        if not missing:
            return  # an earlier step had the same weights
        digest = self.digests[step]
        with scratch(None, self.plan.memory * 1e9 / 2) as passing:
            codes, layers = self._encode(step, missing, passing)
            # The last checkpoint is encoded first, and the others are compared with it.
            if FINAL in missing and FINAL not in self._compressed:
                self._compress(FINAL, layers, space)
            contents: dict[str, Any] = {}
            if CODES in missing:
                assert codes is not None
                contents[CODES] = snapshot(codes, step, self.plan.alpha)
            if DIMENSION in missing:
                contents[DIMENSION] = {name: self._dimension(name, array) for name, array in layers.items()}
            for part in self.references:
                if part in missing:
                    contents[part] = self._similarities(layers, part)
        # Also kept in memory, because the disk can be read-only.
        for part, content in contents.items():
            self.cached[part][digest] = to_plain(content)
            self._cache(part, digest, content)

    def _encode(
        self, step: int, missing: list[str], space: Scratch
    ) -> tuple[Representation | None, dict[str, np.ndarray]]:
        """Return the codes and the layers of a checkpoint; only those that are missing are computed."""
        digest = self.digests[step]
        wants_layers = any(part != CODES for part in missing)
        codes = self._cached_codes(step) if CODES in missing else None
        if codes is not None and not wants_layers:
            return codes, {}
        model = self.run.model(step)
        check_shape(model, self.dataset)
        if CODES not in missing or codes is not None:
            return codes, self._layers_of(model, space, digest)
        tap = None
        if wants_layers:
            tap = LayerTap(model, self.rows, self.plan.seed, self._stream(digest), space)
        codes = represent(model, self.dataset, self.indices, self.plan.seed, watch=tap)
        return codes, {} if tap is None else tap.layers

    def _cached_codes(self, step: int) -> Representation | None:
        """Return the representation if another analysis has cached it."""
        digest = self.digests[step]
        key = Key(
            "representation", digest, self.run.fingerprint, self.plan.part, step, dict(self.plan.observations)
        )
        return self.run.folder.artefacts.read_arrays(key, Representation.from_arrays)

    def _dimension(self, name: str, array: Float[np.ndarray, "row feature"]) -> dict[str, Any]:
        """Return the dimension of a layer with its interval, or the reason why there is none.

        It is computed once for a layer that does not change between checkpoints, such as the input.
        """
        key = files.digest_array(array)
        if self._dimensions.get(name, ("",))[0] != key:
            try:
                estimate = mle(array, k=K, normaliser="k-1", seed=self.plan.seed)
            except InputError as refusal:
                self._dimensions[name] = key, {"refused": str(refusal)}
            else:
                self._dimensions[name] = key, {"value": estimate.value, "interval": estimate.interval}
        return self._dimensions[name][1]

    def _similarities(self, layers: Mapping[str, np.ndarray], part: str) -> dict[str, float | None]:
        """Return the similarity of each layer with that of the same name; None if it is constant or has no partner."""
        partners = self._compressed[part]
        return {
            name: self._form.score(self._form.compress(array), partners[name])
            if name in partners and not is_constant(array)
            else None
            for name, array in layers.items()
        }

    def _cache(self, part: str, digest: str, content: Recordable) -> None:
        if not self.can_write:
            return
        try:
            self.journals[part].keep(digest, content)
        except OSError as error:  # on a full or read-only disk the course is still returned
            self.can_write = False
            logger.warning("the course could not be saved in the run folder: %s", error)

    def course(self) -> Course:
        """Return the course from the cached results."""
        plan = self.plan
        stored = [
            from_plain(Snapshot, self._of(CODES, step), "compute the course again") for step in plan.steps
        ]
        pairs = zip(stored, plan.steps, strict=True)
        # Two steps with the same weights share a digest, and so a cached snapshot with one of the two steps.
        snapshots = tuple(dataclasses.replace(state, step=step) for state, step in pairs)
        layers, notes = self._layer_course() if plan.layers else (None, ())
        return Course(
            name=self.run.name,
            snapshots=snapshots,
            latent=int(np.argmax(snapshots[-1].kl)) if plan.latent is None else plan.latent,
            n_samples=plan.n_samples,
            seed=plan.seed,
            alpha=plan.alpha,
            layers=layers,
            notes=(*self._about_steps(), *notes),
        )

    def _of(self, part: str, step: int) -> Any:
        return self.cached[part][self.digests[step]]

    def _layer_course(self) -> tuple[LayerCourse, tuple[str, ...]]:
        steps = self.plan.steps
        dimensions = [self._of(DIMENSION, step) for step in steps]
        names = tuple(dimensions[-1])
        refused = {
            f"Layer {name} has no dimension at some steps: {by_layer[name]['refused']}"
            for by_layer in dimensions
            for name in names
            if "refused" in by_layer[name]
        }
        missing = {"value": None, "interval": (None, None)}

        def table(read: Callable[[dict[str, Any]], float | None]) -> Float[np.ndarray, "step layer"]:
            cells = [[read({**missing, **by_layer[name]}) for name in names] for by_layer in dimensions]
            # None becomes NaN.
            return np.array(cells, dtype=np.float64)

        similarities, alone_notes = [], []
        for part, (reference, _) in self.references.items():
            values = [[self._of(part, step)[name] for name in names] for step in steps]
            title = similarity.traits(self.plan.measure).get("title", self.plan.measure)
            similar = LayerSimilarity(reference, self.plan.measure, title, np.array(values, dtype=np.float64))
            similarities.append(similar)
            alone = [
                name for name, column in zip(names, similar.values.T, strict=True) if np.isnan(column).all()
            ]
            if alone and part == OTHER:
                alone_notes.append(
                    f"Not compared with {reference}: {', '.join(alone)}. It has no layer of this name, or one of the "
                    "two is constant."
                )
        layers = LayerCourse(
            names=names,
            n_samples=self.plan.n_layer_samples,
            k=K,
            dimension=table(lambda cell: cell["value"]),
            low=table(lambda cell: cell["interval"][0]),
            high=table(lambda cell: cell["interval"][1]),
            similarities=tuple(similarities),
        )
        return layers, (*sorted(refused), *alone_notes)

    def _about_steps(self) -> tuple[str, ...]:
        pruned: tuple[str, ...] = ()
        if self.pruned:
            steps = joined(f"{step:,}" for step in sorted(self.pruned))
            pruned = (f"Checkpoints that the training process deleted meanwhile are left out: step {steps}.",)
        if len(self.plan.steps) > 2:
            return pruned
        only = "Only one checkpoint was" if len(self.plan.steps) == 1 else "Only two checkpoints were"
        return (
            *pruned,
            f"{only} used, too few for a course. A run keeps only its last two checkpoints unless it is trained with "
            "keep_checkpoints='all' (--keep-checkpoints all).",
        )
