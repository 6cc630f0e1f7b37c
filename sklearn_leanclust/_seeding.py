"""Initial centres."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_array

from sklearn_leanclust._distances import Frame

Init = str | np.ndarray | Callable


def centers_in_frame(
    X: np.ndarray,
    frame: Frame,
    init: Init,
    n_clusters: int,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Choose the initial centres, or check those that are given.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points, outside of the frame.
    frame : Frame
    init : {"k-means++", "random"}, callable or array-like of shape (k, d)
        As in :class:`sklearn.cluster.KMeans`; a callable gets `X` as it is.
    n_clusters : int
        Number k of centres, at most n.
    sample_weight : ndarray of shape (n,), optional
        Weights with which points are drawn.
    random_state : RandomState

    Returns
    -------
    ndarray of shape (k, d), dtype of `X`
        Centres in the frame, a new array.

    Raises
    ------
    ValueError
        If an array, or what the callable returns, has another shape or is not finite.
    """
    if isinstance(init, str) and init == "k-means++":
        points = frame.enter(X, X.dtype)
        return kmeans_plusplus(
            points, n_clusters, sample_weight=sample_weight, random_state=random_state
        )[0]
    if isinstance(init, str):  # "random"
        share = None
        # with fewer points of weight than clusters, the others do as well
        if sample_weight is not None and np.count_nonzero(sample_weight) >= n_clusters:
            share = np.asarray(sample_weight, np.float64) / sample_weight.sum(dtype=np.float64)
        chosen = random_state.choice(len(X), n_clusters, replace=False, p=share)
        return frame.enter(X[chosen], X.dtype)
    if callable(init):
        init = init(X, n_clusters, random_state=random_state)
    centers = check_array(init, dtype=np.float64, input_name="init")
    check_init_shape(centers, n_clusters, X.shape[1])
    return frame.enter(centers, X.dtype)


def check_init_shape(centers: np.ndarray, n_clusters: int, n_features: int) -> None:
    """Raise ValueError, in scikit-learn's words, unless `centers` is (n_clusters, n_features)."""
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not "
            f"match the number of clusters {n_clusters}."
        )
    if centers.shape[1] != n_features:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not "
            f"match the number of features of the data {n_features}."
        )
