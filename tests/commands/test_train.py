"""``train``: every setting an option, mistakes in one line, resumed where it was broken off."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields

import pytest

from sklearn_leanclust.__main__ import build_parser, main
from sklearn_leanclust.commands.train import settings_from
from sklearn_leanclust.meta import trainer
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import CHECKPOINT, METRICS, WEIGHTS, TrainingRun
from sklearn_leanclust.network.checkpoint import load_network

TINY = ["--kind", "dense", "--n-features", "2", "--n-clusters", "3", "--n-tasks", "4",
        "--n-updates", "12", "--checkpoint-every", "5"]  # fmt: skip


def parsed(command: str) -> TrainingSettings:
    """Settings that a command asks for."""
    args = build_parser().parse_args(shlex.split(command))
    names = [field.name for field in fields(TrainingSettings)]
    return settings_from({name: getattr(args, name) for name in names if name in args})


@pytest.mark.parametrize(
    "settings",
    [
        TrainingSettings(),
        TrainingSettings.dense(4, 8),
        TrainingSettings(
            kind="dense", embedding="none", regularizer="l2", tau=1e-7, noises=("cauchy",),
            scale=(0.1, 0.7), n_features=(3, 3), n_clusters=(5, 5), points_per_cluster=(2, 9),
            n_tasks=7, n_steps=(2, 8), init="random", start="random", sharpness=2.5, n_knots=6,
            n_updates=11, learning_rate=0.5, clip_norm=2.0, skip_limit=0, checkpoint_every=3,
            seed=9,
        ),
    ],
)  # fmt: skip
def test_the_recipe_asks_for_the_same_settings(settings):
    command = settings.command().removeprefix("python -m sklearn_leanclust ")
    assert parsed(command) == settings


def test_the_defaults_are_those_of_the_kind():
    assert parsed("train --out x") == TrainingSettings()
    dense = parsed("train --out x --kind dense --n-features 4 --n-clusters 8 --tau 1")
    assert dense == TrainingSettings.dense(4, 8, tau=1.0)


def test_help_lists_all_settings(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["train", "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for field in fields(TrainingSettings):
        assert f"--{field.name.replace('_', '-')} " in out


def test_it_trains_and_says_what_came_out(run, tmp_path, capsys):
    out = tmp_path / "a" / "b"
    assert run("train", *TINY, "--out", out) == 0
    assert {path.name for path in out.iterdir()} == {CHECKPOINT, METRICS, WEIGHTS}
    network, metadata = load_network(out / WEIGHTS)
    ratio = metadata["score"]["ratio_to_lloyd"]
    said, bar = capsys.readouterr()
    assert said == (
        f"{out / WEIGHTS}: objective {ratio:.4f} times that of as many Lloyd steps, on "
        "validation tasks\n"
    )
    assert "12/12" in bar
    assert (network.weights.n_features, network.weights.n_clusters) == (2, 3)
    assert metadata["settings"]["n_updates"] == 12


def test_the_recipe_trains_the_same_weights_again(run, tmp_path):
    run("train", *TINY, "--out", tmp_path / "1", "--quiet")
    recipe = load_network(tmp_path / "1" / WEIGHTS)[1]["recipe"]
    words = shlex.split(recipe.replace("DIR", str(tmp_path / "2")))
    assert run(*words[3:], "--quiet") == 0
    assert (tmp_path / "1" / WEIGHTS).read_bytes() == (tmp_path / "2" / WEIGHTS).read_bytes()


@pytest.mark.parametrize("again", [TINY, []], ids=["same settings", "no settings"])
def test_an_interrupt_and_a_resume(again, run, tmp_path, monkeypatch, capsys):
    run("train", *TINY, "--out", tmp_path / "whole", "--quiet")
    advance = TrainingRun.advance

    def interrupted(training):
        if training.update == 7:
            raise KeyboardInterrupt
        return advance(training)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingRun, "advance", interrupted)
        assert run("train", *TINY, "--out", tmp_path / "broken", "--quiet") == 130
    capsys.readouterr()
    assert {path.name for path in (tmp_path / "broken").iterdir()} == {CHECKPOINT, METRICS}
    assert run("train", *again, "--out", tmp_path / "broken", "--resume", "--quiet") == 0
    assert capsys.readouterr().err == ""
    for name in (WEIGHTS, METRICS, CHECKPOINT):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()


def test_resume_without_a_checkpoint_starts(run, tmp_path):
    assert run("train", *TINY, "--out", tmp_path, "--resume", "--quiet") == 0
    lines = (tmp_path / METRICS).read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [0, 5, 10, 12]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tau", "x"], "argument --tau: invalid float value: 'x'"),
        (["--tau", "-1"], "tau=-1.0 must be positive and finite."),
        (["--embedding", "hex"], "embedding='hex' is unknown; use one of binary, onehot, none."),
        (["--noises", "normal,noise"], "noises='noise' is unknown; use some of normal, laplace"),
        (["--scale", "1,2,3"], "argument --scale: invalid range value: '1,2,3'"),
        (["--n-steps", "1.5"], "argument --n-steps: invalid range value: '1.5'"),
        (["--kind", "dense"], "--kind dense needs --n-features."),
        (["--kind", "dense", "--n-features", "2"], "--kind dense needs --n-clusters."),
        (
            ["--kind", "dense", "--n-features", "2,4", "--n-clusters", "3"],
            "n_features=2,4 must be one number: dense weights serve one size.",
        ),
        ([*TINY, "--device", "abacus"], "device='abacus' is not available here"),
        (["--heat", "3"], "unrecognized arguments: --heat 3"),
    ],
)
def test_mistakes_are_one_line(options, message, refusal, tmp_path):
    assert refusal("train", *options, "--out", tmp_path / "out").startswith(message)
    assert not (tmp_path / "out" / WEIGHTS).exists()


def test_a_folder_is_needed_and_must_be_one(refusal, tmp_path):
    assert "required: --out" in refusal("train", *TINY)
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refusal("train", *TINY, "--out", tmp_path / "file")


def test_an_earlier_run_is_not_overwritten(run, refusal, tmp_path):
    run("train", *TINY, "--out", tmp_path, "--quiet")
    before = (tmp_path / WEIGHTS).read_bytes()
    assert "is of an earlier run" in refusal("train", *TINY, "--out", tmp_path, "--quiet")
    other = [*TINY, "--out", tmp_path, "--quiet", "--resume", "--seed", 5]
    assert "with other values of seed" in refusal("train", *other)
    assert (tmp_path / WEIGHTS).read_bytes() == before


def test_training_that_diverges_is_one_line(refusal, tmp_path, monkeypatch):
    loss = trainer.batch_loss
    monkeypatch.setattr(trainer, "batch_loss", lambda *args: loss(*args) * float("nan"))
    options = [*TINY, "--skip-limit", 3, "--out", tmp_path, "--quiet"]
    message = refusal("train", *options)
    assert "4 updates had a loss or gradient that is not finite" in message
    assert str(tmp_path / CHECKPOINT) in message
