"""Training that is broken off: it leaves whole files, and resumed it ends with the same bytes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import CHECKPOINT, METRICS, WEIGHTS, train
from sklearn_leanclust.network.checkpoint import load_checkpoint, save_checkpoint


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_resumed_training_ends_with_the_same_bytes(settings, train_until, metrics, tmp_path):
    """Broken before the first checkpoint, between two, and right after one."""
    train(settings, tmp_path / "whole", progress=False)
    for update in (3, 13, 20):
        train_until(update, settings, tmp_path / "broken", resume=True)
        names = set(files(tmp_path / "broken"))
        assert names == {CHECKPOINT, METRICS}  # nothing unfinished, no weights yet
        counters = load_checkpoint(tmp_path / "broken" / CHECKPOINT).metadata["counters"]
        assert counters["update"] == update - update % 5
    train(settings, tmp_path / "broken", resume=True, progress=False)
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
    assert [line["update"] for line in metrics(tmp_path / "whole")] == [0, 5, 10, 15, 20, 24]


@pytest.mark.parametrize("name", [CHECKPOINT, METRICS, WEIGHTS])
def test_broken_while_it_writes(name, dense, train_until, tmp_path, monkeypatch):
    """An interrupt just before a file takes its place leaves the one before, and no part of it."""
    train(dense, tmp_path / "whole", progress=False)
    take_place, seen = os.replace, []

    def interrupted(source, target):
        seen.append(Path(target).name)
        if Path(target).name == name and seen.count(name) == (2 if name == CHECKPOINT else 1):
            raise KeyboardInterrupt
        take_place(source, target)

    folder = tmp_path / "broken"
    if name == METRICS:  # written anew only where there is one already
        train_until(13, dense, folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(dense, folder, resume=True, progress=False)
    assert not list(folder.glob("*.partial")) and not list(folder.glob(".*"))
    load_checkpoint(folder / CHECKPOINT)
    train(dense, folder, resume=True, progress=False)
    assert files(folder) == files(tmp_path / "whole")


def test_metrics_that_run_ahead_of_the_checkpoint_are_written_again(dense, train_until, tmp_path):
    train(dense, tmp_path / "whole", progress=False)
    train_until(13, dense, tmp_path / "broken")
    with open(tmp_path / "broken" / METRICS, "a") as file:  # killed between line and checkpoint
        file.write('{"update": 15, "loss": 0.1, "ratio": 0.5, "skipped": 0}\n{"update": 20, "lo')
    train(dense, tmp_path / "broken", resume=True, progress=False)
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
def test_killed_training_ends_with_the_same_bytes(dense, tmp_path):
    check_kills(tmp_path, 3, random.randrange(2**32), replace(dense, n_updates=80))


def test_what_a_killed_process_left_half_written_is_cleared(dense, metrics, tmp_path):
    (tmp_path / f".{CHECKPOINT}.0a1b2c3d.partial").write_bytes(b"half")
    (tmp_path / METRICS).write_text('{"update": 0}\n')  # killed before the first checkpoint
    train(dense, tmp_path, resume=True, progress=False)
    assert set(files(tmp_path)) == {CHECKPOINT, METRICS, WEIGHTS}
    assert len(metrics(tmp_path)) == 6


def test_same_seed_same_weights_and_global_state_is_left_alone(settings, tmp_path):
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = train(settings, tmp_path / "1", progress=False)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    torch.manual_seed(1)
    train(settings, tmp_path / "2", progress=False)
    assert files(tmp_path / "1") == files(tmp_path / "2")
    other = train(replace(settings, seed=1), tmp_path / "3", progress=False)
    for name, value in first.state_dict().items():
        assert not torch.equal(value, other.state_dict()[name])


def test_a_folder_with_another_run_is_refused(dense, tmp_path):
    train(dense, tmp_path, progress=False)
    before = files(tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}.* is of an earlier run; resume it, or train"):
        train(dense, tmp_path, progress=False)
    other = replace(dense, tau=0.2, n_tasks=7)
    with pytest.raises(ValueError, match="with other values of n_tasks, tau; resume it with those"):
        train(other, tmp_path, resume=True, progress=False)
    tensors, metadata = load_checkpoint(tmp_path / CHECKPOINT)
    save_checkpoint(tmp_path / CHECKPOINT, tensors, metadata | {"device": "cuda"})
    with pytest.raises(ValueError, match="device='cuda'; resume it there"):
        train(dense, tmp_path, resume=True, progress=False)
    (tmp_path / CHECKPOINT).write_bytes(before[WEIGHTS])
    with pytest.raises(ValueError, match="not the checkpoint of a training run"):
        train(dense, tmp_path, resume=True, progress=False)
    (tmp_path / CHECKPOINT).write_bytes(before[CHECKPOINT][:-1])
    with pytest.raises(ValueError, match=f"{tmp_path / CHECKPOINT} is cut short"):
        train(dense, tmp_path, resume=True, progress=False)
    assert {**files(tmp_path), CHECKPOINT: before[CHECKPOINT]} == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_it_trains_and_resumes_on_cuda(tied, train_until, tmp_path):
    train(tied, tmp_path / "whole", device="cuda", progress=False)
    train_until(13, tied, tmp_path / "broken", device="cuda")
    network = train(tied, tmp_path / "broken", device="cuda", resume=True, progress=False)
    assert next(network.parameters()).is_cuda
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
