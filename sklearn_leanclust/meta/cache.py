"""Weights that do not come with the package: trained once, kept for the next time."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import WEIGHTS, train
from sklearn_leanclust.network.checkpoint import FORMAT_VERSION, CheckpointError, load_network
from sklearn_leanclust.network.shipped import file_stem
from sklearn_leanclust.network.transformer import ClusteringTransformer

VARIABLE = "SKLEARN_LEANCLUST_CACHE"
PATIENCE = 2.0  # seconds of waiting for another process before saying so


def cache_folder() -> Path:
    """Folder of trained weights: the user's cache, or what SKLEARN_LEANCLUST_CACHE names."""
    return Path(os.environ.get(VARIABLE) or user_cache_path("sklearn_leanclust", appauthor=False))


def load_or_train(settings: TrainingSettings) -> ClusteringTransformer:
    """Weights for these settings, from the cache, or trained now and kept there.

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
    digest = hashlib.sha256(f"{FORMAT_VERSION} {settings.to_json()}".encode()).hexdigest()[:12]
    path = cache_folder() / f"{name_of(settings)}-{digest}.safetensors"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with lock_of(path):
            network = read(path)
            if network is None:
                train_into(path, settings)
                network = load_network(path)[0]
            return network
    except OSError as error:
        warnings.warn(
            f"The cache {path.parent} cannot be written ({error}), so the weights are trained for "
            f"this process alone; let {VARIABLE} name a folder that can be.",
            stacklevel=2,
        )
        return train_into(None, settings)


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


def lock_of(path: Path) -> FileLock:
    """Hold the lock of a file, which the system frees with the process; say so if it takes long."""
    lock = FileLock(f"{path}.lock")
    try:
        return lock.acquire(timeout=PATIENCE).lock
    except Timeout:
        print(f"waiting for another process that trains {path.name}", file=sys.stderr)
        return lock.acquire().lock


def read(path: Path) -> ClusteringTransformer | None:
    """Cached network, or None where there is no whole one."""
    if not path.exists():
        return None
    try:
        return load_network(path)[0]
    except CheckpointError as error:
        warnings.warn(f"{error} It is trained again.", stacklevel=3)
        return None


def train_into(path: Path | None, settings: TrainingSettings) -> ClusteringTransformer:
    """Train in a folder of its own and move the weights to `path`, if there is one."""
    print(
        f"{name_of(settings)} does not come with the package: it is trained now, once",
        file=sys.stderr,
    )
    with tempfile.TemporaryDirectory(dir=None if path is None else path.parent) as folder:
        network = train(settings, folder)
        if path is not None:
            os.replace(Path(folder) / WEIGHTS, path)
    return network
