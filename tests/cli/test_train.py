"""Training from the command line: made, resumed, continued, refused."""

from __future__ import annotations

import re
import signal
import time

import pytest

from polariscope.storage.documents import read_settings
from polariscope.storage.folder import read_log


def test_a_linear_model_keeps_the_large_direction_and_gives_up_the_small_one(trained):
    """λ = 4 and 0.01 with γ = 0.1: only the first exceeds γ."""
    last = read_log(trained)[-1]
    assert (last["active"], last["mixed"], last["passive"]) == (1, 0, 1)
    assert min(last["kl"]) < 0.02
    assert max(last["kl"]) > 1  # ½ log 40 over all data; these are the few validation samples


def test_flags_reach_their_parts(trained):
    settings = read_settings(trained)
    assert settings["data"]["eigenvalues"] == [4.0, 0.01]
    assert settings["data"]["n_samples"] == 1000
    assert settings["model"]["likelihood"] == {"name": "gaussian", "variance": 0.1, "learned": "no"}
    assert settings["model"]["n_latents"] == 2
    assert settings["training"]["learning_rate"] == 0.2


def test_seeds_of_training_and_data_are_told_apart(call, tiny):
    assert call(tiny, "--steps 1 --seed 3 --data-seed 4 --no-exact --out run").code == 0
    settings = read_settings("run")
    assert (settings["training"]["seed"], settings["data"]["seed"], settings["data"]["exact"]) == (
        3,
        4,
        False,
    )


def test_train_ends_with_the_counts_the_place_and_the_next_command(call, tiny):
    done = call(tiny, "--steps 20 --out run")
    assert done.code == 0
    assert re.search(r"Trained for 20 steps: training loss [\d.]+, held-out loss [\d.]+ nats", done.out)
    assert "The run is in run\n" in done.out
    assert re.search(r"γ = 0\.1 \(fixed; the mean feature variance is 2", done.out)
    assert "polariscope diagnose run " in done.out
    assert "step 20 of 20" in done.err


def test_what_is_chosen_for_the_user_is_announced_once_and_kept(call, tiny):
    done = call(tiny, "--steps 20 --out run")
    chosen = "likelihood gaussian (values are not limited to [0, 1])"
    assert done.err.count("Chosen for you: ") == 1
    assert done.err.startswith(f"Chosen for you: {chosen}; learning rate 0.01, batch size 64.")
    assert read_settings("run")["chosen"][0] == chosen
    assert "Chosen" not in call(tiny, "--steps 20 --out run").err  # nothing is trained
    assert "Chosen" not in call(tiny, "--steps 20 --out other --quiet").err


def test_the_same_run_again_is_loaded_and_a_longer_one_continued(call, tiny):
    call(tiny, "--steps 20 --out run")
    log = read_log("run")
    again = call(tiny, "--steps 20 --out run")
    assert again.out.startswith("Already trained for 20 steps")
    assert read_log("run") == log
    longer = call(tiny, "--steps 30 --out run")
    assert "run: continuing from step 20" in longer.err
    assert [line["step"] for line in read_log("run")] == [10, 20, 30]
    shorter = call(tiny, "--steps 10 --out run")
    assert shorter.code == 2
    assert "already has 30 steps" in shorter.err


def test_without_out_the_run_is_named_by_its_settings(call, tiny, elsewhere):
    call(tiny, "--steps 2 --quiet")
    second = call(tiny, "--steps 2 --seed 1 --quiet")
    assert second.err == ""
    runs = sorted(path.name for path in (elsewhere / "runs").iterdir())
    assert len(runs) == 2
    for name in runs:
        digest = read_settings(elsewhere / "runs" / name)["hash"]
        assert name == f"gaussian-vae-{digest[:8]}"
    assert second.out.strip() in {f"runs/{name}" for name in runs}


def test_the_number_of_threads_is_announced_kept_and_can_be_given(call, tiny, elsewhere, caplog):
    first = call(tiny, "--steps 2 --out run")
    assert "run: training with 1 thread\n" in first.err
    given = call(tiny, "--steps 3 --threads 2 --out run")
    assert "run: continuing from step 2 with 2 threads\n" in given.err
    assert "had 1 thread before and has 2 now" in caplog.text  # on a command line it goes to stderr
    kept = call(tiny, "--steps 4 --out run")
    assert "run: continuing from step 3 with 2 threads\n" in kept.err
    assert read_settings("run")["environment"]["threads"] == 2


