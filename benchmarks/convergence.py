"""False-alarm and miss rates of the state of a training (:func:`polariscope.analysis.convergence.training_state`).

Every run is trained once for 16,000 steps (linear and convolutional networks: 8,000) with a constant learning rate.
Its log up to step T is the log of a training of T steps, which is judged; what the run does from T to 2 T is the truth.
A training is *still learning* in truth if the loss falls by more than the tolerance from T to 2 T, or if another set of
latents is in use at 2 T. For linear networks the loss is exact, computed from the weights at T. Runs with a cosine
schedule end at T; their exact loss is compared with the closed-form optimum.

Constants were chosen on one half of the runs (``chosen on``); the other half (``unseen``) is only reported.

    python benchmarks/convergence.py --out FOLDER [--mnist FOLDER] [--cases]

An interrupted benchmark resumes. MNIST is left out unless the folder of its four files is given.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polariscope as ps
from polariscope.analysis.convergence import TrainingState, information, training_state
from polariscope.analysis.regime.use import INFORMATION
from polariscope.analysis.theory import linear_vae
from polariscope.data.chain import apply_variants
from polariscope.data.dataset import AbstractDataset
from polariscope.models.model import Model
from polariscope.runs.run import Run

STEPS = 16_000
LENGTHS = (1000, 2000, 3000, 4000, 6000, 8000)
"""Numbers of steps T that are judged."""
SHORT_STEPS = 8000
SHORT_LENGTHS = (1000, 2000, 3000, 4000)
"""The same for linear networks, which are logged twice as often, and for convolutions."""
THRESHOLD = INFORMATION
"""Information of a latent, in nats, from which it is in use."""
GAMMA = 0.1
"""Variance of the linear decoders."""
SPECTRA = {
    "five": ((4.0, 2.0, 1.0, 0.5, 0.25), "chosen on"),
    "geometric": (tuple(8 * 0.7**i for i in range(20)), "chosen on"),
    "close": ((2.0, 1.9, 1.8, 1.7, 0.3, 0.2), "unseen"),
    "steep": (tuple(30 / (i + 1) ** 2 for i in range(16)), "unseen"),
}
CLEAR = 2.0
"""Factor between gain and tolerance beyond which a case is clear."""


@dataclasses.dataclass(frozen=True)
class Training:
    """A run of the panel."""

    name: str
    kind: str
    half: str
    settings: dict[str, Any]
    spectrum: str = ""
    lengths: tuple[int, ...] = LENGTHS

    @property
    def is_scheduled(self) -> bool:
        """Whether the learning rate falls to 0, so that only the whole run can be judged."""
        return "schedule" in self.settings

    def data(self, mnist: Path | None) -> AbstractDataset:
        """Load what it is trained on."""
        if self.spectrum:
            return ps.load_dataset("gaussian", eigenvalues=SPECTRA[self.spectrum][0], n_samples=5000)
        if self.kind.startswith("MNIST"):
            return ps.load_dataset("mnist", path=str(mnist))
        return table(self.name.partition(" ")[0])


@functools.cache
def table(name: str) -> AbstractDataset:
    """A table of scikit-learn's, every feature with variance 1."""
    import sklearn.datasets

    rows = getattr(sklearn.datasets, f"load_{name}")().data
    return apply_variants(ps.from_arrays(np.asarray(rows, dtype=np.float32)), standardise=name != "digits")


def panel(mnist: Path | None) -> Iterator[Training]:
    """All runs."""
    linear = {
        "net": "linear",
        "likelihood": "gaussian",
        "variance": GAMMA,
        "keep_units": True,
        "train_fraction": 1.0,
    }
    linear |= {"n_latents": 8, "log_every": 50, "checkpoint_every": 1000, "keep_checkpoints": "all"}
    for name, (_, half) in SPECTRA.items():
        for rate, seed in ((1e-3, 0), (3e-3, 0), (3e-3, 1), (1e-2, 0), (1e-2, 1)):
            settings = {**linear, "learning_rate": rate, "seed": seed, "steps": SHORT_STEPS}
            title = f"{name} rate {rate:g} seed {seed}"
            yield Training(title, "linear", half, settings, name, SHORT_LENGTHS)
        for steps in (1000, 2000, 4000):
            settings = {**linear, "learning_rate": 1e-3, "schedule": "cosine", "steps": steps}
            yield Training(f"{name} cosine {steps}", "linear, cosine", half, settings, name, (steps,))
    tables = {"digits": "chosen on", "wine": "chosen on", "breast_cancer": "unseen", "diabetes": "unseen"}
    for name, half in tables.items():
        for rate in (1e-4, 1e-3):
            settings = {"learning_rate": rate, "steps": STEPS}
            yield Training(f"{name} rate {rate:g} seed 0", "table", half, settings)
    if mnist is None:
        return
    for rate, half in ((1e-4, "chosen on"), (1e-3, "unseen")):  # collapses at first, and escapes later
        settings = {"learning_rate": rate, "steps": STEPS, "objective": "beta", "beta": 1.0, "net": "mlp"}
        yield Training(f"mnist beta 1 rate {rate:g}", "MNIST, mlp", half, settings)
    for beta, half in ((1.0, "chosen on"), (8.0, "unseen")):
        settings = {"learning_rate": 1e-4, "steps": SHORT_STEPS, "objective": "beta", "beta": beta}
        title = f"mnist conv beta {beta:g} rate 0.0001"
        yield Training(title, "MNIST, conv", half, settings, lengths=SHORT_LENGTHS)


