"""Layers of models against each other: the same numbers as the measures give directly, and whose they are."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from polariscope.analysis.representation import Representation
from polariscope.analysis.similarity import similarity
from polariscope.analysis.similarity.cka import cka
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.core.seeds import generator, normals
from polariscope.data.sources import load_dataset
from polariscope.layers import compare as module
from polariscope.layers.comparison import MAX_WITH_PARTS, Comparison
from polariscope.layers.labels import thinned
from polariscope.layers.scratch import scratch
from polariscope.models.model import Model
from polariscope.runs.compare_models import compare
from polariscope.runs.run import load_model
from polariscope.training.train import train

DATA = load_dataset("sprites", image_size=16)
LAYERS = ("input", *(f"encoder/{i}" for i in range(1, 7)), "mean", "variance", "sampled")
CONV = (*LAYERS, *(f"decoder/{i}" for i in range(1, 7)))
QUICK = {"steps": 12, "batch_size": 16, "log_every": 4, "validate_every": 12, "probe_samples": 8}


@pytest.fixture(scope="module", autouse=True)
def single_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three finished runs on the same data; do not change them."""
    folder = tmp_path_factory.mktemp("runs")
    kept = {"checkpoint_every": 4, "keep_checkpoints": "all"}
    train(DATA, net="conv", n_latents=3, seed=0, out=folder / "a", **QUICK, **kept)
    train(DATA, objective="beta", beta=8.0, net="conv", n_latents=3, seed=1, out=folder / "b", **QUICK)
    train(DATA, objective="classifier", net="conv", n_latents=3, seed=2, out=folder / "classifier", **QUICK)
    return {path.name: path for path in folder.iterdir()}


