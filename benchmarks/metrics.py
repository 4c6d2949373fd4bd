"""Each metric against the customary way, side by side: 10 000 × 10 codes and dSprites' five factors.

A row is (name, ours, customary): functions of the arrays that compute the same numbers, timed one after the other in
each round. Ours is timed as a user calls it where the name says "with interval and chance", and as the bare quantity
otherwise, since the customary code gives no interval. What is measured is processor time, of all threads, because the
machine may be shared; the median over rounds counts. Before timing, both answers are compared, and their largest
difference is printed.

Three customary ways take minutes to hours: of these a part is timed and multiplied, which the last column says. For
the FactorVAE and β-VAE metrics it is encoding 64 images (or pairs) anew for each of 15 000 batches with the conv net,
against batches gathered from a table that was encoded once. Making that table is left out, since all metrics share it;
it would be 10 000 images against 960 000 and 1 920 000. For DCI it is scikit-learn's boosting, whose time is
proportional to its trees; both numbers are shares of importance of the same latents, and --dci prints both scores.

Targets: mutual information tables at least 30x, UDR's rank correlations at least 50x, FactorVAE and β-VAE metrics at
least 100x, DCI at least 8x.

    python benchmarks/metrics.py [--samples 10000] [--rounds 3] [--only NAME]
    python benchmarks/metrics.py --all          every metric at once, as "polariscope score --metrics all": under 30 s
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as PrintedTable

import polariscope as ps
from polariscope.analysis.code_table import Table, information
from polariscope.analysis.metrics.support.importance import Job, Predictor, importances
from polariscope.numerics.information import discretise, mutual_information_table

FACTOR_SIZES = (3, 6, 40, 32, 32)
N_LATENTS = 10
N_MODELS, N_UDR_SAMPLES = 10, 1000
BATCH, N_ENCODED, N_REFERENCE_TREES = 64, 5, 2
Row = tuple[str, Callable[["Arrays"], np.ndarray], Callable[["Arrays"], np.ndarray]]


class Arrays:
    """Codes of a model that found the factors, with noise and five passive latents; and ten such models for UDR."""

    def __init__(self, n_samples: int) -> None:
        rng = np.random.default_rng(0)
        self.factors = rng.integers(FACTOR_SIZES, size=(n_samples, len(FACTOR_SIZES)))
        scaled = (self.factors - self.factors.mean(axis=0)) / self.factors.std(axis=0)
        passive = 0.01 * rng.normal(size=(n_samples, N_LATENTS - len(FACTOR_SIZES)))
        self.codes = np.hstack([scaled + 0.2 * rng.normal(size=scaled.shape), passive])
        self.binned = discretise(self.codes)
        few = self.codes[:N_UDR_SAMPLES]
        self.models = [
            few[:, rng.permutation(N_LATENTS)] + 0.1 * rng.normal(size=few.shape) for _ in range(N_MODELS)
        ]


def our_mutual_information(arrays: Arrays) -> np.ndarray:
    return information(arrays.binned, arrays.factors)[0]


def our_mutual_information_from_codes(arrays: Arrays) -> np.ndarray:
    return Table(arrays.codes, arrays.factors).mi_table()


def customary_mutual_information(arrays: Arrays) -> np.ndarray:
    """One library call per pair of latent and factor, as in the code of Locatello et al."""
    from sklearn.metrics import mutual_info_score

    return np.array([[mutual_info_score(w, z) for w in arrays.factors.T] for z in arrays.binned.T])


def our_latent_information(arrays: Arrays) -> np.ndarray:
    return mutual_information_table(arrays.binned)


def customary_latent_information(arrays: Arrays) -> np.ndarray:
    from sklearn.metrics import mutual_info_score

    return np.array([[mutual_info_score(a, b) for b in arrays.binned.T] for a in arrays.binned.T])


def our_udr(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.udr import udr

    return np.array([udr(arrays.models).value])


def our_rank_correlations(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.udr import _relations
    from polariscope.numerics.dependence import ranked, standardised

    stacked = np.concatenate([standardised(ranked(codes)) for codes in arrays.models], axis=1)
    return _relations(stacked.T @ stacked / len(stacked), [], None)


def customary_rank_correlations(arrays: Arrays) -> np.ndarray:
    """D² rank correlations for each ordered pair of models."""
    from scipy.stats import spearmanr

    rows = []
    for x in arrays.models:
        parts = [np.array([[abs(spearmanr(a, b)[0]) for b in y.T] for a in x.T]) for y in arrays.models]
        rows.append(np.concatenate(parts, axis=1))
    return np.concatenate(rows)


def customary_udr(arrays: Arrays) -> np.ndarray:
    relation = customary_rank_correlations(arrays).reshape(N_MODELS, N_LATENTS, N_MODELS, N_LATENTS)
    across = (relation.max(axis=3) ** 2 / relation.sum(axis=3)).mean(axis=1)
    down = (relation.max(axis=1) ** 2 / relation.sum(axis=1)).mean(axis=2)
    pairs = (across + down) / 2
    return np.array([np.mean([np.median(np.delete(row, i)) for i, row in enumerate(pairs)])])


def our_sap(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.sap import _hits

    return _hits(Table(arrays.codes, arrays.factors), 0.01).mean(axis=0)


def customary_sap(arrays: Arrays) -> np.ndarray:
    """A support vector classifier of a general library for each latent and factor."""
    from sklearn.svm import LinearSVC

    train, test = Table(arrays.codes, arrays.factors).split()
    table = np.empty((N_LATENTS, len(FACTOR_SIZES)))
    for j, z in enumerate(arrays.codes.T[:, :, None]):
        for k, w in enumerate(arrays.factors.T):
            table[j, k] = (
                LinearSVC(C=0.01, class_weight="balanced").fit(z[train], w[train]).score(z[test], w[test])
            )
    return table


def our_explicitness(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.explicitness import _areas

    return _areas(Table(arrays.codes, arrays.factors))[0]


def customary_explicitness(arrays: Arrays) -> np.ndarray:
    """Logistic regression and the area under its curve from a general library, class by class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    shared = Table(arrays.codes, arrays.factors)
    (train, test), x = shared.split(), shared.standardised
    areas = []
    for w in arrays.factors.T:
        found = []
        for label in np.unique(w):
            model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(
                x[train], w[train] == label
            )
            found.append(roc_auc_score(w[test] == label, model.decision_function(x[test])))
        areas.append(np.mean(found))
    return np.array(areas)


