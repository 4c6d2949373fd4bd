import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from polariscope.analysis.regime.latent_types import SELECTIONS, select
from polariscope.analysis.regime.structure import DependenceTables, truncation
from polariscope.core.errors import InputError
from polariscope.numerics.dependence import (
    covariance,
    noise_free_covariance,
    total_correlation,
    total_correlation_of,
)
from polariscope.numerics.information import chance_information_table, discretise, mutual_information_table

TYPES = ["passive", "active", "mixed", "active", "passive"]


def table(types, n=500, seed=0):
    rng = np.random.default_rng(seed)
    k = len(types)
    mean, variance = rng.normal(size=(n, k)) @ rng.normal(size=(k, k)), rng.uniform(0.1, 1, size=(n, k))
    sampled = mean + np.sqrt(variance) * rng.normal(size=(n, k))
    covariances = (covariance(mean), covariance(sampled), noise_free_covariance(mean, variance))
    informations = tuple(mutual_information_table(discretise(x)) for x in (mean, sampled))
    chances = tuple(chance_information_table(discretise(x), seed, "mean") for x in (mean, sampled))
    return mean, variance, sampled, truncation(types, DependenceTables(covariances, informations, chances))


def test_every_combination_of_types_is_there_with_its_latents():
    rows = {row.selection: row.latents for row in table(TYPES)[-1]}
    assert rows == {
        "full": (0, 1, 2, 3, 4),
        "active": (1, 3),
        "mixed": (2,),
        "passive": (0, 4),
        "active+mixed": (1, 2, 3),
        "active+passive": (0, 1, 3, 4),
        "mixed+passive": (0, 2, 4),
    }
    assert tuple(rows) == SELECTIONS


def test_each_row_is_the_analysis_of_the_arrays_cut_to_its_latents():
    mean, variance, sampled, rows = table(TYPES)
    for row in rows:
        chosen = list(row.latents)
        if row.selection == "mixed":
            assert (row.mean, row.sampled, row.noise_free_total_correlation) == (None, None, None)
            continue
        for found, x in ((row.mean, mean), (row.sampled, sampled)):
            assert found.total_correlation == pytest.approx(total_correlation(x[:, chosen]), rel=1e-10)
            bins = discretise(x)
            pairs = [mutual_info_score(bins[:, i], bins[:, j]) for i in chosen for j in chosen if i != j]
            assert found.averaged_mutual_information == pytest.approx(np.mean(pairs), rel=1e-10)
        noise_free = total_correlation_of(noise_free_covariance(mean[:, chosen], variance[:, chosen]))
        assert row.noise_free_total_correlation == pytest.approx(noise_free, rel=1e-10)


def test_types_that_are_absent_leave_their_rows_empty():
    rows = {row.selection: row for row in table(["active", "active"])[-1]}
    assert rows["passive"].latents == rows["mixed+passive"].latents == ()
    assert rows["passive"].mean is None
    assert rows["active"].mean == rows["full"].mean == rows["active+mixed"].mean


def test_a_selection_takes_types_in_any_order_and_refuses_other_words():
    assert select(TYPES, "passive + mixed") == [0, 2, 4]
    assert select(TYPES, "full") == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match=r"no variable type named 'activ'.*Did you mean 'active'\?"):
        select(TYPES, "activ+mixed")
    with pytest.raises(InputError, match="there are active, full, mixed, passive"):
        select(TYPES, "")
