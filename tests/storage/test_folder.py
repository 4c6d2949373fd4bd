"""The folder of a run after kills, full disks and torn writes: usable, or refused in words."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import polariscope as ps
from forked import Forked, Forks
from polariscope.core import files
from polariscope.core.errors import PolariscopeError
from polariscope.storage.documents import DamagedError, read_settings
from polariscope.storage.folder import RunFolder, read_log
from polariscope.storage.inspection import inspect_folder
from polariscope.storage.search_folder import SearchFolder

SETTINGS = {"net": "mlp", "log_every": 5, "validate_every": 5, "checkpoint_every": 5}
TRAIN = """
import resource, signal, sys
import polariscope as ps
limit, default = int(sys.argv[2]), sys.argv[3] == "kill"
if default:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
data = ps.load_dataset("gaussian", n_samples=300)
ps.train(data, net="mlp", steps=20, log_every=5, validate_every=5, checkpoint_every=5, out=sys.argv[1])
"""


def train_with_limit(forks: Forks, run: Path, limit: int, how: str = "fail") -> Forked:
    """Train in another process in which no file may be larger than ``limit`` bytes; ``how``: fail or be killed."""
    return forks.run(TRAIN, str(run), str(limit), how)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    ps.train(ps.load_dataset("gaussian", n_samples=300), steps=20, out=run, **SETTINGS)
    return run


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


def same_results(one: Path, other: Path) -> bool:
    return all(
        (one / name).read_bytes() == (other / name).read_bytes()
        for name in ("log.jsonl", "model.safetensors")
    )


def test_a_first_checkpoint_that_cannot_be_written_leaves_a_folder_that_can_be_used(
    whole: Path, tmp_path: Path, forks: Forks
) -> None:
    run = tmp_path / "run"
    failed = train_with_limit(forks, run, 10_000)
    assert failed.returncode == 1
    assert "could not be written: File too large" in failed.stderr
    assert "run the same command again" in failed.stderr
    assert not run.exists()
    assert train_with_limit(forks, run, 0).returncode == 0
    assert same_results(run, whole)


def test_a_process_killed_in_its_first_checkpoint_leaves_a_folder_that_can_be_used(
    whole: Path, tmp_path: Path, forks: Forks
) -> None:
    run = tmp_path / "run"
    assert train_with_limit(forks, run, 10_000, "kill").returncode == -signal.SIGXFSZ
    assert list(run.rglob("*.part"))
    assert train_with_limit(forks, run, 0).returncode == 0
    assert same_results(run, whole)
    assert not list(run.rglob("*.part"))


def test_a_full_disk_after_some_checkpoints_keeps_them(copy: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    before = {file: file.read_bytes() for file in copy.rglob("*.safetensors")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(files.WriteError, match="could not be written: File too large"):
            ps.train(data, steps=30, out=copy, **SETTINGS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {file: file.read_bytes() for file in before} == before
    longer = ps.train(data, steps=30, out=copy, **SETTINGS)
    assert longer.digest == ps.train(data, steps=30, **SETTINGS).digest


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
def test_a_small_disk_that_fills_up_is_named_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path, forks: Forks
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        failed = train_with_limit(forks, disk / "run", 0)
        assert failed.returncode == 1
        assert "No space left on device" in failed.stderr
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        assert train_with_limit(forks, disk / "run", 0).returncode == 0
        assert [finding.state for finding in inspect_folder(disk / "run") if finding.state != "whole"] == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_cut_log_is_refused_by_every_reader(copy: Path) -> None:
    lines = (copy / "log.jsonl").read_text().splitlines(keepends=True)
    (copy / "log.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(DamagedError, match="it has 2 lines, but the model was saved when it had 4"):
        read_log(copy)
    with pytest.raises(PolariscopeError, match="lines at its end are missing"):
        ps.report(copy, n_samples=100)
    with pytest.raises(PolariscopeError, match="Repeat the run in another folder"):
        ps.train(ps.load_dataset("gaussian", n_samples=300), steps=30, out=copy, **SETTINGS)


def test_the_log_of_another_run_is_not_taken_for_this_ones(copy: Path, tmp_path: Path) -> None:
    ps.train(ps.load_dataset("gaussian", n_samples=300), steps=20, seed=1, out=tmp_path / "b", **SETTINGS)
    shutil.copy(tmp_path / "b" / "log.jsonl", copy)
    with pytest.raises(DamagedError, match="line 1 does not match its hash"):
        read_log(copy)


def test_finished_is_a_model_of_all_steps_or_one_whose_training_stopped_early(copy: Path) -> None:
    """A run of 60 steps that stopped at 40 is finished for 60; asking for more steps continues it."""
    folder = RunFolder(copy)
    steps = folder.settings["training"]["steps"]
    assert folder.is_finished
    assert folder.finished_steps == steps
    assert not folder.is_finished_for(steps + 20)
    model = ps.load_model(copy)
    folder.save_model(model, steps - 20, n_steps=steps)
    assert (folder.finished_steps, folder.is_finished) == (steps - 20, True)
    assert not folder.is_finished_for(steps + 20)
    assert ps.open_run(copy).is_finished
    assert ps.load_model(copy).step == steps - 20
    folder.model_file.write_bytes(b"damaged")
    assert not RunFolder(copy).is_finished
    assert not RunFolder(copy.with_name("nothing")).is_finished


def test_a_damaged_model_is_made_again_from_its_checkpoint(
    copy: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = bytearray((copy / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    ps.train(ps.load_dataset("gaussian", n_samples=300), steps=20, out=copy, **SETTINGS)
    assert "It is recreated from the last checkpoint" in caplog.text
    assert same_results(copy, whole)
    assert (copy / "model.safetensors.damaged").read_bytes() == content


def test_files_of_two_checkpoints_are_not_taken_for_one(copy: Path) -> None:
    steps = copy / "checkpoints"
    shutil.copy(steps / "step-15" / "model.safetensors", steps / "step-20")
    with pytest.raises(DamagedError, match="its files were not saved together"):
        RunFolder(copy).checkpoints.read(20)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run with another seed."""
    run = tmp_path_factory.mktemp("other") / "run"
    ps.train(ps.load_dataset("gaussian", n_samples=300), steps=20, seed=1, out=run, **SETTINGS)
    return run


