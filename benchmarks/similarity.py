"""What a similarity score costs when the layers of many models are compared, side by side with the customary way.

The setting of bonheme2023 ch. 7: 16 layers of the conv net on 64×64 images (the widest has 32 768 features), 10 models,
every layer of every model with every other. Ours encodes each model once, compresses each layer once and scores
compressed layers; customary is, for every pair, an n×n Gram matrix of both layers (CKA) or the singular values of the
p×q product (Procrustes), on activations that are already there. What is measured is processor time, of all threads,
since the machine is shared. Models have random weights: what a score costs does not depend on training.

* Ours: encoding and compression of one model are measured, all layers; scores of all pairs of its layers for CKA, of
  one pair for each combination of ranks for Procrustes. For M models: M (encode + compress) + pairs · score.
* Customary CKA: the centred Gram matrix of each of the 16 layers is measured, and the inner products once; a pair
  costs its two Gram matrices and the products.
* Customary Procrustes: measured where the smaller side is at most --svd; beyond, time grows as larger · smaller²
  from the costliest that was measured.

Scores are checked against float64 computed directly. Smaller --samples make it quicker; the gain grows with them.

    python benchmarks/similarity.py [--samples 2000] [--image-size 64] [--models 10] [--svd 1024]
    python benchmarks/similarity.py --samples 5000 [--measure cka]       (the published setting: about an hour)
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import polariscope as ps
from polariscope.analysis.similarity import similarity
from polariscope.layers.layer_sources import encode_layers
from polariscope.layers.scratch import Scratch
from polariscope.runs.comparison_sources import find_sources
from polariscope.training.plan import plan

PUBLISHED = {"cka": 54e-3, "procrustes": 0.23}
"""Seconds per score of the published study: 7 000 h of a Xeon and, as estimated there, 30 000 h of an A100, for 470
million scores."""
TARGETS = {"cka": 50, "procrustes": 20}


def seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Processor time of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def centred_gram(x: np.ndarray) -> np.ndarray:
    """The customary first half of CKA: an n×n Gram matrix, then its row, column and grand means taken off."""
    kernel = x @ x.T
    means = kernel.mean(axis=0)
    return kernel - means - means[:, None] + means.mean()


def ratio_of_products(k: np.ndarray, m: np.ndarray) -> float:
    """The customary second half."""
    return float(np.sum(k * m) / np.sqrt(np.sum(k * k) * np.sum(m * m)))


def nuclear(x: np.ndarray, y: np.ndarray) -> float:
    """Customary Procrustes similarity: singular values of the p×q product."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.linalg.norm((x / np.linalg.norm(x)).T @ (y / np.linalg.norm(y)), "nuc"))


def width_class(width: int) -> str:
    """How wide a layer is."""
    return "≤ 256" if width <= 256 else "≤ 1024" if width <= 1024 else "> 1024"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--svd", type=int, default=1024, help="largest smaller side of a customary SVD")
    parser.add_argument("--measure", choices=list(TARGETS), help="one of the two; both if left out")
    arguments = parser.parse_args()
    data = ps.load_dataset("sprites", image_size=arguments.image_size)
    job = plan(data, "beta", "conv", 10)
    model = job.blueprint.build(0, data).to_device("cpu").eval()
    indices = np.random.default_rng(0).choice(len(data), arguments.samples, replace=False)
    with tempfile.TemporaryDirectory() as folder:
        place = Scratch(Path(folder), budget=6e9)
        (source,) = find_sources(model, False)
        encode, (_, layers) = seconds(encode_layers, source, 0, data, indices, 0, place)
        console = Console()
        widths = {name: array.shape[1] for name, array in layers.items()}
        console.print(
            f"{arguments.samples} samples, {len(layers)} layers of {min(widths.values())} to {max(widths.values())} "
            f"features; encoding a model {encode:.1f} s"
        )
        if arguments.measure in (None, "cka"):
            measure_cka(console, layers, encode, arguments.models)
        if arguments.measure in (None, "procrustes"):
            measure_procrustes(console, layers, encode, arguments.models, arguments.svd)


def amortised(compress: float, score: float, encode: float, n_layers: int, n_models: int) -> float:
    """Seconds per score when every layer of so many models is compared with every other, each pair once."""
    n = n_layers * n_models
    pairs = n * (n + 1) / 2
    return (n_models * (encode + compress) + pairs * score) / pairs


