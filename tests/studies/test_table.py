"""A table has a row for each run; aggregates over seeds and paired comparisons are those of the formulas."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.stats import t as student

from polariscope.analysis.regime.diagnose import diagnose
from polariscope.analysis.regime.regime import Regime
from polariscope.analysis.representation import Representation
from polariscope.core.deprecation import DeprecatedWarning
from polariscope.core.errors import InputError
from polariscope.numerics.dependence import covariance, effective_rank
from polariscope.numerics.intervals import bootstrap_interval_of_mean, t_interval
from polariscope.runs.run import Run
from polariscope.studies.analyses.diagnose import DiagnoseAnalysis, ranks_in_use
from polariscope.studies.columns import bounds_of
from polariscope.studies.ledger import Ledger
from polariscope.studies.table import Table
from polariscope.studies.table_rows import runs_table, study_table
from polariscope.studies.worker import Worker
from polariscope.testing.study_tables import by_beta
from tiny_studies import tiny

MIG = {1: (0.1, 0.2, 0.3), 4: (0.5, 0.5, 0.8)}


def handmade() -> Table:
    rows = [
        {
            "run": f"beta={beta},seed={seed}",
            "state": "done",
            "beta": beta,
            "seed": seed,
            "mig": value,
            "name": "x",
        }
        for beta, values in MIG.items()
        for seed, value in enumerate(values)
    ]
    return Table((*rows, {"run": "bad", "state": "failed", "beta": 9, "seed": 0}), ("beta", "seed"))


def test_aggregates_are_mean_deviation_and_students_interval() -> None:
    low, high = handmade().aggregate(["mig"])
    assert (low.settings, low.n, low.lowest, low.median, low.highest) == (
        *({"beta": 1}, 3, "beta=1,seed=0", "beta=1,seed=1", "beta=1,seed=2"),
    )
    assert low.mean == pytest.approx(0.2)
    assert low.sd == pytest.approx(0.1)
    half = student.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    assert low.t == pytest.approx((0, 0.2 + half))  # cut off at 0, the least MIG
    assert low.bootstrap is not None
    assert 0.1 <= low.bootstrap[0] < 0.2 < low.bootstrap[1] <= 0.3
    assert high.mean == pytest.approx(0.6)


def test_runs_that_are_not_done_have_no_part_in_means_and_comparisons() -> None:
    extra = {"run": "late", "state": "failed", "beta": 1, "seed": 3, "mig": 100.0}
    paired = {"run": "early", "state": "running", "beta": 4, "seed": 3, "mig": -100.0}
    table = Table((*handmade().rows, extra, paired), ("beta", "seed"))
    assert table.aggregate(["mig"]) == handmade().aggregate(["mig"])
    assert table.compare("mig", "beta", 1, 4) == handmade().compare("mig", "beta", 1, 4)
    assert table.over_seeds().notes == ("Not in the means, since they are not done: bad, late, early.",)


def test_of_many_runs_that_are_not_done_some_are_named_and_the_others_counted() -> None:
    waiting = [{"run": f"w{number}", "state": "waiting", "beta": 1, "seed": number} for number in range(7)]
    done = [row for row in handmade().rows if row["state"] == "done"]
    (note,) = Table((*done, *waiting), ("beta", "seed")).over_seeds().notes
    assert note == "Not in the means, since they are not done: w0, w1, w2, w3 and 3 more."


def test_aggregates_are_written_as_a_table_like_any_other(tmp_path: Path) -> None:
    table = handmade().over_seeds()
    rows = [row for row in table.rows if row["column"] == "mig"]
    assert [(row["beta"], row["n"]) for row in rows] == [(1, 3), (4, 3)]
    (low, _) = handmade().aggregate(["mig"])
    assert (rows[0]["mean"], rows[0]["sd"], rows[0]["t.low"], rows[0]["t.high"]) == (low.mean, low.sd, *low.t)
    assert rows[0]["lowest"] == "beta=1,seed=0"
    table.write(tmp_path / "seeds.csv")
    assert (tmp_path / "seeds.csv").read_text().startswith("beta,column,n,mean,sd,t.low,t.high,")


def test_a_comparison_pairs_runs_by_seed() -> None:
    found = handmade().compare("mig", "beta", 1, 4)
    differences = np.array([0.4, 0.3, 0.5])
    assert (found.n, found.higher) == (3, 3)
    assert found.difference == pytest.approx(0.4)
    assert found.t == pytest.approx(t_interval(differences))
    # The seeds that two settings share vary together: unpaired, the interval would be wider.
    assert found.sd == pytest.approx(0.1)


def test_every_measured_column_is_compared_and_values_may_be_typed() -> None:
    (found,) = handmade().comparisons("beta", "1", "4")
    assert found.column == "mig"
    assert found.difference == pytest.approx(0.4)
    with pytest.raises(
        InputError, match=r"no two runs that are done differ only in 'beta', 1 and 5; its values are 1, 4"
    ):
        handmade().comparisons("beta", "1", "5")


DROPS = {"beta": (0.3, 0.2, 0.4), "ae": (0.0, 0.1, -0.1)}
MANIPULATED = "manipulated:attack"


def attacked() -> Table:
    """MIG of two objectives on original, manipulated and noisy data; how much manipulation costs is in DROPS."""
    levels = {"none": 0.0, MANIPULATED: 1.0, "pixel-noise:epsilon=0.1,seed=2": 0.5}
    rows = tuple(
        {
            "run": f"{name},{variants},{seed}",
            "state": "done",
            "data.variants": variants,
            "objective": name,
            "seed": seed,
            "mig": 0.5 + 0.1 * seed - share * drop,
        }
        for name, drops in DROPS.items()
        for variants, share in levels.items()
        for seed, drop in enumerate(drops)
    )
    return Table(rows, ("data.variants", "objective", "seed"))


def test_each_other_setting_has_a_comparison_of_its_own_beside_that_over_all_pairs() -> None:
    every, beta, ae = attacked().comparisons("data.variants", "none", MANIPULATED)
    assert [one.settings for one in (every, beta, ae)] == [{}, {"objective": "beta"}, {"objective": "ae"}]
    assert [one.n for one in (every, beta, ae)] == [6, 3, 3]
    for one, name in ((beta, "beta"), (ae, "ae")):
        differences = -np.array(DROPS[name])
        assert one.difference == pytest.approx(differences.mean())
        assert one.t == pytest.approx(t_interval(differences))
    assert every.difference == pytest.approx(-0.15)
    assert every.t == pytest.approx(t_interval(-np.array([*DROPS["beta"], *DROPS["ae"]])))
    # A single pair has no interval, so there is nothing to say of one setting that all pairs do not say.
    (alone,) = attacked().where("seed=0").comparisons("data.variants", "none", MANIPULATED)
    assert (alone.settings, alone.n) == ({}, 2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("original", "manipulated", -0.15),
        ("pixel-noise", "manipulated", -0.075),
        ("none", "pixel-noise", -0.075),
    ],
)
def test_variants_of_the_data_are_called_by_their_names(first: str, second: str, expected: float) -> None:
    assert attacked().compare("mig", "data.variants", first, second).difference == pytest.approx(expected)


def test_runs_of_no_study_have_variants_by_name_too() -> None:
    """There the cell of original data is empty, and variants are written with the values of all their options."""
    written = {"none": None, MANIPULATED: "manipulated-/tmp/attack-5f3c"}
    rows = tuple(
        {**row, "data.variants": written.get(str(row["data.variants"]), "pixel-noise-0.1-2")}
        for row in attacked().rows
    )
    found = Table(rows, attacked().settings).compare("mig", "data.variants", "original", "manipulated")
    assert found.difference == pytest.approx(-0.15)
    assert (found.first, found.second) == (None, "manipulated-/tmp/attack-5f3c")
    chosen = Table(rows, attacked().settings)
    assert {row["data.variants"] for row in chosen.where("data.variants=original").rows} == {None}
    assert len(chosen.where("data.variants!=original").rows) == 12


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("data.variants=original", {"none"}),
        ("data.variants=manipulated", {MANIPULATED}),
        ("data.variants!=pixel-noise", {"none", MANIPULATED}),
        ("data.variants=manip", set()),
    ],
)
def test_conditions_call_variants_by_their_names_too(condition: str, expected: set[str]) -> None:
    assert {row["data.variants"] for row in attacked().where(condition).rows} == expected


@pytest.mark.parametrize("second", ["original", "none"])
def test_a_value_is_not_compared_with_itself(second: str) -> None:
    words = f"'original' and '{second}' are the same value of 'data.variants'; compare two different values"
    with pytest.raises(InputError, match=words):
        attacked().comparisons("data.variants", "original", second)
    with pytest.raises(InputError, match=words):
        attacked().compare("mig", "data.variants", "original", second)
    with pytest.raises(InputError, match="no run of the table meets the conditions; remove a condition"):
        attacked().where("seed=9").comparisons("data.variants", "original", "manipulated")


def test_a_name_is_a_whole_name_of_one_variant() -> None:
    table = attacked()
    assert table.value_named("data.variants", "manip") == "manip"
    with pytest.raises(InputError, match=r"none and manip; its values are none, manipulated:attack, pixel-"):
        table.comparisons("data.variants", "original", "manip")
    several = [
        {"run": "a", "data.variants": "subset:n=9+manipulated:b"},
        {"run": "b", "data.variants": MANIPULATED},
    ]
    both = Table((*table.rows, *several), table.settings)
    assert both.value_named("data.variants", MANIPULATED) == MANIPULATED
    assert both.value_named("data.variants", "subset") == "subset:n=9+manipulated:b"
    with pytest.raises(
        InputError,
        match=r"'manipulated' matches several values of 'data.variants': manipulated:attack, subset:n=9",
    ):
        both.compare("mig", "data.variants", "original", "manipulated")
    # Other settings have no names: 1 is not the 16 that begins so.
    rows = tuple({"run": str(beta), "beta": beta, "seed": 0} for beta in ("16", "1-2"))
    assert Table(rows, ("beta", "seed")).value_named("beta", "1") == "1"


def test_what_has_no_pairs_is_refused() -> None:
    with pytest.raises(InputError, match="no two runs with a value in 'mig' differ only in 'beta'"):
        handmade().compare("mig", "beta", 1, 9)
    with pytest.raises(InputError, match="no setting that varies named 'bet'"):
        handmade().compare("mig", "bet", 1, 4)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("mig>0.3", 3),
        ("mig >= 0.3", 4),
        ("beta=4", 3),
        ("state=failed", 1),
        ("state!=done", 1),
        ("mig!=0.5", 4),
    ],
)
def test_rows_are_selected_by_any_column(condition: str, count: int) -> None:
    assert len(handmade().where(condition).rows) == count


def test_a_table_of_which_no_row_is_left_has_its_columns() -> None:
    none = handmade().where("mig>9")
    assert (none.rows, none.columns) == ((), handmade().columns)
    assert none.only(["mig"]).to_csv() == "run,state,beta,seed,mig\n"
    with pytest.raises(InputError, match="no column named 'migg'"):
        none.only(["migg"])
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    assert none.sql("select count(mig) as n from runs").rows == ({"n": 0},)


@pytest.mark.parametrize(
    ("condition", "runs"),
    [("flag=yes", ["a"]), ("flag=True", ["a"]), ("flag!=yes", ["b"]), ("flag=no", ["b"])],
)
def test_yes_and_no_are_selected_as_they_are_shown_and_as_they_are_written(
    condition: str, runs: list[str]
) -> None:
    table = Table(({"run": "a", "flag": True}, {"run": "b", "flag": False}, {"run": "c"}), ())
    assert [row["run"] for row in table.where(condition).rows] == runs


def test_a_table_without_rows_says_why_it_has_no_columns() -> None:
    with pytest.raises(InputError, match=r"^the table has no rows\. All diverged\.$"):
        Table((), (), ("All diverged.",)).only(["mig"])


def test_a_number_is_not_ordered_with_a_word() -> None:
    with pytest.raises(InputError, match="the value compared with 'mig' must be a number, got 'high'"):
        handmade().where("mig>high")
    assert handmade().where("mig=high").rows == ()


def test_a_wrong_condition_or_column_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="a condition must be COLUMN=VALUE"):
        handmade().where("mig")
    with pytest.raises(InputError, match=r"no column named 'migg'.*Did you mean 'mig'"):
        handmade().where("migg>0")
    with pytest.raises(InputError, match="no column named 'migg'"):
        handmade().aggregate(["migg"])


def test_a_table_is_written_as_csv_markdown_and_parquet(tmp_path: Path) -> None:
    table = handmade()
    back = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["mig"] for row in back] == ["0.1", "0.2", "0.3", "0.5", "0.5", "0.8", ""]
    lines = table.to_markdown().splitlines()
    assert lines[0] == "| run | state | beta | seed | mig | name |"
    assert lines[-1] == "| bad | failed | 9 | 0 |  |  |"
    table.write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == table.to_csv()
    parquet = pytest.importorskip("pyarrow.parquet")
    table.write(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").column("mig").to_pylist() == [*MIG[1], *MIG[4], None]
    with pytest.raises(InputError, match="no format of a table named 'txt'"):
        table.write(tmp_path / "t.txt")


def test_a_table_is_a_frame_whose_columns_have_one_type_each(tmp_path: Path) -> None:
    table = Table(({"run": "a", "n": 3, "beta": 1}, {"run": "b", "beta": 0.5}), ("beta",))
    frame = table.to_frame()
    assert frame.columns.tolist() == ["run", "beta", "n"]
    assert (frame["n"].dtype, frame["beta"].tolist()) == ("Int64", [1.0, 0.5])
    assert table.rows == ({"run": "a", "beta": 1, "n": 3}, {"run": "b", "beta": 0.5, "n": None})
    assert table.to_dict() == {"settings": ["beta"], "notes": [], "rows": list(table.rows)}
    assert table.to_csv() == "run,beta,n\na,1,3\nb,0.5,\n"
    table.write(tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text() == "run\tbeta\tn\na\t1\t3\nb\t0.5\t\n"
    table.write(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == list(table.rows)
    assert Table(table.frame, ("beta",)).rows == table.rows
    assert handmade().labels["mig"] == "MIG"


def test_the_old_names_of_a_table_work_and_warn() -> None:
    with pytest.warns(DeprecatedWarning, match="Table.to_pandas is deprecated since 0.3.*use Table.to_frame"):
        assert handmade().to_pandas().equals(handmade().to_frame())
    with pytest.warns(DeprecatedWarning, match="use Table.rows instead"):
        assert handmade().records() == list(handmade().rows)


def test_runs_without_a_setting_are_a_group_of_their_own() -> None:
    rows = [
        {
            "run": f"{name},{seed}",
            "objective": name,
            "beta": beta,
            "seed": seed,
            "mig": 0.1 * seed + (beta or 0),
        }
        for name, beta in (("beta", 1), ("ae", None), ("beta", 0.5))
        for seed in range(2)
    ]
    found = Table(rows, ("objective", "beta", "seed")).aggregate(["mig"])
    assert [one.settings for one in found] == [
        *({"objective": "beta", "beta": 1}, {"objective": "ae"}, {"objective": "beta", "beta": 0.5}),
    ]
    assert [one.mean for one in found] == pytest.approx([1.05, 0.05, 0.55])


def test_a_query_is_answered_over_the_table_and_over_files(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    table = handmade()
    cells = "beta, avg(mig) as mean, sum(seed) as seeds"
    means = table.sql(f"select {cells} from runs where state = 'done' group by beta order by beta")
    assert means.columns == ["beta", "mean", "seeds"]
    assert [(row["beta"], row["mean"], row["seeds"]) for row in means.rows] == [
        (1, pytest.approx(0.2), 3),
        (4, pytest.approx(0.6), 3),
    ]
    assert table.sql("select run from runs where mig is null").rows == ({"run": "bad"},)
    assert table.sql("select 1.5 as x, date '2020-01-02' as day").rows == ({"x": 1.5, "day": "2020-01-02"},)
    for name in "ab":
        table.write(tmp_path / f"{name}.csv")
    assert table.sql(f"select count(*) as n from '{tmp_path}/*.csv'").rows == ({"n": 14},)
    strange = Table(({"run": "a", 'loss."x"': 1, "mixed": "b"}, {"run": "c", "mixed": 2.5}), ())
    assert strange.sql('select max("loss.""x""") as x, max(mixed) as y from runs').rows == (
        {"x": 1, "y": "b"},
    )


