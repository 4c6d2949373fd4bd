"""A design names its runs, and is refused whole when one of them could not be made."""

from __future__ import annotations

import functools
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polariscope as ps
from manipulations import keep_untrained
from polariscope.core.errors import InputError
from polariscope.studies.shipped import shipped
from polariscope.studies.study import Study
from tiny_studies import tiny


def names(study: Study) -> list[str]:
    return [run.name for run in study.plan()]


def test_a_grid_makes_every_combination_and_names_what_varies(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={"beta": [1, 4], "learning_rate": [1e-3, 1e-4]}, seeds=2)
    assert names(study)[:3] == [
        "beta=1,learning_rate=0.001,seed=0",
        "beta=1,learning_rate=0.001,seed=1",
        "beta=1,learning_rate=0.0001,seed=0",
    ]
    assert len(names(study)) == 8


def test_zipped_lists_are_walked_together_and_listed_settings_one_by_one(tmp_path: Path) -> None:
    study = tiny(tmp_path, grid={}, zipped={"beta": [1, 4], "steps": [5, 9]}, settings={"net": "linear"})
    assert [(run.varies["beta"], run.steps) for run in study.plan()] == [(1, 5), (4, 9)]
    study = tiny(
        tmp_path, grid={}, listed=[{"beta": 2}, {"beta": 3, "n_latents": 5}], settings={"net": "linear"}
    )
    assert names(study) == ["beta=2,seed=0", "beta=3,n_latents=5,seed=0"]


def test_data_and_objectives_have_grids_of_their_own(tmp_path: Path) -> None:
    study = tiny(
        tmp_path,
        data=[{"name": "gaussian", "grid": {"n_samples": [50, 60]}}],
        objective=["vae", {"name": "beta", "grid": {"beta": [2, 3]}}],
        grid={},
        seeds=[7],
    )
    assert names(study) == [
        "data.n_samples=50,objective=vae,seed=7",
        "data.n_samples=50,objective=beta,beta=2,seed=7",
        "data.n_samples=50,objective=beta,beta=3,seed=7",
        "data.n_samples=60,objective=vae,seed=7",
        "data.n_samples=60,objective=beta,beta=2,seed=7",
        "data.n_samples=60,objective=beta,beta=3,seed=7",
    ]
    varied = tiny(tmp_path, grid={"data.n_samples": [50, 60], "beta": [2]})
    assert [run.point.data["n_samples"] for run in varied.plan()] == [50, 60]


def test_runs_that_differ_in_their_seed_only_are_of_one_group(tmp_path: Path) -> None:
    groups = [run.group for run in tiny(tmp_path, seeds=3).plan()]
    assert len(set(groups[:3])) == len(set(groups[3:])) == 1
    assert len(set(groups)) == 2


def test_a_folder_is_named_by_what_determines_the_weights(tmp_path: Path) -> None:
    def hashes(**settings: Any) -> list[str]:
        base = dict(tiny(tmp_path).settings)
        return [run.hash for run in tiny(tmp_path, settings={**base, **settings}).plan()]

    same = hashes()
    assert hashes(log_every=6, checkpoint_every=12, probe_samples=4) == same
    assert not set(hashes(steps=13)) & set(same)
    assert not set(hashes(learning_rate=2e-2)) & set(same)
    assert [run.folder.name for run in tiny(tmp_path).plan()] == [digest[:16] for digest in same]


