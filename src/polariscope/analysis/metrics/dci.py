"""DCI: disentanglement, completeness and informativeness from which latents a predictor uses."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Ge
from jaxtyping import Float

from polariscope.analysis.code_table import Table
from polariscope.analysis.metrics import Score, metric
from polariscope.analysis.metrics.support.importance import Importance, Job, Predictor, importances
from polariscope.analysis.metrics.support.resampling import half_samples
from polariscope.core.errors import InputError
from polariscope.core.text import numbered
from polariscope.numerics.classifiers import QUICK_BINS
from polariscope.numerics.information import entropy
from polariscope.numerics.intervals import interval_from_halves

Part = Literal["disentanglement", "completeness", "informativeness"]
N_HALVES = 6
"""Fewer than elsewhere, since each takes half as many trees as the value; Student's t allows for it."""


@metric(
    "dci",
    bounds=(0, 1),
    higher_is_better=True,
    needs=("codes", "factors"),
    invariant_to={"shift", "scale"},
    evidence="importance",
)
def dci(
    table: Table,
    *,
    variant: Predictor = "boosted",
    n_trees: Annotated[int, Ge(1)] = 100,
    part: Part = "disentanglement",
) -> Score:
    r"""How far each latent serves one factor (the value), and each factor is served by one latent.

    R[j, k] is the share of latent j in predicting factor k; columns sum to 1. With P[j, ·] = R[j, ·] / Σ_k R[j, k]
    and Q[·, k] = R[·, k] / Σ_j R[j, k],

    .. math:: D = \sum_j \rho_j \Big(1 + \sum_k P_{jk} \log_K P_{jk}\Big), \qquad
              C = \sum_k \kappa_k \Big(1 + \sum_j Q_{jk} \log_J Q_{jk}\Big)

    ρ_j and κ_k are the shares of row j and column k in the sum of R. ``value`` is the disentanglement D; the
    completeness C and the informativeness I (accuracy on the test samples, R² of a factor declared continuous,
    averaged over factors) are in ``details``. ``matrix`` is R, ``per_latent`` and ``per_factor`` the summands of D
    and C before weighting.

    D = 1: the predictor uses no latent for two factors; C = 1: none of two latents for one factor; 0: all are used
    alike. This is about what a fitted predictor used, not only about the codes: factors that depend on each other
    predict each other, and trees also split on noise, so both cost codes that are the factors up to order,
    sign and a little noise some of the 1. Nor does a flipped sign or another order of the latents leave trees exactly
    as they were. Where any latent is used, a single latent has C = 1. With a single factor D would be 1,
    and is refused; C and I are not (``part``). Codes that predict
    nothing by any latent (constants) have D = C = 0, with a note. Trees cannot see duplicates: of two equal latents
    the first is used.

    Variants: ``boosted`` (default), histogram gradient boosting by LightGBM with the settings of the published
    numbers (100 trees of depth 3, rate 0.1) and 1023 bins, importance by gain; ``reference``, scikit-learn's exact
    gradient boosting as in locatello2019, minutes with dSprites' factors; ``forest``, random forest; ``lasso``,
    |weights| of a linear regression on the factors' numbers, strength by cross-validation, as in the original
    paper. Gain is second-order in LightGBM, a reduction of squared residuals in scikit-learn, so scores shift
    a little (``python benchmarks/metrics.py --dci --samples 3000`` shows both). They fall with the number of trees,
    whose later splits are noise. A factor that no latent predicts still counts as a whole column of R and pulls D
    down; a note names it.

    The interval is the spread of D over 6 halves of the training samples, with half of the trees on 63 bins: they
    spread as with all, or up to 1.5 times as much where D is small; where D is near 1, halves spread more than the
    value does, and it is wide. The chance level is D of shuffled codes, with all trees on 63 bins: once, or for
    ``lasso`` the mean of ten shufflings, since of noise it keeps no weight (D = 0) or a stray one (D = 1), so
    codes that know nothing can score high. ``reference`` has neither, since both would take as long again.

    Reference: Eastwood & Williams, A Framework for the Quantitative Evaluation of Disentangled Representations
    (eastwood2018); boosted trees: Locatello et al.
    (locatello2019). Ours: train and test are 2/3 and 1/3 of the samples at hand.

    :param variant: (default "boosted") the predictor whose use of the latents is measured.
    :param n_trees: (default 100) trees of each predictor; ``lasso`` has none.
    :param part: (default "disentanglement") which of the three is the value, with its interval and chance.

    >>> factors = np.random.default_rng(0).integers(3, size=(300, 2))
    >>> score = dci(factors.astype(float), factors)
    >>> score.value, score.details["completeness"], score.details["informativeness"]
    (1.0, 1.0, 1.0)
    """
    if part == "disentanglement" and table.n_factors < 2:
        raise InputError(
            problem=(
                "its disentanglement says whether a latent serves several factors, and there is a "
                "single one: it would be 1 for any codes that help to predict it"
            ),
            remedy="choose the part completeness or informativeness",
        )
    train, test = table.split()
    codes = table.standardised
    jobs = [Job(codes, train, test, n_trees)]
    asked = test if part == "informativeness" else test[:1]
    if variant != "reference":
        rounds = half_samples(train, table, "dci", N_HALVES)
        orders = table.permutations if variant == "lasso" else table.permutations[:1]
        jobs += [Job(codes, rows, asked, max(1, n_trees // 2), QUICK_BINS) for rows in rounds]
        jobs += [Job(codes[order], train, asked, n_trees, QUICK_BINS) for order in orders]
    fitted, *others = importances(table, jobs, variant)
    _, per_latent = disentanglement(fitted.matrix)
    _, per_factor = disentanglement(fitted.matrix.T)
    value = min(max(_part(fitted, part), 0.0), 1.0)
    scores = [_part(other, part) for other in others]
    interval = interval_from_halves(value, scores[:N_HALVES])
    chance = min(max(float(np.mean(scores[N_HALVES:])), 0.0), 1.0) if scores else None
    return Score.of(
        "dci",
        value,
        interval=interval,
        chance=chance,
        variant=variant,
        per_latent=per_latent,
        per_factor=per_factor,
        matrix=fitted.matrix,
        details={
            **{name: _part(fitted, name) for name in get_args(Part)},
            "informativeness_per_factor": fitted.informativeness,
            "informativeness_of_a_constant": fitted.baseline,
        },
        notes=(*_notes(table, fitted.matrix, part), *_unpredicted(table, fitted, len(test))),
    )


def _unpredicted(table: Table, fitted: Importance, n_test: int) -> list[str]:
    """Factors that the codes predict no better than a constant does, though latents are used."""
    # Within two standard errors of a share near one half, the widest there is.
    poor = fitted.informativeness <= fitted.baseline + n_test**-0.5
    poor &= fitted.matrix.any(axis=0)
    names = [repr(name) for name, is_poor in zip(table.factor_names, poor, strict=True) if is_poor]
    if not names:
        return []
    return [
        f"{numbered('Factor', names)}: predicted no better than by a constant, so the "
        "importances of the latents for it are noise."
    ]


def disentanglement(
    matrix: Float[np.ndarray, "latent factor"],
) -> tuple[float, Float[np.ndarray, " latent"]]:
    r"""Weighted mean over rows of 1 − H(P_j)/log K, and its terms; of the transpose, it is the completeness.

    Rows of zeros have the term 0 and no weight; one column has nothing to share with: 1.

    >>> disentanglement(np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]))[0]
    1.0
    """
    mass = matrix.sum(axis=1)
    used, n_columns = mass > 0, matrix.shape[1]
    terms = np.zeros(len(matrix))
    terms[used] = 1.0 if n_columns == 1 else 1 - entropy(matrix[used] / mass[used, None]) / np.log(n_columns)
    terms = np.clip(terms, 0.0, 1.0)  # an even row comes out at −1e-16
    return (float(mass @ terms / mass.sum()) if mass.sum() > 0 else 0.0), terms


def _part(fitted: Importance, part: Part) -> float:
    if part == "informativeness":
        return float(fitted.informativeness.mean())
    return disentanglement(fitted.matrix if part == "disentanglement" else fitted.matrix.T)[0]


def _notes(table: Table, matrix: Float[np.ndarray, "latent factor"], part: Part) -> list[str]:
    others = " and ".join(name for name in get_args(Part) if name != part)
    notes = [f"The value is the {part}; {others} are in the details."]
    unused = [name for name, column in zip(table.factor_names, matrix.T, strict=True) if not column.any()]
    if unused:
        notes.append(f"No latent helps to predict {', '.join(unused)}: these count for nothing in D and C.")
    return [*notes, *table.grid_notes]
