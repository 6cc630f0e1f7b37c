"""The cache of trained weights: trained once, whole, and never in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch

from sklearn_leanclust.meta import cache
from sklearn_leanclust.meta.cache import VARIABLE, cache_folder, cached_files, load_or_train
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import WEIGHTS
from sklearn_leanclust.network.checkpoint import load_network, save_network
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer

SETTINGS = TrainingSettings(tau=0.3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A cache that is not there yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache" / "inner"))
    return tmp_path / "cache" / "inner"


@pytest.fixture(autouse=True)
def trained(monkeypatch) -> list[TrainingSettings]:
    """Training that takes no time, with other weights each time; what it was called for."""
    calls = []

    def train(settings: TrainingSettings, out: str) -> None:
        calls.append(settings)
        weights = TiedWeights()
        with torch.no_grad():
            weights.knots["step_length"].fill_(len(calls))
        network = ClusteringTransformer(weights, settings.embedding)
        save_network(Path(out) / WEIGHTS, network, settings={}, score={})

    monkeypatch.setattr(cache, "train", train)
    return calls


def turn(network: ClusteringTransformer) -> int:
    """Which of the trainings gave this network."""
    return int(network.weights.knots["step_length"][0])


def test_weights_are_trained_once_and_kept(folder, trained):
    assert turn(load_or_train(SETTINGS)) == 1
    assert turn(load_or_train(SETTINGS)) == 1
    assert trained == [SETTINGS]
    (path,) = cached_files()
    assert path.parent == folder
    assert path.name.startswith("tied-binary-entropy-0.3-")
    assert turn(load_network(path)[0]) == 1
    assert {file.suffix for file in folder.iterdir()} <= {".safetensors", ".lock"}


@pytest.mark.parametrize(
    "change", [{"tau": 0.4}, {"embedding": "onehot"}, {"regularizer": "l2"}, {"seed": 1}]
)
def test_other_settings_are_other_weights(change, trained):
    load_or_train(SETTINGS)
    other = TrainingSettings(**{"tau": 0.3, **change})
    assert turn(load_or_train(other)) == 2
    assert turn(load_or_train(SETTINGS)) == 1
    assert trained == [SETTINGS, other]


def test_a_newer_format_has_files_of_its_own(trained, monkeypatch):
    load_or_train(SETTINGS)
    monkeypatch.setattr(cache, "FORMAT_VERSION", cache.FORMAT_VERSION + 1)
    load_or_train(SETTINGS)
    assert len(trained) == len(cached_files()) == 2


def test_the_variable_moves_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "~/mine")
    assert cache_folder() == tmp_path / "mine"
    for unset in (lambda: monkeypatch.setenv(VARIABLE, ""), lambda: monkeypatch.delenv(VARIABLE)):
        unset()
        assert cache_folder().name in ("sklearn_leanclust", "Cache")
    assert cached_files() == []


@pytest.mark.parametrize("size", [0, 0.5, 0.99])
def test_a_broken_file_is_made_again_with_a_warning(size, trained):
    load_or_train(SETTINGS)
    (path,) = cached_files()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(size * len(whole))])
    with pytest.warns(UserWarning, match=f"{path} .*trained again") as caught:
        assert turn(load_or_train(SETTINGS)) == 2
    assert [warning.filename for warning in caught] == [__file__]
    assert turn(load_or_train(SETTINGS)) == 2


def check_that_it_goes_on_in_memory(trained) -> None:
    for expected in (1, 2):
        with pytest.warns(UserWarning, match=f"cannot be written .*{VARIABLE}") as caught:
            assert turn(load_or_train(SETTINGS)) == expected
        assert [warning.filename for warning in caught] == [__file__]
    assert len(trained) == 2  # once a call, not twice


def test_a_cache_that_cannot_be_made(folder, trained):
    folder.parent.write_text("a file where the folder should be")
    check_that_it_goes_on_in_memory(trained)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_cache(folder, trained):
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    check_that_it_goes_on_in_memory(trained)
    folder.chmod(0o700)


def test_a_read_only_cache_serves_what_it_holds(trained, monkeypatch):
    load_or_train(SETTINGS)

    def denied(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(cache, "acquire_lock", denied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert turn(load_or_train(SETTINGS)) == 1


def test_a_full_disk(folder, trained, monkeypatch):
    def full(descriptor):
        if list(folder.glob(".*.partial")):  # not the file of the training itself
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    check_that_it_goes_on_in_memory(trained)
    assert not cached_files()
    assert not list(folder.glob(".*.partial"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("diverged"), OSError("full")])
def test_training_that_fails_leaves_nothing_and_may_be_tried_again(error, monkeypatch, tmp_path):
    def fail(settings, out):
        (Path(out) / "checkpoint").touch()
        raise error

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with monkeypatch.context() as patch:
        patch.setattr(cache, "train", fail)
        with pytest.raises(error if isinstance(error, type) else type(error)):
            load_or_train(SETTINGS)
    assert not cached_files()
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    assert turn(load_or_train(SETTINGS)) == 1


def test_waiting_is_said_once(monkeypatch, capsys, trained):
    monkeypatch.setattr(cache, "PATIENCE", 0.1)
    lock = cache.FileLock(f"{cache.cache_path(SETTINGS)}.lock")
    cache_folder().mkdir(parents=True)
    with lock:
        waiting = threading.Thread(target=load_or_train, args=(SETTINGS,))
        waiting.start()
        waiting.join(0.6)
        assert waiting.is_alive()
        assert not trained
        assert capsys.readouterr().err == (
            f"waiting for another process that trains {cache.cache_path(SETTINGS).stem}\n"
        )
    waiting.join(10)
    assert not waiting.is_alive()
    assert trained == [SETTINGS]


def test_threads_train_once(trained):
    networks = []
    threads = [
        threading.Thread(target=lambda: networks.append(load_or_train(SETTINGS))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [turn(network) for network in networks] == [1] * 8
    assert trained == [SETTINGS]


# Processes of their own. They fork from a fresh interpreter, so that torch is imported once.
PROCESSES = """
import os, signal, sys, time
from pathlib import Path
from sklearn_leanclust.meta import cache
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.network.checkpoint import save_network
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer

