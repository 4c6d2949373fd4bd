"""Small folders to attack: runs, a study, a sizing search, a manipulation, a cache, exports and inputs.

They are made once, with commands that users type. Paths of data are absolute in the settings of a run, so the folders
are made in the place where they are attacked, moved aside, and copied back for each call.
"""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import polariscope
from originals import idx

SOURCE = str(Path(polariscope.__file__).parents[1])
NET = "--net mlp --encoder-widths 12 --decoder-widths 12 --learning-rate 0.01"
TRAIN = f"train digits {NET} --latents 4 --steps 40 --log-every 10 --checkpoint-every 20 --probe-samples 40"
TRAIN_MNIST = f"train mnist:originals {NET} --latents 3 --steps 20 --log-every 5 --checkpoint-every 10"
SIZE = "size gaussian --n-samples 200 --net linear --steps 400 --cap 4 --learning-rate 0.05"
MANIPULATE = "manipulate r0 r1 --out manipulation --steps 4 --samples 60 --log-every 2 --checkpoint-every 2"
DIAGNOSE = "--samples 100 --bootstrap 10"

MAKE = (
    *(f"{TRAIN} --keep-checkpoints all --seed {seed} --out r{seed} --quiet" for seed in (0, 1)),
    f"{TRAIN_MNIST} --out rm --quiet",
    *(
        command.format(run)
        for run in ("r0", "r1")
        for command in (
            f"diagnose {{}} {DIAGNOSE} --decompose",
            "score {} --samples 100 --metrics mig,sap",
            "course {} --samples 100",
            "report {} --samples 100",
        )
    ),
    f"diagnose rm {DIAGNOSE}",
    "data preview mnist:originals1 --out other.png",
    "compare r0 r1 --samples 50",
    "encode r0 --samples 100 --all --csv codes.csv",
    "table r0 r1 --csv runs.csv",
    f"{SIZE} --out search",
    f"{SIZE} --seed 1 --out search1",
    "study run s.toml",
    MANIPULATE,
    MANIPULATE.replace("manipulation", "manipulation1") + " --seed 1",
)
"""Commands that make the folders."""

STUDY = """seeds = 2
out = "study"
[data]
name = "gaussian"
n_samples = 60
[[objective]]
name = "beta"
grid = { beta = [4.0] }
[settings]
net = "linear"
n_latents = 2
batch_size = 8
steps = 12
log_every = 3
checkpoint_every = 4
probe_samples = 8
[each.diagnose]
n_samples = 40
n_bootstrap = 5
"""
OPTIONS = "[score.mig]\nn_bins = 10\n"


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command: one thread, this package, and a cache in the folder."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    # Ray, matplotlib and others write to the home folder.
    return {
        **kept,
        **threads,
        "PYTHONPATH": SOURCE,
        "POLARISCOPE_CACHE": str(folder / "cache"),
        "MPLBACKEND": "agg",
    }


def make_inputs(folder: Path) -> None:
    """Write data files that a user would bring: tables, arrays, codes, pictures, MNIST and study files."""
    from PIL import Image

    dice = np.random.default_rng(0)
    (folder / "s.toml").write_text(STUDY)
    (folder / "options.toml").write_text(OPTIONS)
    mean, factors = dice.normal(size=(80, 3)), dice.integers(3, size=(80, 2))
    np.savez(folder / "codes.npz", mean=mean, variance=dice.uniform(0.01, 1, size=(80, 3)), factors=factors)
    np.save(folder / "rows.npy", dice.normal(size=(80, 4)).astype(np.float32))
    rows = [",".join(f"{value:.4f}" for value in row) for row in dice.normal(size=(80, 3))]
    (folder / "rows.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    (folder / "pictures").mkdir()
    for index in range(24):
        Image.fromarray(dice.integers(256, size=(8, 8), dtype=np.uint8)).save(
            folder / "pictures" / f"{index:02}.png"
        )
    for name in ("originals", "originals1"):
        (folder / name).mkdir()
        for part, count in (("train", 96), ("t10k", 24)):
            images = dice.integers(256, size=(count, 28, 28), dtype=np.uint8)
            labels = dice.integers(10, size=count).astype(np.uint8)
            for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
                packed = gzip.compress(idx(values), mtime=0)
                (folder / name / f"{part}-{kind}-ubyte.gz").write_bytes(packed)


ESTIMATORS = """
import warnings
import numpy as np
import polariscope as ps
warnings.simplefilter("ignore")
for seed in (0, 1):
    ps.VAE(n_latents=2, steps=20, random_state=seed).fit(np.load("rows.npy")).save(f"estimator{seed or str()}")
"""
"""Code that saves two scikit-learn estimators."""


def make(folder: Path, run: Callable[[tuple[str, ...], bool], None], commands: Sequence[str] = MAKE) -> None:
    """Make all folders.

    :param folder: folder that will contain them.
    :param run: function that runs a command line in the folder, or Python code if its second argument is True.
    :param commands: (default all) commands that make them.
    """
    folder.mkdir(parents=True)
    make_inputs(folder)
    for command in commands:
        run(tuple(shlex.split(command)), False)
    if commands is MAKE:
        run((ESTIMATORS,), True)
    # An unfinished run: that of r0 when it was killed after its first checkpoint.
    half = folder / "half"
    half.mkdir()
    for name in ("settings.json", "log.jsonl"):
        shutil.copy2(folder / "r0" / name, half / name)
    shutil.copytree(folder / "r0" / "checkpoints" / "step-20", half / "checkpoints" / "step-20")
