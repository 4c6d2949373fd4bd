"""Choosing a run without labels, and what that costs."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.select import select_by_data, select_runs
from polariscope.testing.study_tables import by_beta, by_data

#        run:        0    1    2    3    4    5
MIG = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
UDR = (0.1, 0.2, 0.3, 0.4, 0.6, 0.5)  # chooses the second best
DTO = (0.9, 0.1, 0.8, 0.7, 0.6, 0.5)  # lowest: run 1
RECONSTRUCTION = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0)  # with rate 1 the best ELBO is that of run 5


def cells(beta: float, seed: int) -> dict[str, float]:
    i = 3 * (beta == 4) + seed
    return {
        "mig": MIG[i],
        "udr": UDR[i],
        "dto": DTO[i],
        "loss.reconstruction": RECONSTRUCTION[i],
        "loss.rate": 1.0,
        "loss": 0.0,
    }


def test_each_selector_chooses_its_best_and_the_cost_is_the_distance_to_the_best() -> None:
    found = select_runs(by_beta(cells), "mig")
    assert (found.metric, found.best, found.best_run) == ("mig", 0.6, "beta=4,seed=2")
    assert found.random == pytest.approx(0.35)
    assert found.random_cost == pytest.approx(0.25)
    by_name = {one.selector: one for one in found.selections}
    assert [one.selector for one in found.selections] == ["elbo", "udr", "dto"]  # the cheapest first
    assert (by_name["elbo"].value, by_name["elbo"].cost, by_name["elbo"].rank) == (-5, 0, 1)
    assert (by_name["udr"].metric, by_name["udr"].rank) == (0.5, 2)
    assert by_name["udr"].cost == pytest.approx(0.1)
    assert (by_name["dto"].run, by_name["dto"].rank) == ("beta=1,seed=1", 5)
    assert by_name["dto"].cost == pytest.approx(0.4)


def test_the_correlation_is_of_goodness_so_a_lower_distance_counts_as_better() -> None:
    by_name = {one.selector: one for one in select_runs(by_beta(cells)).selections}
    assert by_name["elbo"].correlation == 1
    # DtO orders goodness as 1 6 2 3 4 5, MIG as 1 … 6: Σ d² = 16 + 1 + 1 + 1 + 1 = 20, ρ = 1 − 120/210.
    assert by_name["dto"].correlation == pytest.approx(1 - 6 * 20 / 210)


def test_what_is_not_measured_is_named_with_the_analysis_to_add() -> None:
    found = select_runs(by_beta(cells))
    assert found.missing == {"agreement": "in the study file add [over.agreement], then run it again"}


def test_a_metric_of_which_less_is_better_is_wished_low() -> None:
    found = select_runs(by_beta(cells), "dto")
    assert (found.best, found.best_run) == (0.1, "beta=1,seed=1")
    assert found.random_cost == pytest.approx(0.6 - 0.1)
    assert {one.selector: one.cost for one in found.selections}["udr"] == pytest.approx(0.5)


def test_a_column_without_a_better_and_a_worse_is_refused() -> None:
    with pytest.raises(InputError, match="metric must be a column for which higher or lower is better"):
        select_runs(by_beta(cells), "loss.rate")


def test_selections_are_a_frame_with_a_row_for_each_way_of_choosing() -> None:
    table = by_beta(lambda beta, seed: {"mig": 0.1 * seed + beta, "udr": 0.2 * seed - beta})
    found = select_runs(table, "mig")
    frame = found.to_frame()
    assert frame["selector"].tolist() == [one.selector for one in found.selections]
    assert (frame["cost"].tolist(), frame["n"].dtype) == ([one.cost for one in found.selections], "int64")
    assert [(frame["low"][0], frame["high"][0])] == [found.selections[0].interval]
    assert found.to_dict()["metric"] == "mig"


def test_runs_with_fewer_latents_in_use_than_factors_do_not_compete() -> None:
    def collapsed(beta: float, seed: int) -> dict[str, float]:
        return {**cells(beta, seed), "n_factors": 2, "in_use": 0 if (beta, seed) == (4, 2) else 2}

    found = select_runs(by_beta(collapsed), "mig")
    assert (found.best, found.best_run) == (0.5, "beta=4,seed=1")
    assert found.not_competing == ("beta=4,seed=2",)
    assert {one.n for one in found.selections} == {5}
    with pytest.raises(InputError, match="every run with a value in column 'mig' has fewer latents in use"):
        select_runs(by_beta(lambda beta, seed: {**collapsed(beta, seed), "in_use": 1}), "mig")


def test_runs_of_different_datasets_are_not_ranked_against_each_other() -> None:
    """Runs on the changed data have a lower MIG throughout; UDR chooses the last seed of each."""
    table = by_data(lambda data, seed: {"mig": 0.1 * seed + (data == "original"), "udr": float(seed)})
    chosen = select_by_data(table, "mig")
    assert [part.data for part in chosen.parts] == [{"data": "original"}, {"data": "changed"}]
    assert [part.best_run for part in chosen.parts] == ["original,3", "changed,3"]
    assert [part.best for part in chosen.parts] == pytest.approx([1.3, 0.3])
    assert [part.random_cost for part in chosen.parts] == pytest.approx([0.15, 0.15])
    selections = [part.selections[0] for part in chosen.parts]
    assert [(one.run, one.rank, one.n, one.cost) for one in selections] == [
        ("original,3", 1, 4, 0),
        ("changed,3", 1, 4, 0),
    ]
    frame = chosen.to_frame()
    assert frame[["data", "selector", "run"]].to_numpy().tolist() == [
        ["original", "udr", "original,3"],
        ["changed", "udr", "changed,3"],
    ]
    with pytest.raises(
        InputError, match="the study has 2 datasets, whose runs are not ranked against each other"
    ):
        select_runs(table, "mig")


def test_a_dataset_without_a_run_to_choose_is_named() -> None:
    table = by_data(lambda data, seed: {"udr": float(seed)} | ({"mig": 0.1} if data == "original" else {}))
    chosen = select_by_data(table, "mig")
    assert [part.data for part in chosen.parts] == [{"data": "original"}]
    assert list(chosen.not_ranked) == ["data=changed"]
    assert "no finished run has a value in column 'mig'" in chosen.not_ranked["data=changed"]
    collapsed = by_data(lambda data, seed: {"mig": 0.1, "n_factors": 2, "in_use": 1 + (data == "original")})
    assert "fewer latents in use than factors" in select_by_data(collapsed, "mig").not_ranked["data=changed"]
