"""A run opened: what is asked for is computed once, nothing is replaced, and the page holds all of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import polariscope as ps
from kept import artefacts, contents
from polariscope.analysis.decomposition import decompose
from polariscope.analysis.regime.diagnose import diagnose
from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.layers.comparison import Comparison
from polariscope.models import inference
from polariscope.sizing.result import Size
from polariscope.storage.artefacts import Key
from polariscope.storage.inspection import inspect_folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Linear, with two directions in use and one passive; every checkpoint kept."""
    path = tmp_path_factory.mktemp("runs") / "run"
    ps.train(
        ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=2000),
        net="linear",
        n_latents=3,
        likelihood_variance=0.2,
        keep_units=True,
        learning_rate=0.02,
        steps=300,
        log_every=50,
        validate_every=100,
        checkpoint_every=100,
        keep_checkpoints="all",
        out=path,
    )
    return path


@pytest.fixture
def path(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def test_a_chain_of_commands_keeps_everything_and_the_page_holds_all_of_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [
        f"diagnose {path} --alpha 0.2 --samples 1500 --decompose",
        f"score {path} --metrics mcc,tc,hoyer,mi --samples 1800",
        f"score {path} --metrics mcc --samples 300 --seed 4",
        f"compare {path} --samples 200",
        f"report {path}",
    ]
    files: dict[Path, bytes] = {}
    for command in commands:
        assert main(command.split()) == 0, capsys.readouterr().err
        for file, content in files.items():
            assert file.read_bytes() == content, f"{command} changed {file.name}"
        files = {one.path: one.path.read_bytes() for one in ps.open_run(path).artefacts()}
    (regime,) = contents(path, "regime")
    assert (regime["alpha"], regime["n_samples"]) == (0.2, 1500)
    many, few = contents(path, "scores")
    assert (many["n_samples"], list(many["scores"])) == (1800, ["mcc", "tc", "hoyer", "mi"])
    assert (few["n_samples"], few["seed"], list(few["scores"])) == (300, 4, ["mcc"])
    (rate,) = contents(path, "decomposition")
    (comparison,) = contents(path, "comparison")

    page = (path / "report.html").read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    assert "α = 0.2" in text
    assert "1,500 observations" in text
    assert "Decomposition of the rate" in text
    assert f"{rate['mutual_information']:.3f}" in text
    assert f"{few['scores']['mcc']['value']:.3f}" in text  # the newest scores
    assert "1,800 samples" in text  # the others are listed
    assert Comparison.from_dict(comparison).measure in text
    assert "Not scored yet" not in text
    assert "Not compared yet" not in text
    for line in (f"show {path}", f"check {path}"):
        capsys.readouterr()
        assert main(line.split()) == 0
    assert " 0 damaged." in capsys.readouterr().out
    main(f"show {path}".split())
    shown = capsys.readouterr().out
    assert all(file.name in shown for file in files)


def test_what_is_kept_is_what_the_functions_give(path: Path) -> None:
    run = ps.open_run(path)
    rep = run.representation(500, seed=3)
    assert run.regime(0.15, 50, n_samples=500, seed=3) == diagnose(rep, alpha=0.15, n_bootstrap=50, seed=3)
    assert run.decomposition(400, n_samples=500, seed=3) == decompose(rep, 400, seed=3)
    expected = ps.score(rep, "mcc,tc", seed=3, factor_kinds=["continuous"] * 2)
    assert run.scores("mcc,tc", n_samples=500, seed=3).to_dict() == expected.to_dict()
    again = ps.open_run(path)
    assert again.geometry(n_samples=500).to_dict() == run.geometry(n_samples=500).to_dict()
    assert again.comparison(n_samples=200).to_dict() == ps.compare(path, n_samples=200).to_dict()


def test_asked_again_nothing_is_computed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(run: ps.runs.run.Run) -> list[object]:
        return [
            run.representation(300).mean.tobytes(),
            run.regime(n_samples=300),
            run.decomposition(n_samples=300),
            run.scores("tc,hoyer", n_samples=300).to_dict(),
            run.geometry(n_samples=300).to_dict(),
            run.comparison(n_samples=100).to_dict(),
        ]

    first = ask(ps.open_run(path))
    n_kept = len(ps.open_run(path).artefacts())

    def fail(*_: object, **__: object) -> None:
        pytest.fail("it was computed again")

    for name in ("analysis.regime.diagnose.diagnose", "analysis.decomposition.decompose"):
        monkeypatch.setattr(f"polariscope.{name}", fail)
    monkeypatch.setattr("polariscope.analysis.score.score", fail)
    monkeypatch.setattr("polariscope.geometry.summary.summarise", fail)
    monkeypatch.setattr("polariscope.runs.compare_models.compare", fail)
    monkeypatch.setattr(inference, "represent", fail)
    assert ask(ps.open_run(path)) == first
    assert len(ps.open_run(path).artefacts()) == n_kept


def test_more_samples_than_there_are_is_the_same_question_as_all(path: Path) -> None:
    run = ps.open_run(path)
    for n_samples in (2000, 10_000, None):
        assert run.regime(n_samples=n_samples).n_samples == 2000
    assert len(artefacts(path, "regime")) == 1


def test_parts_steps_and_data_are_kept_apart(path: Path) -> None:
    run = ps.open_run(path)
    assert run.representation(None, part="test").n_samples == 100
    run.regime(n_samples=100, part="test")
    run.regime(n_samples=100)
    run.regime(n_samples=100, step=100)
    other = ps.open_run(
        path, ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=2000, seed=5)
    )
    other.regime(n_samples=100)
    keys = [one.key for one in artefacts(path, "regime")]
    assert [(key.part, key.step) for key in keys] == [("test", 300), ("all", 300), ("all", 100), ("all", 300)]
    assert len({key.data for key in keys}) == 2
    assert run.newest("regime").key.data == run.data().fingerprint