def test_a_wrong_query_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    with pytest.raises(InputError, match=r"the query failed: .*migg"):
        handmade().sql("select migg from runs")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"requires duckdb, .*pip install 'polariscope\[duckdb\]'"):
        handmade().sql("select 1")


def test_students_interval_of_two_values_is_known() -> None:
    """For n = 2, t with one degree of freedom is a Cauchy: its 97.5 % quantile is tan(0.475 π)."""
    low, high = t_interval(np.array([0.0, 2.0])) or (0, 0)
    assert high - 1 == pytest.approx(math.tan(0.475 * math.pi))
    assert low == pytest.approx(2 - high)
    assert t_interval(np.array([1.0])) is None


def test_the_bootstrap_interval_of_many_values_is_that_of_the_normal_approximation() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval_of_mean(values, np.random.default_rng(1), 4000) or (0, 0)
    half = 1.96 * values.std() / 20
    # The quantiles of 4,000 resamples have a standard error of 2.7 % of the half-width.
    assert high - values.mean() == pytest.approx(half, rel=0.1)
    assert values.mean() - low == pytest.approx(half, rel=0.1)


def test_the_table_of_a_study_has_what_was_measured(tmp_path: Path) -> None:
    where = {"n_samples": 40}
    each = {
        "diagnose": {**where, "n_bootstrap": 5},
        "score": {**where, "metrics": "mig"},
        "decompose": where,
        "geometry": {**where, "n_points": 5, "n_observations": 5},
        "dimension": where,
    }
    study = tiny(tmp_path, each=each, seeds=2, over={"agreement": where, "udr": where})
    ledger = Ledger(study)
    Worker(ledger).drain()
    table = study_table(ledger)
    assert len(table.rows) == 4
    assert table.settings == ("beta", "seed")
    run = Run(ledger.runs[0].folder)
    row = table.rows[0]
    assert (row["run"], row["beta"], row["seed"]) == ("beta=1,seed=0", 1.0, 0)
    assert row["loss"] == run.log()[-1]["loss"]
    regime = run.regime(n_samples=40, n_bootstrap=5)
    assert [row[kind] for kind in ("active", "mixed", "passive")] == list(regime.counts.values())
    assert row["tc.mean"] == regime.mean.total_correlation
    assert row["delta_kl"] == regime.polarisation.delta
    score = run.scores("mig", n_samples=40)["mig"]
    assert (row["mig"], row["mig.low"]) == (score.value, (score.interval or (None,))[0])
    assert row["parts.rate"] == run.decomposition(n_samples=40).rate
    assert isinstance(row["dimension.twonn"], float)
    assert isinstance(row["seconds"], float)
    assert {"agreement", "udr", "dto", "error.stochastic"} <= set(row)
    # Any runs, with what was measured last, have the same numbers.
    again = runs_table([run.folder for run in ledger.runs])
    assert again.settings == ("beta", "seed")
    assert [row["tc.mean"] for row in again.rows] == [row["tc.mean"] for row in table.rows]
    assert again.rows[0]["mig"] == row["mig"]


