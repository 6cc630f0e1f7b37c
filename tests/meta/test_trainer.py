"""Meta-training: it learns, it resumes to the bit, it survives what goes wrong."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sklearn_leanclust.meta import trainer
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import (
    CHECKPOINT,
    METRICS,
    VALIDATION_BATCHES,
    WEIGHTS,
    TrainingError,
    TrainingRun,
    batch_loss,
    learning_rate,
    sample_batch,
    train,
)
from sklearn_leanclust.network.checkpoint import load_checkpoint, load_network, save_checkpoint

SMALL = {"n_tasks": 6, "n_updates": 24, "checkpoint_every": 5}
DENSE = TrainingSettings.dense(2, 3, noises=("normal", "laplace"), start="random", **SMALL)
TIED = TrainingSettings(
    n_features=(1, 4), n_clusters=(2, 5), points_per_cluster=(4, 8), n_steps=(1, 3), **SMALL
)
CPU = torch.device("cpu")
both = pytest.mark.parametrize("settings", [DENSE, TIED], ids=lambda settings: settings.kind)


def changed(settings: TrainingSettings, **changes) -> TrainingSettings:
    return TrainingSettings(**{**vars(settings), **changes})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def metrics(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


def break_at(monkeypatch, update: int, error: type[BaseException] = KeyboardInterrupt) -> None:
    """Let the training stop in the middle of an update."""
    advance = TrainingRun.advance

    def broken(run):
        if run.update == update:
            raise error
        return advance(run)

    monkeypatch.setattr(TrainingRun, "advance", broken)


@both
def test_resumed_training_ends_with_the_same_bytes(settings, tmp_path):
    """Broken before the first checkpoint, between two, and right after one."""
    train(settings, tmp_path / "whole", progress=False)
    for update in (3, 13, 20):
        with pytest.MonkeyPatch.context() as patch:
            break_at(patch, update)
            with pytest.raises(KeyboardInterrupt):
                train(settings, tmp_path / "broken", resume=True, progress=False)
        names = set(files(tmp_path / "broken"))
        assert names == {CHECKPOINT, METRICS}  # nothing unfinished, no weights yet
        counters = load_checkpoint(tmp_path / "broken" / CHECKPOINT).metadata["counters"]
        assert counters["update"] == update - update % 5
    train(settings, tmp_path / "broken", resume=True, progress=False)
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
    assert [line["update"] for line in metrics(tmp_path / "whole")] == [0, 5, 10, 15, 20, 24]


@pytest.mark.parametrize("name", [CHECKPOINT, METRICS, WEIGHTS])
def test_broken_while_it_writes(name, tmp_path, monkeypatch):
    """An interrupt just before a file takes its place leaves the one before, and no part of it."""
    train(DENSE, tmp_path / "whole", progress=False)
    replace, seen = os.replace, []

    def interrupted(source, target):
        seen.append(Path(target).name)
        if Path(target).name == name and seen.count(name) == (2 if name == CHECKPOINT else 1):
            raise KeyboardInterrupt
        replace(source, target)

    folder = tmp_path / "broken"
    if name == METRICS:  # written anew only where there is one already
        with monkeypatch.context() as patch:
            break_at(patch, 13)
            with pytest.raises(KeyboardInterrupt):
                train(DENSE, folder, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(DENSE, folder, resume=True, progress=False)
    assert not list(folder.glob("*.partial")) and not list(folder.glob(".*"))
    load_checkpoint(folder / CHECKPOINT)
    train(DENSE, folder, resume=True, progress=False)
    assert files(folder) == files(tmp_path / "whole")


def test_metrics_that_run_ahead_of_the_checkpoint_are_written_again(tmp_path, monkeypatch):
    train(DENSE, tmp_path / "whole", progress=False)
    break_at(monkeypatch, 13)
    with pytest.raises(KeyboardInterrupt):
        train(DENSE, tmp_path / "broken", progress=False)
    monkeypatch.undo()
    with open(tmp_path / "broken" / METRICS, "a") as file:  # killed between line and checkpoint
        file.write('{"update": 15, "loss": 0.1, "ratio": 0.5, "skipped": 0}\n{"update": 20, "lo')
    train(DENSE, tmp_path / "broken", resume=True, progress=False)
    assert files(tmp_path / "broken") == files(tmp_path / "whole")


# Children are forked from one interpreter that has torch, so that kills hit the training itself.
KILLS = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import TrainingRun, train

torch.set_num_threads(1)
folder, n_kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings = TrainingSettings.from_json(sys.argv[4])
TrainingRun(settings, torch.device("cpu"))  # Adam imports more of torch when it is first made

def start(out):
    child = os.fork()
    if child == 0:
        train(settings, out, resume=True, progress=False)
        os._exit(0)
    return child

began = time.perf_counter()
assert os.waitpid(start(folder / "whole"), 0)[1] == 0
seconds = time.perf_counter() - began
rng = random.Random(seed)
ends = []
for _ in range(n_kills):
    child = start(folder / "broken")
    time.sleep(rng.uniform(0.1, 0.7) * seconds / n_kills)
    os.kill(child, signal.SIGKILL)
    ends.append(os.waitpid(child, 0)[1])
ends.append(os.waitpid(start(folder / "broken"), 0)[1])
print(*ends)
"""


