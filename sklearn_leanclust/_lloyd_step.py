"""The comparator: exact Lloyd steps."""

from __future__ import annotations

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from sklearn_leanclust._base import CenterClusterer
from sklearn_leanclust._distances import assign, frame_around, lloyd_step
from sklearn_leanclust._seeding import Init, centers_in_frame


class LloydStep(CenterClusterer):
    """Exact steps of Lloyd's algorithm, one by default.

    What a learned step is compared with. Unlike :class:`sklearn.cluster.KMeans`, a centre without
    points stays where it is.

    Parameters
    ----------
    n_clusters : int, default=8
        Number k of clusters.
    init : {"k-means++", "random"}, callable or array-like of shape \
            (n_clusters, n_features), default="k-means++"
        Initial centres, as in :class:`sklearn.cluster.KMeans`; a callable gets the data in their
        own units.
    max_iter : int, default=1
        Largest number of steps; fewer are made once nothing changes any more.
    random_state : int, RandomState instance or None, default=None
        Draws the initial centres.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres after the last step, with the dtype of the data.
    labels_ : ndarray of shape (n_samples,), int32
        Nearest centre of each point.
    inertia_ : float
        Sum of squared distances to the nearest centre, weighted by the sample weights.
    n_iter_ : int
        Number of steps made.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the data have string names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_leanclust import LloydStep
    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> LloydStep(2, init=[[0.0], [9.0]]).fit(X).cluster_centers_
    array([[ 0.5],
           [11. ]])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Init = "k-means++",
        max_iter: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None) -> LloydStep:
        """Make the steps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, 1 if None.

        Returns
        -------
        self : LloydStep
        """
        X, weight = self._check_training_data(X, sample_weight)
        frame = frame_around(X)
        random_state = check_random_state(self.random_state)
        centers = centers_in_frame(X, frame, self.init, self.n_clusters, weight, random_state)
        self.n_iter_, unchanged = 0, False
        while self.n_iter_ < self.max_iter and not unchanged:
            moved = lloyd_step(centers, assign(X, centers, frame, weight))
            unchanged = np.array_equal(moved, centers)
            centers = moved
            self.n_iter_ += 1
        self._set_centers(X, frame.leave(centers, X.dtype), weight)
        return self
