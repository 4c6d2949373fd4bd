"""Files that run code when they are opened."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import polariscope as ps
from polariscope.core.errors import InputError

ROWS = np.zeros((20, 3))


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code of the file was run')",)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["model.ckpt"], r"model.ckpt can contain a pickle.*load_from_checkpoint of its LightningModule"),
        (["model.pt"], r"model.pt can contain a pickle.*torch.load"),
        (["net.pkl"], r"net.pkl can contain a pickle"),
        (
            ["folder/model.pt", "folder/model_config.json"],
            r"is a folder of pythae with pickles, which run code when they are opened; .*AutoModel.load_from_folder",
        ),
        (["folder/model.pt"], "is a folder of another library with pickles"),
    ],
)
def test_nothing_is_run(tmp_path, names, words):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    target = tmp_path / names[0].partition("/")[0]
    for function in (ps.encode, ps.diagnose, ps.report):
        with pytest.raises(InputError, match=words):
            function(target, ROWS)
    with pytest.raises(InputError, match=words):
        ps.wrap(target)


def test_other_paths_are_refused_in_words(tmp_path):
    for path in (tmp_path / "missing", str(tmp_path / "missing.onnx")):
        for function in (ps.encode, ps.report):
            with pytest.raises(InputError, match=r"^there is no file or folder .*missing(.onnx)?\.$"):
                function(path, ROWS)
    with pytest.raises(InputError, match="is not a run folder"):
        ps.encode(tmp_path, ROWS)
    with pytest.raises(InputError, match=r"there is no file or folder .*missing.onnx"):
        ps.wrap(tmp_path / "missing.onnx")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(
        InputError, match=r"notes.txt is not a file of a model that can be opened; pass a run"
    ):
        ps.wrap(str(tmp_path / "notes.txt"))
