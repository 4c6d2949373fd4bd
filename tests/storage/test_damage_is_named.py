"""Damage that used to change an answer without a word is named."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.cli import main
from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.pages.size import read_sizes
from polariscope.sizing.curve import read_curve
from polariscope.sizing.result import Size
from polariscope.sizing.size import keep_size, read_size, settings_of_models, write_size
from polariscope.storage.documents import HASH, DamagedError, read_settings, settings_hash
from polariscope.storage.folder import RunFolder
from polariscope.storage.inspection import inspect_folder
from polariscope.storage.search_folder import SearchFolder

ROWS = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
SMALL = {"net": "linear", "n_latents": 2, "steps": 20, "checkpoint_every": 10, "log_every": 5}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    ps.train(ROWS, out=tmp_path / "run", **SMALL)
    return tmp_path / "run"


def damaged(folder: Path) -> list[str]:
    return [finding.path.name for finding in inspect_folder(folder) if finding.state == "damaged"]


def change_a_digit(file: Path) -> None:
    text = file.read_text()
    place = next(index for index, mark in enumerate(text) if index > len(text) // 2 and mark.isdigit())
    file.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])


def test_a_missing_log_of_an_unfinished_run_is_damage(run: Path) -> None:
    (run / "model.safetensors").unlink()
    assert damaged(run) == []
    (run / "log.jsonl").unlink()
    assert damaged(run) == ["log.jsonl"]


def test_training_again_names_a_damaged_log(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    change_a_digit(run / "log.jsonl")
    with caplog.at_level(logging.WARNING, "polariscope"):
        ps.train(ROWS, out=run, **SMALL)
    assert "log.jsonl is damaged" in caplog.text


def test_a_damaged_result_is_left_out_with_a_warning(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = ps.open_run(run, data=ROWS)
    opened.regime(n_samples=50)
    names = {artefact.path.name for artefact in opened.artefacts()}
    regime = next(name for name in names if name.startswith("regime"))
    change_a_digit(run / regime)
    with caplog.at_level(logging.WARNING, "polariscope"):
        again = ps.open_run(run, data=ROWS)
        assert {artefact.path.name for artefact in again.artefacts()} == names - {regime}
        assert list(again.artefacts())  # the second look is silent
    assert caplog.text.count("It is left out.") == 1
    assert regime in caplog.text


@pytest.mark.parametrize("content", ["cut", '{"train": "long"}'])
def test_damaged_times_are_left_out_with_a_warning(
    run: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = RunFolder(run)
    folder.keep_seconds({"train": 3.0})
    assert folder.seconds() == {"train": 3.0}
    (run / "timing.json").write_text(content)
    with caplog.at_level(logging.WARNING, "polariscope"):
        assert folder.seconds() == {}
    assert "timing.json" in caplog.text
    assert damaged(run) == ["timing.json"]


def test_every_model_of_a_search_is_verified(tmp_path: Path) -> None:
    size = {"net": "linear", "steps": 400, "cap": 4, "learning_rate": 0.05}
    ps.size(ROWS, out=tmp_path, **size)
    models = sorted(file.parent.name for file in tmp_path.glob("seed-0/*/settings.json"))
    assert any(not name.startswith("n-") for name in models)  # models that begin with latents of a wider one
    for name in models:
        file = tmp_path / "seed-0" / name / "settings.json"
        before = file.read_text()
        file.write_text(before[:100])
        assert file.name in damaged(tmp_path)
        file.write_text(before)


def test_an_array_with_a_header_that_does_not_end_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': ((((((("
    length = len(header).to_bytes(2, "little")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + length + header)
    with pytest.raises(InputError, match="does not have the header of an array"):
        ps.load_dataset(str(tmp_path / "x.npy"))


def sign_settings(run: Path, path: str, value: object) -> None:
    """Replace or delete (``...``) an entry of the settings, and write the hashes that belong to it."""
    record = json.loads((run / "settings.json").read_text())
    del record[HASH]
    *parts, name = path.split(".")
    entry = record
    for part in parts:
        entry = entry[part]
    if value is ...:
        del entry[name]
    else:
        entry[name] = value
    record["hash"] = settings_hash(record)
    (run / "settings.json").write_text(json.dumps({**record, HASH: files.digest(record)}))


@pytest.mark.parametrize(
    "name", ["data", "objective", "model", "training", "training_identity", "environment"]
)
def test_settings_without_an_entry_are_damaged_even_with_a_new_hash(run: Path, name: str) -> None:
    sign_settings(run, name, ...)
    with pytest.raises(DamagedError, match=f"must have the field {name}; repeat the run"):
        read_settings(run)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("training.steps", "x", "training: .*steps must be an integer, got 'x'"),
        ("training.batch_size", True, "training: .*batch_size must be an integer, got True"),
        ("objective.name", 3, "objective: .*name must be text, got 3"),
        ("model.net.name", ..., "model.net: .*must have the field name"),
        ("model.decodes", 1, "model: .*decodes must be true or false, got 1"),
        ("environment.threads", "two", "environment: .*threads must be an integer"),
        ("split.train", None, "split: .*train must be an integer, got None"),
        ("n_observations", 1.5, "n_observations must be an integer, got 1.5"),
        ("caution", [], "caution must be text, got a list"),
        ("chosen", [1], r"chosen\[0\] must be text, got 1"),
        ("training.learning_rate", "fast", "training: learning_rate must be a number"),
        ("training.keep_checkpoints", "some", "training: keep_checkpoints must be 'last' or 'all'"),
    ],
)
def test_an_entry_of_another_type_is_damage_even_with_a_new_hash(
    run: Path, path: str, value: object, message: str
) -> None:
    sign_settings(run, path, value)
    with pytest.raises(DamagedError, match=f"settings.json is damaged: .*{message}"):
        ps.open_run(run)


def test_a_table_names_a_damaged_model(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    (run / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:100])
    with caplog.at_level(logging.WARNING, "polariscope"):
        opened = ps.open_run(run, data=ROWS)
        assert opened.folder.finished_steps is None
        assert not opened.is_finished
    assert caplog.text.count("The run counts as unfinished.") == 1


def test_times_of_another_run_are_not_used(
    run: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    ps.train(ROWS, out=tmp_path / "other", seed=1, **SMALL)
    for folder in (run, tmp_path / "other"):
        RunFolder(folder).keep_seconds({"train": 3.0})
    shutil.copy(tmp_path / "other" / "timing.json", run / "timing.json")
    with caplog.at_level(logging.WARNING, "polariscope"):
        assert RunFolder(run).seconds() == {}
    assert "times of another run" in caplog.text


def test_a_search_with_a_damaged_recipe_continues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    size = {"net": "linear", "steps": 400, "cap": 4, "learning_rate": 0.05}
    first = ps.size(ROWS, out=tmp_path, **size)
    change_a_digit(tmp_path / "seed-0" / "recipe.json")
    with caplog.at_level(logging.WARNING, "polariscope"):
        assert ps.size(ROWS, out=tmp_path, **size).value == first.value
    assert "recipe.json" in caplog.text


def test_an_incomplete_last_line_of_the_log_is_mentioned(run: Path) -> None:
    (run / "model.safetensors").unlink()
    with (run / "log.jsonl").open("ab") as file:
        file.write(b'{"step"')
    findings = {
        finding.path.name: finding.state for finding in inspect_folder(run) if finding.state != "whole"
    }
    assert findings == {"log.jsonl": "leftover"}


def test_errors_about_damaged_models_contain_a_remedy(run: Path) -> None:
    for file in (run / "model.safetensors", run / "checkpoints" / "step-10" / "model.safetensors"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    for read in (lambda: ps.load_model(run), lambda: ps.open_run(run, data=ROWS).scores("mi")):
        with pytest.raises(
            DamagedError, match=r"its hash .* Run the same train command again: the model is rest"
        ):
            read()
    with pytest.raises(
        DamagedError, match=r"its hash .* Use the model of another step \(kept steps: 20\), or"
    ):
        ps.load_model(run, step=10)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(
        DamagedError, match=r"no checkpoint from which it can be restored; repeat it in another"
    ):
        ps.load_model(run)


def test_a_damaged_log_is_refused_before_a_diagnosis_is_computed_or_printed(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(run.parent / "rows.npy", ROWS)
    path = run.parent / "again"
    ps.train(ps.load_dataset(str(run.parent / "rows.npy")), out=path, **SMALL)
    change_a_digit(path / "log.jsonl")
    before = sorted(file.name for file in path.iterdir())
    assert main(["diagnose", str(path), "--samples", "50", "--bootstrap", "5"]) == 1
    printed = capsys.readouterr()
    assert "log.jsonl is damaged" in printed.err
    assert "repeat the run in another folder" in " ".join(printed.err.split())
    assert "latent" not in printed.out
    assert sorted(file.name for file in path.iterdir()) == before


def test_a_run_without_checkpoints_and_model_is_repeated_with_a_warning(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    digest = ps.load_model(run).digest
    shutil.rmtree(run / "checkpoints")
    (run / "model.safetensors").unlink()
    ps.train(ROWS, out=run, **SMALL)
    assert (
        "has a log, but neither checkpoints nor a model; training restarts from the first step" in caplog.text
    )
    assert ps.load_model(run).digest == digest


def test_a_model_that_is_set_aside_is_described_as_what_it_is(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ps.train(ROWS, seed=1, out=run.parent / "other", **SMALL)
    shutil.copy(run.parent / "other" / "model.safetensors", run)
    shutil.rmtree(run / "checkpoints")
    ps.train(ROWS, out=run, **SMALL)
    assert (
        "another run saved it. It is trained again from step 0; the old file is kept as model.safetensors.damaged"
        in caplog.text
    )
    (aside,) = [finding for finding in inspect_folder(run) if finding.state == "set aside"]
    assert aside.what == "it was damaged or belongs to another run, and the model was made again"


ANSWER = Size(3, (3, 3), "fondue")
RECIPE = {"data": "f", "recipe": {"net": "linear", "seed": 0}}


def begin_search(folder: Path, seed: int = 0, recipe: dict[str, object] = RECIPE) -> Path:
    """Write the recipe and the answer of a search."""
    search = SearchFolder(folder)
    search.seed(seed).path.mkdir(parents=True)
    search.seed(seed).check_recipe(recipe)
    search.write_curve({}, {"seed": seed}, bands="", models="")
    write_size(folder, ANSWER, {"seed": seed, "method": "fondue", "data": {"fingerprint": "f"}})
    return folder


@pytest.mark.parametrize(
    ("seed", "recipe"),
    [
        (1, RECIPE),
        (0, {**RECIPE, "data": "g"}),
        (0, {**RECIPE, "recipe": {"net": "mlp", "seed": 0}}),
    ],
    ids=["seed", "data", "recipe"],
)
def test_the_answer_of_another_search_is_refused_by_every_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int, recipe: dict[str, object]
) -> None:
    own, other = begin_search(tmp_path / "own"), begin_search(tmp_path / "other", seed, recipe)
    assert damaged(own) == []
    assert read_size(own) == ANSWER
    for name in ("size.json", "curve.json"):
        shutil.copy(other / name, own / name)
    assert sorted(damaged(own)) == ["curve.json", "size.json"]
    readers = (read_size, settings_of_models, read_sizes, read_curve, lambda folder: keep_size(folder, own))
    for reader in readers:
        with pytest.raises(
            DamagedError, match=f"is the result of another search: its models of seed-{seed} "
        ):
            reader(own)
    run = tmp_path / "run"
    for words in (
        f"check {own}",
        f"show {own}",
        f"train gaussian --size {own} --steps 2 --out {run}",
    ):
        assert main(words.split()) == 1
        output = capsys.readouterr()
        assert "the result of another search" in " ".join((output.out + output.err).split())
    assert not run.exists()


def test_the_same_search_replaces_the_answer_of_another(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    answer = ps.size(ROWS, "id", out=own)
    ps.size(ROWS, "id", seed=1, out=other)
    shutil.copy(other / "size.json", own / "size.json")
    with pytest.raises(DamagedError, match="another search"):
        read_size(own)
    assert ps.size(ROWS, "id", out=own) == answer
    assert read_size(own) == answer
    # Another seed in the same folder is no other search.
    ps.size(ROWS, "id", seed=1, out=own)
    assert damaged(own) == []


def test_an_answer_is_read_without_its_models_and_with_a_damaged_recipe(tmp_path: Path) -> None:
    own = begin_search(tmp_path / "own")
    (tmp_path / "copy").mkdir()
    shutil.copy(own / "size.json", tmp_path / "copy")
    assert read_size(tmp_path / "copy") == ANSWER
    (own / "seed-0" / "recipe.json").write_text("{")
    assert read_size(own) == ANSWER
    assert damaged(own) == ["recipe.json"]
