"""Writes the pages on datasets of images: pictures of every factor, and a table of what there is to find.

    python docs/datasets.py shapes3d sprites [--out docs/datasets] [--images 4000]

For each name it writes NAME.md, NAME-factors.png (every factor moved alone) and NAME-samples.png (random images). What
is drawn at random follows from a fixed seed, so the pages come out the same every time.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import inspect
import math
from collections import Counter
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8
from PIL import Image, ImageDraw

from polariscope.core import files
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, AbstractGridDataset
from polariscope.data.sources import load_dataset

VISIBLE = 4
"""Levels of 255 by which a channel has to differ for its pixel to count as changed."""
COLUMNS = 12
RIDGES = 10.0 ** np.arange(-6, 2)
"""Weights of the penalty that the linear probe chooses from, in units of the mean squared norm of an image."""


@dataclasses.dataclass(frozen=True)
class Line:
    """What the table says of one discrete factor, or of all continuous factors together."""

    name: str
    kind: str
    size: int
    probe: float
    chance: float
    pixels: float
    local_variance: float
    global_variance: float


@dataclasses.dataclass(frozen=True)
class Table:
    """Images of a dataset with their factors, and which columns of the factors make a line of the page."""

    data: AbstractDataset
    n_images: int = 4000
    n_pairs: int = 1000

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Discrete factors alone, continuous ones together: they need not vary one by one, as in a quaternion."""
        discrete: list[tuple[int, ...]] = [
            (column,) for column, size in enumerate(self.data.factor_sizes) if size
        ]
        return [*discrete, self.continuous] if self.continuous else discrete

    @property
    def continuous(self) -> tuple[int, ...]:
        return tuple(column for column, size in enumerate(self.data.factor_sizes) if not size)

    @functools.cached_property
    def indices(self) -> Int[np.ndarray, " sample"]:
        random = generator(0, "docs", self.data.name, "images")
        return random.choice(len(self.data), size=min(self.n_images, len(self.data)), replace=False)

    @functools.cached_property
    def values(self) -> Float[np.ndarray, "sample feature"]:
        return self.data.values(self.indices).reshape(len(self.indices), -1)

    @functools.cached_property
    def all_factors(self) -> Shaped[np.ndarray, "sample factor"]:
        return self.data.factors(np.arange(len(self.data)))

    def lines(self) -> list[Line]:
        """One line for each group of factors."""
        factors = self.data.factors(self.indices)
        targets = [_targets(factors[:, group], self.data.factor_kinds[group[0]]) for group in self.groups]
        probes = linear_probes(self.values, targets)
        local = [self.local_variance(group) for group in self.groups]
        total = float(self.values.var(axis=0, ddof=1).sum())
        lines = []
        for group, probe, variance in zip(self.groups, probes, local, strict=True):
            kind, size = self.data.factor_kinds[group[0]], self.data.factor_sizes[group[0]]
            start, end = self.pairs(group, is_step=False)
            between = variance_between(self.values, factors[:, group[0]]) if size else math.nan
            lines.append(
                Line(
                    name=", ".join(self.data.factor_names[column] for column in group),
                    kind=kind,
                    size=size,
                    probe=probe,
                    chance=1 / size if _is_class(kind) else math.nan,
                    pixels=changed_pixels(self.data.images(start), self.data.images(end)),
                    local_variance=variance / sum(local),
                    global_variance=between / total,
                )
            )
        return lines

    def local_variance(self, group: tuple[int, ...]) -> float:
        r"""E ‖∂x/∂w‖² · Var(w) by the smallest step there is.

        A step of an ordinal or cyclic factor of n values counts 1, and Var(w) = (n² − 1)/12. A categorical factor has
        no steps: half the mean squared distance over all pairs of values is its variance. For continuous factors the
        step is to the nearest neighbour, E ‖Δx‖²/‖Δw‖² · tr Var(w).
        """
        start, end = self.pairs(group, is_step=True)
        change = ((self.data.values(start) - self.data.values(end)) ** 2).sum(axis=(1, 2, 3))
        kind, size = self.data.factor_kinds[group[0]], self.data.factor_sizes[group[0]]
        if not size:
            moved = self.data.factors(start)[:, group] - self.data.factors(end)[:, group]
            spread = self.data.factors(self.indices)[:, group].var(axis=0).sum()
            return float((change / (moved**2).sum(axis=1)).mean() * spread)
        if kind == "categorical":
            return float(change.mean() * (1 - 1 / size) / 2)
        return float(change.mean() * (size**2 - 1) / 12)

    def pairs(
        self, group: tuple[int, ...], is_step: bool
    ) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """Observations that differ in one group of factors: by the smallest step, or anyhow."""
        random = generator(0, "docs", self.data.name, "pairs", *group)
        start = random.integers(len(self.data), size=self.n_pairs)
        if not isinstance(self.data, AbstractGridDataset):
            return self._neighbours(start, group, is_step, random)
        column = group[0]
        kind, size = self.data.factor_kinds[column], self.data.factor_sizes[column]
        factors = self.data.factors(start)
        if is_step and kind != "categorical":
            last = (factors[:, column] == size - 1) & (kind == "ordinal")
            factors[:, column] = (factors[:, column] + np.where(last, -1, 1)) % size
        else:
            factors[:, column] = (factors[:, column] + random.integers(1, size, size=len(start))) % size
        return start, self.data.index_of(factors)

    def _neighbours(
        self,
        start: Int[np.ndarray, " pair"],
        group: tuple[int, ...],
        is_step: bool,
        random: np.random.Generator,
    ) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """Partners without a grid: nearest in the continuous factors, among those that may differ."""
        from scipy.spatial import cKDTree

        every = self.all_factors
        discrete = [column for column, size in enumerate(self.data.factor_sizes) if size]
        end = np.empty_like(start)
        for kept in np.unique(every[:, discrete], axis=0):
            here = (every[start][:, discrete] == kept).all(axis=1)
            alike = (every[:, discrete] == kept).all(axis=1)
            if group != self.continuous:  # another value of this factor, the same of the others
                others = [column for column in discrete if column not in group]
                alike = ~alike & (every[:, others] == every[alike][0, others]).all(axis=1)
            choice = np.flatnonzero(alike)
            if group == self.continuous and not is_step:
                end[here] = random.choice(choice, size=here.sum())
            else:
                near = cKDTree(every[choice][:, self.continuous])
                rank = 2 if group == self.continuous else 1  # the nearest to itself is itself
                _, found = near.query(every[start[here]][:, self.continuous], k=[rank])
                end[here] = choice[found[:, 0]]
        return start, end