def activations(model: Model, number: int, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """All layers in one batch, written without the code under test."""
    indices = generator(seed, "encode").choice(len(DATA), size=n, replace=False)
    drawn = normals(seed, "compare", "sampled", number, indices=indices, width=model.n_latents)
    noise = torch.from_numpy(drawn.astype(np.float32))
    with torch.inference_mode():
        x = model.place(torch.from_numpy(DATA.values(indices)))
        return {name: a.flatten(1).double().numpy() for name, a in model.activations(x, noise)}


@pytest.mark.parametrize("measure", list(similarity))
def test_two_models_score_as_their_layers_do_directly(runs: dict[str, Path], measure: str) -> None:
    found = compare([runs["a"], runs["b"]], measure=measure, n_samples=120)
    assert found.models == ("a", "b")
    assert found.layers == CONV
    assert found.scores.shape == (2, 16, 2, 16)
    layers = [activations(load_model(runs[name]), number, 120) for number, name in enumerate("ab")]
    for one, other in [
        ("input", "mean"),
        ("encoder/1", "decoder/5"),
        ("sampled", "sampled"),
        ("mean", "mean"),
    ]:
        i, j = CONV.index(one), CONV.index(other)
        expected = similarity[measure](layers[0][one], layers[1][other])
        # Convolutions of other batch sizes round differently, in float32, and the forms are kept in float32.
        assert found.scores[0, i, 1, j] == pytest.approx(expected, abs=2e-3 if measure == "knn" else 1e-5)
        assert found.scores[1, j, 0, i] == found.scores[0, i, 1, j]
    assert np.isfinite(found.matrix).all()


def test_the_blocks_are_encoder_latent_and_decoder(runs: dict[str, Path]) -> None:
    found = compare(runs["a"], n_samples=120)
    assert found.blocks == {"encoder": (0, 7), "latent": (7, 10), "decoder": (10, 16)}
    np.testing.assert_allclose(np.diagonal(found.scores[0, :, 0, :]), 1, atol=1e-6)
    assert found.scores[0, 4, 0, 5] == pytest.approx(1, abs=1e-6), "encoder/5 is encoder/4, flattened"


def test_a_model_is_like_itself_in_every_layer_and_other_models_have_noise_of_their_own(
    runs: dict[str, Path],
) -> None:
    found = compare([runs["a"], runs["a"], runs["b"]], n_samples=300)
    assert found.models == ("a", "a (2)", "b")
    n = len(CONV)
    np.testing.assert_array_equal(found.matrix[:n, n : 2 * n], found.matrix[:n, :n])
    same = found.average("a", "a (2)").matching()
    assert {layer: value for layer, (value, _) in same.items()} == pytest.approx(
        dict.fromkeys(CONV, 1), abs=1e-6
    )
    sampled = CONV.index("sampled")
    assert found.scores[0, sampled, 2, sampled] < 0.9


def test_a_model_that_does_not_change_is_like_itself_at_every_checkpoint(tmp_path: Path) -> None:
    train(
        DATA,
        net="linear",
        n_latents=2,
        steps=9,
        learning_rate=1e-12,
        checkpoint_every=3,
        keep_checkpoints="all",
        out=tmp_path / "r",
    )
    found = compare(tmp_path / "r", checkpoints=True, n_samples=150).course()
    assert found.values == pytest.approx(np.ones_like(found.values), abs=1e-5)


def test_the_default_average_of_three_models_is_over_all_pairs_and_its_error_over_models() -> None:
    models = [arrays(400, seed=s) for s in range(4)]
    found = compare(models)
    table = found.average()
    assert table.n_pairs == 12
    pairs = [[cka(x["one"], y["two"]) for y in models] for x in models]
    off = ~np.eye(4, dtype=bool)
    assert table.values[0, 1] == pytest.approx(np.array(pairs)[off].mean(), abs=1e-6)
    assert table.resampled == "models"
    assert compare(models[:2]).average().resampled == "samples"
    # By hand: 20,000 resamples of four models.
    draw = np.random.default_rng(5).integers(4, size=(20_000, 4))
    means = []
    for chosen in draw:
        block, other = np.array(pairs)[np.ix_(chosen, chosen)], chosen[:, None] != chosen
        means += [block[other].mean()] if other.any() else []
    assert table.errors is not None
    # The standard deviation of 500 resamples has a relative error of about 1/√1000.
    assert table.errors[0, 1] == pytest.approx(np.std(means), rel=0.15)


def test_models_in_memory_need_data_and_agree_with_their_runs(runs: dict[str, Path]) -> None:
    model = load_model(runs["a"])
    model.folder = None
    with pytest.raises(InputError, match="data must be given"):
        compare(model, n_samples=50)
    found = compare([model], DATA, n_samples=50)
    assert found.models == ("model 1",)
    np.testing.assert_array_equal(found.matrix, compare(runs["a"], n_samples=50).matrix)


def test_an_encoder_is_compared_with_a_classifier_in_the_layers_both_have(runs: dict[str, Path]) -> None:
    found = compare([runs["a"], runs["classifier"]], n_samples=150)
    assert found.layers_of[0] == CONV
    assert found.layers_of[1] == tuple(layer for layer in LAYERS if layer != "variance")
    assert any("variance of classifier is constant" in note for note in found.notes)
    assert found.layers == found.layers_of[1]
    table = found.average("a", "classifier")
    assert (table.rows, table.columns) == (CONV, found.layers_of[1])
    assert table.matching()["input"][0] == pytest.approx(1, abs=1e-6)
    # The classifier's posterior is a point, so that its sample is its mean.
    assert found.scores[1, -1, 1, -2] == pytest.approx(1, abs=1e-6)


def test_a_run_is_compared_with_its_younger_self(runs: dict[str, Path]) -> None:
    found = compare(runs["a"], checkpoints=True, n_samples=150)
    assert found.models == ("a at 4", "a at 8", "a at 12")
    assert found.groups == ("step 4", "step 8", "step 12")
    # The last checkpoint is the finished model, and all of the run draw the noise of the first.
    layers = activations(load_model(runs["a"]), 0, 150)
    i, j = CONV.index("encoder/6"), CONV.index("decoder/6")
    assert found.scores[2, i, 2, j] == pytest.approx(cka(layers["encoder/6"], layers["decoder/6"]), abs=1e-5)
    mean = CONV.index("mean")
    assert 1 > found.scores[1, mean, 2, mean] > found.scores[0, mean, 2, mean]
    some = compare(runs["a"], checkpoints=np.array([4, 12]), n_samples=150)
    json.dumps(some.to_dict())
    assert some.models == ("a at 4", "a at 12")
    assert some.digests == (found.digests[0], load_model(runs["a"]).digest)
    assert some.average("step 4", "step 12").matching()["mean"][0] == pytest.approx(
        found.scores[0, mean, 2, mean], abs=1e-6
    )


def test_checkpoints_are_shown_step_against_step(runs: dict[str, Path]) -> None:
    found = compare(runs["a"], checkpoints=True, n_samples=150)
    assert found.steps == (4, 8, 12)
    course = found.course()
    assert (course.rows, course.columns) == (("step 4", "step 8", "step 12"), CONV)
    for layer in ("encoder/2", "mean", "decoder/6"):
        place = CONV.index(layer)
        np.testing.assert_array_equal(course.values[:, place], found.scores[:, place, 2, place])
        np.testing.assert_array_equal(found.between_steps(layer).values, found.scores[:, place, :, place])
    np.testing.assert_allclose(course.values[-1], 1, atol=1e-6)
    assert course.errors is not None
    assert found.course(4).values[0] == pytest.approx(1, abs=1e-6)
    text = str(found)
    assert "cka: each layer of a at each step with itself at step 12, 150 samples" in text
    assert "cka: mean of a, steps with each other, 150 samples" in text
    assert "pairs of models" not in text
    assert found._repr_html_().count("<td") == 3 * 16 + 3 * 3
    back = Comparison.from_dict(json.loads(json.dumps(found.to_dict())))
    assert str(back) == text
    with pytest.raises(InputError, match="one of the steps 4, 8, 12, got 5"):
        found.course(5)
    with pytest.raises(InputError, match=r"no layer of all models named 'men'.*Did you mean 'mean'"):
        found.between_steps("men")
    with pytest.raises(InputError, match="a comparison of steps requires checkpoints"):
        compare(runs["a"], n_samples=50).course()


def test_the_course_of_several_runs_is_the_mean_over_runs_each_with_itself() -> None:
    """Two runs of three steps, made of arrays: the pairs of a run with another are left out."""
    models = [arrays(seed=seed) for seed in range(6)]
    found = dataclasses.replace(compare(models), checkpoints=((0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)))
    course = found.course()
    expected = [cka(models[run]["two"], models[run + 2]["two"]) for run in (0, 3)]
    assert course.values[0, 1] == pytest.approx(np.mean(expected), abs=1e-6)
    assert course.spread is not None
    assert course.spread[0, 1] == pytest.approx(np.std(expected, ddof=1), abs=1e-6)
    assert "mean of 2 runs" in str(found)
    fewer = dataclasses.replace(found, checkpoints=((0, 1), (0, 2), (0, 3), (1, 1), (1, 3), (1, 4)))
    assert fewer.steps == (1, 3)
    assert not fewer.is_course


def test_of_many_steps_a_dozen_are_printed() -> None:
    n = 30
    found = compare([arrays(40, seed) for seed in range(n)])
    found = dataclasses.replace(found, checkpoints=tuple((0, 10 * step) for step in range(n)))
    course = thinned(found.course())
    assert len(course.rows) == 12
    assert (course.rows[0], course.rows[-1]) == ("step 0", "step 290")
    assert course.values[1, 0] == found.course().values[found.course().rows.index(course.rows[1]), 0]
    assert thinned(found.between_steps("one")).values.shape == (12, 12)
    assert "(12 of 30 steps)" in str(found)


def test_of_many_layers_the_file_has_the_scores_and_not_those_of_parts(tmp_path: Path) -> None:
    few, many = (compare([arrays(100, seed) for seed in range(n)]) for n in (50, 51))
    assert len(few.matrix) == MAX_WITH_PARTS
    assert len(few.to_dict()["parts"]) == len(many.parts) == 5
    assert many.errors is not None
    many = dataclasses.replace(many, checkpoints=tuple((0, step) for step in range(51)))
    record, picture = many.save(tmp_path)
    back = Comparison.from_dict(json.loads(record.read_text()))
    np.testing.assert_array_equal(back.matrix, many.matrix)
    assert back.errors is back.course().errors is None
    assert str(back) == str(many)
    # A dozen rows of 0.36 inches, and what is around them; 160 pixels an inch.
    assert int.from_bytes(picture.read_bytes()[20:24], "big") == round(160 * (1.9 + 0.36 * 12))


def test_a_checkpoint_is_the_model_of_its_step(runs: dict[str, Path]) -> None:
    assert load_model(runs["a"], step=12).digest == load_model(runs["a"]).digest
    assert load_model(runs["a"], step=4).digest != load_model(runs["a"]).digest
    with pytest.raises(InputError, match=r"has no model of step 11 \(kept steps: "):
        load_model(runs["a"], step=11)


def arrays(n: int = 100, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n, 4))
    return {"one": first, "two": first @ rng.normal(size=(4, 3)) + rng.normal(size=(n, 3))}


