"""Result of a comparison of every layer of every model with every other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from polariscope.core.errors import InputError, unknown
from polariscope.core.paths import user_path
from polariscope.core.records import AbstractRecord, AbstractStoredRecord, to_plain
from polariscope.core.seeds import generator
from polariscope.layers.labels import Block, blocks_of, thinned
from polariscope.storage.outputs import write_comparison

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

MIN_STEPS = 3  # for two steps, all layers of one are shown with all of the other
MIN_RESAMPLED = 3  # models; pairs share models, so their spread is not the error of a mean over models
N_RESAMPLES = 500
MAX_WITH_PARTS = 100  # layers of all models; 40 checkpoints of 16 layers would fill 60 megabytes


@dataclasses.dataclass(frozen=True, eq=False)
class HeatMap(AbstractRecord):
    """Similarity of the layers of two models, of two groups of models on average, or of the steps of a run."""

    values: Float[np.ndarray, "row column"]
    errors: Float[np.ndarray, "row column"] | None
    """Standard error over the draw of ``resampled``; None if there are no scores on parts of the samples, see
    :class:`Comparison`."""
    spread: Float[np.ndarray, "row column"] | None
    """Standard deviation over the pairs of models; None for a single pair."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_label: str
    column_label: str
    n_pairs: int
    measure: str
    n_samples: int
    about: str = ""
    """Description of the comparison, if it differs from the labels of rows and columns."""
    title: str = ""
    """Title of the measure in figures; if it is empty, the name is used."""
    resampled: Literal["samples", "models"] = "samples"
    """Units over which errors are computed: models if three or more are averaged, otherwise samples."""

    def matching(self) -> dict[str, tuple[float, float | None]]:
        """Return score and error of each layer with the layer of the same name."""
        return {
            layer: (
                float(self.values[row, self.columns.index(layer)]),
                None if self.errors is None else float(self.errors[row, self.columns.index(layer)]),
            )
            for row, layer in enumerate(self.rows)
            if layer in self.columns
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of scores, with the names of layers or steps."""
        import pandas

        rows = pandas.Index(self.rows, name=self.row_label)
        return pandas.DataFrame(
            self.values, index=rows, columns=pandas.Index(self.columns, name=self.column_label)
        )

    def figure(self) -> Figure:
        """Draw the heat map with encoder, latent and decoder marked."""
        from polariscope.layers.figure import draw_heat_map

        return draw_heat_map(self)

    def __str__(self) -> str:
        from polariscope.layers.comparison_text import table_of

        return str(table_of(self))


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison(AbstractStoredRecord, remedy="compare the models again"):
    """Similarity of every layer of every model with every other; models in order of input, layers in network order."""

    measure: str
    options: Mapping[str, object]
    models: tuple[str, ...]
    groups: tuple[str, ...]
    """Group of each model, for averages."""
    layers_of: tuple[tuple[str, ...], ...]
    """Layers of each model."""
    matrix: Float[np.ndarray, "layer other_layer"]
    """All scores; rows and columns are the layers of the first model, then of the second, …"""
    parts: Float[np.ndarray, "part layer other_layer"]
    """Scores on disjoint fifths of the samples; empty if there are too few samples, or if many layers were read
    back."""
    n_samples: int
    seed: int
    notes: tuple[str, ...]
    """Limits of the comparison."""
    checkpoints: tuple[tuple[int, int], ...] = ()
    """Run of each model, from 0, and its step, for checkpoints; empty for other models."""
    digests: tuple[str, ...] = ()
    """Hash of each model's architecture and weights; empty for activations."""
    title: str = ""
    """Title of the measure in figures, stored with the scores, so pages do not import the measure."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps at which all runs have a checkpoint, in order; empty if no checkpoints were compared."""
        runs = {run for run, _ in self.checkpoints}
        steps = sorted({step for _, step in self.checkpoints})
        return tuple(step for step in steps if all((run, step) in self.checkpoints for run in runs))

    @property
    def is_course(self) -> bool:
        """If True, there are checkpoints of enough steps to compare steps with each other."""
        return len(self.steps) >= MIN_STEPS

    @property
    def layers(self) -> tuple[str, ...]:
        """Layers that all models share."""
        return tuple(
            layer for layer in self.layers_of[0] if all(layer in names for names in self.layers_of[1:])
        )

    @property
    def blocks(self) -> dict[Block, tuple[int, int]]:
        """First and last index of encoder, latent and decoder in :attr:`layers`."""
        return blocks_of(self.layers)

    @property
    def scores(self) -> Float[np.ndarray, "model layer other_model other_layer"]:
        """Scores of the layers that all models share."""
        return self._four(self.matrix)

    @property
    def errors(self) -> Float[np.ndarray, "model layer other_model other_layer"] | None:
        """Standard errors of :attr:`scores` from the draw of the samples; None without :attr:`parts`."""
        errors = _error(self.parts)
        return None if errors is None else self._four(errors)

    def _four(self, matrix: np.ndarray) -> np.ndarray:
        indices = [self._index(model, layer) for model in range(len(self.models)) for layer in self.layers]
        shape = (len(self.models), len(self.layers))
        return matrix[np.ix_(indices, indices)].reshape(*shape, *shape)

    def _index(self, model: int, layer: str) -> int:
        return sum(map(len, self.layers_of[:model])) + self.layers_of[model].index(layer)

    def average(self, one: str | None = None, other: str | None = None) -> HeatMap:
        r"""Return the heat map of two groups (or models), averaged over the pairs of their models.

        .. math:: \frac{1}{|A||B|} \sum_{i, l} \mathrm{sim}(M_j^{A_i}, M_k^{B_l})

        By default the first of two groups is compared with the second, or the only group with itself; for three or more
        groups, all pairs of different models are averaged. A model is not paired with itself, where it would score 1,
        unless there is no other. Only layers that the models share are included.

        Reference: bonheme2023 Eq. 7.9.
        """
        names = list(dict.fromkeys(self.groups))
        if one is None and other is None and len(names) > 2:
            return self.overall()
        one = names[0] if one is None else one
        other = (names[min(1, len(names) - 1)]) if other is None else other
        pairs = [(a, b) for a in self._members(one) for b in self._members(other)]
        pairs = [pair for pair in pairs if pair[0] != pair[1]] or pairs
        rows, columns = self._shared([a for a, _ in pairs]), self._shared([b for _, b in pairs])

        def tables(matrix: np.ndarray) -> np.ndarray:
            return np.stack(
                [
                    matrix[np.ix_([self._index(a, x) for x in rows], [self._index(b, y) for y in columns])]
                    for a, b in pairs
                ]
            )

        scores = tables(self.matrix)
        # Averaged over the pairs first, because the error is that of their mean.
        parts = np.array([tables(part).mean(axis=0) for part in self.parts])
        table = self._heat_map(scores, parts, rows=rows, columns=columns, row_label=one, column_label=other)
        n_models = len({model for pair in pairs for model in pair})
        if n_models < MIN_RESAMPLED or len(pairs) < 2:
            return table
        draw = generator(self.seed, "compare", "models")
        return dataclasses.replace(table, errors=_error_over_models(pairs, scores, draw), resampled="models")

    def course(self, reference: int | None = None) -> HeatMap:
        r"""Return the similarity of every layer at every step (rows) with itself at the last, or at another, step.

        .. math:: \frac1R \sum_{r=1}^{R} \mathrm{sim}(M_l^{r, t}, M_l^{r, T})

        for layer l at step t of run r, with T the reference; each run is compared only with itself. A layer that
        reaches 1 early has converged early. The row of the reference is 1. All steps of a run use the same noise, so
        the sampled layer and the decoder differ only because of training.

        Reference: bonheme2023 §7.3, which compares epochs with each other.
        """
        steps, layers = self._check_steps(reference), self.layers
        last = steps[-1] if reference is None else reference
        pairs = [[(layer, t, last) for layer in layers] for t in steps]
        about = f"each layer of {self._run_names()} at each step with itself at step {last}"
        return self._of_runs(pairs, _step_names(steps), layers, f"layer, with itself at step {last}", about)

    def between_steps(self, layer: str = "mean") -> HeatMap:
        """Return the similarity of a layer between all steps, averaged over runs as in :meth:`course`."""
        steps = self._check_steps(None)
        if layer not in self.layers:
            raise unknown("layer of all models", layer, self.layers)
        pairs = [[(layer, t, other) for other in steps] for t in steps]
        names = _step_names(steps)
        return self._of_runs(
            pairs, names, names, "step", f"{layer} of {self._run_names()}, steps with each other"
        )

    def _check_steps(self, reference: int | None) -> tuple[int, ...]:
        steps = self.steps
        if not steps:
            raise InputError(
                problem="a comparison of steps requires checkpoints", remedy="compare the checkpoints of runs"
            )
        if reference is not None and reference not in steps:
            raise InputError("reference", f"be one of the steps {', '.join(map(str, steps))}", got=reference)
        return steps

    def _run_names(self) -> str:
        names = dict.fromkeys(model.partition(" at ")[0] for model in self.models)
        return ", ".join(names) if len(names) <= 3 else f"{len(names)} runs"

    def _of_runs(
        self,
        pairs: list[list[tuple[str, int, int]]],
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        column_label: str,
        about: str,
    ) -> HeatMap:
        """Return the heat map whose cells are the scores of a layer at two steps, averaged over runs."""

        def index(run: int, layer: str, step: int) -> int:
            return self._index(self.checkpoints.index((run, step)), layer)

        runs = sorted({run for run, _ in self.checkpoints})
        one = np.array([[[index(run, layer, a) for layer, a, _ in row] for row in pairs] for run in runs])
        other = np.array([[[index(run, layer, b) for layer, _, b in row] for row in pairs] for run in runs])
        parts = np.array([part[one, other].mean(axis=0) for part in self.parts])
        return self._heat_map(
            self.matrix[one, other],
            parts,
            rows=rows,
            columns=columns,
            row_label="step",
            column_label=column_label,
            about=about,
        )

    def _heat_map(self, scores: np.ndarray, parts: np.ndarray, **names: Any) -> HeatMap:
        """Return the mean over the tables of several pairs of models, with errors from the parts of the samples."""
        return HeatMap(
            values=scores.mean(axis=0),
            errors=_error(parts),
            spread=scores.std(axis=0, ddof=1) if len(scores) > 1 else None,
            n_pairs=len(scores),
            measure=self.measure,
            title=self.title,
            n_samples=self.n_samples,
            **names,
        )

    def overall(self) -> HeatMap:
        """Return the heat map averaged over all pairs of different models of any group."""
        joined = dataclasses.replace(self, groups=tuple(f"{len(self.models)} models" for _ in self.models))
        return joined.average()

    def _members(self, name: str) -> list[int]:
        indices = [index for index, group in enumerate(self.groups) if group == name]
        indices = indices or [index for index, model in enumerate(self.models) if model == name]
        if not indices:
            raise unknown("group or model", name, {*self.groups, *self.models})
        return indices

    def _shared(self, models: list[int]) -> tuple[str, ...]:
        first, *rest = (self.layers_of[model] for model in dict.fromkeys(models))
        return tuple(layer for layer in first if all(layer in names for names in rest))

    def maps(self) -> list[HeatMap]:
        """Return the heat maps to print: the headline and, for checkpoints, the codes between steps."""
        if not self.is_course:
            return [self.headline()]
        return [self.headline(), self.between_steps("mean" if "mean" in self.layers else self.layers[-1])]

    def figure(self, one: str | None = None, other: str | None = None) -> Figure:
        """Draw the averaged heat map."""
        return self.average(one, other).figure()

    def to_frame(self) -> pandas.DataFrame:
        """Return the table of all scores: each layer of each model with every other, indexed by model and layer."""
        import pandas

        labels = [
            (model, layer)
            for model, layers in zip(self.models, self.layers_of, strict=True)
            for layer in layers
        ]
        index = pandas.MultiIndex.from_tuples(labels, names=["model", "layer"])
        return pandas.DataFrame(self.matrix, index=index, columns=index)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values; with more than 100 layers in total, without scores on parts of the samples.

        Every layer is scored with every other, and again on each part, so the parts are most of a large file. Standard
        errors are computed from them, so they are missing when a comparison of many layers is read back.
        """
        many = len(self.matrix) > MAX_WITH_PARTS
        return to_plain(dataclasses.replace(self, parts=self.parts[:0]) if many else self)

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write the scores and a picture of the averaged heat map to a folder, and return their paths.

        The file contains :meth:`to_dict`, the picture at most 12 steps of checkpoints.
        """
        figure = thinned(self.headline()).figure()
        return write_comparison(user_path(folder, "folder"), self.to_dict(), figure)

    def headline(self) -> HeatMap:
        """Return the main heat map: the course of checkpoints, that of two groups, or that of all pairs of models."""
        if self.is_course:
            return self.course()
        return self.average()

    def __str__(self) -> str:
        from polariscope.layers.comparison_text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from polariscope.layers.comparison_text import as_html

        return as_html(self)


def _step_names(steps: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"step {step}" for step in steps)


def _error(parts: np.ndarray) -> np.ndarray | None:
    """Return the standard error from disjoint parts of equal size: their standard deviation divided by √(number)."""
    return parts.std(axis=0, ddof=1) / np.sqrt(len(parts)) if len(parts) > 1 else None


def _error_over_models(
    pairs: list[tuple[int, int]], tables: Float[np.ndarray, "pair row column"], draw: np.random.Generator
) -> Float[np.ndarray, "row column"]:
    """Return the standard error of a mean over pairs by resampling models; a pair is weighted by both multiplicities.

    Rows and columns are resampled separately if they are of different models, and together if the models are the same.
    Resamples without a pair of different models are left out.
    """
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    times = [_multiplicities(one, draw)]
    times.append(times[0] if set(one) == set(other) else _multiplicities(other, draw))
    weights = times[0][:, one] * times[1][:, other]
    weights = weights[weights.sum(axis=1) > 0]
    shares = weights / weights.sum(axis=1, keepdims=True)
    means = np.einsum("rp,pij->rij", shares, tables)
    return means.std(axis=0, ddof=1)


def _multiplicities(models: list[int], draw: np.random.Generator) -> Float[np.ndarray, "resample model"]:
    """Return the count of each model in each resample; 0 for models that are not in the list."""
    distinct = sorted(set(models))
    counts = np.zeros((N_RESAMPLES, max(distinct) + 1))
    # The counts of a bootstrap resample are multinomial.
    counts[:, distinct] = draw.multinomial(
        len(distinct), np.full(len(distinct), 1 / len(distinct)), size=N_RESAMPLES
    )
    return counts
