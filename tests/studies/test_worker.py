"""A worker makes what is missing and nothing else, within its budget; what fails says why."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import polariscope
from polariscope.core.errors import InputError, PolariscopeError
from polariscope.runs.run import Run
from polariscope.storage.documents import read_document, write_document
from polariscope.storage.folder import RunFolder
from polariscope.studies.analyses.diagnose import DiagnoseAnalysis
from polariscope.studies.ledger import Ledger, is_trained
from polariscope.studies.study import Study
from polariscope.studies.table_rows import study_table
from polariscope.studies.worker import Worker
from polariscope.studies.workers.local import run_locally
from polariscope.studies.workers.support.study_line import StudyLine
from polariscope.training.train import train
from tiny_studies import is_logging, snapshot, tiny


def drain(study: Study, **options: Any) -> Ledger:
    ledger = Ledger(study)
    ledger.prepare()
    Worker(ledger, **options).drain()
    return Ledger(study)


def made(study: Study) -> list[str]:
    """Names of the runs that a worker trains now."""
    names: list[str] = []
    drain(study, listen=lambda run, step: names.append(run.name) if run.name not in names else None)
    return names


def test_a_run_of_a_study_is_the_run_that_train_makes(tmp_path: Path) -> None:
    study = tiny(tmp_path / "study", each={})
    run = drain(study).runs[0]
    point = run.point
    data = polariscope.load_dataset(point.data["name"], n_samples=60)
    model = train(data, **point.settings, out=tmp_path / "alone", threads=1)
    assert Run(run.folder).digest() == model.digest
    assert RunFolder(run.folder).log.path.read_bytes() == RunFolder(tmp_path / "alone").log.path.read_bytes()


def test_readable_links_lead_to_the_runs(tmp_path: Path) -> None:
    ledger = drain(tiny(tmp_path))
    links = sorted((tmp_path / "links").iterdir())
    assert [link.name for link in links] == ["beta=1,seed=0", "beta=4,seed=0"]
    assert [link.resolve() for link in links] == [run.folder.resolve() for run in ledger.runs]
    Ledger(tiny(tmp_path, grid={"beta": [4.0]}, seeds=[0, 1])).prepare()
    assert sorted(link.name for link in (tmp_path / "links").iterdir()) == ["seed=0", "seed=1"]


def test_only_what_is_missing_is_made(tmp_path: Path) -> None:
    assert made(tiny(tmp_path)) == ["beta=1,seed=0", "beta=4,seed=0"]
    assert made(tiny(tmp_path)) == []
    assert made(tiny(tmp_path, seeds=2)) == ["beta=1,seed=1", "beta=4,seed=1"]


def test_an_analysis_can_be_added_later_without_training(tmp_path: Path) -> None:
    drain(tiny(tmp_path, each={}))
    study = tiny(tmp_path, each={"decompose": {"n_samples": 40}, "score": {"metrics": "tc", "n_samples": 40}})
    assert Ledger(study).counts()["waiting"] == 2
    models = {name: digest for name, digest in snapshot(study).items() if "regime" not in name}
    assert made(study) == []
    assert Ledger(study).counts()["done"] == 2
    assert models.items() <= snapshot(study).items()


def test_studies_that_have_the_same_place_for_runs_share_them(tmp_path: Path) -> None:
    settings = dict(tiny(tmp_path).settings)
    first = tiny(tmp_path / "a", runs=str(tmp_path / "runs"))
    drain(first)
    # How often is logged changes no weight, so it is the same run.
    second = tiny(
        tmp_path / "b",
        runs=str(tmp_path / "runs"),
        grid={"beta": [4.0, 8.0]},
        settings={**settings, "log_every": 6},
    )
    assert made(second) == ["beta=8,seed=0"]
    assert Ledger(second).counts()["done"] == 2


def test_a_run_keeps_how_often_it_logs_when_another_study_resumes_it(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={"beta": [1.0]}, each={})

    def stop(run: object, step: int) -> None:
        if step == 5:
            raise PolariscopeError("stopped")

    ledger = drain(study, listen=stop)
    assert ledger.counts()["failed"] == 1
    ledger.retry()
    again = dataclasses.replace(study, settings={**study.settings, "log_every": 4})
    steps = [line["step"] for line in Run(drain(again).runs[0].folder).log()]
    assert steps == [3, 6, 9, 12]


def test_a_failed_run_keeps_its_message_until_it_is_retried(tmp_path: Path) -> None:
    def fail_first(run: object, step: int) -> None:
        if step == 2:
            raise PolariscopeError("no luck; try again.")

    def fail_later(run: object, step: int) -> None:
        if step == 5:
            raise ValueError("a mistake")

    study = tiny(tmp_path, grid={"beta": [1.0]})
    ledger = drain(study, listen=fail_first)
    entry = ledger.entries()[0]
    assert (entry.state, entry.kind, entry.message) == ("failed", "error", "no luck; try again.")
    assert made(study) == []
    assert ledger.retry(("timeout",)) == []
    assert [run.name for run in ledger.retry()] == ["seed=0"]
    assert ledger.counts()["waiting"] == 1
    entry = drain(study, listen=fail_later).entries()[0]
    assert (entry.state, entry.step, entry.message) == ("failed", 4, "ValueError: a mistake")
    ledger.retry()
    assert made(study) == ["seed=0"]
    assert ledger.counts()["done"] == 1


def diverging(out: Path, **fields: Any) -> Study:
    """The second of three runs overflows."""
    base = dict(tiny(out).settings)
    return tiny(
        out,
        settings={**base, "optimiser": "sgd"},
        grid={"beta": [1.0], "learning_rate": [1e-3, 1e30, 1e-4]},
        each={},
        **fields,
    )


def test_a_diverged_run_says_so_and_the_others_are_made(tmp_path: Path) -> None:
    entries = drain(diverging(tmp_path)).entries()
    assert [entry.state for entry in entries] == ["done", "failed", "done"]
    assert entries[1].kind == "diverged"
    assert "training diverged at step" in entries[1].message


def test_a_study_can_stop_at_the_first_that_diverges(tmp_path: Path) -> None:
    entries = drain(diverging(tmp_path, diverged="stop")).entries()
    assert [entry.state for entry in entries] == ["done", "failed", "waiting"]


def test_a_run_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    study = tiny(tmp_path, budget={"timeout_per_run": 0.5}, grid={"beta": [1.0]})
    ledger = drain(study, listen=lambda run, step: time.sleep(0.2))
    assert ledger.entries()[0].kind == "timeout"
    assert "longer than the 0.5 seconds" in ledger.entries()[0].message
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_run_that_takes_too_long_has_failed_so_whatever_was_made_of_the_error(tmp_path: Path) -> None:
    study = tiny(tmp_path, budget={"timeout_per_run": 0.5}, grid={"beta": [1.0]})

    def wait(run: object, step: int) -> None:
        try:
            time.sleep(60)
        except Exception as error:  # as a check of types does that is interrupted
            raise TypeError("not a Tensor") from error

    (entry,) = drain(study, listen=wait).entries()
    assert entry.kind == "timeout"
    assert "longer than the 0.5 seconds" in entry.message


def test_no_more_runs_are_made_than_the_budget_has(tmp_path: Path) -> None:
    study = tiny(tmp_path, budget={"max_runs": 1})
    assert made(study) == ["beta=1,seed=0"]
    assert Ledger(study).counts() == {"waiting": 0, "running": 0, "done": 1, "failed": 0}


def test_when_the_time_is_up_a_run_saves_where_it_is(tmp_path: Path) -> None:
    study = tiny(tmp_path, each={})
    worker = Worker(Ledger(study))

    def late(run: object, step: int) -> None:
        if step == 6:
            worker.deadline = time.time() - 1

    worker.listen = late
    worker.drain()
    ledger = Ledger(study)
    assert [entry.state for entry in ledger.entries()] == ["waiting", "waiting"]
    assert [entry.step for entry in ledger.entries()] == [6, 0]
    drain(study)
    quiet = tiny(tmp_path / "quiet", each={})
    drain(quiet)
    models = {name: digest for name, digest in snapshot(quiet).items() if "checkpoints" not in name}
    assert models.items() <= snapshot(study).items()


def test_times_add_up_over_workers(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={"beta": [1.0]})
    run = drain(study).runs[0]
    before = RunFolder(run.folder).seconds()
    assert set(before) == {"train", "encode", "diagnose"}
    for file in run.folder.glob("regime-*"):
        file.unlink()
    drain(study)
    after = RunFolder(run.folder).seconds()
    assert after["train"] >= before["train"]
    assert after["diagnose"] > before["diagnose"]


def test_every_checkpoint_is_measured_where_that_is_asked_for(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={"beta": [1.0]}, checkpoints=True)
    run = drain(study).runs[0]
    opened = Run(run.folder, read_only=True)
    assert opened.steps == [4, 8, 12]
    assert [opened.regime(n_samples=40, n_bootstrap=5, step=step).n_samples for step in (4, 8, None)] == [
        40
    ] * 3


def test_what_is_measured_over_seeds_is_kept_and_measured_again_when_seeds_are_added(tmp_path: Path) -> None:
    over = {"udr": {"n_samples": 40}, "agreement": {"n_samples": 40}}
    ledger = drain(tiny(tmp_path, seeds=2, over=over))
    tasks = ledger.over_tasks()
    assert [task.name for task in tasks] == ["udr", "udr", "agreement", "agreement"]
    results = [ledger.over_result(task) for task in tasks]
    assert all(result is not None and len(result["rows"]) == 2 for result in results)
    after = drain(tiny(tmp_path, seeds=3, over=over))
    assert [len(after.over_result(task)["rows"]) for task in after.over_tasks()] == [3] * 4  # type: ignore[index]


def test_codes_that_only_results_over_seeds_need_are_checked_and_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = tiny(tmp_path, seeds=2, grid={}, each={}, over={"agreement": {"n_samples": 40}})
    ledger = drain(study)
    (file, *_) = ledger.runs[0].folder.glob("representation-*.safetensors")
    file.write_bytes(file.read_bytes()[:-8] + bytes(8))
    assert [entry.state for entry in Ledger(study).entries()] == ["waiting", "done"]
    assert [entry.state for entry in drain(study).entries()] == ["done", "done"]
    assert "its hash does not match its contents. It is computed again" in caplog.text


def test_a_run_without_settings_is_begun_again_and_its_files_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = drain(tiny(tmp_path))
    folder = ledger.runs[0].folder
    model = (folder / "model.safetensors").read_bytes()
    (folder / "settings.json").unlink()
    (folder / "mine.txt").write_text("notes")
    assert [entry.state for entry in Ledger(tiny(tmp_path)).entries()] == ["waiting", "done"]
    assert [entry.state for entry in drain(tiny(tmp_path)).entries()] == ["done", "done"]
    assert "and no settings.json. The run is trained again; the old files are in" in caplog.text
    assert (folder / "model.safetensors").read_bytes() == model
    assert (folder / ".damaged-1" / "mine.txt").read_text() == "notes"


def test_an_analysis_that_fails_in_its_own_way_is_a_failure_of_the_run_and_has_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(DiagnoseAnalysis, "measure", fail)
    entries = drain(tiny(tmp_path)).entries()
    assert [(entry.state, entry.message) for entry in entries] == [
        ("failed", "ZeroDivisionError: division by zero")
    ] * 2


def test_a_mistake_in_reading_results_is_a_failure_and_not_a_waiting_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain(tiny(tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise AttributeError("no attribute 'kl'")

    monkeypatch.setattr(DiagnoseAnalysis, "measure", fail)
    entries = Ledger(tiny(tmp_path)).entries()
    assert [(entry.state, entry.kind, entry.message) for entry in entries] == [
        ("failed", "error", "AttributeError: no attribute 'kl'")
    ] * 2


def test_a_waiting_run_that_is_trained_has_the_reason(tmp_path: Path) -> None:
    ledger = drain(tiny(tmp_path))
    cut, deleted = (next(run.folder.glob("regime-*.json")) for run in ledger.runs)
    cut.write_text(cut.read_text()[:-20])
    deleted.unlink()
    first, second = Ledger(tiny(tmp_path)).entries()
    assert (first.state, second.state) == ("waiting", "waiting")
    assert first.message.startswith(f"{cut} is damaged: ")
    assert second.message == f"{deleted.parent} has no regime with these settings."
    assert Ledger(tiny(tmp_path / "new")).entries()[0].message == ""


def test_a_result_with_a_correct_hash_and_a_wrong_content_is_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = tiny(tmp_path)
    drain(study)
    before = snapshot(study)
    file = next(Ledger(study).runs[0].folder.glob("regime-*.json"))
    document = read_document(file, "regime")
    content = {**document.content, "latents": "none"}
    write_document(file, "regime", content, document.about)
    (entry, _) = Ledger(study).entries()
    assert (entry.state, "latents must be a list, got 'none'" in entry.message) == ("waiting", True)
    assert file.exists()  # the state of a study is only read
    drain(study)
    assert f"the damaged file is kept as {file.name}.damaged" in caplog.text
    file.with_name(f"{file.name}.damaged").unlink()
    assert snapshot(study) == before


def test_the_size_is_found_once_for_each_data_and_objective(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"once": {"size": {"method": "id"}}, "each": {}, "seeds": 2}
    study = tiny(tmp_path, data={"name": "gaussian", "n_samples": 200}, **fields)
    ledger = drain(study)
    tasks = ledger.once_tasks()
    assert len(tasks) == 2  # one for each beta, whatever the seed
    assert all(task.analysis.is_kept(task.search) for task in tasks)
    rows = study_table(ledger).rows
    assert len(rows) == 4
    assert {row["size.id"] for row in rows} == {tasks[0].analysis.columns(tasks[0].search)["size.id"]}


def test_a_study_is_drained_by_the_main_thread(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            Worker(Ledger(tiny(tmp_path))).drain()
        except PolariscopeError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])


def test_processes_of_their_own_make_the_same_and_ctrl_c_stops_them(tmp_path: Path) -> None:
    """Two workers; interrupted at once by SIGINT to the engine; then finished by one."""
    settings = {
        **tiny(tmp_path).settings,
        "steps": 200_000,
        "checkpoint_every": 100_000,
        "log_every": 10,
    }
    study = tiny(tmp_path / "long", settings=settings, each={})
    ledger = Ledger(study)
    ledger.prepare()
    code = (
        "import sys\nfrom polariscope.studies.ledger import Ledger\n"
        "from polariscope.studies.workers.local import run_locally\n"
        "try:\n    run_locally(Ledger.open(sys.argv[1]), 2)\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    package = str(Path(polariscope.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    engine = subprocess.Popen([sys.executable, "-c", code, study.out], env=environment)
    try:
        patience = time.monotonic() + 300
        while not all(is_logging(run) for run in ledger.runs):
            assert time.monotonic() < patience
            assert engine.poll() is None
            time.sleep(0.1)
        engine.send_signal(signal.SIGINT)
        assert engine.wait(60) == 130
    finally:
        engine.kill()
        engine.wait()
    entries = Ledger(study).entries()
    assert [entry.state for entry in entries] == ["waiting", "waiting"]
    assert all(entry.step > 0 for entry in entries)


@pytest.mark.parametrize("workers", [0, True, 1.5])
def test_a_number_of_workers_that_is_none_is_refused(tmp_path: Path, workers: Any, unannotated: None) -> None:
    with pytest.raises(InputError, match="workers must be an integer, at least 1"):
        run_locally(Ledger(tiny(tmp_path)), workers)


def test_the_line_says_how_many_are_done_how_fast_and_how_long_it_takes(tmp_path: Path) -> None:
    clock = iter([0.0, 1800.0, 1800.0, 1800.0, 1800.0])
    study = tiny(tmp_path, grid={"beta": [1.0, 2.0, 4.0, 8.0]}, each={}, budget={"max_runs": 4})
    ledger = Ledger(study)
    line = StudyLine(ledger, shown=True, clock=lambda: next(clock))
    line.at_start = 0.0
    drain(dataclasses.replace(study, budget={"max_runs": 1}))
    words = line.in_words(ledger.counts())
    assert words == "1 of 4 runs · 3 waiting · 1 done · 2 runs an hour · 1.5 h left"


def test_a_training_that_stopped_early_is_done_and_measured_once(tmp_path: Path) -> None:
    ledger = Ledger(tiny(tmp_path, grid={"beta": [1.0]}, checkpoints=True))
    Worker(ledger).drain()
    (run,) = ledger.runs
    opened = Run(run.folder)
    opened.folder.save_model(opened.model(), 11, run.steps)
    if run.steps in opened.folder.checkpoints.steps:
        shutil.rmtree(opened.folder.checkpoints.path(run.steps))
    Worker(ledger).drain()  # measures the model anew, and does not train it to the end
    entry = Ledger(ledger.study).entry(run)
    assert (entry.state, entry.step) == ("done", 11)
    assert [row["step"] for row in study_table(ledger).rows][-1] == 11
    assert ledger.steps_of(opened).count(None) == 1
    assert 11 not in ledger.steps_of(opened)
    # A study that asks for another number of steps does not take it for its own.
    assert not is_trained(dataclasses.replace(run, steps=24))


def test_a_run_that_swallows_its_time_limit_once_has_failed_too(tmp_path: Path) -> None:
    study = tiny(tmp_path, budget={"timeout_per_run": 0.5}, grid={"beta": [1.0]})

    def swallow(run: object, step: int) -> None:
        with contextlib.suppress(Exception) if step == 1 else contextlib.nullcontext():
            time.sleep(1)

    (entry,) = drain(study, listen=swallow).entries()
    assert entry.kind == "timeout"