def test_the_average_is_over_pairs_of_models_of_two_groups() -> None:
    """Eq. 7.9, summed by hand over direct scores."""
    a, b = [arrays(seed=s) for s in (0, 1)], [arrays(seed=s) for s in (2, 3, 4)]
    found = compare({"A": a, "B": b})
    table = found.average()
    assert (table.row_label, table.column_label, table.n_pairs) == ("A", "B", 6)
    pairs = [cka(x["one"], y["two"]) for x in a for y in b]
    assert table.values[0, 1] == pytest.approx(np.mean(pairs), abs=1e-6)
    assert table.spread is not None
    assert table.spread[0, 1] == pytest.approx(np.std(pairs, ddof=1), abs=1e-6)
    # A group with itself leaves out each model with itself.
    within = found.average("A", "A")
    assert within.n_pairs == 2
    assert within.values[0, 0] == pytest.approx(cka(a[0]["one"], a[1]["one"]), abs=1e-6)
    assert found.overall().n_pairs == 20
    assert found.average("model 1", "B").n_pairs == 3
    with pytest.raises(InputError, match="no group or model named 'C'"):
        found.average("C")


def test_the_error_is_how_much_the_score_varies_from_draw_to_draw() -> None:
    """The mean of the estimated error over 40 draws, against the spread of the score over the same draws.

    A spread over five parts has a relative error of 1/√8, the mean of 40 of 6 %; the spread of 40 scores of 11 %: 45 %
    are 3.6 standard deviations of their ratio.
    """
    fixed = np.random.default_rng(9).normal(size=(4, 3))
    drawn = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 4))
        found = compare([{"one": x, "two": x @ fixed + rng.normal(size=(400, 3))}])
        drawn.append((found.scores[0, 0, 0, 1], found.errors[0, 0, 0, 1]))
    spread, estimated = np.std([s for s, _ in drawn], ddof=1), np.mean([e for _, e in drawn])
    assert estimated == pytest.approx(spread, rel=0.45)


