"""Train, validation and test indices: drawn at random from a seed, or defined by the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Int, Shaped
from numpy.typing import ArrayLike

from polariscope.core.errors import InputError, unknown
from polariscope.core.seeds import generator

PARTS = ("train", "validation", "test")
OF_TRAINING = 0.05
"""Share of the training samples used for validation if nothing is held out."""
PART_NAMES = {
    **{part: part for part in PARTS},
    "training": "train",
    "val": "validation",
    "valid": "validation",
}
"""Names of the parts that a column can contain, and the part that each means."""


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Three sets of indices in random order, so any prefix is a random subset; disjoint if ``is_held_out``.

    The test set can be empty.
    """

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]
    is_held_out: bool = True
    """If True, validation samples are not trained on. If False, they are some of the training samples."""


def split(n: int, fractions: tuple[float, float, float] = (0.9, 0.05, 0.05), seed: int = 0) -> Split:
    """Split the indices 0 … n − 1 into train, validation and test; each index is used once and no part is empty.

    Validation and test get the integer nearest to their fraction of n, at least 1; train gets the rest.

    >>> parts = split(100, (0.8, 0.1, 0.1))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (80, 10, 10)
    """
    if n < 3:
        raise InputError(
            "the number of observations",
            "be at least 3, one each for training, validation and test",
            got=n,
            remedy="add observations",
        )
    if len(fractions) != 3 or not all(math.isfinite(part) and part > 0 for part in fractions):
        raise InputError("fractions", "be three positive numbers (train, validation, test)", got=fractions)
    if not math.isclose(sum(fractions), 1, abs_tol=1e-6):
        raise InputError("fractions", "add up to 1", got=f"{fractions} with sum {sum(fractions):g}")
    n_validation = min(max(1, round(fractions[1] * n)), n - 2)
    # At least one sample remains for training.
    n_test = min(max(1, round(fractions[2] * n)), n - n_validation - 1)
    order = generator(seed, "split").permutation(n)
    train, validation, test = np.split(order, [n - n_validation - n_test, n - n_test])
    return Split(train, validation, test)


def split_everything(n: int, seed: int = 0, share: float = OF_TRAINING) -> Split:
    """Train on all n samples and validate on some of them, without a test set.

    :param n: number of samples.
    :param seed: (default 0) seed of the selection of validation samples.
    :param share: (default 0.05) share of validation samples; at least one sample is used.
    """
    return _on_all(generator(seed, "split").permutation(n), share)


def split_groups(
    groups: Shaped[np.ndarray, " sample"], fractions: tuple[float, float], seed: int = 0
) -> Split:
    """Split whole groups of samples in random order, so no group is in two parts.

    Validation and test get groups as long as these bring them nearer to their fraction of the samples, at least one
    each; train gets the rest.

    :param groups: group of each sample.
    :param fractions: shares of validation and test.
    :param seed: (default 0) seed of the order.

    >>> parts = split_groups(np.array(["a", "a", "b", "b", "c", "d"]), (0.2, 0.2))
    >>> len(parts.train) + len(parts.validation) + len(parts.test)
    6
    """
    names, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n_parts = 3 if fractions[1] else 2
    if len(names) < n_parts:
        raise InputError(
            "groups",
            f"be at least {n_parts} to have one in each part",
            got=len(names),
            remedy="use a column with more values",
        )
    waiting = generator(seed, "split", "groups").permutation(len(names)).tolist()
    part_of = np.zeros(len(names), dtype=np.int64)
    for number, fraction in enumerate(fractions, start=1):
        if fraction:
            max_groups = len(waiting) - (n_parts - number)  # each later part needs one group
            taken = _nearest(waiting, sizes, fraction * len(groups))[:max_groups]
            part_of[taken] = number
            waiting = [group for group in waiting if group not in set(taken)]
    order = generator(seed, "split").permutation(len(groups))
    parts = part_of[group_of.reshape(-1)][order]
    return Split(*(order[parts == number] for number in range(3)))