notes, n, deadly = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings = TrainingSettings(tau=0.3)

def train(settings, out):
    (notes / f"trained-{os.getpid()}").touch()
    time.sleep(0.3)
    if len(list(notes.glob("trained-*"))) <= deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    network = ClusteringTransformer(TiedWeights(), settings.embedding)
    network.weights.knots["step_length"].data.fill_(os.getpid())
    save_network(Path(out) / cache.WEIGHTS, network, settings={}, score={})

cache.train = train
children = []
for _ in range(n):
    child = os.fork()
    if child == 0:
        network = cache.load_or_train(settings)
        (notes / f"got-{os.getpid()}").write_text(str(network.state_dict()))
        os._exit(0)
    children.append(child)
print(*(os.waitpid(child, 0)[1] for child in children))
"""


def run_processes(tmp_path: Path, n: int, deadly: int = 0) -> tuple[list[int], list[str], int]:
    """Ask from n processes for the same weights, while the first few trainings are killed.

    Returns what became of the processes, what they got, and the number of trainings.
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    command = [sys.executable, "-c", PROCESSES, str(notes), str(n), str(deadly)]
    env = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(notes)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    got = [path.read_text() for path in notes.glob("got-*")]
    return [int(word) for word in done.stdout.split()], got, len(list(notes.glob("trained-*")))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_eight_processes_train_once_and_get_the_same(tmp_path):
    ends, got, n_trained = run_processes(tmp_path, 8)
    assert ends == [0] * 8
    assert len(got) == 8 and len(set(got)) == 1
    assert n_trained == 1
    assert len(cached_files()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_lock_of_a_killed_process_does_not_block(tmp_path):
    ends, got, n_trained = run_processes(tmp_path, 5, deadly=2)
    assert sorted(ends) == [0, 0, 0, signal.SIGKILL, signal.SIGKILL]
    assert len(got) == 3 and len(set(got)) == 1
    assert n_trained == 3