@dataclasses.dataclass(frozen=True)
class Case:
    """A training of T steps: what the rule says, and what is true."""

    training: Training
    steps: int
    state: TrainingState
    gain: float
    """True gain in nats from as many steps again; with a schedule, from converging."""
    excess: float
    """Loss above the optimum; NaN if it is not known."""
    changes: bool
    """Whether other latents are in use after as many steps again."""

    @property
    def tolerance(self) -> float:
        """Gain that counts, in nats."""
        return np.nan if self.state.tolerance is None else self.state.tolerance

    @property
    def learns(self) -> bool:
        """Whether it is still learning in truth."""
        return bool(self.gain > self.tolerance or self.changes)


def exact_loss(model: Model, rows: np.ndarray) -> float:
    """Return the expected loss of a linear VAE over some rows, in nats, without noise."""
    with torch.inference_mode():
        x = torch.from_numpy(rows).double()
        model = model.double()
        q = model.encode(x)
        mean, variance = q.mean, torch.broadcast_to(q.variance, q.mean.shape)
        zero = model.decode(torch.zeros(1, model.n_latents, dtype=torch.float64)).mean
        columns = model.decode(torch.eye(model.n_latents, dtype=torch.float64)).mean - zero
        error = ((x - zero - mean @ columns) ** 2).sum(1) + variance @ (columns**2).sum(1)
        kl = 0.5 * (mean**2 + variance - 1 - variance.log()).sum(1)
        constant = 0.5 * x.shape[1] * np.log(2 * np.pi * GAMMA)
        return float((constant + error / (2 * GAMMA) + kl).mean())


def logged_loss(lines: Sequence[dict[str, Any]], steps: int) -> float:
    """Return the mean training loss over the last tenth of a training of some steps."""
    return float(np.mean([line["loss"] for line in lines if 0.9 * steps < line["step"] <= steps]))


def in_use(lines: Sequence[dict[str, Any]], steps: int) -> list[bool]:
    """Return which latents are in use at a step, by their mean information over the last twentieth of the steps."""
    window = [information(line) for line in lines if 0.95 * steps < line["step"] <= steps]
    return (np.mean(window, axis=0) > THRESHOLD).tolist()


def cases(training: Training, run: Run, data: AbstractDataset) -> Iterator[Case]:
    """Judge a run at each of its lengths."""
    lines = run.log()
    rows = data.values(np.arange(len(data))) if training.spectrum else None
    optimum = np.nan
    if training.spectrum:
        optimum = linear_vae(np.array(SPECTRA[training.spectrum][0]), 8, gamma=GAMMA).loss

    def loss(steps: int) -> float:
        return logged_loss(lines, steps) if rows is None else exact_loss(run.model(steps), rows)

    for steps in training.lengths:
        state = training_state([line for line in lines if line["step"] <= steps], threshold=THRESHOLD)
        excess = loss(steps) - optimum
        gain = excess if training.is_scheduled else loss(steps) - loss(2 * steps)
        changes = not training.is_scheduled and in_use(lines, steps) != in_use(lines, 2 * steps)
        yield Case(training, steps, state, gain, excess, changes)


def summary(title: str, found: Sequence[Case]) -> str:
    """Return a row of the table: rates of one kind in one half."""
    judged = [case for case in found if case.state.code in ("still-learning", "converged")]
    said = [case.state.code == "still-learning" for case in judged]
    true = [case.learns for case in judged]
    misses = sum(t and not s for t, s in zip(true, said, strict=True))
    alarms = sum(s and not t for t, s in zip(true, said, strict=True))
    clear = [case.gain < case.tolerance / CLEAR and not case.changes for case in judged]
    clear_alarms = sum(s and c for s, c in zip(said, clear, strict=True))
    far = [case.gain for case in judged if case.learns and case.state.code == "converged"]
    others = [case.state.code for case in found if case not in judged]
    counts = ", ".join(f"{others.count(code)} {code}" for code in sorted(set(others))) or "–"
    worst = f"{max(far):.2f} nats" if far else "–"
    return (
        f"| {title} | {len(found)} | {misses} of {sum(true)} | {alarms} of {len(true) - sum(true)} | "
        f"{clear_alarms} of {sum(clear)} | {worst} | {counts} |"
    )


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--mnist", type=Path, help="folder with the four files of MNIST")
    parser.add_argument("--only", default="", help="train only runs whose kind begins so, and print nothing")
    parser.add_argument("--cases", action="store_true", help="also print every case")
    options = parser.parse_args()
    found: list[Case] = []
    for training in panel(options.mnist):
        if not training.kind.startswith(options.only):
            continue
        folder, data = options.out / training.name.replace(" ", "-"), training.data(options.mnist)
        ps.train(data, out=folder, threads=1, **{"n_latents": 10, **training.settings})
        if not options.only:
            found += cases(training, Run(folder, read_only=True), data)
    if options.only:
        return
    if options.cases:
        for case in found:
            state = case.state
            print(
                f"{case.training.half:9} {case.training.name:28} T {case.steps:5}: {state.code:14} "
                f"{'LEARNS' if case.learns else '':6} gain {case.gain:8.3f} forecast {state.gain or 0:8.3f} to "
                f"{state.gain_limit or 0:8.3f} tolerance {case.tolerance:6.3f} excess {case.excess:8.3f} "
                f"changes {case.changes} moves {state.moves}"
            )
    print(
        "| runs | cases | misses | false alarms | false alarms with a true gain below half the tolerance | "
        "worst miss | other states |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for half in ("chosen on", "unseen"):
        for kind in ("linear", "linear, cosine", "table", "MNIST, conv", "MNIST, mlp"):
            part = [case for case in found if (case.training.half, case.training.kind) == (half, kind)]
            if part:
                print(summary(f"{kind} ({half})", part))


if __name__ == "__main__":
    main()
