"""Examples of the README and the docs."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pandas
import pytest
import torch
from annotated_types import Ge

import polariscope as ps
from doc_blocks import COMMANDS, MARK, PAGES, PYTHON, ROOT, SHELL, TOML, Block, blocks, unfenced_commands
from forked import Forks
from polariscope.cli import main


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Preparation of the examples of a page, so that they run in seconds, and their expected results."""

    quicker: dict[str, str] = dataclasses.field(default_factory=dict)
    """Texts of the page and faster ones; each text must occur in the code of the page."""
    prepare: Callable[[], dict[str, Any]] = dict
    """Function that creates the files that the examples need and returns the names that they use."""
    check: Callable[[dict[str, Any], str], None] = lambda names, output: None
    """Function that checks the names and the output after all examples."""


GAUSSIAN = "gaussian --n-samples 300 --net linear"


def gaussian_run(out: str, seed: int = 0, **options: Any) -> Any:
    data = ps.load_dataset("gaussian", n_samples=300)
    chosen = {"objective": "beta", "net": "linear", "n_latents": 3, "steps": 40, **options}
    return ps.train(data, seed=seed, out=out, **chosen)


class OwnModel:
    """A model with the two methods that the adapters look for."""

    def encode(self, x: Any) -> Any:
        return x[:, :3], x[:, :3] * 0 - 3

    def decode(self, z: Any) -> Any:
        return z[:, [0, 1, 2, 0]]


def own_model() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "X": rng.normal(size=(200, 4)).astype(np.float32),
        "my_encoder": lambda x: (x[:, :3], x[:, :3] * 0 - 3),
        "my_decoder": lambda z: z[:, [0, 1, 2, 0]],
        "my_vae": OwnModel(),
        "mean": rng.normal(size=(200, 3)),
        "variance": rng.uniform(0.01, 1, size=(200, 3)),
    }


def check_readme(names: dict[str, Any], output: str) -> None:
    assert names["size"].n_latents > 1
    assert names["keep"].shape[0] == 200
    for page in ("runs/first/report.html", "theirs.html"):
        assert Path(page).stat().st_size > 10_000


def gaussian_names() -> dict[str, Any]:
    model, data = gaussian_run("runs/first"), ps.load_dataset("gaussian", n_samples=300)
    codes = ps.encode(model, data)
    rep = ps.Representation(codes.mean, codes.variance, codes.sampled, np.arange(900).reshape(300, 3) % 4)
    reg = SimpleNamespace(types=("active",) * 3)
    return {
        "model": model,
        "data": data,
        "rep": rep,
        "reg": reg,
        "X": data.values(range(300)),
    }


def check_python(names: dict[str, Any], output: str) -> None:
    assert names["early"].digest == names["model"].digest
    assert {"regime", "scores", "decomposition", "geometry"} <= {one.kind for one in names["run"].artefacts()}
    assert names["size"].n_latents in (4, 5)  # five directions, the smallest nearly noise
    assert names["embedding"].shape[0] == 300
    assert "latents (4–5)" in output
    assert 0 <= names["scores"]["mig"].value <= 1
    assert names["comparison"].models == ("first", "second")
    assert names["course"].rows == ("step 5", "step 10", "step 15", "step 20")
    assert Path("course.png").stat().st_size > 1000
    split = names["split"]
    assert split.total == pytest.approx(split.deterministic + split.stochastic + split.interaction)
    assert names["orthogonality"].latents == (0, 1, 2)


def two_runs() -> dict[str, Any]:
    for index, name in enumerate(("second", "seed-0", "seed-1")):
        gaussian_run(f"runs/{name}", seed=index, checkpoint_every=20, keep_checkpoints="all")
    tiny_study("beta-sprites.toml", MORE_STRENGTHS)
    return {}


