"""DCI: disentanglement, completeness and informativeness, from the importance of latents to predictors."""

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
"""Number of halves; few, because each requires half as many trees as the value. Student's t accounts for it."""


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
    r"""Degree to which each latent predicts a single factor (the value), and a single latent predicts each factor.

    R[j, k] is the importance of latent j for predicting factor k; columns sum to 1. With
    P[j, ·] = R[j, ·] / Σ_k R[j, k] and Q[·, k] = R[·, k] / Σ_j R[j, k],

    .. math:: D = \sum_j \rho_j \Big(1 + \sum_k P_{jk} \log_K P_{jk}\Big), \qquad
              C = \sum_k \kappa_k \Big(1 + \sum_j Q_{jk} \log_J Q_{jk}\Big)

    ρ_j and κ_k are the shares of row j and column k in the sum of R. ``value`` is the disentanglement D; the
    completeness C and the informativeness I (accuracy on the test samples, R² of a factor declared continuous,
    averaged over factors) are in ``details``. ``matrix`` is R, ``per_latent`` and ``per_factor`` the summands of D
    and C before weighting.

    D = 1 if each latent is used for at most one factor, and C = 1 if a single latent is used for each factor. Both are
    0 if all latents are used equally. The scores depend on the fitted predictor, not only on the codes: dependent
    factors predict each other, and trees also split on noise, so even codes that equal the factors up to order, sign
    and a little noise score less than 1. Trees also change slightly with the sign and order of the latents. If there is
    a single latent and it is used, C = 1. For a single factor D would always be 1, which raises an error; C and I are
    defined (``part``). Codes that predict no factor (constants) have D = C = 0, with a note. Trees do not distinguish
    duplicates: of two equal latents the first is used.

    The variants are ``boosted`` (default), histogram gradient boosting by LightGBM with the settings of the published
    numbers (100 trees of depth 3, rate 0.1) and 1023 bins, with importance by gain; ``reference``, scikit-learn's exact
    gradient boosting as in locatello2019, which takes minutes with dSprites' factors; ``forest``, random forest; and
    ``lasso``, |weights| of a linear regression on the factors as numbers, with the strength selected by
    cross-validation, as in the original paper. Gain is second-order in LightGBM and a reduction of squared residuals in
    scikit-learn, so scores differ slightly (``python benchmarks/metrics.py --dci --samples 3000`` shows both). Scores
    fall with the number of trees, because later splits are noise. A factor that no latent predicts still counts as a
    whole column of R and lowers D; a note lists such factors.

    The interval is the spread of D over 6 halves of the training samples, with half of the trees on 63 bins. Their
    spread is that of all trees, or up to 1.5 times as large if D is small. If D is near 1, halves spread more than the
    value does, so the interval is wide. The chance level is D of shuffled codes, with all trees on 63 bins: for one
    shuffle, or for ``lasso`` the mean of ten. On noise the lasso selects no weight (D = 0) or a single one (D = 1), so
    uninformative codes can score high. ``reference`` has neither interval nor chance level, because each would take as
    long as the value.

    Reference: Eastwood & Williams, A Framework for the Quantitative Evaluation of Disentangled Representations
    (eastwood2018); boosted trees: Locatello et al.
    (locatello2019). Ours: training and test sets are 2/3 and 1/3 of the samples.

    :param variant: (default "boosted") predictor whose use of the latents is measured.
    :param n_trees: (default 100) number of trees of each predictor; unused by ``lasso``.
    :param part: (default "disentanglement") part that is the value, with its interval and chance level.

    >>> factors = np.random.default_rng(0).integers(3, size=(300, 2))
    >>> score = dci(factors.astype(float), factors)
    >>> score.value, score.details["completeness"], score.details["informativeness"]
    (1.0, 1.0, 1.0)
    """
    if part == "disentanglement" and table.n_factors < 2:
        raise InputError(
            problem=(
                "disentanglement requires at least 2 factors; with a single one, any codes that predict it would "
                "score 1"
            ),
            remedy='set the option part of dci to "completeness" or "informativeness"',
        )
    train, test = table.split()
    codes = table.standardised
    jobs = [Job(codes, train, test, n_trees)]
    # Only informativeness requires predictions for all test samples.
    # At least one test sample, because predictors are always evaluated.
    tested = test if part == "informativeness" else test[:1]
    if variant != "reference":
        rounds = half_samples(train, table, "dci", N_HALVES)
        orders = table.permutations if variant == "lasso" else table.permutations[:1]
        jobs += [Job(codes, rows, tested, max(1, n_trees // 2), QUICK_BINS) for rows in rounds]
        jobs += [Job(codes[order], train, tested, n_trees, QUICK_BINS) for order in orders]
    fitted, *others = importances(table, jobs, variant)
    _, per_latent = disentanglement(fitted.matrix)
    _, per_factor = disentanglement(fitted.matrix.T)
    # R² of a poor predictor is negative.
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
    """Return a note about factors that are predicted no better than by a constant, although latents are used."""
    # Two standard errors of a share near one half, the largest possible.
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
    r"""Return the weighted mean over rows of 1 − H(P_j)/log K, and its terms; for the transpose, the completeness.

    Rows of zeros have the term 0 and no weight. With a single column the term is 1.

    >>> disentanglement(np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]))[0]
    1.0
    """
    mass = matrix.sum(axis=1)
    used, n_columns = mass > 0, matrix.shape[1]
    terms = np.zeros(len(matrix))
    terms[used] = 1.0 if n_columns == 1 else 1 - entropy(matrix[used] / mass[used, None]) / np.log(n_columns)
    terms = np.clip(terms, 0.0, 1.0)  # rounding gives −1e-16 for a uniform row
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
        notes.append(f"No latent helps to predict {', '.join(unused)}, so D and C ignore these factors.")
    return [*notes, *table.grid_notes]