def test_the_effect_is_measured_on_all_that_was_held_out(path: Path) -> None:
    run = ps.open_run(path)
    assert run.representation(50).effect is not None
    run.representation(70, part="train")
    other = ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=60, seed=5)
    assert ps.open_run(path, other).representation().effect is not None
    # Validation and test are 100 each, whatever is encoded; other data were not trained on.
    kept = [(one.key.part, one.key.settings["n_samples"]) for one in artefacts(path, "effect")]
    assert kept == [("held-out", 200), ("held-out", 60)]


def test_two_rows_can_be_encoded_though_their_effect_is_unknown(path: Path) -> None:
    rows = ps.load_dataset("gaussian", eigenvalues=(8.0, 4.0), width=4, n_samples=60, seed=5).values([0, 1])
    assert ps.open_run(path, rows).representation().effect is None


def test_a_checkpoint_is_a_model(path: Path) -> None:
    run = ps.open_run(path)
    assert run.steps == [100, 200, 300]
    assert run.is_finished
    early = ps.load_model(path, step=100)
    assert early.step == 100
    assert early.digest == run.digest(100) == ps.load_model(path / "checkpoints" / "step-100").digest
    assert run.model(300).digest == run.model().digest == run.digest()
    again = ps.train(
        run.data(),
        net="linear",
        n_latents=3,
        likelihood_variance=0.2,
        keep_units=True,
        learning_rate=0.02,
        steps=100,
        log_every=50,
        validate_every=100,
    )
    assert again.digest == early.digest  # as if it had been trained for as long
    rep = ps.encode(path, n_samples=50, step=100)
    assert not np.array_equal(rep.mean, ps.encode(path, n_samples=50).mean)
    with pytest.raises(InputError, match=r"no model of step 150 \(kept steps: 100, 200, 300\)"):
        ps.load_model(path, step=150)
    with pytest.raises(InputError, match="a step requires a run folder"):
        ps.load_model(path / "model.safetensors", step=100)


def test_a_run_says_what_it_is(path: Path) -> None:
    run = ps.open_run(path)
    run.regime(n_samples=100)
    for text in (repr(run), run._repr_html_()):
        for word in ("gaussian", "vae", "linear, 3 latents", "300 steps (finished)", "regime"):
            assert word in text
    assert [line["step"] for line in run.log()] == [50, 100, 150, 200, 250, 300]
    assert run.settings["training"]["seed"] == 0
    (path / "model.safetensors").unlink()
    unfinished = ps.open_run(path)
    assert not unfinished.is_finished
    with pytest.raises(InputError, match="or use step=300"):
        unfinished.model()


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_a_checkpoint_says_so(path: Path) -> None:
    page = ps.report(path, n_samples=100, step=200).read_text()
    assert "200 steps (a checkpoint of 300)" in re.sub(r"\s+", " ", page)


@pytest.mark.usefixtures("undrawn")
def test_nothing_half_written_is_left_by_a_run_that_is_looked_at(path: Path) -> None:
    ps.report(path, n_samples=100)
    assert {finding.state for finding in inspect_folder(path)} == {"whole"}
    assert not list(path.rglob("*.part"))


def test_a_model_that_is_changed_leaves_the_runs_results_alone(path: Path) -> None:
    run = ps.open_run(path)
    expected = diagnose(run.representation(200), seed=0)
    model = run.model()
    with torch.no_grad():
        for weight in model.encoder.parameters():
            weight *= 0.5
    assert run.regime(n_samples=200) == expected
    changed = ps.encode(model, n_samples=200)
    assert not np.array_equal(changed.mean, run.representation(200).mean)


