"""Train, validation and test indices: dealt at random by seed, or given by the data."""

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
"""Share of the training samples that are validated on where nothing is held out."""
WORDS = {**{word: word for word in PARTS}, "training": "train", "val": "validation", "valid": "validation"}
"""What a column may call the parts."""


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Three sets of indices, each in random order: any prefix is a random subset. They are disjoint if ``is_held_out``.

    The test set is empty where there is none.
    """

    train: Int[np.ndarray, " train"]
    validation: Int[np.ndarray, " validation"]
    test: Int[np.ndarray, " test"]
    is_held_out: bool = True
    """Whether validation samples are not trained on; where everything is, they are some of the training samples."""


def split(n: int, fractions: tuple[float, float, float] = (0.9, 0.05, 0.05), seed: int = 0) -> Split:
    """Deal the indices 0 … n − 1 into train, validation and test, each once and none empty.

    Validation and test get the whole number nearest their fraction of n, at least 1; train gets the rest.

    >>> parts = split(100, (0.8, 0.1, 0.1))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (80, 10, 10)
    """
    if n < 3:
        raise InputError(
            "n", "be at least 3 to have train, validation and test samples", got=n, remedy="add samples"
        )
    if len(fractions) != 3 or not all(math.isfinite(part) and part > 0 for part in fractions):
        raise InputError("fractions", "be three positive numbers (train, validation, test)", got=fractions)
    if not math.isclose(sum(fractions), 1, abs_tol=1e-6):
        raise InputError("fractions", "add up to 1", got=f"{fractions} with sum {sum(fractions):g}")
    n_validation = min(max(1, round(fractions[1] * n)), n - 2)
    n_test = min(max(1, round(fractions[2] * n)), n - n_validation - 1)
    order = generator(seed, "split").permutation(n)
    train, validation, test = np.split(order, [n - n_validation - n_test, n - n_test])
    return Split(train, validation, test)


def split_everything(n: int, seed: int = 0, share: float = OF_TRAINING) -> Split:
    """Train on all of n samples; validate on some of them, and test on none.

    :param n: number of samples.
    :param seed: (default 0) decides which are validated on.
    :param share: (default 0.05) how many these are, at least one.
    """
    return _on_all(generator(seed, "split").permutation(n), share)


def split_groups(
    groups: Shaped[np.ndarray, " sample"], fractions: tuple[float, float], seed: int = 0
) -> Split:
    """Deal whole groups of samples, in random order: no group is in two parts.

    Validation and test get groups as long as these bring them nearer to their fraction of the samples, at least one
    each; train gets the rest.

    :param groups: which group each sample belongs to.
    :param fractions: shares of validation and test.
    :param seed: (default 0) decides the order.

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
            remedy="name a column with more values",
        )
    waiting = generator(seed, "split", "groups").permutation(len(names)).tolist()
    part_of = np.zeros(len(names), dtype=np.int64)
    for number, fraction in enumerate(fractions, start=1):
        if fraction:
            most = len(waiting) - (n_parts - number)  # the parts after it need one each
            taken = _nearest(waiting, sizes, fraction * len(groups))[:most]
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
    """The parts that are given. Without a validation part, it is taken from the training part.

    Samples that are in no part are not used.

    :param parts: indices under "train" and, where there are such, "validation" and "test".
    :param n: number of samples.
    :param train_fraction: share of the training part that is trained on, where validation is taken from it.
    :param seed: (default 0) decides what is taken, and the order.
    :param groups: (default None) which group each sample belongs to; none may be in two parts.
    """
    for name in parts:
        if name not in PARTS:
            raise unknown("part", name, PARTS)
    indices = {name: np.asarray(parts.get(name, ()), dtype=np.int64).reshape(-1) for name in PARTS}
    together = np.concatenate(list(indices.values()))
    if not len(indices["train"]):
        raise InputError("the given split", "have samples in its training part", got="none")
    if together.min() < 0 or together.max() >= n or len(np.unique(together)) < len(together):
        raise InputError(
            "the given split",
            f"hold indices from 0 to {n - 1}, none of them twice",
            got=f"{len(together)} indices from {together.min()} to {together.max()}",
        )
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
            "the given split",
            "have samples to train and to validate on",
            got="one sample",
            remedy="add samples",
        )
    if groups is not None:
        _refuse_shared_groups(groups, {"train": train, "validation": validation, "test": test})
    return Split(train, validation, test)


def parts_of_column(column: Shaped[np.ndarray, " sample"], name: str) -> dict[str, Int[np.ndarray, " _"]]:
    """The parts that a column names: by the words train, validation and test, or by 0, 1 and 2 in this order.

    :param column: a word or a number for each sample.
    :param name: of the column, for messages.
    """
    if column.dtype.kind in "iufb":
        numbers: dict[float, str] = dict(enumerate(PARTS))
        part_names = [numbers.get(float(value)) for value in np.unique(column)]
    else:
        part_names = [WORDS.get(str(value).strip().lower()) for value in np.unique(column)]
    values, which = np.unique(column, return_inverse=True)
    if None in part_names:
        strange = [str(value) for value, word in zip(values, part_names, strict=True) if word is None]
        raise InputError(
            f"column {name!r}",
            "say train, validation or test for every sample (or 0, 1, 2)",
            got=", ".join(strange[:3]),
            remedy="a column of groups is given as the group column",
        )
    named = np.array(part_names, dtype=object)[which.reshape(-1)]
    return {part: np.flatnonzero(named == part) for part in PARTS}


def _on_all(order: Int[np.ndarray, " sample"], share: float) -> Split:
    return Split(order, order[: max(1, round(share * len(order)))], order[:0], is_held_out=False)


def _nearest(waiting: list[int], sizes: Int[np.ndarray, " group"], target: float) -> list[int]:
    """Groups in their order, each taken if it brings the total nearer to the target; the smallest if none does."""
    taken, total = [], 0
    for group in waiting:
        if total + sizes[group] / 2 <= target:
            taken.append(group)
            total += int(sizes[group])
    return taken or [min(waiting, key=lambda group: sizes[group])]


def _refuse_shared_groups(
    groups: Shaped[np.ndarray, " sample"], parts: dict[str, Int[np.ndarray, " _"]]
) -> None:
    names = list(parts)
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            shared = np.intersect1d(groups[parts[one]], groups[parts[other]])
            if len(shared):
                raise InputError(
                    "groups",
                    "be in one part each",
                    got=f"{shared[0]}, which is in {one} and in {other}",
                    remedy="correct the split, or leave the group column out",
                )