def measure_cka(console: Console, layers: dict[str, np.ndarray], encode: float, n_models: int) -> None:
    form = similarity.traits("cka")["form"]
    compress, small = seconds(
        lambda: [form.compress(layer).astype(form.stored_as) for layer in layers.values()]
    )
    scoring, table = seconds(form.score_all, small)
    score = scoring / (len(small) * (len(small) + 1) / 2)
    grams, times = {}, {}
    for name, layer in layers.items():
        times[name], grams[name] = seconds(centred_gram, layer)
    names = list(layers)
    products, _ = seconds(ratio_of_products, grams[names[0]], grams[names[1]])
    customary = float(np.mean([times[a] + times[b] + products for a in names for b in names]))
    wrong = worst = 0.0
    exact = {name: centred_gram(layer.astype(np.float64)) for name, layer in layers.items()}
    for i, j in itertools.combinations_with_replacement(range(len(names)), 2):
        truth = ratio_of_products(exact[names[i]], exact[names[j]])
        worst = max(worst, abs(table[i, j] - truth))
        wrong = max(wrong, abs(ratio_of_products(grams[names[i]], grams[names[j]]) - truth))
    console.print(
        f"CKA: compressing a model {compress:.1f} s, a score of compressed layers {1e3 * score:.2f} ms; "
        f"largest difference from float64 {worst:.1e} (customary, float32: {wrong:.1e})"
    )
    report(console, "cka", amortised(compress, score, encode, len(names), n_models), customary, n_models)


def measure_procrustes(
    console: Console, layers: dict[str, np.ndarray], encode: float, n_models: int, largest: int
) -> None:
    form = similarity.traits("procrustes")["form"]
    compress, small = seconds(
        lambda: [form.compress(layer).astype(form.stored_as) for layer in layers.values()]
    )
    arrays = list(layers.values())
    own: dict[tuple[int, int], float] = {}
    theirs: dict[tuple[int, int], float] = {}
    worst = 0.0
    pairs = list(itertools.combinations_with_replacement(range(len(arrays)), 2))
    for i, j in pairs:
        ranks, features = ordered(small[i], small[j]), ordered(arrays[i], arrays[j])
        if ranks not in own:
            own[ranks], value = seconds(form.score, small[i], small[j])
            if features[0] <= largest:
                truth = nuclear(arrays[i].astype(np.float64), arrays[j].astype(np.float64))
                worst = max(worst, abs(value - truth))
        if features not in theirs and features[0] <= largest:
            theirs[features], _ = seconds(nuclear, arrays[i], arrays[j])
    base = max(theirs, key=work)
    costs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for i, j in itertools.product(range(len(arrays)), repeat=2):
        features = ordered(arrays[i], arrays[j])
        customary = theirs.get(features, theirs[base] * work(features) / work(base))
        kind = (width_class(features[0]), width_class(features[1]))
        costs.setdefault(kind, []).append((own[ordered(small[i], small[j])], customary))
    table = Table(title="Procrustes, compressed layers against the customary SVD, without compression")
    for column in ("features", "share of pairs", "ours", "customary", "gain"):
        table.add_column(column, justify="right")
    for (p, q), group in sorted(costs.items()):
        own_mean, their_mean = np.mean(group, axis=0)
        table.add_row(
            f"{p} by {q}",
            f"{len(group) / len(arrays) ** 2:.0%}",
            f"{1e3 * own_mean:.1f} ms",
            f"{1e3 * their_mean:.1f} ms",
            f"{their_mean / own_mean:.0f}x",
        )
    console.print(table)
    score, customary = np.mean([cost for group in costs.values() for cost in group], axis=0)
    console.print(
        f"Procrustes: compressing a model {compress:.1f} s, a score {score:.3f} s; customary measured up to "
        f"{base[0]} × {base[1]}, the rest extrapolated; largest difference from float64 {worst:.1e}"
    )
    report(
        console, "procrustes", amortised(compress, score, encode, len(arrays), n_models), customary, n_models
    )


def ordered(x: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """The two widths, the smaller first."""
    return min(x.shape[1], y.shape[1]), max(x.shape[1], y.shape[1])


def work(features: tuple[int, int]) -> int:
    """What the time of an SVD is proportional to."""
    return features[1] * features[0] ** 2


def report(console: Console, measure: str, ours: float, customary: float, n_models: int) -> None:
    gain = customary / ours
    verdict = "met" if gain >= TARGETS[measure] else "missed"
    console.print(
        f"[bold]{measure}[/bold], {n_models} models: {1e3 * ours:.1f} ms a score, all included; customary "
        f"{1e3 * customary:.1f} ms; gain {gain:.0f}x (target {TARGETS[measure]}x: {verdict}); the published study "
        f"needed {1e3 * PUBLISHED[measure]:.0f} ms on its hardware.\n"
    )


if __name__ == "__main__":
    main()
