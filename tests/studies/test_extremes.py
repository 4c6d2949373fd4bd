"""The best and the worst restart of each setting are those of the column, which knows which end is better."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.studies.extremes import extremes
from polariscope.studies.table import Table

MIG = {"beta": (0.2, 0.5, 0.1), "ae": (0.3, 0.3, 0.3)}


def handmade(**scores: tuple[float, ...]) -> Table:
    """A run for each objective and seed; its loss is its MIG too, of which less is better."""
    rows = tuple(
        {
            "run": f"{name}-{seed}",
            "state": "done",
            "objective": name,
            "seed": seed,
            "mig": mig,
            "loss": mig,
            "active": 3,
            "coordinates": "polar",
        }
        for name, values in (scores or MIG).items()
        for seed, mig in enumerate(values)
    )
    return Table(rows, ("objective", "seed"))


def chosen(table: Table, column: str) -> list[tuple[object, object]]:
    return [(row["restart"], row["run"]) for row in extremes(table, column).rows]


def test_the_best_is_the_end_that_the_column_says() -> None:
    table = handmade(beta=MIG["beta"])
    assert chosen(table, "mig") == [("best", "beta-1"), ("worst", "beta-2")]
    assert chosen(table, "loss") == [("best", "beta-2"), ("worst", "beta-1")]
    found = extremes(table, "mig")
    assert found.columns[:4] == ["run", "state", "objective", "seed"]
    assert found.columns[4] == "restart"
    assert found.rows[0]["coordinates"] == "polar"
    assert found.notes == ()


def test_of_equal_scores_the_first_is_the_best_and_the_last_the_worst() -> None:
    found = extremes(handmade(), "mig")
    assert chosen(handmade(), "mig")[2:] == [("best", "ae-0"), ("worst", "ae-2")]
    assert found.notes == ("All 3 seeds of objective=ae have the same mig.",)
    assert chosen(handmade(beta=(0.1, 0.5, 0.5, 0.1)), "mig") == [("best", "beta-1"), ("worst", "beta-3")]


def test_a_single_seed_is_neither_best_nor_worst() -> None:
    found = extremes(handmade(beta=(0.2, 0.5), ae=(0.3,)), "mig")
    assert [row["restart"] for row in found.rows] == ["best", "worst", "only one"]
    assert found.notes == ("There is only one seed of objective=ae: neither a best nor a worst.",)
    both = extremes(handmade(beta=(0.2,), ae=(0.3,)), "mig")
    assert both.notes == (
        "There is only one seed of objective=beta; objective=ae: neither a best nor a worst.",
    )
    unnamed = extremes(Table(handmade(beta=(0.2,)).rows, ("seed",)), "mig")
    assert unnamed.notes == ("There is only one seed: neither a best nor a worst.",)


def test_runs_without_a_score_are_not_chosen_and_are_named() -> None:
    good = handmade(beta=MIG["beta"])
    others = (
        {"run": "late", "state": "running", "objective": "beta", "seed": 3, "mig": 0.9},
        {"run": "blind", "state": "done", "objective": "beta", "seed": 4, "mig": float("nan")},
    )
    found = extremes(Table((*good.rows, *others), good.settings), "mig")
    assert [row["run"] for row in found.rows] == ["beta-1", "beta-2"]
    assert found.notes == (
        "Not compared, since they are not done: late.",
        "Not compared, since they have no number in 'mig': blind.",
    )


def test_the_finished_model_of_a_run_stands_for_it() -> None:
    rows = tuple(
        {"run": f"run-{seed}", "state": "done", "step": step, "seed": seed, "mig": mig}
        for seed, course in enumerate(((0.9, 0.2), (0.1, 0.5)))
        for step, mig in zip((10, 20), course, strict=True)
    )
    assert [(row["run"], row["step"]) for row in extremes(Table(rows, ("seed",)), "mig").rows] == [
        ("run-1", 20),
        ("run-0", 20),
    ]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("migg", r"no column named 'migg'; there are loss, mig\. Did you mean 'mig'"),
        ("coordinates", r"the column 'coordinates' has no numbers to rank runs by; choose one of mig, loss"),
        ("seed", r"neither higher nor lower is better for 'seed'; choose one of mig, loss"),
        ("active", r"neither higher nor lower is better for 'active'; choose one of mig, loss"),
    ],
)
def test_a_column_that_ranks_no_runs_is_refused(column: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        extremes(handmade(), column)


def test_a_study_of_which_nothing_is_done_is_refused() -> None:
    with pytest.raises(InputError, match="no run of the table is done; run the study first"):
        extremes(Table((), ("seed",)), "mig")


def test_conditions_that_no_run_meets_are_not_taken_for_a_study_that_was_not_run() -> None:
    with pytest.raises(InputError, match="no run of the table meets the conditions; remove a condition"):
        extremes(handmade().where("seed=9"), "mig")
