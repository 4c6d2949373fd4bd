"""Files that commands write for users never replace inputs or files of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polariscope as ps
from polariscope.cli import main
from polariscope.core.errors import InputError
from polariscope.storage.outputs import check_output


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("outputs") / "run"
    data = ps.load_dataset("gaussian", n_samples=60)
    ps.train(data, net="linear", n_latents=2, steps=4, out=path)
    return path


@pytest.mark.parametrize(
    "name",
    ["settings.json", "log.jsonl", "model.safetensors", "new.json", "checkpoints/step-4/model.safetensors"],
)
def test_files_of_a_run_are_refused(run: Path, name: str) -> None:
    with pytest.raises(InputError, match="out must not be a file of a run, a search or a study"):
        check_output(run / name, "out")


def test_pages_and_tables_can_be_written_next_to_a_run(run: Path, tmp_path: Path) -> None:
    assert check_output(run / "report.html", "out") == run / "report.html"
    assert check_output(run / "codes.csv", "csv") == run / "codes.csv"
    assert check_output(tmp_path / "regime.json", "json") == tmp_path / "regime.json"


def test_a_report_does_not_replace_the_settings_of_its_run(run: Path) -> None:
    before = (run / "settings.json").read_bytes()
    with pytest.raises(InputError, match="not be a file of a run"):
        ps.report(run, out=run / "settings.json")
    assert (run / "settings.json").read_bytes() == before


def test_an_input_is_not_an_output(tmp_path: Path) -> None:
    codes = tmp_path / "codes.npz"
    np.savez(codes, mean=np.zeros((5, 2)), variance=np.ones((5, 2)))
    link = tmp_path / "link.npz"
    link.symlink_to(codes)
    for name in (codes, link):
        with pytest.raises(InputError, match="json must not be a file that the command reads"):
            check_output(name, "json", [codes])


def test_pictures_of_a_data_folder_are_inputs(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "0.png").write_bytes(b"")
    with pytest.raises(InputError, match="out must not be a file that the command reads"):
        check_output(pictures / "0.png", "out", [pictures])
    assert check_output(pictures / "new.png", "out", [pictures]) == pictures / "new.png"


def test_the_record_of_a_study_is_not_an_output(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(InputError, match="out must not be a file of a run, a search or a study"):
        check_output(tmp_path / "study.json", "out")


@pytest.mark.parametrize("flag", ["--config", "--json"])
def test_every_command_checks_its_outputs(tmp_path: Path, flag: str, capsys: pytest.CaptureFixture) -> None:
    codes, options = tmp_path / "codes.npz", tmp_path / "options.toml"
    np.savez(codes, mean=np.zeros((5, 2)), variance=np.ones((5, 2)))
    options.write_text("[score.mig]\nn_bins = 10\n")
    target = options if flag == "--config" else codes
    before = target.read_bytes()
    assert main(["score", str(codes), "--config", str(options), "--json", str(target)]) == 2
    assert "--json must not be a file that the command reads" in capsys.readouterr().err
    assert target.read_bytes() == before
