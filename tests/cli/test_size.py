"""Sizing from the command line: the answer first, then the path; refused, interrupted, compared."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import signal
import time

import pytest

from kept import contents
from long_training import unchecked
from polariscope.analysis.noise import Noise
from polariscope.cli.size_progress import SizeProgress
from polariscope.core.errors import PolariscopeError
from polariscope.core.progress import in_stage
from polariscope.sizing.result import Size
from polariscope.sizing.search_progress import candidate_event
from polariscope.sizing.trial import Trial
from polariscope.storage.documents import read_settings
from polariscope.storage.folder import read_log
from polariscope.storage.search_folder import SearchFolder
from polariscope.training.threads import using_threads

CURVE = ((25, 8.0), (400, 0.9), (800, 1.4))
TRIALS = (
    Trial(16, 0, 4.2, "too many", 400, curve=CURVE),
    Trial(11, 0, 0.5, "fits", 900, projected=(0.4, 0.6), curve=CURVE),
    Trial(12, 0, 1.1, "undecided", 4000, projected=(0.9, 1.6), curve=CURVE),
)
ANSWER = Size(
    11, (11, 12), "fondue", threshold=1.0, per_seed=(11,), trials=TRIALS, n_steps=5300, notes=("12 is open.",)
)
RIVALS = {
    "fondue": ANSWER,
    "elbow": Size(8, (7, 9), "elbow", statistic="reconstruction loss", per_seed=(8,), n_steps=20_000),
    "id": Size(12, (12, 13), "id", statistic="intrinsic dimension", per_seed=(12,)),
}
LINEAR = (
    "--net linear --eigenvalues 9,0.01,0.01 --keep-units --variance 0.1 --n-samples 600 "
    "--learning-rate 0.05 --cap 4"
)


@pytest.fixture
def asked(monkeypatch):
    """Answers that are known, and what was asked for them; everything else as it is."""
    calls = []

    def size(data, method="fondue", *, progress=None, out=None, **options):
        calls.append({"data": data, "method": method, "out": out, **options})
        for step in (25, 400):
            progress(candidate_event(0, 16, step, 4.2))
        progress(candidate_event(0, 11, 25, 0.5))
        return RIVALS[method]

    def compare_sizes(data, methods=None, *, progress, **options):
        return tuple(
            size(data, method, progress=in_stage(progress, method), **options) for method in methods or RIVALS
        )

    # In this order: the module of comparisons takes ``size`` over when it is opened, and would keep the fake.
    monkeypatch.setattr(importlib.import_module("polariscope.sizing.compare"), "compare_sizes", compare_sizes)
    monkeypatch.setattr(importlib.import_module("polariscope.sizing.size"), "size", size)
    return calls


def test_the_answer_comes_first_then_the_path_and_the_notes(call, asked):
    done = call("size sprites --image-size 16")
    assert done.code == 0
    assert done.out.startswith("Answer: 11 latents (11–12)\n")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["16", "4.200", "400", "too", "many"] in rows
    assert ["12", "1.100", "4,000", "undecided", "0.90–1.60"] in rows
    assert "5,300 gradient steps, 3 models" in done.out
    assert "Note: 12 is open." in done.out
    assert "polariscope train sprites --image-size 16 --latents 11 --objective vae " in done.out


def test_bars_grow_with_the_statistic_and_mark_the_threshold(call, asked):
    out = call("size sprites").out
    bars = dict(re.findall(r"^ +(\d+)  ([█│ ]{36})[… ] ", out, flags=re.M))
    assert list(bars) == ["11", "12", "16"]
    lengths = [bar.count("█") for bar in bars.values()]
    assert lengths[0] == 6  # half a threshold of the three that fit on 36 characters
    assert lengths[0] < lengths[1] < lengths[2]
    assert {bar.index("│") for bar in bars.values()} == {12}
    assert "│" + "█" * 23 + "… 4.2" in out  # longer than can be shown


def test_progress_has_one_line_for_each_candidate_on_standard_error(call, asked):
    done = call("size sprites")
    chosen, threads, *candidates = done.err.splitlines()
    assert (
        chosen
        == "Chosen for you: net conv; likelihood bernoulli (values lie in [0, 1]); learning rate 0.0002, batch size 64."
    )
    assert threads == "Training with 1 thread."
    assert candidates == [
        "seed 0: 16 latents, step 400, Σ E[σ²] 4.20",
        "seed 0: 11 latents, step 25, Σ E[σ²] 0.50",
    ]
    quiet = call("size sprites --quiet")
    assert quiet.err == ""
    assert quiet.out == "11 latents (11–12)\n"


def test_other_threads_of_a_later_candidate_are_said(capsys):
    with SizeProgress() as progress:
        for n_latents, threads in ((16, 2), (11, 1), (12, 1)):
            with using_threads(threads):
                progress(candidate_event(0, n_latents, 25, 0.5))
    assert capsys.readouterr().err.splitlines() == [
        "Training with 2 threads.",
        "seed 0: 16 latents, step 25, Σ E[σ²] 0.50",
        "Training with 1 thread.",
        "seed 0: 11 latents, step 25, Σ E[σ²] 0.50",
        "seed 0: 12 latents, step 25, Σ E[σ²] 0.50",
    ]


def test_candidates_that_train_at_the_same_time_are_told_once_each(capsys):
    with SizeProgress() as progress:
        for step in range(25, 126, 25):
            progress(candidate_event(0, 16, step, 2.0))
        for step in range(25, 626, 25):  # 13 latents fall behind a little, and end later
            progress(candidate_event(0, 12, step, 0.5))
            for late in (step - 25, step) if step % 50 == 0 else ():
                progress(candidate_event(0, 13, late or 1, 1.5))
        for step in range(25, 126, 25):
            progress(candidate_event(0, 14, step, 2.5))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "seed 0: 16 latents, step 125, Σ E[σ²] 2.00",
        "seed 0: 12 latents, step 625, Σ E[σ²] 0.50",
        "seed 0: 13 latents, step 600, Σ E[σ²] 1.50",
        "seed 0: 14 latents, step 125, Σ E[σ²] 2.50",
    ]


def test_a_comparison_names_the_method_of_each_candidate_and_says_it_once(call, asked):
    chosen, threads, *told = call("size-compare sprites").err.splitlines()
    assert chosen.startswith("Chosen for you: net conv; ")
    assert threads == "Training with 1 thread."
    candidates = ("16 latents, step 400, Σ E[σ²] 4.20", "11 latents, step 25, Σ E[σ²] 0.50")
    assert told == [f"{method}: seed 0: {words}" for method in RIVALS for words in candidates]


def test_flags_reach_the_search_the_models_and_the_data(call, asked):
    words = "--threshold 2 --seeds 3 --seed 5 --n-init 20 --cap 64 --steps 800 --learning-rate 0.01"
    done = call(f"size gaussian {words} --net mlp --batch-size 32 --data-seed 4 --objective beta --beta 2")
    assert done.code == 0
    (given,) = asked
    expected = {"threshold": 2.0, "seeds": 3, "seed": 5, "n_init": 20, "cap": 64, "steps": 800}
    expected |= {"learning_rate": 0.01, "method": "fondue", "out": None}
    expected |= {"objective": "beta", "net": "mlp", "objective_beta": 2.0, "training_batch_size": 32}
    assert {key: given[key] for key in expected} == expected
    assert given["data"].base.seed == 4


def test_without_a_choice_the_models_are_vaes_and_for_beta_beta_vaes(call, asked):
    call("size sprites")
    call("size-beta sprites --latents 7")
    assert [given["objective"] for given in asked] == ["vae", "beta"]
    assert (asked[1]["target"], asked[1]["n_latents"]) == ("beta", 7)
    assert "net" not in asked[0]
    call("size sprites --threads 2")
    assert (asked[0]["threads"], asked[2]["threads"]) == (None, 2)


def test_compare_prints_answer_interval_steps_and_disagreement(call, asked):
    done = call("size-compare sprites")
    assert done.code == 0
    assert done.out.startswith(
        "The 3 methods give 8 to 12 latents; 1 of the 2 others agrees with fondue within the intervals.\n"
    )
    rows = [line.split() for line in done.out.splitlines()]
    assert ["fondue", "11", "11–12", "5,300"] in rows
    assert ["elbow", "8", "7–9", "20,000", "−3,", "intervals", "do", "not", "overlap"] in rows
    assert ["id", "12", "12–13", "0", "+1"] in rows
    chosen = call("size-compare sprites --method id,elbow --quiet")
    assert chosen.out == "id: 12 latents (12–13)\nelbow: 8 latents (7–9)\n"


def test_compare_prints_the_noise_of_each_method_that_has_one(call, asked, monkeypatch):
    assert "γ" not in call("size-compare sprites").out
    monkeypatch.setitem(RIVALS, "fondue", dataclasses.replace(ANSWER, noise=Noise(0.0432, True)))
    done = call("size-compare sprites")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["method", "answer", "interval", "steps", "γ", "compared", "with", "fondue"] in rows
    assert ["fondue", "11", "11–12", "5,300", "0.0432"] in rows
    assert ["id", "12", "12–13", "0", "+1"] in rows
    assert "Directions of the data with a smaller variance count as noise" in done.out


def test_a_method_without_an_answer_is_listed_as_such(call, asked, monkeypatch):
    none = Size(None, None, "elbow", notes=("there is no knee.",))
    monkeypatch.setitem(RIVALS, "elbow", none)
    done = call("size-compare sprites")
    assert done.code == 0
    assert ["elbow", "none", "–", "0", "not", "comparable"] in [
        line.split() for line in done.out.splitlines()
    ]
    assert "Note: elbow: there is no knee." in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("size", "Missing argument 'DATA'"),
        ("size sprits", "Did you mean 'sprites'"),
        ("size gaussian --method fondu", "no sizing method named 'fondu'.*Did you mean 'fondue'"),
        ("size gaussian --threshold many", "option --threshold of the search must be a number, got 'many'"),
        ("size gaussian --threshold nan", "--threshold must be finite"),
        ("size gaussian --seeds 0", "--seeds must be at least 1, got 0"),
        ("size gaussian --cap 0", "--cap must be at least 1, got 0"),
        ("size gaussian --n-init 9 --cap 8", "--n-init must be at most --cap"),
        ("size gaussian --target gamma", "no option --target"),
        ("size-beta gaussian", "--latents must be given"),
        ("size gaussian --latents 4", "belongs to 'polariscope size-curve' and 'polariscope size-beta'"),
        ("size gaussian --target beta --latents 4 --compare", "--compare and --target cannot be combined"),
        (
            "size gaussian --method id,elbow",
            "one name, got 'id,elbow'; use 'polariscope size-compare' for several",
        ),
        ("size gaussian --cap", "--cap requires a value"),
        ("size gaussian --dimension mle", "belongs to method id.* add --method id, or leave --dimension out"),
        (
            "size gaussian --method id --dimension mel",
            "no dimension estimator named 'mel'.*Did you mean 'mle'",
        ),
        ("size gaussian --treshold 2", "no option --treshold; did you mean --threshold"),
        ("size gaussian --objective ae", "requires posterior variances"),
        ("size gaussian --objective bta", "Did you mean 'beta'"),
        ("size gaussian --batch-size 0 --steps 400", "--batch-size must be at least 1"),
        ("size arrays:missing.npz", "missing.npz"),
    ],
)
def test_a_wrong_call_is_refused_in_words_and_writes_nothing(call, elsewhere, words, message):
    refused = call(words, "--out sizes" if words != "size" else "")
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert "Traceback" not in refused.err
    assert not list(elsewhere.iterdir())


def test_out_must_not_be_a_file(call, elsewhere):
    (elsewhere / "notes.txt").write_text("mine")
    refused = call("size gaussian --out notes.txt")
    assert refused.code == 2
    assert "--out must be a folder, got the file notes.txt" in refused.err


def test_a_search_that_fails_exits_1_with_the_reason(call, asked, monkeypatch):
    def fail(*arguments, **options):
        raise PolariscopeError("even 512 latents have no surplus, and cap is 512; raise the cap.")

    monkeypatch.setattr(importlib.import_module("polariscope.sizing.size"), "size", fail)
    failed = call("size sprites")
    assert failed.code == 1
    assert "Error: even 512 latents have no surplus" in failed.err


def test_an_interrupted_search_says_that_nothing_is_kept_without_out(call, asked, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("polariscope.sizing.size"), "size", stop)
    stopped = call("size sprites")
    assert stopped.code == 130
    assert "the search was not saved. Searches with --out FOLDER can be resumed" in stopped.err
    stopped = call("size sprites --out sizes")
    assert stopped.code == 130
    assert "To resume, run the same command again: polariscope size sprites --out sizes" in stopped.err


@unchecked()
def test_a_linear_model_is_sized_and_everything_is_in_the_folder(call, elsewhere):
    """λ = 9 and twice 0.01 with γ = 0.1: Σ E[σ²] is 0.01 for one latent and 1.01 for two, which so short a training
    may leave on either side of the threshold.
    """
    done = call(f"size gaussian {LINEAR} --steps 500 --out sizes")
    assert done.code == 0
    record = json.loads((elsewhere / "sizes" / "size.json").read_text())["content"]
    assert 1 <= record["value"] <= 2
    state, answer, fit, *_ = done.out.splitlines()
    assert state == Size.from_dict(record).state
    assert answer.startswith(f"Answer: {record['value']} latent")
    assert fit.startswith(f"In use in the fit: {len(record['verdict']['in_use'])} of {record['value']}")
    assert f"Intrinsic dimension of the data: {round(record['dimension']['value'])} (" in done.out
    assert {"size.json", "size.html", "size.png"} <= {file.name for file in (elsewhere / "sizes").iterdir()}
    assert "sizes/size.html; open it in a browser" in done.out
    assert (elsewhere / "sizes" / "size.png").read_bytes().startswith(b"\x89PNG")
    again = call(f"size gaussian {LINEAR} --steps 500 --out sizes")
    assert again.code == 0
    assert again.out == done.out
    assert again.err == ""  # nothing was trained
    # The next command trains at the rate of the sizing: larger steps prune more latents.
    rate = re.search(r"--learning-rate (\S+)", LINEAR)
    assert f"--size sizes --objective vae --learning-rate {float(rate[1]) if rate else 0.001:g}" in done.out
    trained = call("train gaussian --eigenvalues 9,0.01,0.01 --size sizes --steps 5 --out run")
    assert trained.code == 0
    assert read_settings("run")["model"]["n_latents"] == record["value"]
    # Everything that the search used is taken over; what is given wins, and is announced.
    (searched, *_) = SearchFolder(elsewhere / "sizes").seed(0).models()
    for part in ("net", "likelihood", "posterior", "prior"):
        assert read_settings("run")["model"][part] == searched.settings["model"][part]
    assert "The data or their units differ from those of the search." in trained.err
    same = call("train gaussian --eigenvalues 9,0.01,0.01 --n-samples 600 --size sizes --steps 5 --out same")
    assert "prior isotropic, likelihood gaussian, units. Learning rate" in same.err
    assert read_settings("same")["data"]["fingerprint"] == searched.settings["data"]["fingerprint"]
    taken = searched.settings["training"]
    assert read_settings("run")["training"]["learning_rate"] == taken["learning_rate"]
    assert "As in the search in sizes: objective vae, net linear" in trained.err
    other = call(
        "train gaussian --eigenvalues 9,0.01,0.01 --size sizes --steps 5 --learning-rate 0.5 --out other"
    )
    assert f"Learning rate 0.5 instead of the search's {taken['learning_rate']:g}." in other.err
    refused = call("train gaussian --eigenvalues 9,1 --size sizes --steps 5 --out third")
    assert (refused.code, "a search on observations of shape (2,), and sizes has (3,)" in refused.err) == (
        2,
        True,
    )
    assert contents(elsewhere / "run", "size") == [record]
    shown = call("show sizes")
    assert f"sizes: {record['value']} latent" in shown.out
    assert "Each is a run that other commands can open" in shown.out
    assert call("check sizes").code == 0
    (elsewhere / "sizes" / "seed-0" / "recipe.json").write_text("{}")
    assert call("check sizes").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--size nowhere",
            "--size must be a folder written by 'polariscope size DATA --out FOLDER', but nowhere",
        ),
        ("--size sizes --latents 3", "--size and --latents both set the number of latents"),
        ("--size betas", "betas contains a β; use --latents 5 --objective beta --beta 3"),
        ("--size none", "the search in none has no answer"),
    ],
)
def test_a_folder_without_a_number_of_latents_is_refused(call, elsewhere, words, message):
    from polariscope.sizing.size import write_size

    write_size(elsewhere / "sizes", RIVALS["fondue"], {})
    beta = dataclasses.replace(
        RIVALS["fondue"],
        value=3.0,
        interval=(3.0, 3.0),
        target="beta",
        trials=(Trial(5, 0, 0.5, "fits", 400, beta=3.0),),
    )
    write_size(elsewhere / "betas", beta, {})
    write_size(
        elsewhere / "none",
        dataclasses.replace(beta, value=0, interval=(0, 0), target="latents"),
        {},
    )
    done = call(f"train gaussian {words} --steps 5 --out run")
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (elsewhere / "run").exists()


def test_a_comparison_has_a_page_of_all_and_a_folder_for_each(call, asked, elsewhere, monkeypatch):
    from polariscope.sizing.size import write_size

    settings = {
        "data": {"name": "sprites"},
        "goal": {},
        "recipe": {},
        "method": "fondue",
        "target": "latents",
    }
    for name, size in RIVALS.items():
        write_size(elsewhere / "sizes" / name, size, {**settings, "seed": 0, "seeds": 1})
    done = call("size-compare sprites --out sizes")
    assert done.code == 0
    page = (elsewhere / "sizes" / "size.html").read_text()
    assert all(f"{name}: {size.answer}" in page for name, size in RIVALS.items())


def test_a_killed_search_goes_on_with_the_same_command(fork, elsewhere):
    words = f"size gaussian {LINEAR} --steps 1500 --method active-units --out sizes".split()
    process = fork(*words)
    deadline = time.monotonic() + 90
    while not list(elsewhere.glob("sizes/seed-0/*/log.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "To resume, run the same command again: polariscope size gaussian" in err
    assert "Traceback" not in err
    done = fork(*words)
    assert done.wait() == 0
    assert re.match(r"Answer: [12] latents? \(", done.stdout)
    (run,) = elsewhere.glob("sizes/seed-0/n-*")
    assert [line["step"] for line in read_log(run)] == list(range(25, 1501, 25))


def test_the_record_of_the_fake_is_one_that_could_be_kept():
    """Guards the tests above: what they print is what a file would give."""
    assert Size.from_dict(json.loads(json.dumps(dataclasses.asdict(ANSWER)))) == ANSWER


def test_train_says_which_folders_of_a_comparison_hold_an_answer(call, elsewhere):
    for method in ("elbow", "fondue"):
        (elsewhere / "both" / method).mkdir(parents=True)
        (elsewhere / "both" / method / "size.json").write_text("{}", encoding="utf-8")
    (elsewhere / "both" / "sizes.json").write_text("{}", encoding="utf-8")
    done = call("train gaussian --size both --steps 5 --out run")
    assert done.code == 2
    assert (
        "both contains the answers of several methods; set --size to one of both/elbow, both/fondue."
        in done.err
    )


def test_the_estimator_of_the_dimension_takes_options_from_a_file_and_the_line(call, elsewhere):
    """Of gaussian data in 5 directions, 400 rows; what was asked is what is kept."""
    (elsewhere / "options.toml").write_text("[dimension.mle]\nk = 5\nnormaliser = 'k-1'\n", encoding="utf-8")
    words = "size gaussian --eigenvalues 1,1,1,1,1 --n-samples 400 --method id --out sizes"

    def asked(more: str) -> dict:
        done = call(words, more)
        assert done.code == 0, done.err
        return json.loads((elsewhere / "sizes" / "size.json").read_text())["about"]["settings"]["options"]

    assert asked("") == {}
    assert asked("--dimension mle") == {"dimension": "mle"}
    assert asked("--config options.toml") == {}  # the estimator was not chosen
    from_line = asked("--dimension mle --set mle.k=8 --set mle.average=arithmetic")
    assert from_line == {"dimension": {"name": "mle", "k": 8, "average": "arithmetic"}}
    both = asked("--dimension mle --set mle.k=8 --config options.toml")
    assert both == {"dimension": {"name": "mle", "k": 8, "normaliser": "k-1"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--set mle.k=8",
            "--set mle.… is for the estimator mle of --method id, and --dimension is not set",
        ),
        ("--dimension twonn --set mle.k=8", "and --dimension is twonn; use --dimension mle"),
        ("--dimension mle --set mle.kk=8", "Did you mean 'k'"),
        ("--dimension mle --set mel.k=8", "Did you mean 'mle'"),
    ],
)
def test_options_of_another_estimator_are_refused(call, words, message):
    refused = call(f"size gaussian --method id {words}")
    assert refused.code == 2
    assert message in refused.err


@unchecked()
def test_curves_are_printed_drawn_and_kept(call, elsewhere):
    """λ = 9 and twice 0.01 with γ = 0.1: one latent is in use, so a second has a posterior variance of about 1."""
    words = f"size-curve gaussian {LINEAR} --latents 1,2 --seeds 1 --steps 400 --method id --out curves"
    done = call(words)
    assert done.code == 0
    assert "Each of the 2 models is trained for 400 gradient steps (50 passes over" in " ".join(
        done.err.split()
    )
    heading = next(line for line in done.out.splitlines() if line.split()[:1] == ["latents"])
    assert re.split(r"\s{2,}", heading.strip())[:4] == ["latents", "loss", "reconstruction", "KL"]
    assert re.search(r"^id: \d latents? ", done.out, flags=re.M)
    kept = {file.name for file in (elsewhere / "curves").iterdir()}
    assert kept == {"curve.json", "curve.csv", "curve-models.csv", "curve.svg", "seed-0"}
    again = call(words)
    assert again.out == done.out
    assert again.err == ""
    assert call("check curves").code == 0
    shown = call("show curves")
    assert "curves over 1, 2 latents" in shown.out


def test_the_flags_of_curves_reach_them(call, monkeypatch):
    given = {}

    def size_curve(data, numbers, **options):
        given.update(options, numbers=numbers)
        raise PolariscopeError("far enough.")

    monkeypatch.setattr(importlib.import_module("polariscope.sizing.curve"), "size_curve", size_curve)
    words = "--latents 2,4 --method fondue,id --threshold 2 --epochs 3 --part test --objective beta --beta 2"
    assert call(f"size-curve gaussian {words}").code == 1
    expected = {"numbers": [2, 4], "methods": ["fondue", "id"], "threshold": 2.0, "epochs": 3, "part": "test"}
    expected |= {"objective": "beta", "objective_beta": 2.0, "seeds": 5, "seed": 0}
    assert {key: given[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--latents 2,x", "--latents must be a list of integers, each at least 1, got '2,x'"),
        ("--latents 4,2", "--latents must be in ascending order, without repetition"),
        ("--latents 0,2", "--latents must be a list of integers, each at least 1"),
        ("--latents 2,40 --cap 20", "--latents must be at most --cap, got 40 and 20"),
        ("--latents 2 --seeds 0", "--seeds must be at least 1, got 0"),
        ("", "--latents must be given"),
        ("--latents 2 --starts 3", "no option --starts here: it belongs to 'polariscope size-table'"),
        ("--latents 2 --part tset", "--part must be one of all, train, validation, test"),
        ("--latents 2 --steps 500 --epochs 2", "--steps and --epochs cannot be combined"),
        ("--latents 2 --method id --n-init 3", "--n-init is not used by the methods id"),
    ],
)
def test_wrong_curves_are_refused_in_words_and_write_nothing(call, elsewhere, words, message):
    refused = call(f"size-curve gaussian {words} --out curves")
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
    assert not list(elsewhere.iterdir())


@unchecked()
def test_a_table_of_searches_is_printed_and_kept(call, elsewhere):
    words = f"size-table gaussian {LINEAR} --method fondue-published,fondue-binary --starts 2,4 --seeds 1 --steps 400"
    done = call(words, "--out tables")
    assert done.code == 0
    lines = done.out.splitlines()
    assert done.err.startswith("Chosen for you: ")
    assert "; batch size 64.\n" in done.err
    assert lines[0] == "| method | start | n | time (s) | models |"
    assert [line.split("|")[1:3] for line in lines[2:5]] == [
        [" fondue-published ", " 2 "],
        [" fondue-published ", " 4 "],
        [" fondue-binary ", "  "],
    ]
    kept = {file.name for file in (elsewhere / "tables").iterdir()}
    assert kept == {"size-table.md", "size-table.tex", "size-table.csv", "epochs"}
    again = call(words, "--out tables")
    assert again.out == done.out
    assert again.err == ""


def test_the_flags_of_tables_reach_them(call, monkeypatch):
    given = {}

    def size_table(data, methods, **options):
        given.update(options, methods=tuple(methods))
        raise PolariscopeError("far enough.")

    monkeypatch.setattr("polariscope.studies.size_table.size_table", size_table)
    call("size-table gaussian --starts dimension,5 --strengths lambda-od=0.5,2 --objective dip-ii --epochs 2")
    expected = {"starts": ["dimension", 5], "strengths": {"lambda_od": [0.5, 2.0]}, "seeds": 10, "epochs": 2}
    expected |= {"methods": ("fondue-binary", "fondue-ib", "fondue-ide", "fondue-published", "ib")}
    assert {key: given[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--strengths beta",
            "--strengths must be an option, an equals sign, and numbers joined by commas",
        ),
        ("--strengths beta=2", "no option"),
        ("--starts ide", "--starts must be 'dimension' or integers from 1"),
        ("--n-init 3", "--n-init is a single start; use --starts instead"),
        ("--latents 3", "no option --latents here: it belongs to 'polariscope size-curve'"),
    ],
)
def test_wrong_tables_are_refused_in_words_and_write_nothing(call, elsewhere, words, message):
    refused = call(f"size-table gaussian {words} --out tables")
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size sprites --compare --quiet", "size-compare sprites --quiet"),
        ("size sprites --quiet --target beta --latents 7", "size-beta sprites --quiet --latents 7"),
        ("size sprites --target=latents --quiet", "size sprites --quiet"),
    ],
)
def test_flags_that_became_commands_are_forwarded_for_one_release(call, asked, old, new):
    forwarded, direct = call(old), call(new)
    assert forwarded.code == direct.code == 0
    assert forwarded.out == direct.out
    assert asked[: len(asked) // 2] == asked[len(asked) // 2 :]
    assert re.match(
        r"Warning: size --\w+( \w+)? is deprecated since 0.3 and will be removed in 0.4; use size",
        forwarded.err,
    )
    assert "deprecated" not in direct.err


@pytest.mark.parametrize(
    ("old", "command", "function"),
    [
        ("size gaussian --curve 2,4", "size-curve gaussian --latents 2,4", "sizing.curve.size_curve"),
        ("size gaussian --table", "size-table gaussian", "studies.size_table.size_table"),
    ],
)
def test_curves_and_tables_are_forwarded_with_all_they_were_given(call, monkeypatch, old, command, function):
    given = []

    def stop(*arguments, **options):
        given.append(
            (
                arguments,
                {name: options[name] for name in options if name not in ("progress", "begin", "announce")},
            )
        )
        raise PolariscopeError("far enough.")

    module, _, name = function.rpartition(".")
    monkeypatch.setattr(importlib.import_module(f"polariscope.{module}"), name, stop)
    assert call(old, "--seeds 2 --cap 9").code == call(command, "--seeds 2 --cap 9").code == 1
    assert given[0] == given[1]
    assert given[0][1]["seeds"] == 2
    assert given[0][1]["cap"] == 9


def test_two_flags_that_became_different_commands_are_refused(call):
    refused = call("size gaussian --curve 2 --compare")
    assert refused.code == 2
    assert "--compare and --curve cannot be combined; use 'polariscope size-compare' or" in refused.err