def test_a_study_is_the_same_as_a_file_as_an_object_and_as_json(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'objective = "beta"\nseeds = 2\n[data]\nname = "gaussian"\nn_samples = 60\n[grid]\nbeta = [1, 4]\n'
        "[each.score]\nmetrics = 'tc'\n[budget]\nmax_runs = 3\n[settings]\nnet = 'linear'\n"
    )
    study = ps.Study.load(file)
    assert study.out == str(tmp_path / "mine")
    assert study.name == "mine"
    assert study == Study(
        data={"name": "gaussian", "n_samples": 60},
        objective="beta",
        seeds=[0, 1],
        grid={"beta": (1, 4)},
        each={"score": {"metrics": "tc"}},
        budget={"max_runs": 3},
        settings={"net": "linear"},
        out=str(tmp_path / "mine"),
    )
    assert Study.from_dict(study.to_dict()) == study


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sedes": 3}, r"no key of a study named 'sedes'.*Did you mean 'seeds'"),
        ({"grid": {"betta": [1]}}, r"run seed=0: no option named 'betta'.*Did you mean 'beta'"),
        ({"grid": {"beta": [1, -1]}}, r"run beta=-1,seed=0: beta must not be negative"),
        ({"grid": {"beta": 4}}, r"beta must be a list of values"),
        ({"grid": {"beta": [4, 4]}}, r"beta must not repeat a value"),
        ({"settings": {"beta": 4}}, r"'beta' is in settings and in grid; set it once"),
        ({"settings": {"seed": 4}}, r"settings has 'seed'; use seeds instead"),
        ({"grid": {"objective": ["vae"]}}, r"grid has 'objective', which is not a setting"),
        ({"zipped": {"steps": [1, 2], "n_latents": [1]}}, r"lists in zipped must have equal lengths"),
        ({"each": {"diagnos": {}}}, r"no analysis in 'each' named 'diagnos'.*Did you mean 'diagnose'"),
        ({"each": {"diagnose": {"alfa": 0.2}}}, r"no option of analysis 'diagnose' named 'alfa'"),
        ({"each": {"diagnose": {"alpha": 0.7}}}, r"alpha must lie between 0 and 0.5"),
        ({"each": {"score": {"metrics": "migg"}}}, r"no metric named 'migg'.*Did you mean 'mig'"),
        (
            {"each": {"score": {"metrics": "mig", "options": {"mig": {"bins": 3}}}}},
            r"no option of metric 'mig' named 'bins'",
        ),
        ({"each": {"dimension": {"estimators": "twon"}}}, r"no dimension estimator named 'twon'"),
        ({"once": {"size": {"method": "fondu"}}}, r"no .* named 'fondu'"),
        ({"once": {"size": {"options": {"tresh": 3}}}}, r"run beta=1,seed=0: no option named 'tresh'"),
        ({"over": {"diagnose": {}}}, r"no analysis in 'over' named 'diagnose'"),
        ({"budget": {"max_hour": 2}}, r"no option of budget named 'max_hour'"),
        ({"budget": {"max_hours": 0}}, r"max_hours must be positive"),
        ({"diverged": "ignore"}, r"no treatment of diverged runs named 'ignore'"),
        ({"seeds": 0}, r"seeds must be a number of seeds"),
        ({"seeds": -1}, r"seeds must be a number of seeds .*, got -1"),
        ({"threads": 0}, r"threads must be an integer, at least 1, got 0"),
        ({"threads": "two"}, r"threads must be an integer, at least 1, got 'two'"),
        ({"device": "cud"}, r"device must be auto, or a PyTorch device.*, got 'cud'"),
        ({"device": 0}, r"device must be a string, got 0"),
        ({"runs": 5}, r"runs must be a folder, got 5"),
        ({"name": 5}, r"name must be a string, got 5"),
        ({"seeds": [1, 1]}, r"seeds must be a number of seeds or a list of different integers"),
        ({"data": "gausian"}, r"no dataset named 'gausian'.*Did you mean 'gaussian'"),
        ({"data": []}, r"data must name at least one"),
        ({"objective": ["beta", {"name": "beta"}]}, r"the runs .* and .* are the same; remove one"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(
    tmp_path: Path, fields: dict[str, Any], message: str, unannotated: None
) -> None:
    given = {**tiny(tmp_path).to_dict(), **fields}
    with pytest.raises(InputError, match=message):
        Study.from_dict(given).plan()
    assert list(tmp_path.iterdir()) == []


def test_a_study_without_data_is_refused() -> None:
    with pytest.raises(InputError, match="data must name at least one"):
        Study.from_dict({"objective": "vae"})


def test_an_unknown_study_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"no study named 'nothing'"):
        Study.load("nothing")