def _is_class(kind: str) -> bool:
    return kind in ("categorical", "cyclic")


def _targets(columns: Shaped[np.ndarray, "sample column"], kind: str) -> Float[np.ndarray, "sample target"]:
    """What a linear probe predicts: one column for each class, or the values."""
    if not _is_class(kind):
        return columns.astype(np.float64)
    return (columns == np.unique(columns)).astype(np.float64)


def linear_probes(
    values: Float[np.ndarray, "sample feature"], targets: list[Float[np.ndarray, "sample target"]]
) -> list[float]:
    """Ridge regression on pixels, all targets at once: accuracy of classes, R² of values, on a fifth held out.

    :param values: images, one row each.
    :param targets: for each factor its classes as columns of 0 and 1, or its values.
    """
    n_train = len(values) * 3 // 5
    n_choose = len(values) * 4 // 5
    train, choose, test = slice(0, n_train), slice(n_train, n_choose), slice(n_choose, None)
    x = (values - values[train].mean(axis=0)).astype(np.float64)
    products = x @ x[train].T
    eigenvalues, vectors = np.linalg.eigh(products[train])
    scores = []
    for target in targets:
        mean = target[train].mean(axis=0)
        rotated = vectors.T @ (target[train] - mean)
        best = (-math.inf, math.nan)
        for ridge in RIDGES * eigenvalues.sum() / n_train:
            coefficients = vectors @ (rotated / (np.maximum(eigenvalues, 0) + ridge)[:, np.newaxis])
            predicted = products @ coefficients + mean
            best = max(
                best, (_score(predicted[choose], target[choose]), _score(predicted[test], target[test]))
            )
        scores.append(best[1])
    return scores


def _score(
    predicted: Float[np.ndarray, "sample target"], target: Float[np.ndarray, "sample target"]
) -> float:
    """Accuracy where the target is one class of several, R² otherwise."""
    if target.shape[1] > 1 and (target.sum(axis=1) == 1).all() and np.isin(target, (0, 1)).all():
        return float((predicted.argmax(axis=1) == target.argmax(axis=1)).mean())
    return float(1 - ((predicted - target) ** 2).sum() / ((target - target.mean(axis=0)) ** 2).sum())


def changed_pixels(
    before: UInt8[np.ndarray, "pair channel height width"],
    after: UInt8[np.ndarray, "pair channel height width"],
) -> float:
    """Share of pixels that differ visibly in some channel.

    :param before: images.
    :param after: the same images with one factor moved.
    """
    difference = np.abs(before.astype(np.int16) - after.astype(np.int16)).max(axis=1)
    return float((difference > VISIBLE).mean())


