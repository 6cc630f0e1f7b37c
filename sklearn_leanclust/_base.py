"""What both estimators share: parameters, input checks, everything that follows ``fit``."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sklearn_leanclust._distances import euclidean, nearest_centers


class CenterClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of estimators whose model is a set of centres."""

    _parameter_constraints: dict[str, list[Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _check_training_data(self, X, sample_weight) -> tuple[np.ndarray, np.ndarray | None]:
        """Validated points and weights; scikit-learn's words for what is wrong with them."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        if len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        return X, self._check_weights(X, sample_weight)

    def _check_weights(self, X, sample_weight) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weight

    def _set_centers(self, X: np.ndarray, centers: np.ndarray, sample_weight) -> None:
        """Set the fitted attributes that follow from the centres."""
        self.cluster_centers_ = centers
        self.labels_, self.inertia_ = nearest_centers(X, centers, sample_weight)
        distinct = len(np.unique(self.labels_))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_test_data(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C")

    def predict(self, X) -> np.ndarray:
        """Predict the closest cluster each sample in X belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            Index of the nearest centre, the lowest where several are.
        """
        return nearest_centers(self._check_test_data(X), self.cluster_centers_)[0]

    def transform(self, X) -> np.ndarray:
        """Transform X to a cluster-distance space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters), dtype of `X`
            Euclidean distance to each centre.
        """
        return euclidean(self._check_test_data(X), self.cluster_centers_)

    def fit_predict(self, X, y=None, sample_weight=None) -> np.ndarray:
        """Compute cluster centers and predict cluster index for each sample.

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
        labels : ndarray of shape (n_samples,), int32
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X, y=None, sample_weight=None) -> np.ndarray:
        """Compute clustering and transform X to cluster-distance space.

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
        X_new : ndarray of shape (n_samples, n_clusters)
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X, y=None, sample_weight=None) -> float:
        """Opposite of the value of X on the K-means objective.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, 1 if None.

        Returns
        -------
        score : float
            Minus the weighted sum of squared distances to the nearest centres.
        """
        X = self._check_test_data(X)
        weight = self._check_weights(X, sample_weight)
        return -nearest_centers(X, self.cluster_centers_, weight)[1]

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