def test_with_few_samples_there_is_no_error() -> None:
    found = compare([arrays(60)])
    assert found.digests == (), "arrays have no model"
    assert found.errors is None
    assert found.average().errors is None


def test_a_layer_that_fails_on_a_part_costs_the_errors_not_the_comparison() -> None:
    x = np.zeros((100, 2))
    x[:3] = np.random.default_rng(0).normal(size=(3, 2))
    found = compare([{"rare": x, **arrays()}])
    assert found.errors is None
    assert found.scores.shape == (1, 3, 1, 3)
    assert any("because layer rare of model 1" in note for note in found.notes)


@pytest.mark.parametrize("measure", ["cka", "procrustes", "knn"])
def test_scores_do_not_depend_on_where_things_are_kept(
    runs: dict[str, Path], tmp_path: Path, measure: str
) -> None:
    chosen = [runs["a"], runs["b"]]
    in_memory = compare(chosen, measure=measure, n_samples=120)
    on_disk = compare(chosen, measure=measure, n_samples=120, folder=tmp_path / "new", memory=0)
    np.testing.assert_array_equal(in_memory.matrix, on_disk.matrix)
    assert list((tmp_path / "new").iterdir()) == [], "nothing is left behind"


def test_beyond_the_budget_arrays_are_files(tmp_path: Path) -> None:
    with scratch(tmp_path, budget=1000) as place:
        assert not isinstance(place.array((100,)), np.memmap)
        assert not isinstance(place.array((150,)), np.memmap)
        assert isinstance(place.array((1,)), np.memmap)
        assert len(list(tmp_path.iterdir())) == 1


def test_equal_layers_are_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    form = similarity.traits("cka")["form"]
    calls = []
    monkeypatch.setattr(
        module._Bank, "_compress", lambda self, array: calls.append(len(array)) or form.compress(array)
    )
    shared = arrays()["one"]
    compare([{"input": shared, "x": arrays(seed=1)["one"]}, {"input": shared.copy()}])
    assert calls.count(100) == 2


def test_options_of_the_measure_are_passed_and_checked() -> None:
    layers = arrays()
    found = compare([layers], measure="knn", neighbours=3)
    expected = similarity["knn"](layers["one"], layers["two"], neighbours=3)
    assert found.scores[0, 0, 0, 1] == pytest.approx(expected, abs=1e-12)
    assert found.options == {"neighbours": 3}
    with pytest.raises(InputError, match="no option of similarity 'knn' named 'neighbors'"):
        compare([layers], measure="knn", neighbors=3)
    with pytest.raises(InputError, match=r"no similarity named 'ckka'.*'cka'"):
        compare([layers], measure="ckka")