def check_kills(folder: Path, n_kills: int, seed: int, settings: TrainingSettings) -> None:
    """Kill a training at random moments; resumed, it must end as one that was left alone."""
    command = [sys.executable, "-c", KILLS, folder, n_kills, seed, settings.to_json()]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(map(str, command), env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    ends = [int(word) for word in done.stdout.split()]
    assert ends[0] == signal.SIGKILL
    assert set(ends[1:-1]) <= {signal.SIGKILL, 0}  # where the machine got faster, it was done
    assert ends[-1] == 0
    assert files(folder / "broken") == files(folder / "whole")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_training_ends_with_the_same_bytes(tmp_path):
    check_kills(tmp_path, 3, random.randrange(2**32), changed(DENSE, n_updates=80))


def test_what_a_killed_process_left_half_written_is_cleared(tmp_path):
    (tmp_path / f".{CHECKPOINT}.0a1b2c3d.partial").write_bytes(b"half")
    (tmp_path / METRICS).write_text('{"update": 0}\n')  # killed before the first checkpoint
    train(DENSE, tmp_path, resume=True, progress=False)
    assert set(files(tmp_path)) == {CHECKPOINT, METRICS, WEIGHTS}
    assert len(metrics(tmp_path)) == 6


@both
def test_same_seed_same_weights_and_global_state_is_left_alone(settings, tmp_path):
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = train(settings, tmp_path / "1", progress=False)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    torch.manual_seed(1)
    train(settings, tmp_path / "2", progress=False)
    assert files(tmp_path / "1") == files(tmp_path / "2")
    other = train(changed(settings, seed=1), tmp_path / "3", progress=False)
    for name, value in first.state_dict().items():
        assert not torch.equal(value, other.state_dict()[name])


@both
def test_the_file_holds_the_network_and_how_it_came_about(settings, tmp_path):
    network = train(settings, tmp_path, progress=False)
    loaded, metadata = load_network(tmp_path / WEIGHTS)
    for name, value in network.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name])
    assert TrainingSettings.from_json(json.dumps(metadata["settings"])) == settings
    ratios = [line["ratio"] for line in metrics(tmp_path)]
    assert metadata["score"] == {
        "ratio_to_lloyd": ratios[-1],
        "best_ratio_to_lloyd": min(ratios),
        "skipped_updates": 0,
    }


@pytest.mark.parametrize("start", ["random", "exact"])
def test_dense_weights_learn(start, tmp_path):
    """Far beyond chance: the same 256 tasks before and after."""
    settings = TrainingSettings.dense(
        2, 3, regularizer="l2", noises=("normal",), start=start, learning_rate=0.03, n_tasks=16,
        points_per_cluster=(10, 10), n_updates=200, checkpoint_every=200,
    )  # fmt: skip
    train(settings, tmp_path, progress=False)
    first, last = metrics(tmp_path)
    if start == "random":
        assert first["ratio"] > 3
        assert last["ratio"] < 2
    else:
        assert last["ratio"] < min(first["ratio"], 1) - 0.015


