"""Comparison of the layers of models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from polariscope.analysis.code_view import Pool
from polariscope.analysis.layer_checks import check_table, is_constant
from polariscope.analysis.layer_forms import AbstractForm
from polariscope.analysis.similarity import similarity
from polariscope.core import files
from polariscope.core.errors import Argument, InputError, check_word
from polariscope.core.options import check_options
from polariscope.core.progress import Progress, Task
from polariscope.core.seeds import generator
from polariscope.core.types import OptionValue
from polariscope.data.dataset import AbstractDataset
from polariscope.data.observations import LAYER_SAMPLES
from polariscope.layers.comparison import Comparison
from polariscope.layers.layer_sources import Layers, Source, encode_layers
from polariscope.layers.scratch import Scratch, scratch

PARTS = 5
SMALLEST_PART = 20  # samples; the spread over smaller parts is not informative about all samples


def compare_layers(
    sources: list[Source],
    dataset: AbstractDataset | None,
    measure: str = "cka",
    n_samples: int | None = LAYER_SAMPLES,
    seed: int = 0,
    *,
    folder: str | Path | None = None,
    memory: float | int = 4.0,
    progress: Progress | None = None,
    pool: Pool = "none",
    **options: OptionValue,
) -> Comparison:
    """Compute the similarity of every layer of every source with every other; see :func:`polariscope.compare`.

    :param dataset: data on which models are compared; None for sources with activations.
    """
    check_word("pool", pool, get_args(Pool))
    if pool != "none" and dataset is None:
        raise InputError(
            problem=(Argument("pool"), " is for models, and these activations have no positions"),
            remedy="average them before, for example with Representation.averaged",
        )
    concept = similarity[measure]
    options = check_options(f"similarity {measure!r}", concept, options)
    form: AbstractForm = similarity.traits(measure)["form"]
    task = Task(progress, "comparing layers", "model")
    # Half of the memory is for compressed layers, the other half for the layers of the model that is being encoded.
    with scratch(folder, memory * 1e9 / 2) as arrays:
        bank = _Bank(form, options, arrays)
        layers: list[tuple[str, ...]] = []
        digests: list[str] = []
        notes: list[str] = []
        widest = 0
        for source, digest, layers_of_model in _layers_of(
            sources, dataset, n_samples, seed, folder, memory * 1e9 / 2, pool
        ):
            message = (
                f"{source.label}: {len(layers_of_model)} layers, model {len(layers) + 1} of {len(sources)}"
            )
            task(len(layers), len(sources), message)
            varying = {
                name: array
                for name, array in layers_of_model.items()
                if not _is_constant(array, source, name)
            }
            notes += [_left_out(source, name) for name in layers_of_model if name not in varying]
            if not varying:
                raise InputError(
                    problem=f"no layer of {source.label} varies over these samples",
                    remedy="compare it on other data",
                )
            for name, array in varying.items():
                bank.add(array, f"layer {name} of {source.label}", seed)
            widest = max(widest, *(array.shape[1] for array in varying.values()))
            layers.append(tuple(varying))
            digests += [] if digest is None else [digest]
        task(len(sources), len(sources), f"scoring all pairs of {len(bank.order)} layers")
        scores, parts = bank.scores()
        n = bank.n_samples
        notes += bank.notes
    if widest > n and similarity.traits(measure)["too_high_when_wide"]:
        others = [name for name in similarity.working() if not similarity.traits(name)["too_high_when_wide"]]
        notes.append(
            f"The widest layer has {widest} features for {n} samples, and {measure} is too high for such layers. "
            f"Compare changes, not levels, or use another measure ({', '.join(others)})."
        )
    return Comparison(
        measure=measure,
        title=similarity.traits(measure).get("title", measure),
        options=options if pool == "none" else {**options, "pool": pool},
        models=tuple(source.label for source in sources),
        groups=tuple(source.group for source in sources),
        layers_of=tuple(layers),
        matrix=scores,
        parts=parts,
        n_samples=n,
        seed=seed,
        notes=tuple(notes),
        checkpoints=tuple(source.checkpoint for source in sources if source.checkpoint is not None),
        digests=tuple(digests),
    )


def _layers_of(
    sources: list[Source],
    dataset: AbstractDataset | None,
    n_samples: Any,
    seed: int,
    folder: Any,
    budget: float,
    pool: Pool,
) -> Iterator[tuple[Source, str | None, Layers]]:
    """Yield each source, its model's digest if it has one, and its layers, in memory or on disk."""
    if dataset is None:
        for source in sources:
            assert source.layers is not None
            yield source, None, source.layers
        return
    if n_samples is not None and (not isinstance(n_samples, int | np.integer) or n_samples < 2):
        raise InputError(
            "n_samples", "be an integer of at least 2, or None for all of the data", got=n_samples
        )
    n = len(dataset) if n_samples is None else min(int(n_samples), len(dataset))
    indices = generator(seed, "encode").choice(len(dataset), size=n, replace=False)
    runs: dict[Path, int] = {}
    digests: dict[str, int] = {}
    for number, source in enumerate(sources):
        # Checkpoints of one run and equal models share a stream of noise.
        first = number if source.run is None else runs.setdefault(source.run, number)

        # The default argument binds the number of this pass.
        def number_of(digest: str, first: int = first) -> int:
            return digests.setdefault(digest, first)

        # Each model has its own scratch, so its layers are deleted before the next model is encoded.
        with scratch(folder, budget) as arrays:
            yield source, *encode_layers(source, number_of, dataset, indices, seed, arrays, pool)