STUDY = {
    'name = "sprites"\nimage_size = 32': 'name = "gaussian"\nn_samples = 200\neigenvalues = [4.0, 2.0]',
    "steps = 10_000": 'steps = 100\nnet = "linear"\nlearning_rate = 0.05',
    "seeds = 3  ": "seeds = 2  ",
    "[each.diagnose]  ": "[each.diagnose]\nn_samples = 200  ",
    "mig,dci": "mig",
}
"""Changes that make the study of docs/studies.md faster, and that of the figures, which need two strengths."""


MORE_SIZES = {"[1, 4, 16]": "[0.1]"}
MORE_STRENGTHS = {"[1, 4, 16]": "[0.01, 0.1]", "[5, 10]": "[5]"}


def tiny_study(file: str = "mine.toml", grid: dict[str, str] = MORE_SIZES) -> dict[str, Any]:
    (page,) = (
        block
        for block in blocks(ROOT / "docs" / "studies.md")
        if block.language == TOML and block.reason is None
    )
    Path(file).write_text(faster(page.code, {**STUDY, **grid}), encoding="utf-8")
    return {}


def finished_study() -> dict[str, Any]:
    tiny_study(grid=MORE_STRENGTHS)
    ps.Study.load("mine.toml").run()
    return {}


def table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6))
    frame = pandas.DataFrame(rows, columns=[*"abcdef"])
    frame.to_csv("data.csv", index=False)
    frame["class"] = np.arange(200) % 3
    frame.to_csv("table.csv", index=False)
    frame.assign(fold=np.repeat(["train", "test"], 100)).to_csv("folds.csv", index=False)
    adata = SimpleNamespace(X=rows, obs=frame[["class"]], layers={}, uns={}, obsm={})
    adata.obsm |= {"X_latent_qzm": rows[:, :2], "X_latent_qzv": np.full((200, 2), 0.01)}
    return {
        "X": rows,
        "factors": np.arange(200)[:, None] % 3,
        "adata": adata,
        "my_encoder": lambda x: (x[:, :3], x[:, :3] * 0 - 3),
    }


def check_data(names: dict[str, Any], output: str) -> None:
    assert names["data"].factors([4]).tolist() == [[1]]
    assert "737,280 observations" in output
    assert names["adata"].obsm["X_polariscope"].shape == (200, 3)


def four_seeds() -> dict[str, Any]:
    for seed in range(4):
        gaussian_run(f"runs/seed{seed}", seed=seed)
    rng = np.random.default_rng(0)
    codes, variances = rng.normal(size=(3, 200, 2)), np.full((3, 200, 2), 0.01)
    for name, mean, variance in zip(("mine", "theirs", "other"), codes, variances, strict=True):
        np.savez(f"{name}.npz", mean=mean, variance=variance)
    first, second = zip(codes[:2], variances[:2], strict=True)
    return {"codes": first[0], "variances": first[1], "other_codes": second[0], "other_variances": second[1]}


def checkpoints() -> dict[str, Any]:
    gaussian_run("OTHER")
    return {}


def check_anomalies(names: dict[str, Any], output: str) -> None:
    assert names["flagged"].mean() > 0.6  # 0.74 when the page was written
    assert (names["vae"].score_samples(names["train"]) < names["limit"]).mean() < 0.05


def option_names() -> dict[str, Any]:
    from polariscope.core.options import option

    return {"Annotated": Annotated, "Ge": Ge, "option": option}


def representation() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(300, 4))
    return {
        "rep": ps.Representation(mean, np.full_like(mean, 0.01), mean + 0.1 * rng.normal(size=mean.shape))
    }


def own_trainer() -> dict[str, Any]:
    """A model with two latents in use and posterior variances 0.01, and any further ones passive."""
    rows = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)

    class MyVAE(torch.nn.Module):
        def __init__(self, n_latents: int) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(2, n_latents))

        def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            mean = x @ self.weight
            return mean, (torch.arange(mean.shape[1]) < 2).float().mul(-4.6).expand_as(mean)

        def decode(self, z: torch.Tensor) -> torch.Tensor:
            return z @ self.weight.T

    return {"X": rows, "MyVAE": MyVAE, "fit": lambda model, data, seed: None}


def check_sizing(names: dict[str, Any], output: str) -> None:
    assert (names["size"].n_latents, names["size"].interval) == (2, (1, 3))


