"""FactorVAE metric: prediction of the fixed factor from the latent with the smallest variance."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.batches import (
    Groups,
    assumptions,
    blocks,
    check_several,
    halves,
    mean_by,
)
from polariscope.core.seeds import generator
from polariscope.numerics.intervals import interval_from_halves

N_HALF_VOTES = 2_000


@metric(
    "factor-vae",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "sign"},
)
def factor_vae(
    table: Table,
    *,
    variant: Literal["held-out", "in-sample"] = "held-out",
    batch_size: Annotated[int, Ge(2)] = 64,
    n_train: Annotated[int, Ge(1)] = 10_000,
    n_test: Annotated[int, Ge(1)] = 5_000,
    threshold: Annotated[float, Ge(0)] = 0.05,
) -> Score:
    r"""Accuracy of predicting which factor was fixed, from the latent that varies least.

    To compute a vote, fix factor k at a value, draw L samples with this value, and find the latent with the smallest
    variance among them relative to its variance over all samples,

    .. math:: d = \arg\min_j \mathrm{Var}_{\text{batch}}(z_j) / \mathrm{Var}(z_j)

    V[d, k] counts the votes of ``n_train`` batches. The classifier predicts argmax_k V[d, k], and the score is its
    accuracy on ``n_test`` further votes (``held-out``), or on the same ones (``in-sample``).

    It is 1 if every factor has a latent of its own, or several; unused latents do not lower it. Chance is 1/K with K
    factors, and slightly more for uninformative codes, because the majority vote of each latent is used. A single
    factor would always be predicted correctly and raises an error. Latents that are constant, or whose standard
    deviation over all samples is below ``threshold``, are pruned, because their ratio of two small variances is noise.
    If none is left, there is no vote and the score is 0. A factor with one value raises an error: no latent can respond
    to it, which would limit the score to (K − 1)/K.

    ``matrix`` contains each factor's share of votes for each latent, ``details`` the pruned latents. The interval is
    the spread of the score over halves of the samples, in-sample on at most 2 000 votes each.

    Reference: Kim & Mnih, Disentangling by Factorising (kim2018); held-out votes and numbers as in Locatello et al.
    (locatello2019), in-sample as mathieu2019 (there ``batch_size=1000, n_train=20_000``). Ours: batches are drawn from
    the encoded table, and values are fixed as often as they occur; the threshold prunes by default (0 uses all latents
    that vary); the number of latents used is counted instead of taken from the length of the mask.

    :param variant: (default "held-out") accuracy on further votes, or on the training votes ("in-sample").
    :param batch_size: (default 64) number of samples for each vote.
    :param n_train: (default 10,000) number of votes to train the classifier on.
    :param n_test: (default 5,000) number of votes to test it on; unused in-sample.
    :param threshold: (default 0.05) standard deviation below which a latent is pruned; 0 uses all that vary.

    >>> factors = np.stack(np.meshgrid(np.arange(4), np.arange(5)), axis=-1).reshape(-1, 2).repeat(10, axis=0)
    >>> factor_vae(factors.astype(float), factors).value
    1.0
    """
    check_several(table)
    groups = Groups(table.classes, table.factor_names)
    varying = (table.codes.std(axis=0, ddof=1) >= threshold) & ~table.constant
    notes = assumptions(table, groups)
    details = {
        "latents_used": np.flatnonzero(varying).tolist(),
        "latents_pruned": np.flatnonzero(~varying).tolist(),
    }
    if not varying.any():
        notes += (
            f"No latent has a standard deviation of {threshold:g} or more, so there is no vote and the score is 0.",
        )
        return Score.of(
            "factor-vae", 0.0, interval=None, chance=None, variant=variant, notes=notes, details=details
        )

    # The score uses ratios of variances, so each latent is divided by its standard deviation first.
    z = table.standardised[:, varying]
    n_test = n_test if variant == "held-out" else 0

    def measured(
        z: Float[np.ndarray, "sample used"], groups: Groups, stream: str, n_train: int, n_test: int
    ) -> tuple[float, Int[np.ndarray, "used factor"], Float[np.ndarray, " factor"]]:
        draw = generator(table.seed, "metrics", "factor-vae", stream)
        return _score(z, groups, batch_size, n_train, n_test, draw)

    value, votes, per_factor = measured(z, groups, "votes", n_train, n_test)
    chance, _, _ = measured(z[table.permutations[0]], groups, "chance", n_train, n_test)
    of_halves = [
        measured(z[rows], half, f"half {number}", min(n_train, N_HALF_VOTES), 0)[0]
        for number, (rows, half) in enumerate(halves(table, "factor-vae"))
    ]
    shares = np.zeros((table.n_latents, table.n_factors))
    shares[varying] = votes / np.maximum(1, votes.sum(axis=0))
    return Score.of(
        "factor-vae",
        value,
        interval=interval_from_halves(value, of_halves),
        chance=chance,
        variant=variant,
        per_factor=per_factor,
        matrix=shares,
        details=details,
        notes=notes,
    )


def _score(
    z: Float[np.ndarray, "sample used"],
    groups: Groups,
    batch_size: int,
    n_train: int,
    n_test: int,
    draw: np.random.Generator,
) -> tuple[float, Int[np.ndarray, "used factor"], Float[np.ndarray, " factor"]]:
    """Return the accuracy, the table of training votes, and the accuracy for each factor."""
    n_factors = len(groups.names)
    factor = draw.integers(n_factors, size=n_train + n_test)
    winner = vote(z, groups, factor, batch_size, draw)
    # In-sample, the training votes are also the test votes.
    train, test = slice(0, n_train), slice(n_train, None) if n_test else slice(0, n_train)
    # Each pair of winner and factor has its own cell, so one bincount counts all votes.
    cells = np.bincount(winner[train] * n_factors + factor[train], minlength=z.shape[1] * n_factors)
    votes = cells.reshape(-1, n_factors)
    correct = votes.argmax(axis=1)[winner[test]] == factor[test]
    return float(correct.mean()), votes, mean_by(factor[test], correct, n_factors)


def vote(
    z: Float[np.ndarray, "sample latent"],
    groups: Groups,
    factor: Int[np.ndarray, " batch"],
    batch_size: int,
    draw: np.random.Generator,
) -> Int[np.ndarray, " batch"]:
    """Return the latent of ``z`` (each of variance 1) that varies least in a batch with ``factor`` fixed."""
    winner = np.empty_like(factor)
    for block in blocks(len(factor), batch_size, z.shape[1]):
        gathered = z[groups.batches(factor[block], batch_size, draw)]
        gathered -= gathered.mean(axis=1, keepdims=True)
        # Latents have variance 1, so the smallest sum of squares is the smallest ratio of variances.
        winner[block] = np.einsum("bsl,bsl->bl", gathered, gathered).argmin(axis=1)
    return winner