def split_parts(
    parts: Mapping[str, ArrayLike],
    n: int,
    train_fraction: float,
    seed: int = 0,
    groups: Shaped[np.ndarray, " sample"] | None = None,
) -> Split:
    """Use a predefined split; a missing validation part is taken from the training part.

    Samples that are in no part are not used.

    :param parts: indices under "train" and, if they exist, "validation" and "test".
    :param n: number of samples.
    :param train_fraction: share of the training part that is trained on if validation is taken from it.
    :param seed: (default 0) seed of the selection and of the order.
    :param groups: (default None) group of each sample; no group can be in two parts.
    """
    for name in parts:
        if name not in PARTS:
            raise unknown("part", name, PARTS)
    # An empty part has no type of its own.
    indices = {name: np.asarray(parts.get(name, ()), dtype=np.int64).reshape(-1) for name in PARTS}
    together = np.concatenate(list(indices.values()))
    if not len(indices["train"]):
        raise InputError("the predefined split", "have samples in its training part", got="an empty one")
    if together.min() < 0 or together.max() >= n or len(np.unique(together)) < len(together):
        raise InputError(
            "the predefined split",
            f"contain indices from 0 to {n - 1}, each at most once",
            got=f"{len(together)} indices from {together.min()} to {together.max()}",
        )
    # All parts are shuffled, because any prefix of a part must be a random subset.
    mix = generator(seed, "split")
    train, validation, test = (mix.permutation(indices[name]) for name in PARTS)
    if not len(validation) and train_fraction == 1:
        return dataclasses.replace(_on_all(train, OF_TRAINING), test=test)
    if not len(validation):
        if groups is None:
            count = min(max(1, round((1 - train_fraction) * len(train))), len(train) - 1)
            validation, train = train[:count], train[count:]
        else:
            inner = split_groups(groups[train], (1 - train_fraction, 0.0), seed)
            train, validation = train[inner.train], train[inner.validation]
    if not (len(train) and len(validation)):
        raise InputError(
            "the predefined split",
            "have samples to train and to validate on",
            got="one sample",
            remedy="add samples",
        )
    if groups is not None:
        _refuse_shared_groups(groups, {"train": train, "validation": validation, "test": test})
    return Split(train, validation, test)


def parts_of_column(column: Shaped[np.ndarray, " sample"], name: str) -> dict[str, Int[np.ndarray, " _"]]:
    """Read the parts from a column: the words train, validation and test, or 0, 1 and 2 in this order.

    :param column: a word or a number for each sample.
    :param name: name of the column, for messages.
    """
    if column.dtype.kind in "iufb":
        numbers: dict[float, str] = dict(enumerate(PARTS))
        part_names = [numbers.get(float(value)) for value in np.unique(column)]
    else:
        part_names = [PART_NAMES.get(str(value).strip().lower()) for value in np.unique(column)]
    values, which = np.unique(column, return_inverse=True)
    if None in part_names:
        strange = [str(value) for value, part in zip(values, part_names, strict=True) if part is None]
        raise InputError(
            f"column {name!r}",
            "contain train, validation or test for every sample (or 0, 1, 2)",
            got=", ".join(strange[:3]),
            remedy="pass a column of groups as the group column",
        )
    named = np.array(part_names, dtype=object)[which.reshape(-1)]
    return {part: np.flatnonzero(named == part) for part in PARTS}


def _on_all(order: Int[np.ndarray, " sample"], share: float) -> Split:
    return Split(order, order[: max(1, round(share * len(order)))], order[:0], is_held_out=False)


def _nearest(waiting: list[int], sizes: Int[np.ndarray, " group"], target: float) -> list[int]:
    """Take each group in order that brings the total nearer to the target; if none does, the smallest."""
    taken, total = [], 0
    for group in waiting:
        # Taking a group brings the total nearer if at most half of it exceeds the target.
        if total + sizes[group] / 2 <= target:
            taken.append(group)
            total += int(sizes[group])
    return taken or [min(waiting, key=lambda group: sizes[group])]


def _refuse_shared_groups(
    groups: Shaped[np.ndarray, " sample"], parts: dict[str, Int[np.ndarray, " _"]]
) -> None:
    names = list(parts)
    for number, first in enumerate(names):
        for second in names[number + 1 :]:
            shared = np.intersect1d(groups[parts[first]], groups[parts[second]])
            if len(shared):
                raise InputError(
                    "groups",
                    "be in one part each",
                    got=f"{shared[0]}, which is in {first} and in {second}",
                    remedy="correct the split, or leave out the group column",
                )