def test_images_are_trained_with_a_convolutional_net(call):
    done = call(
        "train sprites --image-size 16 --objective beta --beta 4 --latents 3 --steps 3 --batch-size 8 --out run"
    )
    assert done.code == 0
    settings = read_settings("run")
    assert settings["model"]["net"]["name"] == "conv"
    assert settings["objective"] == {"name": "beta", "beta": 4.0}
    assert settings["data"]["image_size"] == 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train", "Missing argument 'DATA'"),
        ("train sprits", "Did you mean 'sprites'"),
        ("train gaussian --objective bta", "no objective named 'bta'.*Did you mean 'beta'"),
        ("train gaussian --bta 4", "did you mean --beta, an option of objective beta"),
        ("train gaussian --lr 0.01", "did you mean --learning-rate\\?"),
        ("train gaussian --objective beta --betta 4", "no option --betta; did you mean --beta"),
        ("train gaussian --beta 4", "it belongs to objective beta.*add --objective beta"),
        ("train gaussian --steps -5", "--steps must lie between 1 and 1,000,000,000, got -5"),
        (
            "train gaussian --steps many",
            "option --steps of training must be an integer, at least 1 and at most 1,000,000,000, got 'many'",
        ),
        ("train gaussian --steps", "--steps requires a value"),
        ("train gaussian --learning-rate 0", "--learning-rate must be positive"),
        ("train gaussian --latents 0", "--latents must be at least 1"),
        ("train gaussian --latents few", "--latents must be an integer, at least 1, or none, got 'few'"),
        ("train gaussian --likelihood bernoulli", "values in \\[0, 1\\].*use --likelihood gaussian"),
        ("train gaussian --optimiser adm", "--optimiser of training must be one of adam"),
        ("train gaussian --device gpu", "--device must be auto"),
        ("train gaussian --threads 0", "--threads must be at least 1, got 0"),
        ("train gaussian extra", "unexpected extra argument"),
        ("train gaussian --net fc --width 5", "use --net-width or --data-width"),
        ("train sprites --image-size 15 --net conv", "at least 16 × 16 pixels, got 15 × 15"),
        ("train arrays:missing.npz", "missing.npz"),
        ("train images:missing", "missing"),
    ],
)
def test_a_wrong_call_is_refused_in_words_and_writes_nothing(call, elsewhere, words, message):
    refused = call(words, "--out run" if words != "train" else "")
    assert refused.code == 2
    assert re.search(message, refused.err)
    assert "Traceback" not in refused.err
    assert not list(elsewhere.iterdir())


def test_out_must_not_be_a_file_or_a_folder_of_other_things(call, tiny, elsewhere):
    (elsewhere / "notes.txt").write_text("mine")
    refused = call(tiny, "--steps 1 --out notes.txt")
    assert refused.code == 2
    assert "--out must be a folder, got the file notes.txt" in refused.err
    refused = call(tiny, "--steps 1 --out .")
    assert refused.code == 2
    assert "notes.txt" in refused.err
    assert [path.name for path in elsewhere.iterdir()] == ["notes.txt"]


def test_a_run_with_other_settings_is_refused_and_left_alone(call, tiny, elsewhere):
    call(tiny, "--steps 2 --out run")
    before = (elsewhere / "run" / "settings.json").read_bytes()
    refused = call(tiny, "--steps 2 --out run --batch-size 32")
    assert refused.code == 2
    assert "batch_size" in refused.err or "--batch-size" in refused.err
    assert "64 then, 32 now" in refused.err
    assert (elsewhere / "run" / "settings.json").read_bytes() == before


def test_an_interrupted_run_exits_130_and_the_same_command_finishes_it(fork, tiny, elsewhere):
    words = f"{tiny} --steps 600 --log-every 20 --checkpoint-every 1000 --out run".split()
    process = fork(*words)
    deadline = time.monotonic() + 60
    while len(read_log(elsewhere / "run")) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "To resume, run the same command again: polariscope train gaussian" in err
    assert "Traceback" not in err
    assert not (elsewhere / "run" / "model.safetensors").exists()
    stopped_at = max(int(path.name[5:]) for path in (elsewhere / "run" / "checkpoints").iterdir())
    assert 60 <= stopped_at < 600

    done = fork(*words)
    assert done.wait() == 0
    assert f"run: resuming from step {stopped_at}" in done.stderr
    assert [line["step"] for line in read_log(elsewhere / "run")] == list(range(20, 601, 20))


def test_an_option_is_named_as_it_was_typed(call):
    """--scale is another flag of this command."""
    assert "--prior-scale must be positive, got -1" in call("train gaussian --prior-scale -1").err
    assert "--variance must be positive, got -1" in call("train gaussian --variance -1").err
    assert "--variance must be positive" in call("train gaussian --likelihood-variance -1").err


def test_columns_that_only_split_the_data_need_not_be_factors(call, tmp_path):
    rows = "".join(f"{row / 7},{row % 2},{'test' if row > 8 else 'train'},p{row // 3}\n" for row in range(12))
    (tmp_path / "table.csv").write_text("height,owl,fold,patient\n" + rows)
    words = "--labels owl --split-column fold --group-column patient --latents 1 --steps 2 --out run --quiet"
    assert call("train table.csv", words).code == 0
    settings = read_settings("run")
    assert settings["data"]["aside"] == ["fold", "patient"]
    assert settings["data"]["labels"] == ["owl"]
    assert call("train table.csv --labels owl --split-column fld --out other").code == 2
