"""Weights that do not come with the package: trained once, kept for the next time."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

from sklearn_leanclust._files import write_atomically
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import WEIGHTS, train
from sklearn_leanclust.network.checkpoint import FORMAT_VERSION, CheckpointError, load_network
from sklearn_leanclust.network.shipped import SUFFIX, file_stem
from sklearn_leanclust.network.transformer import ClusteringTransformer

VARIABLE = "SKLEARN_LEANCLUST_CACHE"
PATIENCE = 2.0  # seconds of waiting for another process before saying so


def cache_folder() -> Path:
    """Folder of trained weights: the user's cache, or what SKLEARN_LEANCLUST_CACHE names."""
    chosen = os.environ.get(VARIABLE) or user_cache_dir("sklearn_leanclust", appauthor=False)
    return Path(os.path.expanduser(chosen))


def cached_files() -> list[Path]:
    """Files with weights in the cache, in the order of their names."""
    return sorted(cache_folder().glob(f"*{SUFFIX}"))


def load_or_train(settings: TrainingSettings) -> ClusteringTransformer:
    """Weights for these settings, from the cache, or trained now and kept there.

    Of several processes that ask for the same weights one trains them, and the others wait.

    Parameters
    ----------
    settings : TrainingSettings

    Returns
    -------
    ClusteringTransformer

    Warns
    -----
    UserWarning
        If the cache cannot be written, or held a broken file.
    """
    path = cache_path(settings)
    with suppress(OSError, CheckpointError):  # needs no lock, so that a read-only cache serves too
        return load_network(path)[0]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = acquire_lock(path)
    except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
        warn_unkept(path, error)
        return train_anew(settings)[0]
    with lock:
        try:
            return load_network(path)[0]  # another process may have trained them since
        except FileNotFoundError:
            pass
        except (OSError, CheckpointError) as error:
            warnings.warn(f"{error} These weights are trained again.", stacklevel=2)
        network, data = train_anew(settings)
        try:
            with write_atomically(path) as file:
                file.write(data)
        except OSError as error:
            warn_unkept(path, error)
        return network


def cache_path(settings: TrainingSettings) -> Path:
    """Where the weights of these settings are kept, whether they are there or not."""
    digest = hashlib.sha256(f"{FORMAT_VERSION} {settings.to_json()}".encode()).hexdigest()[:12]
    return cache_folder() / f"{name_of(settings)}-{digest}{SUFFIX}"


def name_of(settings: TrainingSettings) -> str:
    """Name of weights of these settings."""
    return file_stem(
        settings.kind,
        settings.embedding,
        settings.regularizer,
        settings.tau,
        settings.n_features[0],
        settings.n_clusters[0],
    )


def acquire_lock(path: Path) -> AbstractContextManager:
    """Lock a file, saying so if it takes long; the system frees the lock of a dead process."""
    lock = FileLock(f"{path}.lock")
    try:
        return lock.acquire(timeout=PATIENCE)
    except Timeout:
        print(f"waiting for another process that trains {path.stem}", file=sys.stderr, flush=True)
        return lock.acquire()


def train_anew(settings: TrainingSettings) -> tuple[ClusteringTransformer, bytes]:
    """Train; return the network and its file, as they would be read from the cache."""
    print(
        f"{name_of(settings)} does not come with the package: it is trained now, once",
        file=sys.stderr,
    )
    with TemporaryDirectory(prefix="sklearn_leanclust-") as folder:
        train(settings, folder)
        weights = Path(folder) / WEIGHTS
        return load_network(weights)[0], weights.read_bytes()


def warn_unkept(path: Path, error: Exception) -> None:
    """Warn the caller of :func:`load_or_train` that the weights are not kept."""
    warnings.warn(
        f"The cache {path.parent} cannot be written ({error}), so these weights are trained for "
        f"this process alone; let the environment variable {VARIABLE} name a folder that can be.",
        stacklevel=3,
    )
