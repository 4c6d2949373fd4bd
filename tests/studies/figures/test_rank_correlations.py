"""Rank correlations between metrics, and with ELBO and downstream accuracy."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.figures.rank_correlations import RankCorrelations
from polariscope.testing.study_tables import by_beta


def cells(beta: float, seed: int) -> dict[str, float]:
    place = 3 * (beta == 4) + seed
    return {
        "mig": place,
        "sap": -place,
        "dci": place**2,
        "loss.reconstruction": 10.0 - place,
        "loss.rate": 2.0 * place,  # ELBO = −10 − place: falls
        "probe": place,
        "probe.by_size.100": place,
        "probe.by_size.1000": -place,
    }


def test_metrics_that_order_runs_alike_have_one_and_the_reverse_minus_one() -> None:
    rows = {(row["row"], row["column"]): row for row in RankCorrelations().numbers(by_beta(cells))}
    # What probes measure is downstream; of the table only the metrics are compared with each other.
    assert {pair[0] for pair in rows} == {"mig", "sap", "dci"}
    assert rows["mig", "dci"]["rho"] == 1
    assert rows["mig", "sap"]["rho"] == -1
    assert rows["sap", "mig"]["n"] == 6


def test_elbo_is_higher_when_better_and_reconstruction_is_a_loss() -> None:
    found = RankCorrelations(against="unsupervised", metrics=("mig",)).numbers(by_beta(cells))
    assert {row["column"]: row["rho"] for row in found} == {
        "elbo": -1,
        "loss.reconstruction": -1,
        "loss.rate": 1,
    }


def test_downstream_accuracy_is_by_number_of_labels() -> None:
    found = RankCorrelations(against="downstream", metrics=("mig",)).numbers(by_beta(cells))
    assert {row["column"]: row["rho"] for row in found} == {"probe.by_size.100": 1, "probe.by_size.1000": -1}
    with pytest.raises(InputError, match="the table has no downstream accuracy"):
        RankCorrelations(against="downstream").numbers(by_beta(lambda beta, seed: {"mig": 1.0}))


def test_one_metric_is_too_few_to_compare() -> None:
    with pytest.raises(InputError, match="the table contains one metric, so nothing can be compared"):
        RankCorrelations().numbers(by_beta(lambda beta, seed: {"mig": 1.0}))
