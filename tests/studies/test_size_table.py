"""Tables of sizing: searches whose answers are known, their epochs, models and time, and how they are written."""

from __future__ import annotations

import csv
import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polariscope as ps
from long_training import unchecked
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.inputs import as_dataset
from polariscope.sizing.candidates import Losses
from polariscope.sizing.search import ask
from polariscope.studies.size_table import SearchResult, SizeTable, _choices, published_methods
from polariscope.testing.linear_candidates import LinearCandidates

METHODS = ("fondue-published", "fondue-binary")


def rows(n_samples: int = 400) -> np.ndarray:
    """Four directions, so the intrinsic dimension is 4."""
    return generator(0, "table").standard_normal((n_samples, 4)).astype(np.float32)


class Known(LinearCandidates):
    """Models that put as many latents to use as is said for the epochs they were trained for."""

    best: dict[int, int] = {}
    """By epochs; beyond the last, as with the last."""
    trained: list[tuple[int, int, int]] = []
    """Seed, number of latents and steps of each model that was asked for."""

    def __init__(self, data: Any, folder: Path, seed: int, recipe: Any, watcher: Any, **_: Any) -> None:
        super().__init__(np.array([1.0]), seed=seed, n_samples=4)
        self.recipe = recipe

    @property
    def n_seconds(self) -> float:
        return 2.0 * self.n_models

    def representation(self, n_latents: int, steps: int, **changes: Any) -> Any:
        self._train(n_latents, steps, changes)
        self.trained.append((self.seed, n_latents, steps))
        epochs = min(steps // 1000, max(self.best))
        strength = float(self.recipe.get("beta", 1.0))
        best = round((self.best[epochs] + self.seed) / strength)
        variance = np.where(np.arange(n_latents) < best, 1e-4, 1.0) * np.ones((4, 1))
        return ps.Representation(np.zeros((4, n_latents)), variance, np.zeros((4, n_latents)))

    def observations(self) -> np.ndarray:
        return rows().astype(np.float64)

    def losses(self, n_latents: int, steps: int, **changes: Any) -> Losses:
        raise AssertionError("nobody asks for it")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> type[Known]:
    monkeypatch.setattr(importlib.import_module("polariscope.sizing.search"), "TrainedCandidates", Known)
    monkeypatch.setattr(Known, "best", {1: 9, 2: 11, 3: 11})
    monkeypatch.setattr(Known, "trained", [])
    return Known


def test_the_smallest_number_of_epochs_after_which_the_answer_stays_is_reported(known: type[Known]) -> None:
    found = ps.size_table(rows(), METHODS, seeds=1)
    grown, binary = found.searches
    assert (grown.n_latents, grown.epochs, grown.start) == (11, 2, "dimension")
    # From 4: 4, 8, 16, 12, 10, 11 with two epochs each; the binary search over 1 … 200 trains 8.
    assert (grown.models, grown.steps, grown.seconds) == (6, 6 * 2000, 12.0)
    assert (binary.n_latents, binary.epochs, binary.start) == (11, 2, None)
    assert (binary.models, binary.seconds) == (8, 16.0)
    assert max(steps for _, _, steps in known.trained) == 3000  # one more confirms it
    assert found.notes == ()


def test_epochs_that_are_given_are_taken(known: type[Known]) -> None:
    (found,) = ps.size_table(rows(), METHODS[:1], seeds=1, epochs=1).searches
    assert (found.n_latents, found.epochs) == (9, 1)
    assert {steps for _, _, steps in known.trained} == {1000}


def test_answers_that_do_not_settle_say_so(known: type[Known], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "best", {epochs: 5 + epochs for epochs in range(1, 9)})
    found = ps.size_table(rows(), METHODS[:1], seeds=1)
    (one,) = found.searches
    assert (one.n_latents, one.epochs) == (13, 8)
    assert found.notes == (
        "fondue-published, start dimension, seed 0: The answer has not settled after 8 epochs: "
        "[6, 7, 8, 9, 10, 11, 12, 13].",
    )


def test_equal_answers_of_0_are_not_called_unsettled(
    known: type[Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "best", {1: 0})
    table = ps.size_table(rows(), METHODS[:1], seeds=1, threshold=0.5)
    (one,) = table.searches
    assert (one.n_latents, one.epochs) == (0, 8)
    (note,) = table.notes
    assert "the answer is 0 latents for seed 0: no number of latents meets the criterion" in note


def test_choices_are_announced_before_anything_is_trained(known: type[Known]) -> None:
    announced: list[tuple[str, ...]] = []

    def announce(chosen: tuple[str, ...]) -> None:
        assert not known.trained
        announced.append(chosen)

    ps.size_table(rows(), METHODS, seeds=1, epochs=1, announce=announce)
    ((units, net, likelihood, *_, pace),) = announced
    assert units.startswith("table centred")
    assert net.startswith("net ")
    assert likelihood.startswith("likelihood gaussian")
    assert pace == "learning rate 0.0001, batch size 64"  # that of the published searches
    known.trained.clear()
    ps.size_table(rows(), METHODS, seeds=1, epochs=1, learning_rate=0.01, announce=announce, batch_size=32)
    assert "rate" not in " ".join(announced[1])


def test_methods_with_other_rates_are_named_with_them() -> None:
    table = as_dataset(rows())
    questions = [ask(table, method, {}) for method in ("fondue-published", "fondue")]
    *_, published, own = _choices(questions)
    assert published == "learning rate 0.0001, batch size 64 (fondue-published)"
    assert own == "learning rate 0.001, batch size 64 (fondue)"


def test_starts_change_the_models_and_not_the_answer(known: type[Known]) -> None:
    found = ps.size_table(rows(), METHODS, starts=("dimension", 5, 74), seeds=2)
    answers = {(one.method, one.start, one.seed): one.n_latents for one in found.searches}
    assert len(answers) == 2 * 3 + 2  # the binary search has no start
    assert {answers[key] for key in answers if key[2] == 0} == {11}
    assert {answers[key] for key in answers if key[2] == 1} == {12}
    models = {one.start: one.models for one in found.searches if one.seed == 0 and one.start is not None}
    assert models == {"dimension": 6, 5: 6, 74: 7}  # 5, 10, 20, 15, 12, 11 and 74, 37, 18, 9, 13, 11, 12


def test_strengths_are_given_to_the_models(known: type[Known]) -> None:
    found = ps.size_table(
        rows(), METHODS[:1], strengths={"beta": (0.5, 2.0)}, objective="beta", seeds=1, epochs=2
    )
    assert [(one.setting, one.strength, one.n_latents) for one in found.searches] == [
        ("beta", 0.5, 22),
        ("beta", 2.0, 6),
    ]


def test_a_search_without_an_answer_leaves_its_cell_empty(known: type[Known]) -> None:
    found = ps.size_table(rows(), METHODS[:1], seeds=1, cap=8)
    (one,) = found.searches
    assert one.n_latents is None
    assert "even 8 latents have no surplus" in one.note


def search(seed: int, n: int | None, *, method: str = "fondue-published", **changes: Any) -> SearchResult:
    cells = {"data": "", "setting": "", "strength": None, "start": "dimension", "epochs": 2, "models": 8}
    return SearchResult(
        **{**cells, "steps": 8 * 2000, "seconds": 60.0 * (seed + 1), **changes},
        method=method,
        seed=seed,
        n_latents=n,
    )


def test_the_layout_is_that_of_the_published_tables() -> None:
    """n as mean ± SD (n − 1) of 10 and 12; 60 and 120 seconds are 1.5 minutes."""
    both = [
        search(seed, n, method=m) for m, m_n in (("a", (10, 12)), ("b", (7, 7))) for seed, n in enumerate(m_n)
    ]
    table = SizeTable(tuple(both))
    assert table.to_markdown() == (
        "| method | n | time (min) | models | epochs |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| a | 11.0 ± 1.4 | 1.5 | 8.0 | 2.0 |\n"
        "| b | 7.0 ± 0.0 | 1.5 | 8.0 | 2.0 |\n"
    )
    latex = table.to_latex()
    assert r"a & 11.0 $\pm$ 1.4 & 1.5 & 8.0 & 2.0 \\" in latex
    assert r"\toprule" in latex
    kept = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [(row["method"], row["seed"], row["n_latents"], row["seconds"]) for row in kept][:2] == [
        ("a", "0", "10", "60.0"),
        ("a", "1", "12", "120.0"),
    ]


def test_searches_are_a_frame_in_which_a_number_that_is_missing_leaves_the_others_whole() -> None:
    table = SizeTable((search(0, 10), search(1, None, note="no answer")))
    frame = table.to_frame()
    assert (str(frame["n_latents"].dtype), frame["n_latents"].dropna().tolist()) == ("Int64", [10])
    assert frame["seconds"].tolist() == [60.0, 120.0]
    assert [row["n_latents"] for row in table.to_dict()["searches"]] == [10, None]
    assert ",10," in table.to_csv()


def test_strengths_and_starts_have_columns_and_data_are_side_by_side() -> None:
    found = [
        search(0, n, data=data, setting="beta", strength=beta, start=start, seconds=3.0)
        for data, shift in (("one", 0), ("two", 5))
        for beta, start, n in ((0.5, 5, 20 + shift), (0.5, 19, 21 + shift), (4, 5, 9 + shift))
    ]
    lines = SizeTable(tuple(found)).to_markdown().splitlines()
    assert lines[0] == (
        "| method | beta | start | one, n | one, time (s) | one, models | one, epochs | two, n | two, time (s) | "
        "two, models | two, epochs |"
    )
    assert lines[4].startswith("| fondue-published | 4 | 5 | 9.0 | 3.0 | 8.0 | 2.0 | 14.0 |")


@unchecked()
def test_a_table_of_trained_models_has_the_answer_of_the_theory_and_is_kept(tmp_path: Path) -> None:
    """λ = 9 and 4 with γ = 1: Σ E[σ²] is 0.36 for two latents, and 1.36 for three."""
    scales = np.array([3.0, 2.0, 0.01, 0.01], dtype=np.float32)
    recipe: dict[str, Any] = {"net": "linear", "likelihood": "gaussian", "variance": 1.0, "keep_units": True}
    recipe |= {"learning_rate": 0.04, "cap": 8, "threads": 1, "steps": 1000}
    given: dict[str, Any] = {"starts": ("dimension", 1), "seeds": 1, "out": tmp_path, **recipe}
    found = ps.size_table(rows() * scales, ("fondue-published",), **given)
    assert [one.n_latents for one in found.searches] == [2, 2]
    assert all(one.seconds > 0 for one in found.searches)
    # From 2, the intrinsic dimension: 2, 4, 3; from 1: 1, 2, 4, 3. Those that are shared count for both.
    assert [(one.models, one.steps) for one in found.searches] == [(3, 3000), (4, 4000)]
    for ending, text in (("md", found.to_markdown()), ("tex", found.to_latex()), ("csv", found.to_csv())):
        assert (tmp_path / f"size-table.{ending}").read_text(encoding="utf-8") == text
    told: list[Any] = []
    again = ps.size_table(
        rows() * scales, ("fondue-published",), **given, progress=lambda *line: told.append(line)
    )
    assert told == []
    assert again == found


@unchecked()
def test_a_statistic_that_is_asked_for_later_is_measured_of_the_models_as_they_were(tmp_path: Path) -> None:
    """The first table leaves models of two and more epochs; the second needs them after one."""
    given: dict[str, Any] = {
        "seeds": 1,
        "out": tmp_path,
        "cap": 8,
        "threads": 1,
        "starts": (2,),
        "batch_size": 32,
    }
    ps.size_table(rows(), ("fondue-published",), **given)
    found = ps.size_table(rows(), ("fondue-ide",), **given)
    fresh = ps.size_table(rows(), ("fondue-ide",), **{**given, "out": tmp_path / "fresh"})
    for one, other in zip(found.searches, fresh.searches, strict=True):
        assert (one.n_latents, one.epochs, one.models) == (other.n_latents, other.epochs, other.models)


def test_all_published_searches_are_asked_by_default() -> None:
    assert set(published_methods()) == {"fondue-published", "fondue-ide", "fondue-ib", "fondue-binary", "ib"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ()}, "methods must be one or more names, each once"),
        ({"methods": ("ib", "ib")}, "methods must be one or more names, each once"),
        ({"methods": ("fondu",)}, "Did you mean 'fondue'"),
        ({"starts": ()}, "starts must be 'dimension' or integers from 1"),
        ({"starts": (0,)}, "starts must be 'dimension' or integers from 1"),
        ({"starts": (5, 5)}, "starts must be 'dimension' or integers from 1, each once"),
        ({"starts": ("ide",)}, "starts must be 'dimension' or integers from 1"),
        ({"starts": (40,), "cap": 20}, "n_init must be at most cap"),
        ({"n_init": 4}, "n_init is a single start; use starts instead"),
        ({"seeds": 0}, "seeds must be an integer from 1, got 0"),
        ({"strengths": {"beta": ()}}, "strengths must have one or more values"),
        ({"strengths": {"beta": (2, 2)}}, "strengths must have one or more values"),
        ({"strengths": {"beta": (1,), "gamma": (2,)}}, "strengths must have one option"),
        ({"strengths": {"beta": (2,)}}, "no option named 'beta'|belongs to|beta"),
        ({"methods": ("ib",), "threshold": 2.0}, "threshold is not used by the methods ib"),
        ({"objective": "ae"}, "requires posterior variances"),
        ({"steps": 500, "epochs": 2}, "use one of them"),
    ],
)
def test_impossible_tables_are_refused_before_anything_is_trained(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        ps.size_table(rows(50), out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_rows_with_answers_of_0_or_models_of_few_steps_have_a_note() -> None:
    short = [search(seed, n, method="short", steps=8 * 75) for seed, n in enumerate((3, 0, 0))]
    decided = [search(seed, 4, method="decided", steps=8 * 75, epochs=None) for seed in (0, 1)]
    table = SizeTable((*short, *decided, search(0, 5, method="long")))
    zero, few = table.notes
    assert zero == (
        "short, start dimension: the answer is 0 latents for seeds 1, 2: no number of latents meets the criterion. "
        "The mean includes these zeros."
    )
    assert few.startswith("short, start dimension: models were trained for 75 steps, fewer than the 1,800")
    assert zero in table.to_markdown()
