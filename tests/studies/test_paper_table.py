"""Tables for a paper: layout, best in bold, escapes."""

from __future__ import annotations

import pytest

from polariscope.core.errors import InputError
from polariscope.core.tables import latex
from polariscope.studies.paper_table import summary_table
from polariscope.studies.table import Table
from polariscope.testing.study_tables import by_beta

MIG = {1.0: (0.1, 0.2, 0.3), 4.0: (0.5, 0.5, 0.8)}
DTO = {1.0: (0.25, 0.5, 0.75), 4.0: (1.0, 1.0, 1.0)}


def table() -> Table:
    return by_beta(lambda beta, seed: {"mig": MIG[beta][seed], "dto": DTO[beta][seed], "kl": 3.0})


def done() -> Table:
    return table().done


def two_objectives() -> Table:
    rows = [
        {
            "run": f"{objective},{data},{beta},{seed}",
            "state": "done",
            "objective": objective,
            "data": data,
            "beta": beta,
            "seed": seed,
            "mig": (beta if objective == "a_b" else -beta) + (data == "y") / 2,
            "dto": float(beta),
        }
        for objective in ("a_b", "c")
        for data in ("x", "y")
        for beta in (1, 2)
        for seed in (0, 1)
    ]
    return Table(tuple(rows), ("objective", "data", "beta", "seed"))


def test_rows_are_settings_and_the_best_of_each_column_is_bold() -> None:
    """mushom2020 Tab. 5.3."""
    made = summary_table(done(), ["mig", "dto", "kl"]).to_markdown().splitlines()
    assert made == [
        "| beta | MIG | distance to orthogonality | KL (nats) |",
        "| --- | ---: | ---: | ---: |",
        "| 1 | 0.200 ± 0.100 | **0.500 ± 0.250** | 3.000 ± 0.000 |",
        "| 4 | **0.600 ± 0.173** | 1.000 ± 0.000 | 3.000 ± 0.000 |",
    ]


