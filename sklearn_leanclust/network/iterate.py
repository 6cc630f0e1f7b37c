"""Many steps of a network from several starts, the best centres kept."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sklearn_leanclust.network.attention import distance_scores
from sklearn_leanclust.network.transformer import ClusteringTransformer


class Iterated(NamedTuple):
    """Where the steps led from each of B starts."""

    centers: Tensor  # (B, k, d), the best seen
    objective: Tensor  # (B,), their weighted sum of squared distances
    n_steps: Tensor  # (B,), steps made


def kmeans_objective(X: Tensor, centers: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Weighted sum of squared distances to the nearest centres, (B,)."""
    nearest = X.square().sum(-1) - distance_scores(X, centers).amax(-1)  # (B, n)
    nearest = nearest.clamp(min=0)
    return (nearest if sample_weight is None else nearest * sample_weight).sum(-1)


@torch.no_grad()
def iterate(
    network: ClusteringTransformer,
    X: Tensor,
    centers: Tensor,
    sample_weight: Tensor | None = None,
    *,
    n_steps: int,
    tol: float = 0.0,
) -> Iterated:
    """Apply a network again and again, from fresh tokens at each step.

    Parameters
    ----------
    network : ClusteringTransformer
    X : Tensor of shape (B, n, d) or (1, n, d)
        Points, centred.
    centers : Tensor of shape (B, k, d)
        Starts.
    sample_weight : Tensor of shape (B, n) or (1, n), optional
    n_steps : int
        Largest number of steps.
    tol : float, default=0.0
        A start is done once the squared movement of its centres is at most this.

    Returns
    -------
    Iterated
    """
    best, least = centers, kmeans_objective(X, centers, sample_weight)
    moving = torch.ones(len(centers), dtype=torch.bool, device=centers.device)
    made = torch.zeros(len(centers), dtype=torch.int64, device=centers.device)
    for t in range(n_steps):
        moved = network(X, centers, sample_weight, t / max(1, n_steps - 1))
        made += moving
        moving &= (moved - centers).square().sum((-2, -1)) > tol
        centers = moved
        objective = kmeans_objective(X, centers, sample_weight)
        better = objective < least
        best = torch.where(better[:, None, None], centers, best)
        least = torch.where(better, objective, least)
        if not moving.any():
            break
    return Iterated(best, least, made)