def test_what_cannot_be_compared_is_refused_in_words(runs: dict[str, Path], tmp_path: Path) -> None:
    train(load_dataset("sprites", image_size=32), net="linear", n_latents=2, out=tmp_path / "c", **QUICK)
    mixed = [runs["a"], tmp_path / "c"]
    for call, words in [
        (lambda: compare(mixed), r"trained on sprites \(image_size=16.*and c on sprites \(image_size=32"),
        (lambda: compare(mixed, DATA, n_samples=50), r"c takes observations of shape \(1, 32, 32\)"),
        (lambda: compare([]), "at least one"),
        (lambda: compare([3]), "must be models, run folders, representations or mappings.*got int"),
        (lambda: compare([np.ones((50, 2))] * 2), r"got ndarray of shape \(50, 2\)\.$"),
        (lambda: compare(np.ones((50, 2))), r"got ndarray of shape \(50, 2\)\.$"),
        (lambda: compare([{}]), "got a mapping without layers"),
        (lambda: compare(arrays()), "put the layers of one model in a list"),
        (lambda: compare([runs["a"], arrays()]), "all models or all arrays"),
        (lambda: compare([arrays()], DATA), "data must be left out"),
        (lambda: compare([arrays(), arrays(99)]), "got 100 rows first and 99 in layer one of model 2"),
        (lambda: compare([{"x": np.full((50, 2), np.nan)}]), "layer x of model 1 cannot be compared.*finite"),
        (lambda: compare([{"x": np.ones((50, 2))}]), "no layer of model 1 varies"),
        (lambda: compare([{"x": np.ones(50)}]), r"layer x of model 1 .*\(sample, feature\), got .*\(50,\)"),
        (lambda: compare([{"x": np.full((50, 2), "a")}]), "layer x of model 1 must be numbers .* got <U1"),
        (lambda: compare([{"x": np.ones((50, 0))}]), r"layer x of model 1 must be .* shape \(50, 0\)"),
        (lambda: compare([{"x": np.ones((0, 2))}]), r"layer x of model 1 must be .* shape \(0, 2\)"),
        (lambda: compare(runs["a"], n_samples=1), "n_samples must be an integer of at least 2"),
        (
            lambda: compare(runs["a"], checkpoints=[7]),
            "steps 4, 8, 12, not of 7; train with keep_checkpoints",
        ),
        (
            lambda: compare(runs["b"], checkpoints=True),
            "only one checkpoint, of step 12.*train with keep_checkpoints='all'",
        ),
        (lambda: compare(runs["a"], checkpoints=12), r"or a list of steps, got 12; .* in a list"),
        (lambda: compare(runs["a"], checkpoints="all"), "or a list of steps, got 'all'"),
        (lambda: compare(runs["a"], checkpoints=None), "or a list of steps, got None"),
        (lambda: compare([arrays()], checkpoints=True), "checkpoints require run folders"),
        (lambda: compare(tmp_path), "not a run folder"),
    ]:
        with pytest.raises(InputError, match=words):
            call()


def test_the_record_is_kept_and_comes_back(runs: dict[str, Path], tmp_path: Path) -> None:
    found = compare([runs["a"], runs["b"]], n_samples=120)
    record, picture = found.save(tmp_path / "out")
    back = Comparison.from_dict(json.loads(record.read_text()))
    assert back.models == found.models
    assert back.digests == found.digests == tuple(load_model(runs[name]).digest for name in "ab")
    assert back.layers_of == found.layers_of
    np.testing.assert_array_equal(back.matrix, found.matrix)
    np.testing.assert_array_equal(back.parts, found.parts)
    assert str(back) == str(found)
    first = picture.read_bytes()
    assert first[:4] == b"\x89PNG"
    back.save(tmp_path / "again")
    assert (tmp_path / "again" / "similarity.png").read_bytes() == first
    with pytest.raises(
        PolariscopeError, match=r"not a stored Comparison: it must have the fields .*compare the models again"
    ):
        Comparison.from_dict({"matrix": []})