def test_a_shipped_study_is_found_by_its_name_beside_the_folder_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beta-sprites").mkdir()
    (tmp_path / "mine").mkdir()
    assert Study.load("beta-sprites").out == "beta-sprites"
    with pytest.raises(InputError, match=r"no study named 'mine'.*ends in \.toml"):
        Study.load("mine")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The folder of an untrained manipulation of 500 images of a dataset; made once, do not change it."""

    @functools.cache
    def made(name: str, image_size: int) -> Path:
        folder = tmp_path_factory.mktemp("untrained") / "made"
        keep_untrained(
            folder, ps.apply_variants(ps.load_dataset(name, image_size=image_size), "subset:n=500")
        )
        return folder

    return made


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_study_can_be_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, untrained: Callable[[str, int], Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = Study.load(name)
    assert study.out == name  # in the folder where it is run
    for folder in set(re.findall(r'"manipulated:([^"]+)"', shipped()[name].read_text(encoding="utf-8"))):
        # What another command makes before; its text says which.
        assert f"--out {folder}\n" in "".join(file.read_text("utf-8") for file in shipped().values())
        (data,) = study.to_dict()["data"]
        shutil.copytree(untrained(data["name"], data["image_size"]), folder)
    assert Study.from_dict(
        {**study.to_dict(), "seeds": [0]}
    ).plan()  # seeds differ in nothing that is checked
    first = shipped()[name].read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(r"# \S.{20,}", first), "its first line says what it is about"


def test_variants_of_the_data_are_settings_like_others(tmp_path: Path) -> None:
    variants = [[], ["standardised"], ["standardised", {"name": "subset", "n": 50}]]
    study = tiny(tmp_path, grid={"data.variants": variants, "beta": [1.0]})
    assert names(study) == [
        "data.variants=none,seed=0",
        "data.variants=standardised,seed=0",
        "data.variants=standardised+subset-50,seed=0",
    ]
    assert study.run() == {"waiting": 0, "running": 0, "done": 3, "failed": 0}
    lengths = [ps.open_run(run.folder).n_observations for run in study.plan()]
    assert lengths == [60, 60, 50]


def test_the_study_in_the_docs_can_be_run(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    example, given = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert len(Study.from_dict({**tomllib.loads(given), "out": str(tmp_path)}).models) == 3
    study = Study.from_dict({**tomllib.loads(example), "out": str(tmp_path)})
    assert len(study.plan()) == 4 * 2 * 3  # three strengths and the VAE, two sizes, three seeds


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ({"seeds": 10**9}, "seeds must be at most 100,000"),
        (
            {"grid": {name: list(range(1000)) for name in ("beta", "n_latents", "steps")}},
            "has 1,000,000,000 runs",
        ),
        (
            {"seeds": 200, "grid": {"steps": list(range(1, 1001))}},
            "has 200,000 runs, more than the limit of 100,000",
        ),
        (
            {"data": {"name": "digits", "grid": {"a": [1, 2], "b": [1, 2, 3]}}, "budget": {"max_planned": 5}},
            "has 6 runs",
        ),
    ],
)
def test_designs_are_counted_before_they_are_listed(design: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Study.from_dict({"data": "digits", **design})


def test_the_count_of_a_design_is_the_number_of_its_points() -> None:
    design = {
        "data": ["digits", {"name": "sprites", "grid": {"image_size": [16, 32]}}],
        "grid": {"n_latents": [2, 3]},
        "zipped": {"steps": [1, 2, 3], "batch_size": [1, 2, 3]},
        "listed": [{"net": "mlp"}, {"net": "linear"}],
        "seeds": [3, 5],
    }
    n_points = len(Study.from_dict(design).points())
    Study.from_dict({**design, "budget": {"max_planned": n_points}})
    with pytest.raises(InputError, match=f"has {n_points} runs"):
        Study.from_dict({**design, "budget": {"max_planned": n_points - 1}})


@pytest.mark.parametrize("value", ["2024-01-01", "12:00:00", "inf", "nan"])
def test_values_that_no_record_can_store_are_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f'[data]\nname = "digits"\n[settings]\nsteps = {value}\n')
    with pytest.raises(InputError, match=r"a study has (no dates|finite numbers)"):
        Study.load(file)
