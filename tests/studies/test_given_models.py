"""Studies of models that were trained elsewhere: what is opened, cached, refused and shown."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.data.codes import open_codes
from polariscope.runs.given_run import GivenModel, GivenRun
from polariscope.studies.design import StudyDesign
from polariscope.studies.ledger import Ledger
from polariscope.studies.table_rows import study_table

DATA = {"name": "gaussian", "n_samples": 300}
EACH = {"diagnose": {"n_samples": 200}}
FUNCTION = """
CALLS = []

def load():
    CALLS.append(1)
    return lambda x: (2 * x[:, :2], 0 * x[:, :2] - 4)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "given_elsewhere", raising=False)
    Path("given_elsewhere.py").write_text(FUNCTION, encoding="utf-8")


@pytest.fixture
def codes() -> Path:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(250, 3)) * [1, 1, 0.001]
    variance = np.broadcast_to([0.01, 0.02, 1.0], mean.shape)
    np.savez("theirs.npz", mean=mean, variance=variance, factors=np.arange(250)[:, None] % 3)
    return Path("theirs.npz")


def design(**fields) -> ps.Study:
    return ps.Study(**{"each": EACH, "out": "study", **fields})


def test_codes_models_runs_and_functions_are_rows_of_one_table(codes):
    ps.train(ps.load_dataset(**DATA), net="linear", n_latents=3, steps=30, out="run")
    study = design(
        data=DATA,
        models=[
            {"path": str(codes)},
            {"name": "ours", "path": "run"},
            {"name": "function", "import": "given_elsewhere:load"},
        ],
    )
    counts = study.run(allow_import=True)
    assert counts == {"waiting": 0, "running": 0, "done": 3, "failed": 0}
    table = study.table().set_index("model")
    assert list(table.index) == ["theirs", "ours", "function"]
    # The same numbers as the functions give.
    arrays = np.load(codes)
    chosen = ps.open_run("run").regime(n_samples=200)
    assert table.loc["ours", "active"] + table.loc["ours", "mixed"] + table.loc["ours", "passive"] == 3
    assert table.loc["ours", "kl"] == pytest.approx(chosen.kl, rel=1e-9)
    assert table.loc["theirs", ["active", "passive"]].tolist() == [2, 1]
    rows = ps.diagnose(mean=arrays["mean"], variance=arrays["variance"])
    assert table.loc["theirs", "kl"] == pytest.approx(rows.kl, rel=0.1)  # of 200 of the 250 rows
    assert table.loc["function", "active"] == 2
    assert set(table["training"]) == {"unknown"}


def test_channels_of_convolutional_codes_are_counted_not_their_values():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(250, 3, 2, 2)) * np.array([1, 1, 0.001])[:, None, None]
    variance = np.broadcast_to(np.array([0.01, 0.02, 1.0])[:, None, None], mean.shape)
    np.savez("conv.npz", mean=mean, variance=variance, factors=np.arange(250)[:, None] % 3)
    study = design(
        models=[{"path": "conv.npz"}], each={**EACH, "score": {"metrics": "mig", "n_samples": 200}}
    )
    study.run()
    assert study.table()["in_use"].item() == 2
    scores = ps.score(open_codes("conv.npz"), "mig")
    assert (scores.coverage, scores.n_in_use) == ("all 12 values of 3 channels", 2)


def test_results_are_cached_and_a_finished_study_opens_no_model(codes):
    study = design(data=DATA, models=[{"name": "function", "import": "given_elsewhere:load"}])
    study.run(allow_import=True)
    calls = sys.modules["given_elsewhere"].CALLS
    n_calls = len(calls)
    study.run(allow_import=True)
    study.table()
    assert len(calls) == n_calls == 1


def test_a_changed_file_is_analysed_again(codes):
    study = design(models=[{"path": str(codes)}])
    study.run()
    before = study.table()["kl"].item()
    arrays = dict(np.load(codes))
    np.savez(codes, **{**arrays, "mean": 2 * arrays["mean"]})
    changed = design(models=[{"path": str(codes)}])
    assert changed.status()["waiting"] == 1
    changed.run()
    assert changed.table()["kl"].item() > before


def test_trained_and_given_models_share_one_table(codes):
    study = design(
        data=DATA,
        objective="beta",
        grid={"beta": [1.0, 2.0]},
        settings={"net": "linear", "n_latents": 2, "steps": 20},
        models=[{"path": str(codes)}],
    )
    study.run()
    table = study.table()
    assert table["beta"].isna().tolist() == [False, False, True]
    assert table["model"].isna().tolist() == [True, True, False]
    assert StudyDesign.from_dict(study.to_dict()).to_dict() == study.to_dict()