def test_it_prints_every_layer_and_its_notes(runs: dict[str, Path]) -> None:
    found = compare([runs["a"], runs["b"]], n_samples=120)
    text = str(found)
    lines = text.splitlines()
    assert lines[0] == "cka: a (rows) with b (columns), 120 samples"
    assert " ".join(lines[1].split()) == "in e1 e2 e3 e4 e5 e6 μ σ² z d1 d2 d3 d4 d5 d6"
    assert [line.split()[0] for line in lines[2:18]] == list(CONV)
    assert max(map(len, lines[:18])) <= 100
    assert "Notes" in text
    assert "2048 features for 120 samples" in text
    page = found._repr_html_()
    assert page.count("<td") == 256
    named = compare({"<b>": [arrays()], "y": [arrays(seed=1)]})
    assert "<b> (rows)" in str(named)
    assert "&lt;b&gt; (rows)" in named._repr_html_()


def test_models_without_a_layer_in_common_are_shown_two_by_two(tmp_path: Path) -> None:
    one, two, three = ({name: arrays(seed=seed)["one"]} for seed, name in enumerate("abc"))
    found = compare([one, two])
    assert str(found).splitlines()[1].split() == ["b"]
    assert "Layers of the same name" not in str(found)
    assert found._repr_html_().count("<td") == 1
    more = compare([one, two, three])
    assert "No layer has the same name in all models" in str(more)
    assert "No layer has the same name in all models" in more._repr_html_()
    assert more.average("model 1", "model 3").values.shape == (1, 1)
    with pytest.raises(InputError, match=r"no heat map to draw\. No layer has the same name"):
        more.save(tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_the_figure_marks_the_blocks_and_writes_the_scores(runs: dict[str, Path]) -> None:
    found = compare([runs["a"], runs["b"]], n_samples=120)
    axes = found.figure().axes[0]
    words = [text.get_text() for text in axes.texts]
    assert {"encoder", "latent", "decoder"} <= set(words)
    assert len(words) == 256 + 3
    assert [label.get_text() for label in axes.get_yticklabels()][7:10] == ["μ", "σ²", "z"]
    shown = axes.collections[0].get_array()
    np.testing.assert_array_equal(np.asarray(shown).reshape(16, 16), found.average().values)


def test_it_is_the_same_every_time(runs: dict[str, Path]) -> None:
    first, again = (compare(runs["a"], n_samples=100, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.matrix, again.matrix)
    other = compare(runs["a"], n_samples=100, seed=5)
    assert not math.isclose(first.scores[0, 0, 0, 7], other.scores[0, 0, 0, 7], abs_tol=1e-6)


def test_an_auxiliary_variable_reaches_the_encoder(tmp_path: Path) -> None:
    train(DATA, objective="ivae", net="conv", n_latents=2, out=tmp_path / "ivae", **QUICK)
    found = compare(tmp_path / "ivae", n_samples=100)
    assert found.layers == CONV


def test_progress_is_told_of_each_model() -> None:
    told: list[str] = []
    compare([arrays(), arrays(seed=1)], progress=told.append)
    assert told == [
        "model 1: 2 layers, model 1 of 2",
        "model 2: 2 layers, model 2 of 2",
        "scoring all pairs of 4 layers",
    ]


def test_representations_are_compared_by_their_layers_and_refused_when_their_samples_differ() -> None:
    draw = np.random.default_rng(0)
    mean, variance = draw.normal(size=(60, 3)), draw.uniform(0.1, 1, size=(60, 3))
    ids = np.array([f"row {number}" for number in range(60)])
    rep = Representation(mean, variance, mean + draw.normal(size=(60, 3)), ids=ids)
    turned = dataclasses.replace(rep, mean=-mean[:, ::-1].copy())
    found = compare([rep, turned])
    assert found.models == ("representation 1", "representation 2")
    assert found.layers == ("mean", "variance", "sampled")
    assert found.average().matching()["mean"][0] == pytest.approx(1)
    alone = compare([{"mean": rep.mean, "variance": rep.variance, "sampled": rep.sampled}])
    np.testing.assert_array_equal(compare(rep).matrix, alone.matrix)
    assert compare([rep, {"mean": mean}]).layers == ("mean",)  # nothing is known of the mapping's samples
    other = dataclasses.replace(rep, ids=np.roll(ids, 1))
    with pytest.raises(
        InputError,
        match=r"representation 1 and representation 2 .* 60 of 60 ids differ, first in row 0: row 0 and row 59",
    ):
        compare([rep, other])