def _is_constant(array: np.ndarray, source: Source, name: str) -> bool:
    return is_constant(check_table(array, f"layer {name} of {source.label}"))


def _left_out(source: Source, name: str) -> str:
    return f"Layer {name} of {source.label} is constant and was left out."


class _Bank:
    """Compressed layers, of all samples and of disjoint fifths of them; equal layers are stored once."""

    def __init__(self, form: AbstractForm, options: dict[str, Any], arrays: Scratch) -> None:
        self.form, self.options, self.arrays = form, options, arrays
        self.n_samples = 0
        self.notes: list[str] = []
        self.order: list[int] = []
        """Index of the compressed form of each layer."""
        self._known: dict[str, int] = {}
        self._rows: list[np.ndarray] = []
        self._compressed: list[list[np.ndarray]] = []

    def add(self, array: Float[np.ndarray, "sample feature"], name: str, seed: int) -> None:
        """Compress a layer, unless an equal one is stored."""
        if not self.n_samples:
            self.n_samples = len(array)
            if self.n_samples >= PARTS * SMALLEST_PART:
                shuffled = generator(seed, "compare", "parts").permutation(self.n_samples)
                self._rows = [np.sort(rows) for rows in np.array_split(shuffled, PARTS)]
                size = min(map(len, self._rows))
                self._rows = [rows[:size] for rows in self._rows]  # equal sizes have comparable spreads
            self._compressed = [[] for _ in range(1 + len(self._rows))]
        if len(array) != self.n_samples:
            raise InputError(
                "layers",
                "have a row for each of the same samples",
                got=f"{self.n_samples} rows first and {len(array)} in {name}",
            )
        # Layers are often equal, such as the input of all models.
        key = files.digest_array(array)
        if key not in self._known:
            self._known[key] = len(self._known)
            try:
                self._compressed[0].append(self._compress(array))
            except InputError as error:
                raise InputError(problem=f"{name} cannot be compared: {error}") from None
            self._compress_parts(array, name)
        self.order.append(self._known[key])

    def _compress_parts(self, array: np.ndarray, name: str) -> None:
        try:
            for compressed, rows in zip(self._compressed[1:], self._rows, strict=True):
                compressed.append(self._compress(array[rows]))
        except InputError as error:
            self.notes.append(
                f"There are no standard errors, because {name} cannot be compared on a fifth of the samples ({error})"
            )
            # Dropped for all layers, because tables of the parts need every layer.
            self._rows, self._compressed = [], self._compressed[:1]

    def _compress(self, array: np.ndarray) -> np.ndarray:
        small = self.form.compress(array, **self.options)
        compressed = self.arrays.array(small.shape, self.form.stored_as)
        compressed[...] = small
        return compressed

    def scores(
        self,
    ) -> tuple[Float[np.ndarray, "layer other_layer"], Float[np.ndarray, "part layer other_layer"]]:
        """Return the scores of every layer with every other, on all samples and on each part."""
        # Equal layers share a compressed form, so its scores are repeated for each of them.
        tables = [
            self.form.score_all(compressed)[np.ix_(self.order, self.order)] for compressed in self._compressed
        ]
        whole, *parts = tables
        # Without parts the result is empty, with the shape (0, layer, layer).
        return whole, np.array(parts).reshape(-1, *whole.shape)