def test_what_is_kept_is_read_without_the_data(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    ps.train(rows, net="mlp", steps=5, out=tmp_path / "run")
    kept = ps.open_run(tmp_path / "run", rows)
    first = [kept.regime(n_samples=100), kept.scores("tc,hoyer", n_samples=100).to_dict()]
    again = ps.open_run(tmp_path / "run")
    assert [again.regime(n_samples=100), again.scores("tc,hoyer", n_samples=100).to_dict()] == first
    with pytest.raises(InputError, match="created from arrays in memory"):
        again.regime(n_samples=99)


def test_the_newest_is_what_was_asked_for_last(path: Path) -> None:
    run = ps.open_run(path)
    for alpha in (0.1, 0.3, 0.1):
        run.regime(alpha, n_samples=200)
    assert run.newest("regime").key.settings["alpha"] == 0.1
    run.scores("tc,hoyer", n_samples=300)
    run.scores("tc", n_samples=200)
    run.scores("mi", n_samples=300)  # grows the first
    assert run.newest("scores").key.settings["n_samples"] == 300
    copied = shutil.copytree(path, path.with_name("copied"))
    assert ps.open_run(copied).newest("regime").key.settings["alpha"] == 0.1
    assert [one.number for one in run.artefacts()] == sorted(one.number for one in run.artefacts())


@pytest.mark.usefixtures("undrawn")
def test_a_report_shows_the_files_asked_for(path: Path) -> None:
    run = ps.open_run(path)
    run.scores("tc", n_samples=200)
    run.scores("tc", n_samples=300)
    run.regime(0.3, n_samples=200)
    run.regime(0.1, n_samples=200)
    wanted = [one.path.name for one in artefacts(path, "scores", n_samples=200)]
    wanted += [one.path.name[:12] for one in artefacts(path, "regime", alpha=0.3)]
    page = ps.report(path, show=wanted).read_text()
    assert "latents, of 200 observations" in page
    assert "α = 0.3" in page
    with pytest.raises(InputError, match="got 'scores-', which several begin with"):
        ps.report(path, show=["scores-"])
    with pytest.raises(InputError, match="got 'nothing', which none begins with"):
        ps.report(path, show=["nothing"])


@pytest.mark.usefixtures("undrawn")
def test_a_report_of_an_early_checkpoint_does_without_what_is_not_there_yet(
    path: Path, tmp_path: Path
) -> None:
    page = ps.report(path, n_samples=100, step=100)
    assert page.name == "report-step-100.html"
    with pytest.raises(InputError, match="no model of step 3"):
        ps.report(path, step=3)
    kept = {"checkpoint_every": 2, "keep_checkpoints": "all", "log_every": 10, "validate_every": 10}
    data = ps.load_dataset("gaussian", n_samples=300)
    ps.train(data, net="linear", n_latents=2, steps=10, out=tmp_path / "b", **kept)
    text = ps.report(tmp_path / "b", n_samples=100, step=4).read_text()
    assert 'id="training"' not in text
    ps.train(data, net="linear", n_latents=2, steps=10, out=tmp_path / "c", **{**kept, "log_every": 2})
    assert ">training loss</span>" in ps.report(tmp_path / "c", n_samples=100, step=4).read_text()


@pytest.mark.usefixtures("unannotated")
def test_calls_that_mean_nothing_are_refused(path: Path) -> None:
    run = ps.open_run(path)
    for call, words in (
        (lambda: run.model(step="100"), "step must be an integer, got '100'"),
        (lambda: run.regime(seed=-1), "seed must not be negative, got -1"),
        (lambda: run.comparison(checkpoints=True, step=100), "use one of them"),
    ):
        with pytest.raises(InputError, match=words):
            call()
    other = shutil.copytree(path, path.with_name("other"))
    assert run.comparison(str(other), n_samples=100).models == ("run", "other")


COUNT = """
import sys
from polariscope.cli import main
assert main(["report", sys.argv[1]]) == 0
print(sum(name.split(".")[0] == "polariscope" for name in sys.modules), file=sys.stderr)
"""


MOST_FILES = 140
"""The owners of decisions (notes, types, use, state, verdict …), commands, the page type, what it is made of (glossary,
formatting, calls …) the figure kit, the view of codes and the aggregate posterior are files of their own."""


def files_of_a_report(path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stderr.split()[-1])


def test_a_report_executes_few_files_of_the_package(path: Path) -> None:
    """What opens slowly is read slowly: 202 files before families were opened by name."""
    assert files_of_a_report(path) <= MOST_FILES


def test_a_report_of_all_that_can_be_measured_opens_records_and_not_what_computed_them(path: Path) -> None:
    for command in (
        f"diagnose {path} --samples 400 --decompose",
        f"score {path} --metrics mcc,tc,hoyer,mi --samples 400",
        f"score {path} --metrics mcc,tc --samples 400 --source sampled",
        f"compare {path} --samples 100",
        f"course {path} --samples 100 --layers",
    ):
        assert main(command.split()) == 0
    run = ps.open_run(path)
    size = Size(2, (2, 2), "fondue", trials=(), summary="What fondue does.")
    key = Key("size", None, run.fingerprint, settings={"method": "fondue"})
    run.folder.artefacts.keep(key, size.to_dict())
    count = files_of_a_report(path)
    page = (path / "report.html").read_text()
    shown = ("decomposition", "scores", "geometry", "similarity", "size", "course")
    assert all(f'<h2 id="{name}">' in page for name in shown)
    assert "Not scored yet" not in page
    assert "Not compared yet" not in page
    assert "over the checkpoints to the next report" not in page
    assert ps.metrics.summary("hoyer") in page
    assert "by fondue" in page
    assert count <= MOST_FILES