def variance_between(
    values: Float[np.ndarray, "sample feature"], labels: Shaped[np.ndarray, " sample"]
) -> float:
    r"""Var(E[x | w]) summed over pixels, without the part that few images for each value would add.

    With n₀ images for each of V values, the mean squares between and within values give
    (MSB − MSW) / n₀ · (V − 1) / V.

    :param values: images, one row each.
    :param labels: value of the factor in each.
    """
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    n, n_values = len(labels), len(counts)
    means = np.zeros((n_values, values.shape[1]))
    np.add.at(means, codes, values)
    means /= counts[:, np.newaxis]
    overall = values.mean(axis=0, dtype=np.float64)
    between = (counts * ((means - overall) ** 2).sum(axis=1)).sum() / (n_values - 1)
    within = ((values.astype(np.float64) - overall) ** 2).sum() - between * (n_values - 1)
    per_value = (n - (counts**2).sum() / n) / (n_values - 1)
    return float((between - within / (n - n_values)) / per_value * (n_values - 1) / n_values)


@dataclasses.dataclass(frozen=True)
class Distinct:
    """How many different images there are, and which factors differ where two are the same."""

    n_images: int
    n_distinct: int
    causes: tuple[tuple[str, int, str], ...]
    """Factors that differ, how many images repeat an earlier one so, and an example."""


def distinct(data: AbstractDataset, batch: int = 1000) -> Distinct:
    """Every image of the dataset is drawn, and equal ones are found by their hash.

    :param data: images.
    :param batch: (default 1000) how many are drawn at once.
    """
    first: dict[bytes, int] = {}
    repeats = []
    for begin in range(0, len(data), batch):
        indices = np.arange(begin, min(begin + batch, len(data)))
        for index, image in zip(indices.tolist(), data.images(indices), strict=True):
            earlier = first.setdefault(hashlib.blake2b(image.tobytes(), digest_size=16).digest(), index)
            if earlier != index:
                repeats.append((earlier, index))
    causes: Counter[tuple[str, ...]] = Counter()
    examples: dict[tuple[str, ...], str] = {}
    if repeats:
        one, other = (data.factors(np.array(part)) for part in zip(*repeats, strict=True))
        for before, after in zip(one, other, strict=True):
            names = tuple(name for name, a, b in zip(data.factor_names, before, after, strict=True) if a != b)
            causes[names] += 1
            examples.setdefault(names, f"{_shown(before)} and {_shown(after)}")
    return Distinct(
        n_images=len(data),
        n_distinct=len(first),
        causes=tuple((", ".join(names), count, examples[names]) for names, count in causes.most_common(6)),
    )


def _shown(factors: Shaped[np.ndarray, " factor"]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in factors) + ")"


# What is drawn


def factor_rows(data: AbstractDataset) -> list[tuple[str, Int[np.ndarray, " column"]]]:
    """Each factor moved alone from one place of the grid; without a grid, walks through the continuous factors.

    :param data: images with known factors.
    """
    if isinstance(data, AbstractGridDataset):
        rows = []
        # different shares of the way for different factors, so no two hues of one image are the same
        shares = (np.arange(len(data.factor_sizes)) + 1) / (len(data.factor_sizes) + 1)
        middle = (np.array(data.factor_sizes) * shares).astype(int)
        for column, (name, size) in enumerate(zip(data.factor_names, data.factor_sizes, strict=True)):
            steps = np.unique(np.linspace(0, size - 1, COLUMNS).round().astype(int))
            factors = np.repeat(middle[np.newaxis], len(steps), axis=0)
            factors[:, column] = steps
            rows.append((name, data.index_of(factors)))
        return rows
    return [walk for label in range(data.factor_sizes[0]) for walk in _walks(data, label)]


def _walks(data: AbstractDataset, label: int, n: int = 2) -> list[tuple[str, Int[np.ndarray, " column"]]]:
    """Observations nearest to straight lines between random ones of one class."""
    from scipy.spatial import cKDTree

    every = data.factors(np.arange(len(data)))
    members = np.flatnonzero(every[:, 0] == label)
    continuous = [column for column, size in enumerate(data.factor_sizes) if not size]
    points = every[members][:, continuous]
    random = generator(0, "docs", data.name, "walks", label)
    classes = data.factor_classes.get(data.factor_names[0])
    name = f"{data.factor_names[0]} {label}" if classes is None else classes[label]
    rows = []
    for _ in range(n):
        start, end = points[random.choice(len(points), size=2, replace=False)]
        line = start + np.linspace(0, 1, COLUMNS)[:, np.newaxis] * (end - start)
        rows.append((name, members[cKDTree(points).query(line)[1]]))
    return rows


