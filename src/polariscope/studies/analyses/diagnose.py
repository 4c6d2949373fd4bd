"""Active, mixed and passive latents, and their dependence."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from polariscope.analysis.regime.latent_types import TYPES
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.regime.rule import TypeRule
from polariscope.numerics.dependence import effective_rank
from polariscope.studies.analyses import AbstractAnalysis, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.runs.run import Run

POSITIVE = (0.0, math.inf)


@analysis(
    "diagnose",
    scope="each",
    gives={
        **{str(kind): Column(f"{kind} latents", bounds=POSITIVE, counts_latents=True) for kind in TYPES},
        "in_use": Column("latents in use", bounds=POSITIVE, counts_latents=True),
        "n_factors": Column("factors that vary"),
        "training": Column("state of the training"),
        "kl": Column("KL (nats)", bounds=POSITIVE),
        "trace": Column("Σ E[σ²]", bounds=POSITIVE),
        "delta_kl": Column("Δ KL", bounds=POSITIVE),
        "over_pruned": Column("over-pruned"),
        "tc.*.in_use": Column("total correlation of latents in use (nats)", bounds=POSITIVE),
        "mi.*.in_use": Column("averaged MI of latents in use, less chance (nats)", bounds=POSITIVE),
        "rank.*.in_use": Column("effective rank of latents in use", bounds=POSITIVE, counts_latents=True),
        "tc.*": Column("total correlation (nats)", bounds=POSITIVE),
        "mi.*.raw*": Column("averaged MI, not corrected (nats)", bounds=POSITIVE),
        "mi.*.chance": Column("averaged MI of shuffled latents (nats)", bounds=POSITIVE),
        "mi.*": Column("averaged MI less chance (nats)", bounds=POSITIVE),
        "rank.*": Column("effective rank", bounds=POSITIVE, counts_latents=True),
    },
)
@dataclasses.dataclass(frozen=True)
class DiagnoseAnalysis(TypeRule, AbstractAnalysis[Regime]):
    """Counts by type, and total correlation, mutual information and effective rank of all latents and of those in use.

    Latents in use are those of the verdict. The details contain the same numbers for combinations of types.
    """

    kind = "regime"
    record = Regime

    def measure(self, run: Run, step: int | None = None) -> Regime:
        return run.regime(self.alpha, self.n_bootstrap, **self.where, step=step)

    def columns(self, measured: Regime) -> Columns:
        cells: Columns = {
            **{str(kind): count for kind, count in measured.counts.items()},
            "in_use": measured.verdict.n_in_use,
            **({"n_factors": measured.n_factors} if measured.n_factors else {}),
            "training": measured.training.code,
            "kl": measured.kl,
            "trace": measured.trace,
            "delta_kl": measured.polarisation.delta,
            "over_pruned": measured.over_pruned,
        }
        row = measured.dependence_in_use
        ranks = ranks_in_use(measured)
        for source in ("mean", "sampled"):
            structure = getattr(measured, source)
            cells |= {
                f"tc.{source}": structure.total_correlation,
                f"mi.{source}": structure.corrected_mutual_information,
                f"mi.{source}.chance": structure.chance_mutual_information,
                f"mi.{source}.raw": structure.averaged_mutual_information,
                f"rank.{source}": structure.effective_rank,
            }
            dependence = None if row is None else getattr(row, source)
            cells[f"tc.{source}.in_use"] = None if dependence is None else dependence.total_correlation
            cells[f"mi.{source}.in_use"] = (
                None if dependence is None else dependence.corrected_mutual_information
            )
            cells[f"rank.{source}.in_use"] = ranks[source]
        return cells

    def details(self, measured: Regime) -> Columns:
        cells: Columns = {}
        for row in measured.truncation:
            for source in ("mean", "sampled"):
                dependence = getattr(row, source)
                if dependence is not None:
                    cells[f"tc.{source}.by_types.{row.selection}"] = dependence.total_correlation
                    cells[f"mi.{source}.by_types.{row.selection}"] = dependence.corrected_mutual_information
                    cells[f"mi.{source}.raw.by_types.{row.selection}"] = (
                        dependence.averaged_mutual_information
                    )
        return cells


def ranks_in_use(regime: Regime) -> dict[str, float]:
    """Return the effective rank of the latents in use.

    The covariance of the means follows from their correlations and standard deviations; that of the sampled codes adds
    E[σ²] to the diagonal, which is its expectation over draws.

    :param regime: the diagnosis.
    """
    keep = sorted(regime.in_use)
    spread = np.array([latent.std_of_mean for latent in regime.latents])
    noise = np.array([latent.mean_of_variance for latent in regime.latents])
    mean = np.array(regime.mean.correlation) * np.outer(spread, spread)
    np.fill_diagonal(mean, spread**2)
    return {
        "mean": effective_rank(mean[np.ix_(keep, keep)]) if keep else 0.0,
        "sampled": effective_rank((mean + np.diag(noise))[np.ix_(keep, keep)]) if keep else 0.0,
    }