def our_ds(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.ds import Way, _advantages

    shared = Table(arrays.codes, arrays.factors)
    n_test = len(shared.split(0.8)[1])
    weights = np.full((1, n_test), 1 / n_test)
    ways: list[Way] = ["class"] * shared.n_factors
    return _advantages(shared, weights, ways, "printed")[0][0]


def customary_ds(arrays: Arrays) -> np.ndarray:
    """A neighbours classifier for each latent and factor."""
    from sklearn.neighbors import KNeighborsClassifier

    train, test = Table(arrays.codes, arrays.factors).split(0.8)
    return np.array(
        [
            [
                KNeighborsClassifier(5).fit(z[train], w[train]).score(z[test], w[test])
                for w in arrays.factors.T
            ]
            for z in arrays.codes.T[:, :, None]
        ]
    )


def our_factor_vae(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.factor_vae import _score
    from polariscope.analysis.metrics.support.batches import Groups

    shared = Table(arrays.codes, arrays.factors)
    groups = Groups(shared.classes, shared.factor_names)
    return np.array([_score(shared.standardised, groups, BATCH, 10_000, 5_000, np.random.default_rng(0))[0]])


def our_beta_vae(arrays: Arrays) -> np.ndarray:
    from polariscope.analysis.metrics.beta_vae import _correct, distances
    from polariscope.analysis.metrics.support.batches import Groups

    shared, draw = Table(arrays.codes, arrays.factors), np.random.default_rng(0)
    groups = Groups(shared.classes, shared.factor_names)
    factor = draw.integers(shared.n_factors, size=15_000)
    features = distances(shared.standardised, groups, factor, BATCH, draw)
    return np.array([_correct(features, factor, 10_000, True).mean()])


@functools.cache
def encoder() -> tuple[Any, Any]:
    """Sprites, and the conv net's mean of their images, as it comes: its speed does not depend on training."""
    import torch

    import polariscope as ps
    from polariscope.training.plan import plan

    data = ps.load_dataset("sprites")
    model = plan(data, "beta", "conv", N_LATENTS, batch_size=BATCH).blueprint.build(0, data).eval()

    def mean(factors: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            images = torch.from_numpy(data.values(data.index_of(factors)))
            return model.encode(model.place(images)).mean.numpy()

    return mean, np.random.default_rng(0)


def customary_factor_vae(arrays: Arrays) -> np.ndarray:
    """A few votes, each of 64 images that share a factor."""
    mean, draw = encoder()
    votes = []
    for k in range(N_ENCODED):
        factors = draw.integers(FACTOR_SIZES, size=(BATCH, len(FACTOR_SIZES)))
        factors[:, k % 5] = factors[0, k % 5]
        votes.append(mean(factors).var(axis=0, ddof=1).argmin())
    return np.array(votes)


def customary_beta_vae(arrays: Arrays) -> np.ndarray:
    """A few features, each of 64 pairs of images that share a factor."""
    mean, draw = encoder()
    features = []
    for k in range(N_ENCODED):
        first, second = draw.integers(FACTOR_SIZES, size=(2, BATCH, len(FACTOR_SIZES)))
        second[:, k % 5] = first[:, k % 5]
        features.append(np.abs(mean(first) - mean(second)).mean(axis=0))
    return np.array(features)


def our_dci(arrays: Arrays, predictor: Predictor = "boosted", n_trees: int = 100) -> np.ndarray:
    shared = Table(arrays.codes, arrays.factors)
    return importances(shared, [Job(shared.standardised, *shared.split(), n_trees)], predictor)[0].matrix


def customary_dci(arrays: Arrays) -> np.ndarray:
    """The first trees of scikit-learn's boosting, for every factor."""
    return our_dci(arrays, "reference", N_REFERENCE_TREES)


def compare_dci(arrays: Arrays) -> None:
    """Disentanglement and completeness of the default and of the reference, with the same number of trees."""
    from polariscope.analysis.metrics.dci import disentanglement

    for n_trees in (10, 100):
        for predictor in ("boosted", "reference"):
            matrix = our_dci(arrays, predictor, n_trees)
            found = disentanglement(matrix)[0], disentanglement(matrix.T)[0]
            print(
                f"{predictor}, {n_trees} trees: disentanglement {found[0]:.3f}, completeness {found[1]:.3f}",
                flush=True,
            )


ROWS: list[Row] = [
    ("MI table, latents with factors", our_mutual_information, customary_mutual_information),
    ("MI table, with checks and binning", our_mutual_information_from_codes, customary_mutual_information),
    ("MI table, latents with latents", our_latent_information, customary_latent_information),
    ("UDR, rank correlations of 10 models", our_rank_correlations, customary_rank_correlations),
    ("UDR, with interval and chance", our_udr, customary_udr),
    ("SAP, support vector accuracies", our_sap, customary_sap),
    ("explicitness", our_explicitness, customary_explicitness),
    ("DS, accuracies of neighbours", our_ds, customary_ds),
    ("FactorVAE metric", our_factor_vae, customary_factor_vae),
    ("β-VAE metric", our_beta_vae, customary_beta_vae),
    ("DCI, importances", our_dci, customary_dci),
]
# How many times the part that was timed makes the whole.
PARTS = {
    "FactorVAE metric": (15_000 / N_ENCODED, f"{N_ENCODED} of 15 000 votes"),
    "β-VAE metric": (15_000 / N_ENCODED, f"{N_ENCODED} of 15 000 features"),
    "DCI, importances": (100 / N_REFERENCE_TREES, f"{N_REFERENCE_TREES} of 100 trees"),
}


def seconds(function: Callable[[Arrays], np.ndarray], arrays: Arrays) -> tuple[float, np.ndarray]:
    start = time.process_time()
    answer = function(arrays)
    return time.process_time() - start, answer


def score_all(arrays: Arrays) -> None:
    """Wall time of all metrics of one representation; on a quiet machine, since it uses every core."""
    variance = np.full_like(arrays.codes, 0.05)
    sampled = arrays.codes + np.sqrt(variance) * np.random.default_rng(1).normal(size=variance.shape)
    names = ("shape", "scale", "orientation", "x", "y")
    codes = ps.Representation(arrays.codes, variance, sampled, arrays.factors, names)
    start = time.perf_counter()
    begun: list[tuple[float, str]] = []

    def tell(name: str, _number: int, _total: int) -> None:
        now = time.perf_counter()
        if begun:
            Console().print(f"{begun[-1][1]}: {now - begun[-1][0]:.1f} s")
        begun.append((now, name))

    ps.score(codes, "all", progress=tell)
    Console().print(f"all: {time.perf_counter() - start:.1f} s (target 30)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument(
        "--dci", action="store_true", help="compare DCI's default with its reference, and end"
    )
    parser.add_argument("--all", action="store_true", help="time every metric at once, on the clock, and end")
    options = parser.parse_args()
    arrays = Arrays(options.samples)
    if options.all:
        score_all(arrays)
        return
    if options.dci:
        compare_dci(arrays)
        return
    table = PrintedTable(
        "what",
        "ours",
        "customary",
        "ratio",
        "largest difference",
        "timed",
        title=f"{options.samples} samples",
    )
    for name, ours, customary in ROWS:
        if options.only.lower() not in name.lower():
            continue
        ours(Arrays(2000)), customary(Arrays(2000))  # imports
        pairs = [(seconds(ours, arrays), seconds(customary, arrays)) for _ in range(options.rounds)]
        fast = statistics.median(pair[0][0] for pair in pairs)
        times, words = PARTS.get(name, (1, "all"))
        slow = times * statistics.median(pair[1][0] for pair in pairs)
        difference = f"{np.abs(pairs[0][0][1] - pairs[0][1][1]).max():.1e}" if times == 1 else ""
        table.add_row(
            name, f"{fast * 1e3:.2f} ms", f"{slow * 1e3:.1f} ms", f"{slow / fast:.0f}x", difference, words
        )
    Console().print(table)


if __name__ == "__main__":
    main()