def test_every_checkpoint_has_a_row_where_that_is_asked_for(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path, grid={"beta": [1.0]}, checkpoints=True))
    Worker(ledger).drain()
    table = study_table(ledger)
    assert [row["step"] for row in table.rows] == [4, 8, 12]
    assert len({row["kl"] for row in table.rows}) == 3


def test_diverged_runs_are_discarded_by_a_rule_that_is_stated(tmp_path: Path) -> None:
    settings = {**tiny(tmp_path).settings, "optimiser": "sgd"}
    grid = {"learning_rate": [1e-3, 1e30]}
    for rule, rows in (("fail", 2), ("discard", 1)):
        ledger = Ledger(tiny(tmp_path, settings=settings, grid=grid, each={}, diverged=rule))
        Worker(ledger).drain()
        table = study_table(ledger)
        assert len(table.rows) == rows
        assert [("learning_rate=1e+30" in note) for note in table.notes] == [True] * (2 - rows)
    failed = study_table(Ledger(tiny(tmp_path, settings=settings, grid=grid, each={}))).rows[1]
    assert "training diverged" in str(failed["message"])


def test_the_rank_of_latents_in_use_is_that_of_their_covariance(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path, grid={"beta": [1.0]}))
    Worker(ledger).drain()
    run = Run(ledger.runs[0].folder)
    regime, codes = run.regime(n_samples=40, n_bootstrap=5), run.representation(40)
    keep = regime.select("in-use")
    found = ranks_in_use(regime)
    exact = covariance(codes.mean.astype(np.float64))[np.ix_(keep, keep)]
    assert found["mean"] == pytest.approx(effective_rank(exact))
    noisy = np.cov(codes.mean.T, bias=True) + np.diag(codes.variance.mean(axis=0))
    assert found["sampled"] == pytest.approx(effective_rank(noisy[np.ix_(keep, keep)]), rel=1e-5)