def sheet(data: AbstractDataset, rows: list[tuple[str, Int[np.ndarray, " column"]]]) -> Image.Image:
    """Images in rows, each with its name before it where it has one.

    :param data: where the images are.
    :param rows: names, and indices of the images.
    """
    _, height, width = data.shape
    margin = max((9 + 6 * len(name) for name, _ in rows if name), default=2)
    n_columns = max(len(indices) for _, indices in rows)
    picture = Image.new("RGB", (margin + n_columns * (width + 2), len(rows) * (height + 2) + 2), "white")
    draw = ImageDraw.Draw(picture)
    for row, (name, indices) in enumerate(rows):
        top = 2 + row * (height + 2)
        draw.text((3, top + height // 2 - 6), name, fill="black")
        for column, image in enumerate(data.images(indices)):
            colours = np.broadcast_to(image, (3, height, width)) if len(image) == 1 else image
            tile = Image.fromarray(np.ascontiguousarray(colours.transpose(1, 2, 0)))
            picture.paste(tile, (margin + column * (width + 2), top))
    return picture if data.shape[0] > 1 else picture.convert("L")


def sample_rows(data: AbstractDataset, n_rows: int = 6) -> list[tuple[str, Int[np.ndarray, " column"]]]:
    """Random images.

    :param data: where the images are.
    :param n_rows: (default 6) rows of them.
    """
    chosen = generator(0, "docs", data.name, "samples").integers(len(data), size=(n_rows, COLUMNS))
    return [("", row) for row in chosen]


# The page


def page(data: AbstractDataset, lines: list[Line], images: Distinct) -> str:
    """The page as Markdown.

    :param data: the dataset.
    :param lines: a line of the table for each factor.
    :param images: how many differ.
    """
    channels, height, width = data.shape
    written = [
        f"# {data.name}",
        "",
        f"{len(data):,} images of {height} × {width} pixels, {'grey' if channels == 1 else 'colour'}. "
        f"`python docs/datasets.py {data.name}` writes this page, and `polariscope list datasets {data.name}` explains "
        "the dataset and its options.",
        "",
        f"![every factor moved alone]({data.name}-factors.png)",
        "",
        f"![random images]({data.name}-samples.png)",
        "",
        "| factor | kind | values | linear probe | chance | pixels changed | local variance | global variance |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        probe = f"{line.probe:.2f}" if _is_class(line.kind) else f"R² {line.probe:.2f}"
        chance = "" if math.isnan(line.chance) else f"{line.chance:.2f}"
        between = "–" if math.isnan(line.global_variance) else f"{max(line.global_variance, 0):.1%}"
        written.append(
            f"| {line.name} | {line.kind} | {line.size or '–'} | {probe} | {chance} | {line.pixels:.1%} "
            f"| {line.local_variance:.1%} | {between} |"
        )
    written += [
        "",
        "- Linear probe: ridge regression on pixels, tested on held-out images: accuracy for classes, R² for ordered "
        "values.",
        f"- Pixels changed: share of pixels that change by more than {VISIBLE} of 255 levels if the factor has another "
        "value.",
        "- Local variance: share of each factor in E ‖∂x/∂w‖² · Var(w), estimated from the smallest step of the "
        "factor.",
        "- Global variance: Var(E[x | w]) divided by the variance of the images (zietlow2022 §4.2). "
        "A negative estimate is shown as 0.",
        "",
        f"{images.n_distinct:,} of {images.n_images:,} images are distinct.",
    ]
    start = "Distinct images: "  # a paragraph of the docstring
    for paragraph in (inspect.getdoc(type(data)) or "").split("\n\n"):
        if paragraph.startswith(start):
            words = paragraph.removeprefix(start)
            written += ["", words[0].upper() + words[1:]]
    if images.causes:
        written += [
            "",
            "| equal images differ in | number | example (factors) |",
            "| --- | ---: | --- |",
        ]
        written += [f"| {names} | {count:,} | {example} |" for names, count, example in images.causes]
    return "\n".join([*written, ""])


def main() -> None:
    """Write the pages of the datasets that are named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", help="datasets of images with known factors")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).with_suffix(""), help="folder of the pages"
    )
    parser.add_argument("--images", type=int, default=4000, help="images that the estimates use")
    arguments = parser.parse_args()
    for name in arguments.names:
        data = load_dataset(name)
        for rows, kind in ((factor_rows(data), "factors"), (sample_rows(data), "samples")):
            with files.atomic(arguments.out / f"{name}-{kind}.png") as part:
                sheet(data, rows).save(part, format="PNG", optimize=True)
        text = page(data, Table(data, arguments.images).lines(), distinct(data))
        files.write_text(arguments.out / f"{name}.md", text)
        print(text)


if __name__ == "__main__":
    main()