def test_tied_weights_learn_to_beat_lloyds_steps(tmp_path):
    settings = changed(
        TIED, n_features=(2, 4), n_clusters=(4, 8), points_per_cluster=(15, 15), n_tasks=16,
        n_updates=60, checkpoint_every=60, scale=(0.4, 0.4), noises=("normal",),
    )  # fmt: skip
    train(settings, tmp_path, progress=False)
    first, last = metrics(tmp_path)
    assert last["ratio"] < min(first["ratio"], 1) - 0.002


@pytest.mark.parametrize("kind", ["dense", "tied"])
def test_cauchy_tasks_end_with_finite_weights(kind, tmp_path):
    settings = changed(DENSE if kind == "dense" else TIED, noises=("cauchy",), n_updates=60)
    network = train(settings, tmp_path, progress=False)
    assert all(bool(p.isfinite().all()) for p in network.parameters())


def spoil(monkeypatch, when, how: str) -> None:
    """Make the loss, or only its gradient, not finite at some calls."""
    calls = []

    def spoiled(network, batch, settings):
        calls.append(None)
        loss = batch_loss(network, batch, settings)
        if not when(len(calls)):
            return loss
        if how == "loss":
            return loss * math.nan
        if how == "overflow":
            return loss * 1e38 * 10
        parameter = next(network.parameters())
        zero = (parameter - parameter.detach()).sum()
        return loss + zero.abs().sqrt()  # its value is 0, its gradient is not a number

    monkeypatch.setattr(trainer, "batch_loss", spoiled)


@both
@pytest.mark.parametrize("how", ["loss", "overflow", "gradient"])
def test_what_is_not_finite_is_skipped(settings, how, tmp_path, monkeypatch):
    run = TrainingRun(settings, CPU)
    spoil(monkeypatch, lambda call: call in (2, 3), how)
    run.advance()
    before = {name: value.clone() for name, value in run.network.state_dict().items()}
    moments = json.dumps(run.adam.state_dict(), default=lambda value: value.tolist())
    loss = run.advance()
    run.advance()
    assert math.isfinite(loss) == (how == "gradient")
    assert (run.skipped, run.update) == (2, 3)
    for name, value in run.network.state_dict().items():
        assert torch.equal(value, before[name])
    assert json.dumps(run.adam.state_dict(), default=lambda value: value.tolist()) == moments
    run.advance()
    assert run.skipped == 2
    assert not all(torch.equal(v, before[name]) for name, v in run.network.state_dict().items())


def test_skips_are_counted_in_the_metrics_and_over_a_resume(tmp_path, monkeypatch):
    spoil(monkeypatch, lambda call: call in (2, 5), "loss")
    train(changed(DENSE, n_updates=10), tmp_path / "whole", progress=False)
    lines = metrics(tmp_path / "whole")
    assert [line["skipped"] for line in lines] == [0, 2, 2]
    assert [line["loss"] is None for line in lines] == [True, True, False]  # strict JSON has no NaN
    spoil(monkeypatch, lambda call: call in (2, 5), "loss")
    with monkeypatch.context() as patch:
        break_at(patch, 7)
        with pytest.raises(KeyboardInterrupt):
            train(changed(DENSE, n_updates=10), tmp_path / "broken", progress=False)
    monkeypatch.undo()
    train(changed(DENSE, n_updates=10), tmp_path / "broken", resume=True, progress=False)
    assert files(tmp_path / "broken") == files(tmp_path / "whole")


def test_past_the_limit_it_stops_and_says_where(tmp_path, monkeypatch):
    spoil(monkeypatch, lambda call: call > 7, "loss")
    with pytest.raises(TrainingError) as caught:
        train(changed(DENSE, skip_limit=4), tmp_path, progress=False)
    message = str(caught.value)
    assert "5 updates" in message and "at update 12;" in message
    assert str(tmp_path / CHECKPOINT) in message and "skip_limit=4" in message
    tensors, metadata = load_checkpoint(tmp_path / CHECKPOINT)
    assert metadata["counters"]["update"] == 10
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    assert not (tmp_path / WEIGHTS).exists()
    monkeypatch.undo()
    train(changed(DENSE, skip_limit=4), tmp_path, resume=True, progress=False)
    assert (tmp_path / WEIGHTS).exists()