@pytest.mark.parametrize(
    ("column", "bounds"),
    [("mig.low", (0, 1)), ("mig.in_use", (0, 1)), ("mi", (0, math.inf)), ("loss", (-math.inf, math.inf))],
)
def test_ends_of_intervals_and_metrics_without_factors_have_bounds(
    column: str, bounds: tuple[float, float]
) -> None:
    assert bounds_of(column, pandas.DataFrame()) == bounds


def test_the_interval_of_a_difference_stays_in_the_bounds_of_a_difference() -> None:
    """MIG lies in [0, 1], so its differences lie in [−1, 1]; of 8 latents counts differ by 8 at most."""
    table = by_beta(
        lambda beta, seed: {
            "mig": (1.0, 0.9, 0.1)[seed] if beta == 4 else 0.0,
            "active": (8, 1, 8)[seed] if beta == 4 else 0,
            "mixed": 0,
            "passive": (0, 7, 0)[seed] if beta == 4 else 8,
            "loss": 10.0 * seed * (beta == 4),
        }
    )
    one = table.compare("mig", "beta", 1.0, 4.0)
    assert one.t is not None
    assert one.t[1] == 1
    assert one.t[0] == pytest.approx(t_interval(np.array([1.0, 0.9, 0.1]))[0])
    assert table.compare("mig", "beta", 4.0, 1.0).t[0] == -1
    by_column = {each.column: each.t for each in table.comparisons("beta", 1.0, 4.0)}
    assert (by_column["mig"], by_column["active"][1]) == (one.t, 8)
    assert by_column["loss"] == t_interval(np.array([0.0, 10.0, 20.0]))  # a loss has no bounds


