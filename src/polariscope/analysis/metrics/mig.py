"""Mutual information gap."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Int

from polariscope.analysis.code_table import Table, gap
from polariscope.analysis.metrics import Score, metric
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.core.text import numbered
from polariscope.numerics.information import N_BINS, Bins, discretise, information
from polariscope.numerics.intervals import recentred_interval
from polariscope.numerics.mixtures import log_normal_mixture

TOO_NARROW = 0.1  # maximum information of codes in shuffled rows, relative to a factor's entropy


@metric(
    "mig",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"order", "shift", "scale"},
    uses=("variance",),
    posterior_variants=("chen",),
    evidence="information",
)
def mig(
    table: Table,
    *,
    variant: Literal["locatello", "rebinned", "chen"] = "locatello",
    n_bins: Bins = N_BINS,
    n_samples: Annotated[int, Ge(2)] = 2000,
) -> Score:
    r"""Gap in mutual information between the two latents that are most informative about each factor.

    .. math:: \mathrm{MIG} = \frac1K \sum_k \frac{I(z_{(1)}; w_k) - I(z_{(2)}; w_k)}{H(w_k)}

    with z₍₁₎ and z₍₂₎ the two latents that share most information with factor w_k. It is 1 if one latent determines
    each factor and no other latent is informative about it, and 0 if two latents are equally informative, or none is.
    The score does not measure whether a latent encodes one factor or several.

    The information is estimated in one of three ways:

    * ``locatello``, the default, because published comparisons use it: codes in ``n_bins`` equal-width bins over their
      range, factors as classes;
    * ``rebinned``: the factors' values are also put in ``n_bins`` bins, so H(w_k) ≤ log ``n_bins``; with ``n_bins=10``
      it equals mushom2020's code;
    * ``chen``: from the posteriors N(codes, ``variance``), without bins:
      I = E[log q(z_j|w_k) − log q(z_j)] with q(z_j) and q(z_j|w_k) the mixtures of the posteriors of all samples and
      of those with this class, at one draw per sample. The mixtures are those of ``n_samples`` randomly selected
      samples (time grows with their square), and include the posterior of the draw, so the information is at most that
      of these samples. If σ is below the distance between neighbouring means, about their spread divided by
      ``n_samples``, a draw identifies its sample and therefore every factor. I(z_j; w_k) then approaches H(w_k) for
      every latent that varies, and the gap approaches 0. Shuffled rows reveal this, because their information should be
      0; a note is added if it exceeds a tenth of the entropy. Subtracting it would not help, because I(z_j; w_k) of an
      informative latent is already bounded by H(w_k).

    Reference: zietlow2022 Eq. 2.8; Chen et al., Isolating Sources of Disentanglement in VAEs (chen2018); Locatello et
    al. (locatello2019). mushom2020 prints the roles of latents and factors exchanged; its code does not. The interval
    covers the draw of the samples; chance is the mean over shuffled rows.

    :param variant: (default "locatello") estimate of the information: from bins, or from the posteriors ("chen").
    :param n_bins: (default 20) number of equal-width bins of each code.
    :param n_samples: (default 2,000) number of samples in the mixtures of ``chen``.

    >>> factors = np.array([[a, b] for a in range(3) for b in range(3)] * 2)
    >>> round(mig(factors.astype(float), factors).value, 6)
    1.0
    """
    notes = table.grid_notes
    if variant == "chen":
        informations, entropies, replicates, permuted = _from_posteriors(table, n_samples)
        if n_samples < table.n_samples:
            notes += (f"The mixtures include {n_samples} of the {table.n_samples} samples.",)
        notes += _too_narrow(permuted[0] / entropies, min(n_samples, table.n_samples))
    elif variant == "rebinned":
        binned, classes = table.discretised(n_bins), discretise(table.factors, n_bins)
        informations, entropies = information(binned, classes)
        resampled, of_factors = information(binned, classes, table.resamples)
        # A resample can contain a single value of a factor, whose entropy is 0.
        replicates = gap(resampled) / np.maximum(of_factors, np.finfo(float).tiny)
        permuted = np.stack([information(binned[order], classes)[0] for order in table.permutations])
    else:
        informations, entropies = table.mi_table(n_bins), table.factor_entropies
        resampled, of_factors = table.mi_replicates(n_bins)
        replicates = gap(resampled) / np.maximum(of_factors, np.finfo(float).tiny)
        permuted = table.mi_permuted(n_bins)
    # A Monte Carlo estimate can be slightly negative, or slightly above the entropy.
    per_factor = np.clip(gap(informations) / entropies, 0, 1)
    value = float(per_factor.mean())
    order = np.argsort(-informations, axis=0, kind="stable")
    return Score.of(
        "mig",
        value,
        interval=recentred_interval(value, replicates.mean(axis=1), (0, 1)),
        chance=float(np.clip(gap(permuted) / entropies, 0, 1).mean()),
        variant=variant,
        per_factor=per_factor,
        matrix=informations,
        details={
            "best_latent": order[0],
            "second_latent": order[1],
            "factor_entropies": entropies,
            "factor_names": table.factor_names,
            "bins": None if variant == "chen" else n_bins,
        },
        notes=notes,
    )


def _from_posteriors(
    table: Table, n_samples: int
) -> tuple[
    Float[np.ndarray, "latent factor"],
    Float[np.ndarray, " factor"],
    Float[np.ndarray, "replicate factor"],
    Float[np.ndarray, "1 latent factor"],
]:
    """Return information, entropies, gaps in bootstrap resamples of the draws, and information of shuffled rows."""
    n = min(n_samples, table.n_samples)
    rows = np.sort(generator(table.seed, "mig", "chosen").choice(table.n_samples, n, replace=False))
    part = table.at(rows)
    if part.variance.min() <= 0:
        raise InputError("variance", "be positive: a posterior that is a point has no density to mix")
    mean = part.standardised  # a common offset would cost digits
    deviation = np.sqrt(part.variance) / np.where(part.constant, 1.0, part.codes.std(axis=0))
    noise = generator(table.seed, "sampled").standard_normal(mean.shape)

    def log_marginal(rows: Int[np.ndarray, " row"], j: int) -> Float[np.ndarray, " row"]:
        return log_normal_mixture(mean[rows, j], deviation[rows, j], noise[rows, j])

    def log_ratios(
        classes: Int[np.ndarray, "sample factor"],
    ) -> Float[np.ndarray, "sample latent factor"]:
        ratios = np.empty((n, part.n_latents, part.n_factors))
        for k, column in enumerate(classes.T):
            # Rows sorted by class and split at the ends of the classes.
            for rows in np.split(np.argsort(column, kind="stable"), np.cumsum(np.bincount(column))[:-1]):
                for j in range(part.n_latents):
                    ratios[rows, j, k] = log_marginal(rows, j)
        return ratios - marginal[:, :, None]

    marginal = np.stack([log_marginal(np.arange(n), j) for j in range(part.n_latents)], axis=1)
    ratios = log_ratios(part.classes)
    # Only the draws are resampled; the mixtures stay those of all selected samples.
    shares = part.resamples / n
    resampled = (shares @ ratios.reshape(n, -1)).reshape(-1, part.n_latents, part.n_factors)
    shuffled = log_ratios(part.classes[part.permutations[0]]).mean(axis=0)
    return ratios.mean(axis=0), part.factor_entropies, gap(resampled) / part.factor_entropies, shuffled[None]


def _too_narrow(shares: Float[np.ndarray, "latent factor"], n_samples: int) -> tuple[str, ...]:
    """Return a note about latents whose posteriors identify samples, which shuffled rows reveal."""
    worst = shares.max(axis=1)
    latents = np.flatnonzero(worst > TOO_NARROW)
    if not len(latents):
        return ()
    names = numbered("latent", latents.tolist())
    return (
        f"The posteriors of {names} are too narrow for {n_samples} samples: a draw identifies its sample, so even in "
        f"shuffled rows the information is up to {worst.max():.0%} of a factor's entropy. The gap is too small; use "
        "more n_samples, or the variant locatello.",
    )
