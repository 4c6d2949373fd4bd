"""A run followed through its checkpoints: each is encoded once, and what is measured is kept as it goes."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from polariscope.analysis.course import Course, LayerCourse, LayerSimilarity, Snapshot, snapshot
from polariscope.analysis.dimension.mle import mle
from polariscope.analysis.representation import Representation
from polariscope.analysis.similarity import similarity
from polariscope.analysis.similarity.support.arrays import is_constant
from polariscope.analysis.similarity.support.forms import AbstractForm
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.progress import Progress
from polariscope.core.records import from_plain, to_plain
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset
from polariscope.layers.scratch import Scratch, scratch
from polariscope.layers.sources import Source
from polariscope.layers.tap import LayerTap
from polariscope.models.inference import check_shape, look, looking, represent
from polariscope.models.model import Model
from polariscope.runs.compare import find_data
from polariscope.storage.artefacts import Key
from polariscope.storage.journal import Journal

if TYPE_CHECKING:
    from polariscope.runs.run import Run

logger = logging.getLogger("polariscope")

K = 20
"""Neighbours behind each dimension, the same at every step, so steps can be compared."""
CODES, DIMENSION, FINAL, OTHER = "codes", "dimension", "final", "other"
"""Parts of what is measured of a checkpoint: the last two are similarities with its last state and with another run."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is followed, and on which observations."""

    steps: tuple[int, ...]
    latent: int | None
    n_samples: int
    seed: int
    alpha: float
    part: str
    layers: bool
    n_layer_samples: int
    measure: str
    memory: float

    @property
    def chosen(self) -> dict[str, Any]:
        """On which observations."""
        return {"n_samples": self.n_samples, "seed": self.seed}

    def settings(self, other: Run | None) -> dict[str, Any]:
        """All that the course depends on beside the models and the data."""
        found: dict[str, Any] = {**self.chosen, "alpha": self.alpha}
        found |= {} if self.latent is None else {"latent": self.latent}
        if self.layers:
            found |= {"layer_samples": self.n_layer_samples, "measure": self.measure}
        if other is not None:
            found |= {"against": other.name, "against_model": other.digest()}
        return found


def follow(
    run: Run,
    plan: Plan,
    indices: Int[np.ndarray, " sample"],
    *,
    given: AbstractDataset | None = None,
    other: Run | None = None,
    progress: Progress | None = None,
) -> Course:
    """Measure what is not kept yet of each checkpoint, keep it, and put everything together.

    :param run: the run.
    :param plan: what is followed.
    :param indices: the observations that are encoded.
    :param given: (default None) data in place of the run's own.
    :param other: (default None) another run, with whose last state layers are compared.
    :param progress: told how many checkpoints are done, of those that were not kept.
    """
    follower = _Follower(run, plan, indices, given, other)
    if progress is not None and follower.pending:
        progress(0, len(follower.pending))
    with scratch(None, plan.memory * 1e9 / 2) as place:
        follower.compress_references(place)
        for number, step in enumerate(follower.pending, start=1):
            follower.measure(step, place)
            if progress is not None:
                progress(number, len(follower.pending))
    return follower.course()


