"""``weights``: what it lists, shows and finds broken."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from sklearn_leanclust.__main__ import build_parser
from sklearn_leanclust.commands.train import settings_from
from sklearn_leanclust.meta.cache import VARIABLE, cache_path
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.network import shipped
from sklearn_leanclust.network.checkpoint import save_checkpoint, save_network
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer

SETTINGS = TrainingSettings(tau=0.3)


def write(path: Path, settings: TrainingSettings = SETTINGS, ratio: float = 0.91234) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_network(
        path,
        ClusteringTransformer(TiedWeights(), settings.embedding),
        settings=json.loads(settings.to_json()),
        score={"ratio_to_lloyd": ratio},
        recipe=settings.command(),
    )
    return path


@pytest.fixture(autouse=True)
def ships(tmp_path, monkeypatch) -> Path:
    """One file that is shipped; the cache is empty."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(shipped, "_folder", lambda: tmp_path / "shipped")
    return write(tmp_path / "shipped" / "tied-binary-l2-1.0.safetensors", ratio=0.875)


@pytest.fixture
def cached() -> Path:
    """One file in the cache."""
    return write(cache_path(SETTINGS))


def test_list(run, capsys, ships, cached):
    assert run("weights", "list") == 0
    lines = [line.split(maxsplit=4) for line in capsys.readouterr().out.splitlines()]
    score = "times Lloyd's objective"
    assert lines == [
        ["shipped", ships.stem, str(ships.stat().st_size), "bytes", f"0.8750 {score}"],
        ["cached", cached.stem, str(cached.stat().st_size), "bytes", f"0.9123 {score}"],
    ]


def test_list_goes_on_after_a_broken_file(run, capsys, ships, cached):
    ships.write_bytes(ships.read_bytes()[:-1])
    assert run("weights", "list") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(f"broken, see: weights verify {ships.stem}")
    assert "0.9123" in second


def test_list_of_weights_without_a_score(run, capsys, ships):
    save_network(ships, ClusteringTransformer(TiedWeights()), settings={}, score={})
    assert run("weights", "list") == 0
    assert capsys.readouterr().out.endswith("no score\n")


@pytest.mark.parametrize("name", ["stem", "name", "path"])
def test_show(name, run, capsys, cached):
    name = {"stem": cached.stem, "name": cached.name, "path": cached}[name]
    assert run("weights", "show", name) == 0
    first, rest = capsys.readouterr().out.split("\n", 1)
    metadata = json.loads(rest)
    assert first == str(cached)
    assert metadata["score"] == {"ratio_to_lloyd": 0.91234}
    assert TrainingSettings.from_json(json.dumps(metadata["settings"])) == SETTINGS


@pytest.mark.parametrize(
    "settings", [TrainingSettings(tau=0.3, seed=5), TrainingSettings.dense(4, 8, start="random")]
)
def test_the_recipe_trains_with_the_same_settings(settings):
    program, *words = shlex.split(settings.command())[1:]
    assert (program, words.pop(0)) == ("-m", "sklearn_leanclust")
    args = build_parser().parse_args(words)
    given = {name: value for name, value in vars(args).items() if hasattr(settings, name)}
    assert settings_from(given) == settings


def test_show_prints_no_control_characters(run, capsys, cached):
    save_network(cached, ClusteringTransformer(TiedWeights()), settings={"\x1b[2J": "\x1b]0;x\a"},
                 score={}, recipe="\x1b[31m")  # fmt: skip
    assert run("weights", "show", cached.stem) == 0
    assert re.fullmatch(r"[ -~\n]*", capsys.readouterr().out)


def test_verify(run, capsys, ships, cached):
    assert run("weights", "verify") == 0
    assert capsys.readouterr().out == "whole files: 2\n"
    assert run("weights", "verify", cached.stem) == 0
    assert capsys.readouterr().out == "whole files: 1\n"


def test_verify_names_all_that_are_broken_in_one_line(refusal, run, ships, cached):
    assert run("weights", "verify") == 0
    for path in (ships, cached):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    line = refusal("weights", "verify")
    assert str(ships) in line and str(cached) in line
    assert str(ships) not in refusal("weights", "verify", cached.stem)


def test_what_is_no_network_is_refused(refusal, tmp_path):
    save_checkpoint(tmp_path / "checkpoint.safetensors", {}, {"settings": {}})
    for action in ("show", "verify"):
        line = refusal("weights", action, tmp_path / "checkpoint.safetensors")
        assert (
            line == f"{tmp_path}/checkpoint.safetensors is a checkpoint, but not one of a network."
        )


@pytest.mark.parametrize("action", ["show", "verify"])
def test_unknown_names(action, refusal):
    assert refusal("weights", action, "nowhere").startswith("there are no weights 'nowhere'")


def test_an_action_is_needed(refusal):
    assert "ACTION" in refusal("weights")