RECIPES = {
    "README.md": Recipe(
        {
            "image_size=64": "image_size=16",
            "ps.size(data)": 'ps.size(data, "id")',
            "steps=20_000": "steps=20",
            "n_samples=10_000": "n_samples=300",
            '"mig,dci,sap"': '"mig"',
        },
        own_model,
        check_readme,
    ),
    "CONTRIBUTING.md": Recipe(prepare=option_names),
    "docs/python.md": Recipe(
        {
            "n_samples=5_000": "n_samples=200",
            "step=19_000": "step=40",
            '"mig,dci")': '"mig", n_samples=200)',
            "decomposition()": "decomposition(n_samples=200)",
            "ps.size(data)": 'ps.size(data, "id")',
            '"fondue")': "2, steps=400)",
            "ps.score(rep)": 'ps.score(rep, "mig,sap")',
            "steps=2_000": "steps=20",
            '"checkpoint_every": 500': '"checkpoint_every": 5',
            'net="conv", n_latents=10': 'net="linear", n_latents=3',
        },
        gaussian_names,
        check_python,
    ),
    "docs/anomalies.md": Recipe(check=check_anomalies),
    "docs/command_line.md": Recipe(
        {
            "size sprites --image-size 32": f"size {GAUSSIAN} --method linear",
            "train sprites --image-size 32": f"train {GAUSSIAN} --steps 40 --checkpoint-every 20",
            "--step 19000": "--step 20",
            "mig,dci,sap": "mig",
            "encode runs/first": "encode runs/first --all",
            "run beta-sprites --workers 2": "run beta-sprites.toml",
            "figure beta-sprites": "figure beta-sprites.toml",
            "select beta-sprites": "select beta-sprites.toml",
        },
        two_runs,
    ),
    "docs/convergence.md": Recipe({"--steps 50000": "--steps 40 --log-every 10 --validate-every 10"}, table),
    "docs/course.md": Recipe(
        {
            "sprites": f"{GAUSSIAN} --latents 3",
            "--steps 30000 --checkpoint-every 300": "--steps 40 --checkpoint-every 20",
        },
        checkpoints,
    ),
    "docs/data.md": Recipe(
        {
            "standardise=True": "standardise=True, steps=20",
            "--standardise  ": "--standardise --steps 20  ",
            "--out runs/folds": "--out runs/folds --steps 20",
            "--part test  ": "--part test --metrics mig  ",
            "--variant background": "--image-size 16 --steps 3 --variant background",
        },
        table,
        check_data,
    ),
    "docs/figures.md": Recipe({"mig,dci": "mig"}, finished_study),
    "docs/in_use.md": Recipe(prepare=representation),
    "docs/sizing.md": Recipe(prepare=own_trainer, check=check_sizing),
    "docs/models.md": Recipe(prepare=own_model),
    "docs/stability.md": Recipe(prepare=four_seeds),
    "docs/studies.md": Recipe({"--workers 2": "--workers 1"}, tiny_study),
}
"""Recipes of the pages whose examples need files, names or a faster form."""
ELSEWHERE = {
    '@objective("free-bits")': "test_the_objective_of_the_contributing_guide_works_when_dropped_into_the_folder"
}
"""Text of a block that another test of this file runs, and the name of that test."""


def faster(code: str, changes: dict[str, str]) -> str:
    """Return code with some texts replaced by faster ones; each text must occur."""
    for printed, quicker in changes.items():
        assert printed in code, printed
        code = code.replace(printed, quicker)
    return code


