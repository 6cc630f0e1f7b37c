"""From points to centres: the network on a sample, then exact steps on all points."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sklearn_leanclust._distances import Frame, assign, blocks
from sklearn_leanclust._exact import exact_steps
from sklearn_leanclust._seeding import Init, centers_in_frame

if TYPE_CHECKING:
    import torch

    from sklearn_leanclust.network.transformer import ClusteringTransformer

# points of a sample for each centre: the most, the least, and where the scores of all are too many
MOST_PER_CLUSTER, LEAST_PER_CLUSTER, SAMPLE_SCORES = 1024, 256, 2**22
LARGEST_BATCH = 2**24  # scores at once, starts x branches x centres x points: 64 MB in float32


class Tuning(NamedTuple):
    """Constants of the search, tuned on the development sets of the benchmark."""

    first: int = 6  # steps of the first round
    later: int = 4  # steps of each later one
    share: tuple[float, float] = (0.2, 0.02)  # of the centres that relocate, first and last time
    n_trials: int = 8  # points drawn for each of them
    work: int = 60_000  # centres x points up to which a start branches
    most_branches: int = 4
    patience: int = 16  # relocations without success after which the search ends


def search_centers(
    X: np.ndarray,
    sample_weight: np.ndarray | None,
    frame: Frame,
    network: ClusteringTransformer,
    *,
    init: Init,
    n_clusters: int,
    n_init: int | str,
    max_iter: int,
    tol: float,
    device: torch.device,
    random_state: np.random.RandomState,
    tuning: Tuning = Tuning(),  # noqa: B008 - a constant
) -> tuple[np.ndarray, int]:
    """Find centres.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,) or None
    frame : Frame
        Around `X`.
    network : ClusteringTransformer
    init, n_clusters, n_init, max_iter, tol
        Parameters of `TransformerKMeans`; `n_init` is "auto" or a number.
    device : torch.device
    random_state : RandomState
    tuning : Tuning

    Returns
    -------
    centers : ndarray of shape (k, d)
        In the frame.
    n_iter : int
        Steps of the network from each start.
    """
    import torch

    from sklearn_leanclust.network.points import prepare
    from sklearn_leanclust.network.relocation import seed
    from sklearn_leanclust.network.search import plan_rounds, search

    sample = draw_sample(X, sample_weight, frame, n_clusters, random_state)
    some, some_weight = (X, sample_weight) if sample is None else (X[sample[0]], sample[1])
    if some_weight is not None:  # their unit does not matter, and might not fit into float32
        some_weight = some_weight.astype(np.float64) / some_weight.max()

    dtype = network_dtype(network, X.dtype)
    network = placed(network, device, dtype)
    points = prepare(
        torch.from_numpy(frame.enter(some, X.dtype)).to(device, dtype)[None],
        None if some_weight is None else torch.tensor(some_weight)[None].to(device, dtype),
    )
    generator = torch.Generator(device).manual_seed(int(random_state.randint(2**31 - 1)))
    n_starts = 1 if n_init == "auto" else n_init
    if isinstance(init, str) and init == "k-means++":
        starts = seed(points, n_clusters, n_starts, 2 + int(math.log(n_clusters)), generator)
    else:
        rows_of = (some, some_weight) if isinstance(init, str) else (X, sample_weight)
        given = [
            centers_in_frame(rows_of[0], frame, init, n_clusters, rows_of[1], random_state)
            for _ in range(n_starts)
        ]
        starts = torch.from_numpy(np.stack(given)).to(device, dtype)  # (B, k, d)
    rounds = plan_rounds(
        max_iter, n_clusters, first=tuning.first, later=tuning.later, share=tuning.share
    )
    size = n_clusters * len(some)
    work = (n_clusters + X.shape[1]) * len(some) * n_starts
    n_branches = max(1, min(tuning.most_branches, tuning.work // work))
    at_once = max(1, LARGEST_BATCH // (size * n_branches))
    found = [
        search(
            network,
            points,
            starts[first : first + at_once],
            rounds,
            n_branches=n_branches,
            n_trials=tuning.n_trials,
            patience=tuning.patience,
            generator=generator,
        )
        for first in range(0, n_starts, at_once)
    ]
    winner = int(torch.cat([f.objective for f in found]).argmin())
    centers = torch.cat([f.centers for f in found])[winner].cpu().numpy().astype(X.dtype)
    if not isinstance(init, str):  # a start that was given may be better on all points
        candidates = [centers, *given]
        inertias = [assign(X, c, frame, sample_weight).inertia for c in candidates]
        centers = candidates[int(np.argmin(inertias))]
    relocating = random_state if sample is not None and n_clusters > 1 else None
    centers = exact_steps(X, centers, frame, sample_weight, tol, relocating)
    return centers, max(f.n_steps for f in found)


def sample_size(n_clusters: int) -> int:
    """Number of points that the network sees of large data."""
    most = SAMPLE_SCORES // n_clusters**2
    return n_clusters * min(MOST_PER_CLUSTER, max(LEAST_PER_CLUSTER, most))


def draw_sample(
    X: np.ndarray,
    sample_weight: np.ndarray | None,
    frame: Frame,
    n_clusters: int,
    random_state: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Draw what the network sees of large data.

    Half of the probability is uniform, half in proportion to the squared distance from the origin
    of the frame, and the weights make up for it: a far point is hardly ever missed, and the
    weighted sum of squared distances is right on average for any centres.

    Parameters
    ----------
    X, sample_weight, frame, n_clusters, random_state
        As in :func:`search_centers`.

    Returns
    -------
    rows : ndarray of shape (m,)
        In order, each once.
    weight : ndarray of shape (m,), float64
        Or, instead of both, None where the data are small enough to be seen whole.

    Notes
    -----
    Source: Bachem, Lucic and Krause, "Scalable k-means clustering via lightweight coresets" (KDD
    2018).
    """
    wanted = sample_size(n_clusters)
    if len(X) <= 1.5 * wanted:
        return None
    far = np.empty(len(X))
    for part in blocks(len(X), 1):
        far[part] = np.square(frame.enter(X[part], np.float64)).sum(axis=1)
    if sample_weight is not None:
        far *= sample_weight
    total = far.sum()
    mass = len(X) if sample_weight is None else sample_weight.sum(dtype=np.float64)
    share = (1.0 if sample_weight is None else sample_weight.astype(np.float64)) / mass
    share = 0.5 * share + 0.5 * far / total if total > 0 else np.broadcast_to(share, len(X))
    rows, counts = np.unique(
        random_state.choice(len(X), wanted, p=share / share.sum()), return_counts=True
    )
    if len(rows) < LEAST_PER_CLUSTER // 2 * n_clusters:
        return None  # nearly all of the weight is on few points
    weight = counts / share[rows]
    return rows, weight if sample_weight is None else weight * sample_weight[rows]


def placed(
    network: ClusteringTransformer, device: torch.device, dtype: torch.dtype
) -> ClusteringTransformer:
    """The network where it is to run: itself, or a copy where its matrices have to move."""
    from sklearn_leanclust.network.weights import DenseWeights

    if isinstance(network.weights, DenseWeights):
        return deepcopy(network).to(device, dtype)
    return network  # the others hold numbers at most


def network_dtype(network: ClusteringTransformer, dtype: np.dtype) -> torch.dtype:
    """float32, except for exact weights, whose steps are to be Lloyd's to the last digit."""
    import torch

    from sklearn_leanclust.network.weights import ExactWeights

    exact = isinstance(network.weights, ExactWeights) and dtype == np.float64
    return torch.float64 if exact else torch.float32