def test_latex_has_the_same_cells_escaped() -> None:
    assert summary_table(done(), ["mig"], digits=2).to_latex() == (
        "\\begin{tabular}{lr}\n\\toprule\nbeta & MIG \\\\\n\\midrule\n"
        "1 & 0.20 $\\pm$ 0.10 \\\\\n4 & \\textbf{0.60 $\\pm$ 0.17} \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


def test_the_best_value_of_a_setting_is_chosen_for_each_metric_and_named() -> None:
    """mushom2020 Tab. 5.6: MIG is best at the largest β of one objective and at the smallest of the other."""
    made = summary_table(two_objectives(), ["mig", "dto"], best_over="beta")
    by_label = dict(zip(made.labels, made.cells, strict=True))
    assert [cell.chosen for cell in by_label["a_b", "x"] if cell] == ["2", "1"]
    assert [cell.chosen for cell in by_label["c", "x"] if cell] == ["1", "1"]
    assert "**2.500 ± 0.000** (2)" in made.to_markdown()
    with pytest.raises(InputError, match="neither higher nor lower is better for 'kl'"):
        summary_table(table(), ["kl"], best_over="beta")


def test_data_across_are_heads_over_several_columns() -> None:
    """zietlow2022 Tabs 4.2 to 4.5."""
    made = summary_table(two_objectives(), ["mig", "dto"], across=["data"])
    assert made.columns == (
        ("x", "MIG"),
        ("x", "distance to orthogonality"),
        ("y", "MIG"),
        ("y", "distance to orthogonality"),
    )
    lines = made.to_latex().splitlines()
    assert lines[2] == r" &  & \multicolumn{2}{c}{x} & \multicolumn{2}{c}{y} \\"
    assert lines[5].startswith(r"a\_b & 1 & 1.000 $\pm$ 0.000")
    assert r"$-$2.000" in made.to_latex()


def test_metrics_in_rows_have_their_best_in_the_row() -> None:
    """zietlow2022 Tab. 3.3."""
    made = summary_table(
        two_objectives().where("beta=1"), ["mig", "dto"], across=["objective"], metrics_in_rows=True
    )
    assert made.head == ("data", "beta", "metric")
    assert made.columns == (("a_b",), ("c",))
    first = dict(zip(made.labels, made.cells, strict=True))["x", "1", "MIG"]
    assert [cell.is_best for cell in first if cell] == [True, False]
    numbers = summary_table(table(), ["mig"], across=["beta"], metrics_in_rows=True)
    assert numbers.columns == (("beta = 1",), ("beta = 4",))  # a number alone would say nothing


def test_runs_that_are_not_done_are_left_out_and_an_unknown_setting_is_refused() -> None:
    rows = (*table().rows, {"run": "new", "state": "running", "beta": 1.0, "seed": 9, "mig": 100.0})
    made = summary_table(Table(rows, ("beta", "seed")), ["mig"])
    cell = made.cells[0][0]
    assert cell is not None
    assert cell.n == 3
    assert made.notes == ("Not in the means, since they are not done: waits, new.",)
    assert made.to_markdown().endswith("|\n\nNot in the means, since they are not done: waits, new.\n")
    assert made.to_latex().endswith("\n% Not in the means, since they are not done: waits, new.\n")
    with pytest.raises(InputError, match="no setting that varies named 'bet'"):
        summary_table(table(), ["mig"], across=["bet"])


def test_every_sign_of_latex_is_escaped() -> None:
    assert latex(r"50 % of a_b & {c} $ # ~ ^ \ < β") == (
        r"50 \% of a\_b \& \{c\} \$ \# \textasciitilde{} \textasciicircum{} \textbackslash{} $<$ $\beta$"
    )


def test_the_numbers_behind_a_table_for_a_paper_are_a_frame() -> None:
    made = summary_table(done(), ["mig", "dto"])
    frame = made.to_frame()
    assert frame.columns.tolist() == ["beta", "column", "mean", "sd", "n", "chosen", "is_best", "competes"]
    assert frame["mean"].tolist() == pytest.approx([0.2, 0.5, 0.6, 1.0])
    assert frame["is_best"].tolist() == [False, True, True, False]
    assert made.to_dict()["cells"][1][0]["n"] == 3


def test_a_setting_with_a_collapsed_run_is_marked_and_never_bold() -> None:
    """β = 4 has the higher MIG, but one of its runs uses 1 latent for 2 factors."""

    def cells(beta: float, seed: int) -> dict[str, float]:
        return {"mig": MIG[beta][seed], "in_use": 1 if (beta, seed) == (4.0, 1) else 3, "n_factors": 2}

    made = summary_table(by_beta(cells), ["mig", "in_use"])
    assert [[cell.is_best for cell in row if cell is not None] for row in made.cells] == [
        [True, False],
        [False, False],
    ]
    lines = made.to_markdown().splitlines()
    assert lines[2:4] == [
        "| 1 | **0.200 ± 0.100** | 3.000 ± 0.000 |",
        "| 4 | 0.600 ± 0.173† | 2.333 ± 1.155 |",
    ]
    assert "† Not in bold, since runs have fewer latents in use than factors vary: beta=4,seed=1." in lines
    assert r"0.600 $\pm$ 0.173$^\dagger$" in made.to_latex()
    best = summary_table(by_beta(cells), ["mig"], best_over="beta")
    assert best.cells[0][0] is not None
    assert best.cells[0][0].chosen == "1"


def test_the_best_is_that_of_each_dataset_and_the_text_says_so() -> None:
    """Every run on y has a higher MIG than the same run on x: across datasets x would never be the best."""
    made = summary_table(two_objectives(), ["mig"])
    best = [label for label, row in zip(made.labels, made.cells, strict=True) if row[0] and row[0].is_best]
    assert made.head == ("objective", "data", "beta")
    assert best == [("a_b", "x", "2"), ("a_b", "y", "2")]
    note = "Bold is the best mean of each dataset (data); datasets are not ranked against each other."
    assert note in made.to_markdown()
    assert f"% {note}" in made.to_latex()
    across = summary_table(two_objectives(), ["mig"], across=["data"], metrics_in_rows=True)
    assert not any(cell.is_best for row in across.cells for cell in row if cell is not None)
    assert note not in summary_table(done(), ["mig"]).to_markdown()
    assert note not in summary_table(two_objectives().where("data=x"), ["mig"]).to_markdown()
    with pytest.raises(InputError, match="'data' is a setting of the data, and means of different datasets"):
        summary_table(two_objectives(), ["mig"], best_over="data")


def test_a_dataset_without_a_model_that_competes_has_no_best() -> None:
    table = two_objectives()
    weak = table.frame["data"] == "y"
    table = table.replace(table.frame.assign(n_factors=2, in_use=weak.map({True: 1, False: 2})))
    made = summary_table(table, ["mig"])
    best = [label for label, row in zip(made.labels, made.cells, strict=True) if row[0] and row[0].is_best]
    assert best == [("a_b", "x", "2")]
