"""Pictures of clusterings, in the form of scikit-learn's displays.

matplotlib is imported when something is drawn. Without `ax` a display opens a figure of pyplot's;
with one, pyplot is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED_CLUSTERS = 20  # with more than these, numbers and a legend would cover the points


class ClusterDisplay:
    """Clusters in the plane: points, centres and sizes.

    Data of more than two features are shown by their two principal components, data of one
    feature over the index of the cluster. Made by :meth:`from_estimator` or
    :meth:`from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Coordinates of the samples.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample, from 0 to n_clusters - 1.
    centers : ndarray of shape (n_clusters, 2)
        Coordinates of the centres.
    axis_names : pair of str
        What the coordinates are.

    Attributes
    ----------
    sizes : ndarray of shape (n_clusters,)
        Number of samples in each cluster.
    ax_ : matplotlib Axes
        Where it is drawn.
    figure_ : matplotlib Figure
        Figure of `ax_`.
    points_ : matplotlib PathCollection
        The samples.
    centers_ : matplotlib PathCollection
        The centres.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn_leanclust import ClusterDisplay, TransformerKMeans
    >>> X = load_wine().data
    >>> model = TransformerKMeans(n_clusters=3, random_state=0).fit(X)
    >>> display = ClusterDisplay.from_estimator(model, X)
    >>> sorted(display.sizes.tolist())
    [47, 62, 69]
    """

    def __init__(
        self,
        points: np.ndarray,
        labels: np.ndarray,
        centers: np.ndarray,
        axis_names: Sequence[str],
    ) -> None:
        self.points = points
        self.labels = labels
        self.centers = centers
        self.axis_names = axis_names
        self.sizes = np.bincount(labels, minlength=len(centers))

    @classmethod
    def from_estimator(cls, estimator, X, *, ax: Axes | None = None) -> ClusterDisplay:
        """Draw what a fitted estimator makes of data.

        Parameters
        ----------
        estimator : estimator with ``predict`` and ``cluster_centers_``
            Fitted, such as :class:`TransformerKMeans` or :class:`sklearn.cluster.KMeans`.
        X : array-like of shape (n_samples, n_features)
            Data.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of pyplot's if None.

        Returns
        -------
        ClusterDisplay

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(
            X,
            estimator.predict(X),
            centers=estimator.cluster_centers_,
            feature_names=getattr(estimator, "feature_names_in_", None),
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        X,
        labels,
        *,
        centers,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> ClusterDisplay:
        """Draw labelled data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        labels : array-like of shape (n_samples,)
            Cluster of each sample, from 0 to n_clusters - 1.
        centers : array-like of shape (n_clusters, n_features)
            Centres of the clusters.
        feature_names : sequence of str, default=None
            Names of the features; "feature 0" and so on if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of pyplot's if None.

        Returns
        -------
        ClusterDisplay

        Raises
        ------
        ValueError
            If the shapes do not fit each other, or a label names no centre.
        """
        X = check_array(X, dtype=[np.float64, np.float32])
        centers = check_array(centers, dtype=X.dtype, input_name="centers")
        labels = np.asarray(labels)
        if labels.shape != X.shape[:1]:
            raise ValueError(f"labels has shape {labels.shape}, but X has {len(X)} samples.")
        if centers.shape[1] != X.shape[1]:
            raise ValueError(
                f"centers has {centers.shape[1]} features, but X has {X.shape[1]} features."
            )
        if labels.min() < 0 or labels.max() >= len(centers):
            raise ValueError(
                f"labels go from {labels.min()} to {labels.max()}; with {len(centers)} centers "
                f"they must lie between 0 and {len(centers) - 1}."
            )
        if feature_names is None:
            feature_names = [f"feature {j}" for j in range(X.shape[1])]
        points, centers, axis_names = _in_the_plane(X, labels, centers, feature_names)
        return cls(points, labels, centers, axis_names).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ClusterDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure of pyplot's if None.

        Returns
        -------
        ClusterDisplay
            Itself, with `ax_`, `figure_`, `points_` and `centers_` set.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        n, k = len(self.points), len(self.centers)
        colors = _colors(k)
        marker_area = float(np.clip(20_000 / n, 1, 30))
        self.points_ = ax.scatter(
            *self.points.T, s=marker_area, c=colors[self.labels], linewidths=0, alpha=0.7
        )
        if k <= NAMED_CLUSTERS:
            self.centers_ = ax.scatter(
                *self.centers.T, s=160, c="white", edgecolors=colors, linewidths=2, zorder=3
            )
            self._name_clusters(ax, colors)
        else:
            self.centers_ = ax.scatter(
                *self.centers.T, s=25, c=colors, edgecolors="black", zorder=3
            )
        ax.set(
            xlabel=self.axis_names[0],
            ylabel=self.axis_names[1],
            title=f"{n} points, {k} clusters of {self.sizes.min()} to {self.sizes.max()}",
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_clusters(self, ax: Axes, colors: np.ndarray) -> None:
        from matplotlib.lines import Line2D

        for j, (x, y) in enumerate(self.centers):
            ax.text(x, y, str(j), size=8, weight="bold", ha="center", va="center", zorder=4)
        handles = [
            Line2D([], [], marker="o", linestyle="", color=colors[j], label=f"{j}: {size}")
            for j, size in enumerate(self.sizes)
        ]
        ax.legend(
            handles=handles,
            title="cluster: size",
            loc="upper left",
            bbox_to_anchor=(1, 1),
            frameon=False,
        )


def _in_the_plane(
    X: np.ndarray, labels: np.ndarray, centers: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, tuple[str, str]]:
    """Points (n, 2), centres (k, 2) and axis names of a display."""
    d = X.shape[1]
    if d == 1:
        heights = np.arange(len(centers))
        return (
            np.column_stack([X, labels]),
            np.column_stack([centers, heights]),
            (names[0], "cluster"),
        )
    if d == 2:
        return X, centers, (names[0], names[1])
    offset = X.mean(axis=0, dtype=np.float64)  # off first: PCA cancels badly far from the origin
    pca = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # shares of no variance at all
        points = pca.fit_transform(X - offset)
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    axis_names = tuple(f"principal component {i + 1} ({shares[i]:.0%})" for i in range(2))
    return points, pca.transform(centers - offset), axis_names


def _colors(k: int) -> np.ndarray:
    """One colour for each of k clusters, shape (k, 4)."""
    from matplotlib import colormaps

    if k <= 10:
        return colormaps["tab10"](np.arange(k))
    return colormaps["turbo"](np.linspace(0.05, 0.95, k))