def test_no_code_runs_without_permission(codes, capsys):
    study = design(
        data=DATA,
        models=[{"path": str(codes)}, {"name": "function", "import": "given_elsewhere:load"}],
    )
    with pytest.raises(
        InputError, match=r"imports function \(given_elsewhere:load\), which runs .* allow_import=True"
    ):
        study.run()
    assert "given_elsewhere" not in sys.modules
    assert study.status()["waiting"] == 2  # nothing was computed
    Path("s.toml").write_text(
        '[data]\nname = "gaussian"\n[[models]]\nimport = "given_elsewhere:load"\n[each.diagnose]\nn_samples = 100\n',
        encoding="utf-8",
    )
    assert main(["study", "run", "s.toml"]) == 2
    assert "--allow-import" in capsys.readouterr().err
    assert main(["study", "plan", "s.toml"]) == 0
    assert main(["study", "run", "s.toml", "--allow-import"]) == 0
    assert main(["study", "report", "s.toml"]) == 0


def test_workers_in_processes_get_the_permission():
    study = design(
        data=DATA,
        models=[
            {"name": "a", "import": "given_elsewhere:load"},
            {"name": "b", "import": "given_elsewhere:load", "likelihood": "gaussian"},
        ],
        each={"encode": {"n_samples": 100}},
    )
    import os

    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", paths)
        assert study.run(workers=2, allow_import=True)["done"] == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"models": [{"name": "x"}]}, "an entry of models must have either path or import, a text, got name"),
        ({"models": [{"path": "a", "import": "b:c"}]}, "either path or import"),
        ({"models": [{"import": "module"}]}, "import must have the form module:function, got 'module'"),
        ({"models": [{"import": "os:system('x')"}]}, "import must have the form"),
        ({"models": [{"path": 3}]}, "either path or import, a text"),
        ({"models": [{"path": "x/a.npz"}, {"path": "y/a.npz"}]}, "two models are named 'a'"),
        ({}, "data must name at least one"),
        ({"objective": "vae", "models": [{"path": "a.npz"}]}, "data must name at least one"),
        ({"objective": [], "data": DATA}, "objective must name at least one"),
    ],
)
def test_designs_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        design(**fields)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([{"path": "none.onnx"}], "model 'none': there is no file or folder"),
        (
            [{"import": "given_elsewhere:load", "likelyhood": "gaussian"}],
            "no option of model 'given_elsewhere:load' named 'likelyhood'; .* Did you mean 'likelihood'",
        ),
        ([{"path": "a.npz", "likelihood": "gaussian"}], "model 'a' is a file of codes, which has no options"),
        ([{"path": "given_elsewhere.py"}], "is not a file or folder of a model or of codes"),
    ],
)
def test_paths_that_cannot_be_opened_are_refused_before_anything_is_computed(models, message):
    with pytest.raises(InputError, match=message):
        design(data=DATA, models=models).plan()


def test_a_model_without_data_is_refused():
    with pytest.raises(InputError, match="model 'function' requires data; set data in the study"):
        design(models=[{"name": "function", "import": "given_elsewhere:load"}]).plan()


def test_an_analysis_that_codes_cannot_have_fails_with_its_reason(codes):
    study = design(models=[{"path": str(codes)}], each={"geometry": {}})
    study.run()
    (entry,) = Ledger(study).entries()
    assert entry.state == "failed"
    assert "is a file of codes, and this analysis requires a model" in entry.message
    assert study_table(Ledger(study)).rows[0]["state"] == "failed"


def test_a_given_run_has_no_training(codes):
    run = GivenRun("results", GivenModel("theirs", str(codes)))
    assert run.log() == run.log_until() == []
    assert run.training().code == "unknown"
    assert (run.steps, run.is_finished, run.n_observations) == ([], True, 250)
    with pytest.raises(InputError, match="its data have no split; use part='all'"):
        run.representation(part="test")
    with pytest.raises(InputError, match="has no checkpoints, got step 3"):
        run.regime(step=3)
    rep = run.representation(n_samples=None)
    np.testing.assert_array_equal(rep.mean, np.load(codes)["mean"])
    assert run.representation(n_samples=40).n_samples == 40