class _Follower:
    """The parts that are measured of each checkpoint, the journals they are kept in, and what these hold."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        indices: Int[np.ndarray, " sample"],
        given: AbstractDataset | None,
        other: Run | None,
    ) -> None:
        self.run, self.plan, self.indices, self.given, self.other = run, plan, indices, given, other
        self.can_keep = True
        self.digests = {step: run.digest(step) for step in plan.steps}
        last = plan.steps[-1]
        self.references: dict[str, tuple[str, str]] = {}
        """Of each similarity the name of the model it is with, and its digest."""
        if plan.layers:
            self.references[FINAL] = f"itself at step {last}", self.digests[last]
        if other is not None:
            self.references[OTHER] = other.name, other.digest()
        self.journals = {part: self._journal(part) for part in self._parts()}
        self.kept: dict[str, dict[str, Any]] = {part: one.read() for part, one in self.journals.items()}
        self.pending = [step for step in plan.steps if self.missing(step)]
        """Steps of which a part is missing, in the order in which they are measured."""
        if FINAL in self.missing(last):  # first, since the others are compared with it
            self.pending = [last, *self.pending[:-1]]
        self._dataset: AbstractDataset | None = None
        self._compressed: dict[str, dict[str, np.ndarray]] = {}
        self._dimensions: dict[str, tuple[str, dict[str, Any]]] = {}
        """Of each layer the hash of the last array, and its dimension."""

    def _parts(self) -> list[str]:
        return [CODES, *([DIMENSION] if self.plan.layers else []), *self.references]

    def _journal(self, part: str) -> Journal:
        plan = self.plan
        settings: dict[str, Any] = dict(plan.chosen)
        if part == CODES:
            settings |= {"alpha": plan.alpha}
        else:
            settings |= {"layer_samples": plan.n_layer_samples}
            settings |= {"k": K} if part == DIMENSION else {"measure": plan.measure}
        reference = self.references[part][1] if part in self.references else None
        kind = "similarity" if part in self.references else part
        key = Key(f"course-{kind}", reference, self.run.fingerprint, plan.part, None, settings)
        return Journal(self.run.folder.artefacts, key)

    def missing(self, step: int) -> list[str]:
        """The parts that are not kept of a checkpoint."""
        return [part for part, kept in self.kept.items() if self.digests[step] not in kept]

    # What is looked at.

    @property
    def dataset(self) -> AbstractDataset:
        """The run's data; those of another run must be the same."""
        if self._dataset is None:
            if self.other is None:
                self._dataset = self.run.data()
            else:
                both = [Source(one.name, one.name, None, None, one.path) for one in (self.run, self.other)]
                self._dataset = find_data(both, self.given)
        return self._dataset

    @property
    def rows(self) -> Int[np.ndarray, " row"]:
        """Those of them, by their place, whose layers are looked at; ascending."""
        n = self.plan.n_samples
        drawn = generator(self.plan.seed, "course", "layers").permutation(n)[: self.plan.n_layer_samples]
        return np.sort(drawn)

    def compress_references(self, place: Scratch) -> None:
        """The layers of the models that others are compared with, where something is still to be compared.

        The last state is left out when it is itself to be measured: then its layers come from that pass.
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
            with scratch(None, self.plan.memory * 1e9 / 2) as passing:
                self._compress(part, self._layers_of(model, passing, digest), place)

    def _compress(self, part: str, layers: Mapping[str, np.ndarray], place: Scratch) -> None:
        """Keep these layers, as small as the measure allows, to compare others with; those that vary."""
        self._compressed[part] = {}
        for name, array in layers.items():
            if not is_constant(array):
                small = self._form.compress(array)
                self._compressed[part][name] = stored = place.array(small.shape, self._form.kept_as)
                stored[...] = small

    @property
    def _form(self) -> AbstractForm:
        return similarity.traits(self.plan.measure)["form"]

    def _layers_of(self, model: Model, place: Scratch, digest: str) -> dict[str, np.ndarray]:
        """The layers at the chosen rows, from a pass over those observations alone."""
        chosen = self.indices[self.rows]
        tap = LayerTap(model, np.arange(len(chosen)), self.plan.seed, self._stream(digest), place)
        with looking(model):
            for seen in look(model, self.dataset, chosen):
                tap(seen)
        return tap.layers

    def _stream(self, digest: str) -> tuple[object, ...]:
        """Return the noise of a model's sampled layer: the same for all steps of the run, another for another run.

        With noise of its own each, a model that does not change would score less than 1 with itself.
        """
        own = digest in self.digests.values()
        return ("course", "sampled") if own else ("course", "sampled", digest)

    # What is measured.

    def measure(self, step: int, place: Scratch) -> None:
        """Measure what is missing of a checkpoint, in one pass, and keep it.

        :param step: its step.
        :param place: where the layers of the last state stay, for the others to be compared with.
        """
        missing = self.missing(step)
        if not missing:
            return  # another step has the same weights
        digest = self.digests[step]
        with scratch(None, self.plan.memory * 1e9 / 2) as passing:
            codes, layers = self._encode(step, missing, passing)
            if FINAL in missing and FINAL not in self._compressed:
                self._compress(FINAL, layers, place)
            found: dict[str, Any] = {}
            if CODES in missing:
                assert codes is not None
                found[CODES] = snapshot(codes, step, self.plan.alpha)
            if DIMENSION in missing:
                found[DIMENSION] = {name: self._dimension(name, array) for name, array in layers.items()}
            for part in self.references:
                if part in missing:
                    found[part] = self._similarities(layers, part)
        for part, content in found.items():
            self.kept[part][digest] = to_plain(content)
            self._keep(part, digest, content)

    def _encode(
        self, step: int, missing: list[str], place: Scratch
    ) -> tuple[Representation | None, dict[str, np.ndarray]]:
        """The codes and the layers of a checkpoint, as far as they are needed."""
        digest = self.digests[step]
        wants_layers = any(part != CODES for part in missing)
        codes = self._kept_codes(step) if CODES in missing else None
        if codes is not None and not wants_layers:
            return codes, {}
        model = self.run.model(step)
        check_shape(model, self.dataset)
        if CODES not in missing or codes is not None:
            return codes, self._layers_of(model, place, digest)
        tap = None
        if wants_layers:
            tap = LayerTap(model, self.rows, self.plan.seed, self._stream(digest), place)
        codes = represent(model, self.dataset, self.indices, self.plan.seed, watch=tap)
        return codes, {} if tap is None else tap.layers

    def _kept_codes(self, step: int) -> Representation | None:
        """The representation, if another analysis kept the same."""
        digest = self.digests[step]
        key = Key(
            "representation", digest, self.run.fingerprint, self.plan.part, step, dict(self.plan.chosen)
        )
        kept = self.run.folder.artefacts.read_arrays(key)
        return None if kept is None else Representation.from_arrays(*kept)

    def _dimension(self, name: str, array: Float[np.ndarray, "row feature"]) -> dict[str, Any]:
        """The dimension of a layer with its interval, or why there is none; of the input it is taken once."""
        key = files.digest_array(array)
        if self._dimensions.get(name, ("",))[0] != key:
            try:
                found = mle(array, k=K, normaliser="k-1", seed=self.plan.seed)
            except InputError as refusal:
                self._dimensions[name] = key, {"refused": str(refusal)}
            else:
                self._dimensions[name] = key, {"value": found.value, "interval": found.interval}
        return self._dimensions[name][1]

    def _similarities(self, layers: Mapping[str, np.ndarray], part: str) -> dict[str, float | None]:
        """Each layer with the one of the same name; None for one that never varies or has no partner."""
        partners = self._compressed[part]
        return {
            name: self._form.score(self._form.compress(array), partners[name])
            if name in partners and not is_constant(array)
            else None
            for name, array in layers.items()
        }

    def _keep(self, part: str, digest: str, content: object) -> None:
        if not self.can_keep:
            return
        try:
            self.journals[part].keep(digest, content)
        except OSError as error:  # a full or read-only disk: the course can still be looked at
            self.can_keep = False
            logger.warning("the course could not be kept beside the run: %s", error)

    # What comes of it.

    def course(self) -> Course:
        """Everything that is kept, put together."""
        plan = self.plan
        kept = [from_plain(Snapshot, self._of(CODES, step), "follow the run again") for step in plan.steps]
        pairs = zip(kept, plan.steps, strict=True)
        # Two steps may have the same weights, and so the same digest.
        snapshots = tuple(dataclasses.replace(one, step=step) for one, step in pairs)
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
        return self.kept[part][self.digests[step]]

    def _layer_course(self) -> tuple[LayerCourse, tuple[str, ...]]:
        steps = self.plan.steps
        dimensions = [self._of(DIMENSION, step) for step in steps]
        names = tuple(dimensions[-1])
        refused = {
            f"Layer {name} has no dimension at some steps: {found[name]['refused']}"
            for found in dimensions
            for name in names
            if "refused" in found[name]
        }
        nothing = {"value": None, "interval": (None, None)}

        def table(read: Callable[[dict[str, Any]], float | None]) -> Float[np.ndarray, "step layer"]:
            cells = [[read({**nothing, **found[name]}) for name in names] for found in dimensions]
            return np.array(cells, dtype=np.float64)

        similarities, alone_notes = [], []
        for part, (reference, _) in self.references.items():
            values = [[self._of(part, step)[name] for name in names] for step in steps]
            title = similarity.traits(self.plan.measure).get("title", self.plan.measure)
            found = LayerSimilarity(reference, self.plan.measure, title, np.array(values, dtype=np.float64))
            similarities.append(found)
            alone = [
                name for name, column in zip(names, found.values.T, strict=True) if np.isnan(column).all()
            ]
            if alone and part == OTHER:
                alone_notes.append(
                    f"Not compared with {reference}: {', '.join(alone)}. It has no layer of this name, or one of the "
                    "two never varies."
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
        if len(self.plan.steps) > 2:
            return ()
        only = "Only one step was" if len(self.plan.steps) == 1 else "Only two steps were"
        return (
            f"{only} looked at, too few for a course. A run keeps its last two checkpoints unless it is trained "
            "to keep all of them (keep_checkpoints='all', --keep-checkpoints all).",
        )