def test_the_model_of_another_run_is_noticed_by_every_reader_and_made_again(
    copy: Path, other: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(other / "model.safetensors", copy)
    readers = {
        "load": lambda: ps.load_model(copy),
        "score": lambda: ps.open_run(copy).scores("mcc"),
        "encode": lambda: ps.encode(copy, ps.load_dataset("gaussian", n_samples=300)),
        "diagnose": lambda: ps.open_run(copy).regime(),
        "digest": lambda: ps.open_run(copy).digest(),
    }
    for read in readers.values():
        with pytest.raises(PolariscopeError, match=r"model\.safetensors is not a model of the run in .*run"):
            read()
    assert [
        (finding.path.name, finding.state) for finding in inspect_folder(copy) if finding.state != "whole"
    ] == [("model.safetensors", "damaged")]
    ps.train(ps.load_dataset("gaussian", n_samples=300), steps=20, out=copy, **SETTINGS)
    assert "another run saved it. It is recreated from the last checkpoint" in caplog.text
    assert same_results(copy, whole)


def test_checkpoints_of_another_seed_are_noticed_and_not_resumed(
    copy: Path, other: Path, whole: Path
) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    shutil.rmtree(copy / "checkpoints" / "step-20")
    shutil.copytree(other / "checkpoints" / "step-20", copy / "checkpoints" / "step-20")
    findings = [finding for finding in inspect_folder(copy) if finding.state != "whole"]
    assert [finding.path.name for finding in findings] == ["step-20"]
    assert "another run saved it" in findings[0].what
    (copy / "model.safetensors").unlink()
    with pytest.raises(PolariscopeError, match="another run saved it"):
        ps.load_model(copy, step=20)
    ps.train(data, steps=20, out=copy, **SETTINGS)
    assert same_results(copy, whole)


def test_a_model_that_no_run_saved_is_not_taken_for_the_runs_own(copy: Path) -> None:
    ps.load_model(copy).save(copy / "model.safetensors", step=20)
    with pytest.raises(DamagedError, match="another run saved it"):
        ps.load_model(copy)


def test_a_model_of_0_2_0_is_told_from_others_by_its_mark_of_the_log(copy: Path, other: Path) -> None:
    def as_before(file: Path, to: Path) -> None:
        tensors, header = files.read_tensors(file)
        del header["run"]
        files.write_tensors(to, tensors, header)

    as_before(copy / "model.safetensors", copy / "model.safetensors")
    ps.load_model(copy)
    as_before(other / "model.safetensors", copy / "model.safetensors")
    with pytest.raises(DamagedError, match="another run saved it"):
        ps.load_model(copy)


def test_a_damaged_log_does_not_make_the_model_anothers(copy: Path) -> None:
    log = copy / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-30] + b"\n")
    ps.load_model(copy)


def test_a_run_of_format_1_is_refused_with_what_to_do(copy: Path) -> None:
    file = copy / "settings.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 1'))
    words = r"written by polariscope .* in format 1, and this version reads only format 2\. Train it again"
    with pytest.raises(PolariscopeError, match=words):
        read_settings(copy)
    with pytest.raises(PolariscopeError, match=words):
        ps.train(ps.load_dataset("gaussian", n_samples=300), steps=30, out=copy, **SETTINGS)
    file.write_text(file.read_text().replace('"format": 1', '"format": 3'))
    with pytest.raises(PolariscopeError, match="install a newer polariscope"):
        read_settings(copy)


def test_a_run_that_never_got_to_a_checkpoint_can_be_begun_with_other_settings(tmp_path: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)
    with RunFolder(tmp_path / "run") as run:
        from polariscope.training.plan import plan

        run.begin(plan(data, steps=20, **SETTINGS).describe("cpu"))
        run.log.append({"step": 5})
    other = ps.train(data, steps=20, seed=1, out=tmp_path / "run", **SETTINGS)
    assert other.digest == ps.train(data, steps=20, seed=1, **SETTINGS).digest
    assert [line["step"] for line in read_log(tmp_path / "run")] == [5, 10, 15, 20]