def test_a_folder_with_another_run_is_refused(tmp_path):
    train(DENSE, tmp_path, progress=False)
    before = files(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}.* is of an earlier run; resume it, or train"):
        train(DENSE, tmp_path, progress=False)
    other = changed(DENSE, tau=0.2, n_tasks=7)
    with pytest.raises(ValueError, match="with other values of n_tasks, tau; resume it with those"):
        train(other, tmp_path, resume=True, progress=False)
    tensors, metadata = load_checkpoint(tmp_path / CHECKPOINT)
    save_checkpoint(tmp_path / CHECKPOINT, tensors, metadata | {"device": "cuda"})
    with pytest.raises(ValueError, match="device='cuda'; resume it there"):
        train(DENSE, tmp_path, resume=True, progress=False)
    (tmp_path / CHECKPOINT).write_bytes(before[WEIGHTS])
    with pytest.raises(ValueError, match="not the checkpoint of a training run"):
        train(DENSE, tmp_path, resume=True, progress=False)
    (tmp_path / CHECKPOINT).write_bytes(before[CHECKPOINT][:-1])
    with pytest.raises(ValueError, match=f"{tmp_path / CHECKPOINT} is cut short"):
        train(DENSE, tmp_path, resume=True, progress=False)
    assert {**files(tmp_path), CHECKPOINT: before[CHECKPOINT]} == before


@both
def test_validation_tasks_are_always_the_same_and_not_those_of_training(settings):
    one = TrainingRun(settings, CPU)
    other = TrainingRun(changed(settings, seed=7, learning_rate=1.0, tau=3.0), CPU)
    other.advance()
    assert len(one.validation) == VALIDATION_BATCHES
    for a, b in zip(one.validation, other.validation, strict=True):
        assert torch.equal(a.X, b.X) and torch.equal(a.centers, b.centers)
    shapes = {batch.X.shape for batch in one.validation}
    assert len(shapes) == 1 if settings.kind == "dense" else len(shapes) > 5


@both
def test_the_loss_does_not_depend_on_the_units_of_the_tasks(settings):
    """With Lloyd's own steps in the place of the network it is close to 1 for all tasks."""
    settings = changed(settings, tau=1e-6)
    generator = torch.Generator().manual_seed(0)
    exact = trainer.ClusteringTransformer(trainer.ExactWeights())
    for _ in range(8):
        batch = sample_batch(settings, generator)
        assert float(batch_loss(exact, batch, settings)) == pytest.approx(1, abs=1e-4)
        larger = trainer.Batch(batch.X * 8, batch.centers * 8, batch.n_steps, batch.reference * 64)
        assert batch_loss(exact, larger, settings) == batch_loss(exact, batch, settings)


def test_sizes_of_tasks_fill_their_ranges():
    settings = changed(TIED, n_tasks=1)
    generator = torch.Generator().manual_seed(0)
    batches = [sample_batch(settings, generator) for _ in range(300)]
    assert {batch.X.shape[2] for batch in batches} == {1, 2, 3, 4}
    assert {batch.centers.shape[1] for batch in batches} == {2, 3, 4, 5}
    assert {batch.n_steps for batch in batches} == {1, 2, 3}
    per_cluster = {batch.X.shape[1] / batch.centers.shape[1] for batch in batches}
    assert per_cluster == {4, 5, 6, 7, 8}


def test_the_learning_rate_rises_and_falls():
    settings = changed(DENSE, n_updates=1000, learning_rate=0.2)
    rates = [learning_rate(settings, update) for update in range(1000)]
    peak = rates.index(max(rates))
    assert 40 <= peak <= 50
    assert 0.19 < rates[peak] <= 0.2
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] < 1e-5
    assert learning_rate(changed(DENSE, n_updates=1), 0) == DENSE.learning_rate


def test_progress_is_shown_if_asked_for(tmp_path, capsys):
    train(DENSE, tmp_path / "1", progress=False)
    assert capsys.readouterr() == ("", "")
    train(DENSE, tmp_path / "2", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "24/24" in err and "loss=" in err and "ratio=" in err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_it_trains_and_resumes_on_cuda(tmp_path, monkeypatch):
    train(TIED, tmp_path / "whole", device="cuda", progress=False)
    break_at(monkeypatch, 13)
    with pytest.raises(KeyboardInterrupt):
        train(TIED, tmp_path / "broken", device="cuda", progress=False)
    monkeypatch.undo()
    network = train(TIED, tmp_path / "broken", device="cuda", resume=True, progress=False)
    assert next(network.parameters()).is_cuda
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
