"""The one-screen report of ``fit``."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from sklearn.cluster import KMeans

from sklearn_leanclust import LloydStep, TransformerKMeans

SHOWN_CLUSTERS = 10


def timed_fit(estimator, X: np.ndarray) -> float:
    """Fit an estimator; return the seconds that took."""
    start = perf_counter()
    estimator.fit(X)
    return perf_counter() - start


def size_lines(labels: np.ndarray, n_clusters: int) -> Iterator[str]:
    """Sizes of the clusters, the largest first; `labels` of shape (n,)."""
    sizes = np.bincount(labels, minlength=n_clusters)
    order = np.argsort(-sizes, kind="stable")
    yield f"{'cluster':>7} {'points':>9} {'share':>7}"
    for j in order[:SHOWN_CLUSTERS]:
        yield f"{j:>7} {sizes[j]:>9} {sizes[j] / len(labels):>7.1%}"
    rest = sizes[order[SHOWN_CLUSTERS:]]
    if len(rest):
        yield f"and {len(rest)} more of {rest.min()} to {rest.max()} points"


def comparison_lines(estimator: TransformerKMeans, seconds: float, X: np.ndarray) -> Iterator[str]:
    """Inertia and time of a fitted estimator and of what it is compared with, one by one."""
    k, seed = estimator.n_clusters, estimator.random_state
    others = {
        "one Lloyd step": LloydStep(k, random_state=seed),
        "KMeans, n_init=10": KMeans(k, n_init=10, random_state=seed),
    }
    yield f"{'method':<28} {'inertia':>12} {'seconds':>9}"
    yield f"{'TransformerKMeans':<28} {estimator.inertia_:>12.6g} {seconds:>9.3f}"
    for name, other in others.items():
        seconds = timed_fit(other, X)
        yield f"{name:<28} {other.inertia_:>12.6g} {seconds:>9.3f}"
