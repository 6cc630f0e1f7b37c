"""The clustering transformer as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from sklearn_leanclust._base import CenterClusterer
from sklearn_leanclust._distances import frame_around, variance_in
from sklearn_leanclust._search import search_centers
from sklearn_leanclust._seeding import Init

if TYPE_CHECKING:
    import torch

    from sklearn_leanclust.network.transformer import ClusteringTransformer


class TransformerKMeans(CenterClusterer):
    """K-means clustering by a small attention layer.

    Takes the place of :class:`sklearn.cluster.KMeans`. A meta-trained layer moves the centres for
    `max_iter` steps, in rounds; between them the least useful centres relocate to where the error
    is, and the best centres seen are kept. Large data are sampled for this. A few exact steps on
    all points end it. The network runs in ``fit`` only: fitted attributes are NumPy arrays and
    ``predict`` is the nearest centre.

    Parameters
    ----------
    n_clusters : int, default=8
        Number k of clusters.
    init : {"k-means++", "random"}, callable or array-like of shape \
            (n_clusters, n_features), default="k-means++"
        Initial centres, as in :class:`sklearn.cluster.KMeans`; a callable gets the data in their
        own units.
    n_init : "auto" or int, default="auto"
        Number of starts, of which the best result is kept. ``"auto"`` makes one, which on small
        data goes on in several branches.
    max_iter : int, default=40
        Largest number of steps of the network from one start; it makes fewer where relocations lead
        to nothing better any more.
    tol : float, default=1e-4
        The exact steps end when the squared movement of all centres is at most `tol` times the mean
        variance of the features.
    embedding : {"binary", "onehot"}, default="binary"
        Code that tells the clusters apart in the network.
    regularizer : {"entropy", "l2"}, default="entropy"
        Regularizer of the smoothed min that the weights were trained with. Exact weights have none.
    tau : float, default=0.1
        Strength of the regularizer, in units of the variance within clusters. Exact weights have
        none.
    weights : {"tied", "dense", "exact"}, path or ClusteringTransformer, default="tied"
        Weights of the network. ``"tied"``: a few learned scalars that serve data of any size.
        ``"dense"``: learned matrices for one number of features and clusters. ``"exact"``: the
        analytic ones, with which a step is Lloyd's. A path names a file that training wrote. A path
        or a network sets `embedding`, `regularizer` and `tau` itself. Learned weights that do not
        come with the package are trained at first use and kept in the user's cache, or in the
        folder that the variable SKLEARN_LEANCLUST_CACHE names.
    device : str or torch.device, default="auto"
        Where the network runs. ``"auto"`` takes a GPU where there is one.
    verbose : int, default=0
        Above 0, prints the number of steps and the inertia.
    random_state : int, RandomState instance or None, default=None
        Draws the initial centres. The same seed gives the same result.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres, with the dtype of the data.
    labels_ : ndarray of shape (n_samples,), int32
        Nearest centre of each point.
    inertia_ : float
        Sum of squared distances to the nearest centre, weighted by the sample weights.
    n_iter_ : int
        Number of steps of the network from the best start.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the data have string names.

    See Also
    --------
    LloydStep : The comparator, exact steps of Lloyd's algorithm.

    References
    ----------
    "Leaner transformers can easily learn to cluster" (NeurIPS 2026).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_leanclust import TransformerKMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = TransformerKMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **CenterClusterer._parameter_constraints,
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "embedding": [StrOptions({"binary", "onehot"})],
        "regularizer": [StrOptions({"entropy", "l2"})],
        "tau": [Interval(Real, 0, None, closed="neither")],
        "weights": [str, os.PathLike, HasMethods(["forward", "state_dict"])],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Init = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 40,
        tol: float = 1e-4,
        embedding: str = "binary",
        regularizer: str = "entropy",
        tau: float = 0.1,
        weights: str | os.PathLike | ClusteringTransformer = "tied",
        device: str | torch.device = "auto",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.embedding = embedding
        self.regularizer = regularizer
        self.tau = tau
        self.weights = weights
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None) -> TransformerKMeans:
        """Cluster the data.

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
        self : TransformerKMeans
        """
        from sklearn_leanclust.network.device import resolve_device

        device = resolve_device(self.device)
        X, weight = self._check_training_data(X, sample_weight)
        frame = frame_around(X)
        variance = variance_in(frame, X)
        centers, self.n_iter_ = search_centers(
            X,
            weight,
            frame,
            self._network(),
            init=self.init,
            n_clusters=int(self.n_clusters),  # a small NumPy integer would overflow
            n_init=self._count_starts(),
            max_iter=int(self.max_iter),
            tol=self.tol * variance,
            device=device,
            random_state=check_random_state(self.random_state),
        )
        self._set_centers(X, frame.leave(centers, X.dtype), weight)
        if self.verbose:
            print(f"{self.n_iter_} steps of the network, inertia {self.inertia_:.6g}")
        return self

    def _count_starts(self) -> int | str:
        given = not isinstance(self.init, str) and not callable(self.init)
        if given and self.n_init not in ("auto", 1):
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self.n_init}.",
                RuntimeWarning,
                stacklevel=3,
            )
        return 1 if given else self.n_init if self.n_init == "auto" else int(self.n_init)

    def _network(self) -> ClusteringTransformer:
        """Network that the parameters ask for."""
        from sklearn_leanclust.network.transformer import ClusteringTransformer
        from sklearn_leanclust.network.weights import ExactWeights

        if hasattr(self.weights, "forward"):
            return self._check_size(self.weights)
        if self.weights == "exact":
            return ClusteringTransformer(ExactWeights(), self.embedding)
        from sklearn_leanclust.network.checkpoint import load_network
        from sklearn_leanclust.network.shipped import find_shipped, load_shipped

        if self.weights not in ("tied", "dense"):
            if not os.path.isfile(self.weights):
                raise ValueError(
                    f"weights={self.weights!r} is no file, and not 'tied', 'dense' or 'exact'."
                )
            return self._check_size(load_network(self.weights)[0])
        size = (self.n_features_in_, int(self.n_clusters))
        recipe = (self.weights, self.embedding, self.regularizer, float(self.tau))
        shipped = find_shipped(*recipe, *size)
        if shipped is not None:
            return load_shipped(shipped)
        from sklearn_leanclust.meta.cache import load_or_train
        from sklearn_leanclust.meta.settings import TrainingSettings

        kind, embedding, regularizer, tau = recipe
        named = {"embedding": embedding, "regularizer": regularizer, "tau": tau}
        if kind == "tied":
            return load_or_train(TrainingSettings(**named))
        return load_or_train(TrainingSettings.dense(*size, **named))

    def _check_size(self, network: ClusteringTransformer) -> ClusteringTransformer:
        """The network, if it can serve these data."""
        from sklearn_leanclust.network.transformer import ClusteringTransformer
        from sklearn_leanclust.network.weights import DenseWeights

        if not isinstance(network, ClusteringTransformer):
            raise TypeError(
                f"weights is of type {type(network).__name__}; give a ClusteringTransformer, a "
                "file, or 'tied', 'dense' or 'exact'."
            )
        dense = network.weights
        if isinstance(dense, DenseWeights) and (dense.n_features, dense.n_clusters) != (
            self.n_features_in_,
            self.n_clusters,
        ):
            raise ValueError(
                f"weights are dense ones for {dense.n_features} features and {dense.n_clusters} "
                f"clusters, but X has {self.n_features_in_} features and {self.n_clusters} "
                "clusters are asked for; use 'tied' weights, which serve every size."
            )
        return network