def runnable(page: Path) -> list[Block]:
    """Return the blocks of a page that run: Python, and commands of the shell."""
    return [
        block
        for block in blocks(page)
        if block.reason is None
        and block.language != TOML
        and not any(text in block.code for text in ELSEWHERE)
    ]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if runnable(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys, unannotated):
    """Run all blocks of a page in order, in one folder and with one set of names. Blocks with a mark are skipped."""
    recipe = RECIPES.get(page.relative_to(ROOT).as_posix(), Recipe())
    everything = "".join(block.code for block in runnable(page))
    faster(everything, recipe.quicker)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"ps": ps, **recipe.prepare()}
    for block in runnable(page):
        present = {old: new for old, new in recipe.quicker.items() if old in block.code}
        block = dataclasses.replace(block, code=faster(block.code, present))
        if block.language == PYTHON:
            exec(compile(block.code, f"{block.page}:{block.line}", "exec"), names)
            continue
        for program, *arguments in block.commands():
            assert program == "polariscope", f"{block.page}:{block.line}: mark this block, or run {program}"
            assert main(arguments) == 0, f"{block.page}:{block.line}: {arguments}\n{capsys.readouterr().err}"
    recipe.check(names, capsys.readouterr().out)


def test_every_example_is_run_or_marked_with_a_reason():
    """A block without a mark is run by the test above; here are the ways around it."""
    for page in PAGES:
        for block in blocks(page):
            place = f"{block.page}:{block.line}"
            assert block.language in (SHELL, PYTHON, TOML, "text"), f"{place}: {block.language}"
            if block.language == TOML:
                tomllib.loads(block.code)
            elif block.language == "text":
                assert not re.search(COMMANDS, block.code, flags=re.MULTILINE), f"{place} contains commands"
        assert unfenced_commands(page) == [], f"{page.name}: use a fenced block"
    assert set(RECIPES) <= {page.relative_to(ROOT).as_posix() for page in PAGES}
    assert set(ELSEWHERE.values()) <= set(globals())


def test_a_mark_needs_a_reason_and_belongs_to_the_next_line():
    assert MARK.fullmatch("<!-- not run: needs the dSprites file -->")
    assert not MARK.fullmatch("<!-- not run: -->")
    page = ROOT / "docs" / "studies.md"
    assert {block.reason for block in blocks(page)} == {
        None,
        "needs a Ray or SLURM cluster",
        "requires models of other libraries",
    }


def test_the_minimal_example_tells_the_whole_story(tmp_path, forks: Forks):
    code = (ROOT / "examples" / "minimal.py").read_text(encoding="utf-8")
    done = forks.run(code, str(tmp_path / "run"), "20")
    assert done.returncode == 0, done.stderr
    assert "737280 images of (1, 32, 32)" in done.stdout
    assert "10 latents:" in done.stdout
    assert (tmp_path / "run" / "report.html").exists()


def test_the_objective_of_the_contributing_guide_works_when_dropped_into_the_folder(tmp_path):
    """Follow the guide as a newcomer: one file in the family's folder, nothing else changed."""
    (code,) = (
        block.code for block in blocks(ROOT / "CONTRIBUTING.md") if '@objective("free-bits")' in block.code
    )
    script = (
        "import polariscope as ps\n"
        "d = ps.load_dataset('gaussian', n_samples=200)\n"
        "a = ps.train(d, 'free-bits', 'mlp', 2, allowance=0.0, steps=3)\n"
        "b = ps.train(d, 'vae', 'mlp', 2, steps=3)\n"
        "assert a.digest == b.digest, 'an allowance of 0 is the VAE'\n"
        "assert a.digest != ps.train(d, 'free-bits', 'mlp', 2, allowance=9.0, steps=3).digest\n"
    )
    # A copy of the package, so that the real folder is never touched.
    package = Path(ps.__file__).parent
    shutil.copytree(package, tmp_path / "polariscope", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "polariscope" / "objectives" / "free_bits.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [sys.executable, "-c", "from polariscope.cli import main; main(['list', 'objectives'])"],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert "free-bits" in listed.stdout
    assert "allowance" in listed.stdout


def test_report_is_a_function_whatever_was_imported_before(tmp_path):
    import polariscope.pages.record  # noqa: F401 (sets the package as an attribute)

    with pytest.raises(ps.InputError, match="is not a run folder"):
        ps.report(tmp_path)


def test_every_public_name_loads_and_unknown_ones_do_not():
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        ps.trian  # noqa: B018
