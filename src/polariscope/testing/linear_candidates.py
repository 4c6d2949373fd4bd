"""Candidates without training: linear VAEs in closed form, whose curves dip and rise as real ones do."""

from __future__ import annotations

from typing import Any

import numpy as np

from polariscope.analysis.representation import Representation
from polariscope.analysis.theory import LinearSolution, linear_vae
from polariscope.core.seeds import generator
from polariscope.sizing.candidates import AbstractCandidates, Curves, Losses


class LinearCandidates(AbstractCandidates):
    """The optimum of a linear β-VAE with decoder variance γ on data with known covariance eigenvalues."""

    def __init__(
        self,
        eigenvalues: np.ndarray,
        gamma: float = 1.0,
        beta: float = 1.0,
        seed: int = 0,
        descent: float = 60.0,
        n_samples: int = 2000,
    ) -> None:
        self.eigenvalues = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
        self.gamma, self.beta, self.seed, self.descent, self.n_samples = gamma, beta, seed, descent, n_samples
        self.asked: dict[tuple[int, str], int] = {}

    @property
    def steps_per_epoch(self) -> int:
        return 1000

    @property
    def n_steps(self) -> int:
        return sum(self.asked.values())

    @property
    def n_models(self) -> int:
        return len(self.asked)

    def solution(self, n_latents: int, **changes: Any) -> LinearSolution:
        return linear_vae(self.eigenvalues, n_latents, beta=changes.get("beta", self.beta), gamma=self.gamma)

    def _train(self, n_latents: int, steps: int, changes: dict[str, Any]) -> None:
        key = (n_latents, repr(sorted(changes.items())))
        self.asked[key] = max(steps, self.asked.get(key, 0))

    def n_watched(self, n_latents: int, **changes: Any) -> int:
        return self.asked.get((n_latents, repr(sorted(changes.items()))), 0)

    def watch(self, n_latents: int, steps: int, **changes: Any) -> Curves:
        self._train(n_latents, steps, changes)
        looks = np.arange(25, steps + 1, 25)
        final = self.solution(n_latents, **changes).variances
        # All latents fall first, then each rises to its optimum: surplus latents are pruned.
        fall = 0.02 + 0.98 * np.exp(-looks / self.descent)[:, None]
        pruning = (1 - np.exp(-np.maximum(0, looks - 4 * self.descent) / (4 * self.descent)))[:, None]
        return Curves(looks, np.maximum(np.minimum(fall, 1), 0.0) * (1 - pruning) + final * pruning)

    def representation(self, n_latents: int, steps: int, **changes: Any) -> Representation:
        self._train(n_latents, steps, changes)
        solution = self.solution(n_latents, **changes)
        variance = np.tile(solution.variances, (self.n_samples, 1))
        mean = self._coordinates(n_latents) * np.sqrt(solution.mean_variances)
        noise = generator(self.seed, "noise", n_latents).standard_normal(mean.shape)
        factors = self._coordinates(len(self.eigenvalues))[:, self.eigenvalues > 1e-3]
        return Representation(mean, variance, mean + np.sqrt(variance) * noise, factors=factors)

    def _coordinates(self, count: int) -> np.ndarray:
        """Return standard normal coordinates along principal directions; those beyond the data's are passive."""
        width = max(count, len(self.eigenvalues))
        # Drawn latent by latent, so the first columns do not depend on the width.
        return generator(self.seed, "rows").standard_normal((width, self.n_samples)).T[:, :count]

    def losses(self, n_latents: int, steps: int, **changes: Any) -> Losses:
        self._train(n_latents, steps, changes)
        solution = self.solution(n_latents, **changes)
        return Losses(solution.loss, solution.distortion, solution.rate)

    def reconstructions(self, n_latents: int, steps: int, **changes: Any) -> tuple[np.ndarray, np.ndarray]:
        solution = self.solution(n_latents, **changes)
        sampled = self.representation(n_latents, steps, **changes).sampled
        outputs = np.zeros((self.n_samples, len(self.eigenvalues)))
        width = min(n_latents, len(self.eigenvalues))
        outputs[:, :width] = (sampled * solution.singular_values)[:, :width]
        return self.observations(), outputs

    def observations(self) -> np.ndarray:
        return self._coordinates(len(self.eigenvalues)) * np.sqrt(self.eigenvalues)


def exact_answer(eigenvalues: np.ndarray, threshold: float, *, beta: float = 1.0, gamma: float = 1.0) -> int:
    """Return the largest n with Σ_{j ≤ n} min(1, βγ/λ_j) ≤ threshold; surplus latents add 1 each."""
    values = np.sort(np.asarray(eigenvalues, dtype=float))[::-1]
    # The smallest value avoids a division by 0; the ones are surplus latents.
    variances = np.concatenate([np.minimum(1, beta * gamma / np.maximum(values, 1e-300)), np.ones(1000)])
    return int((np.cumsum(variances) <= threshold).sum())