def test_inspection_names_what_is_damaged_and_what_can_be_done(copy: Path) -> None:
    ps.open_run(copy).regime(n_samples=100)
    assert {finding.state for finding in inspect_folder(copy)} == {"whole"}
    for name in ("model.safetensors", "checkpoints/step-15/state.safetensors"):
        content = bytearray((copy / name).read_bytes())
        content[-1] ^= 1
        (copy / name).write_bytes(content)
    (regime,) = copy.glob("regime-*.json")
    regime.write_text(regime.read_text().replace('"alpha": 0.1', '"alpha": 0.3'))
    (copy / "thesis.tex").write_text("precious")
    (copy / f".regime.json.abc{files.PART}").write_text("half")
    found = {finding.path.name: finding for finding in inspect_folder(copy) if finding.state != "whole"}
    assert {name: finding.state for name, finding in found.items()} == {
        "model.safetensors": "damaged",
        "step-15": "damaged",
        regime.name: "damaged",
        "thesis.tex": "unknown",
        f".regime.json.abc{files.PART}": "leftover",
    }
    assert "run the same train command again" in found["model.safetensors"].remedy
    assert f"polariscope diagnose {copy}" in found[regime.name].remedy


def test_an_unreadable_model_is_named_alone_and_the_checkpoints_can_still_be_used(copy: Path) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    damaged = [finding.path for finding in inspect_folder(copy) if finding.state == "damaged"]
    assert damaged == [file]
    run = ps.open_run(copy)
    assert run.steps == [15, 20]
    assert run.regime(n_samples=50, step=15).n_samples == 50
    assert "20 steps (20 done)" in repr(run)
    with pytest.raises(PolariscopeError, match=r"model\.safetensors is damaged"):
        run.model()


def test_what_was_mended_is_no_damage(copy: Path) -> None:
    ps.open_run(copy).regime(n_samples=100)
    (regime,) = copy.glob("regime-*.json")
    for change in ('"alpha": 0.1', '"format": 2'):
        regime.write_text(regime.read_text().replace(change, change[:-1] + "7"))
        ps.open_run(copy).regime(n_samples=100)
        states = {finding.path.name: finding.state for finding in inspect_folder(copy)}
        assert states[regime.name] == "whole"
        assert states[f"{regime.name}.damaged"] == "set aside"


def test_a_run_of_another_format_is_not_inspected_but_refused(copy: Path) -> None:
    file = copy / "settings.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(PolariscopeError, match="in format 1, and this version reads only format 2"):
        inspect_folder(copy)


def test_tensorboards_folder_of_a_run_that_failed_is_no_obstacle(tmp_path: Path) -> None:
    data = ps.load_dataset("gaussian", n_samples=300)

    def fail(step: int, line: object) -> None:
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        ps.train(data, steps=5, out=tmp_path / "run", tensorboard=True, progress=fail, **SETTINGS)
    ps.train(data, steps=5, out=tmp_path / "run", tensorboard=True, **SETTINGS)


def test_another_process_that_trains_is_named(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with RunFolder(copy), pytest.raises(PolariscopeError, match="is being trained by another process"):
        ps.open_run(copy).model()
    with pytest.raises(PolariscopeError, match="the run was interrupted"):
        ps.open_run(copy).model()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root")
def test_a_damaged_artefact_on_a_read_only_disk_is_computed_again_and_shown(
    copy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = ps.open_run(copy).regime(n_samples=100)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        run = shutil.copytree(copy, disk / "run")
        (regime,) = run.glob("regime-*.json")
        regime.write_text(regime.read_text().replace('"alpha": 0.1', '"alpha": 0.3'))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        opened = ps.open_run(run)
        assert opened.regime(n_samples=100) == expected
        assert "is damaged" in caplog.text
        assert "kept as" not in caplog.text  # it could not be set aside
        assert "could not be saved in the run folder" in caplog.text
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_leftovers_among_the_models_of_a_search_are_named(tmp_path: Path) -> None:
    seed = SearchFolder(tmp_path).seed(0)
    seed.check_recipe({"data": "d"})
    left = seed.path / f".n-005.abc{files.PART}"
    left.mkdir()
    states = {finding.path: finding.state for finding in inspect_folder(tmp_path)}
    assert states[left] == "leftover"


def test_leftovers_among_the_checkpoints_are_named_by_check_and_gone_once_the_run_is_opened(
    copy: Path,
) -> None:
    left = copy / "checkpoints" / f".step-25.abc{files.PART}"
    left.mkdir()
    (left / "state.safetensors").write_text("half")
    assert [finding.path for finding in inspect_folder(copy) if finding.state == "leftover"] == [left]
    ps.open_run(copy)  # as diagnose, score, report, compare and show do
    assert not left.exists()
    assert {finding.state for finding in inspect_folder(copy)} == {"whole"}


def test_a_place_where_nothing_can_be_made_is_named_in_words(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a file")
    with (
        pytest.raises(files.WriteError, match="run could not be written: Not a directory"),
        RunFolder(tmp_path / "notes.txt" / "run"),
    ):
        pass