def test_columns_of_latents_in_use_follow_the_verdict_and_not_the_types() -> None:
    """Four active latents, the last a copy of the first in noise, which the decoder ignores."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(2000, 4))
    mean[:, 3] = 0.8 * mean[:, 0] + 0.6 * mean[:, 3]
    variance = np.full_like(mean, 0.01)
    effect = {"effect": np.array([2.0, 2.0, 2.0, 0.0]), "effect_error": np.full(4, 0.01)}
    codes = Representation(mean, variance, mean + 0.1 * rng.normal(size=mean.shape), **effect)
    regime = diagnose(codes, n_bootstrap=5)
    assert (regime.types, regime.select("in-use")) == (["active"] * 4, [0, 1, 2])
    cells = DiagnoseAnalysis().columns(regime)
    three = diagnose(mean=mean[:, :3], variance=variance[:, :3], sampled=codes.sampled[:, :3], n_bootstrap=5)
    for source, own in (("mean", three.mean), ("sampled", three.sampled)):
        assert cells[f"tc.{source}.in_use"] == pytest.approx(own.total_correlation)
        assert cells[f"tc.{source}"] > 0.4  # −½ log(1 − 0.8²) = 0.51 in the means
        # Bins are those of each latent; only shuffles differ.
        assert cells[f"mi.{source}.in_use"] == pytest.approx(own.corrected_mutual_information, abs=0.003)
        assert cells[f"rank.{source}.in_use"] == pytest.approx(own.effective_rank, rel=0.01)


def test_columns_of_latents_in_use_are_empty_for_diagnoses_that_measured_types_only() -> None:
    rng = np.random.default_rng(0)
    regime = diagnose(mean=rng.normal(size=(200, 3)), variance=np.full((200, 3), 0.01), n_bootstrap=5)
    stored = regime.to_dict()
    assert stored.pop("dependence_in_use")["latents"] == [0, 1, 2]
    assert any(row["selection"] == "active+mixed" for row in stored["truncation"])
    cells = DiagnoseAnalysis().columns(Regime.from_dict(stored))
    assert {
        cells[f"{quantity}.{source}.in_use"] for quantity in ("tc", "mi") for source in ("mean", "sampled")
    } == {None}


def test_the_interval_of_a_count_stays_between_0_and_the_number_of_latents() -> None:
    """Of 1, 4 and 7 of 8 latents Student's interval is −3.5 to 11.5."""
    table = by_beta(
        lambda _, seed: {"active": 1 + 3 * seed, "mixed": 0, "passive": 7 - 3 * seed, "mig": 0.4 * seed}
    )
    found = {
        (one.settings["beta"], one.column): one.t for one in table.aggregate(["active", "passive", "mig"])
    }
    assert found[1.0, "active"] == found[1.0, "passive"] == (0, 8)
    assert found[1.0, "mig"] == (0, 1)


@pytest.mark.parametrize("times", ["now()", "[now()]", "{'at': now()}"])
def test_times_with_a_zone_are_refused_with_a_remedy_without_pytz(
    monkeypatch: pytest.MonkeyPatch, times: str
) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    table = by_beta(lambda beta, seed: {"mig": 0.5})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"a time zone, in began; .*CAST\(began AS VARCHAR\), or install pytz"
    ):
        table.sql(f"select {times} as began")
    assert table.sql("select cast(now() as varchar) as began")


def test_a_query_reads_and_never_writes(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    table = by_beta(lambda beta, seed: {"mig": 0.5})
    target = tmp_path / "stolen.csv"
    for query in (
        f"copy runs to '{target}'",
        "install httpfs",
        "select 1; drop view runs",
        "set threads = 1",
    ):
        with pytest.raises(InputError, match="must be one SELECT statement"):
            table.sql(query)
    assert not target.exists()
    assert table.sql("select count(*) as n from runs").rows[0]["n"] == 7
