"""Methods of the benchmark.

A method is a function of the points, the number of clusters and a seed that returns the centres. It
runs in a process of its own, so it must be importable: a function of a module, or a partial of one.
What it needs is imported when it is called. To add one, add a line to ``METHODS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path

import numpy as np

import sklearn_leanclust

OWN = "sklearn_leanclust"
BASELINE = "kmeans-10"
REFERENCE = "kmeans-50"


@dataclass(frozen=True)
class Method:
    """A way to cluster.

    Parameters
    ----------
    fit : callable
        ``fit(X, k, seed)`` returns centres of shape (k, d), given float64 points of shape (n, d).
    distribution : str
        The installed package that does the work.
    """

    fit: Callable[[np.ndarray, int, int], np.ndarray]
    distribution: str = "scikit-learn"

    def version(self) -> str | None:
        """Version of the distribution, None where it is not installed.

        This package's own tells apart the state of its source, so that results of an older state
        are never taken for new ones.
        """
        if self.distribution == OWN:
            return f"{sklearn_leanclust.__version__}+{source_digest()}"
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None


def source_digest() -> str:
    """Digest of the code and weights that a fit may use."""
    package = Path(sklearn_leanclust.__file__).parent
    files = [*package.glob("_*.py"), *package.glob("network/**/*.py"), *package.glob("weights/*")]
    digest = sha256()
    for path in sorted(path for path in files if path.is_file()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def kmeans(X: np.ndarray, k: int, seed: int, n_init: int) -> np.ndarray:
    """Run scikit-learn's KMeans."""
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=n_init, random_state=seed).fit(X).cluster_centers_


def minibatch(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run scikit-learn's MiniBatchKMeans."""
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(k, random_state=seed).fit(X).cluster_centers_


def breathing(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run breathing k-means by its author's implementation."""
    # the distributions of the extra `bench` are loaded by name: nothing else depends on them
    BKMeans = import_module("bkmeans").BKMeans
    return BKMeans(n_clusters=k, random_state=seed).fit(X).cluster_centers_


def faiss(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run faiss on the CPU, in float32; it samples 256 points for each cluster."""
    d = X.shape[1]
    model = import_module("faiss").Kmeans(d, k, seed=seed)
    model.cp.min_points_per_centroid = 1  # only silences a warning
    model.train(X.astype(np.float32))
    return model.centroids


def superkmeans(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Run SuperKMeans, in float32; it samples 30 % of the points, or works hierarchically."""
    model = import_module("superkmeans").SuperKMeans(k, X.shape[1], seed=seed)
    return model.train(X.astype(np.float32))


def transformer(X: np.ndarray, k: int, seed: int, **parameters: object) -> np.ndarray:
    """Run this package's estimator."""
    from sklearn_leanclust import TransformerKMeans

    model = TransformerKMeans(k, random_state=seed, **parameters)
    return model.fit(X).cluster_centers_


METHODS = {
    "kmeans-1": Method(partial(kmeans, n_init=1)),
    BASELINE: Method(partial(kmeans, n_init=10)),
    "minibatch": Method(minibatch),
    "breathing": Method(breathing, "bkmeans"),
    "faiss": Method(faiss, "faiss-cpu"),
    "superkmeans": Method(superkmeans, "superkmeans"),
    "transformer": Method(transformer, OWN),
    "exact": Method(partial(transformer, weights="exact"), OWN),
}
# Only on request: it finds the best known where the others might all fail, and takes its time.
REFERENCES = {REFERENCE: Method(partial(kmeans, n_init=50))}
