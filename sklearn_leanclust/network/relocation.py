"""Relocation: the least useful centres move to where the error is.

The utility of a centre is what the objective grows by without it, the sum over its points of
second-nearest minus nearest squared distance. The centres of least utility are taken away, and as
many are put in, one after the other, as greedy k-means++ does: a few points are drawn in proportion
to their squared distance to the centres left, and the one that lowers the objective most is taken.

Source of the greedy draw: Arthur and Vassilvitskii, "k-means++" (SODA 2007).
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from sklearn_leanclust.network.points import Points


def relocate(
    points: Points, centers: Tensor, n_moves: int, n_trials: int, generator: Generator
) -> Tensor:
    """Move the least useful centres of every task.

    Parameters
    ----------
    points : Points
        Of B tasks, or one set of points for all.
    centers : Tensor of shape (B, k, d)
    n_moves : int
        Number of centres that move, less than k.
    n_trials : int
        Number of points drawn for each.
    generator : torch.Generator
        On the device of the points.

    Returns
    -------
    Tensor of shape (B, k, d)
    """
    scores = points.scores(centers)  # (B, k, n)
    leaving = utility(points, scores).topk(n_moves, dim=1, largest=False).indices  # (B, m)
    scores.scatter_(1, leaving[..., None].expand(-1, -1, scores.shape[2]), -torch.inf)
    nearest = (points.squares - 2 * scores.amax(1, keepdim=True)).clamp(min=0)  # (B, 1, n)
    if points.weight is not None:
        nearest = nearest * points.weight
    arriving = draw_centers(points, nearest, n_moves, n_trials, generator)
    index = leaving[..., None].expand(-1, -1, centers.shape[2])
    return centers.scatter(1, index, arriving)


def seed(
    points: Points, n_clusters: int, n_starts: int, n_trials: int, generator: Generator
) -> Tensor:
    """Draw initial centres by greedy k-means++.

    Parameters
    ----------
    points : Points
        One set of points for all starts.
    n_clusters, n_starts : int
        k and B.
    n_trials : int
        Number of points drawn for each centre.
    generator : torch.Generator

    Returns
    -------
    Tensor of shape (B, k, d)
    """
    weight = torch.ones_like(points.squares) if points.weight is None else points.weight
    first = torch.multinomial(weight[0], n_starts, replacement=True, generator=generator)  # (1, B)
    center = points.augmented[0, :-1].T[first[0], None]  # (B, 1, d)
    nearest = (points.squares - 2 * points.scores(center)).clamp(min=0) * weight  # (B, 1, n)
    others = draw_centers(points, nearest, n_clusters - 1, n_trials, generator)
    return torch.cat([center, others], dim=1)


def draw_centers(
    points: Points, nearest: Tensor, n_centers: int, n_trials: int, generator: Generator
) -> Tensor:
    """Put in centres one after the other, each the best of a few points.

    Parameters
    ----------
    points : Points
    nearest : Tensor of shape (B, 1, n)
        Weighted squared distance of each point to the centres that are there.
    n_centers, n_trials : int
    generator : torch.Generator

    Returns
    -------
    Tensor of shape (B, n_centers, d)
    """
    places = points.augmented[:, :-1].transpose(1, 2)  # (B or 1, n, d)
    batch = torch.arange(len(nearest), device=nearest.device)
    tiny = torch.finfo(nearest.dtype).tiny  # where nothing is left to gain any point does
    drawn_centers = [places.new_empty(len(nearest), 0, places.shape[2])]
    for _ in range(n_centers):
        drawn = torch.multinomial(
            nearest[:, 0] + tiny, n_trials, replacement=True, generator=generator
        )  # (B, L)
        own = batch[:, None] if places.shape[0] > 1 else 0
        trial = places[own, drawn]  # (B, L, d)
        gap = (points.squares - 2 * points.scores(trial)).clamp_(min=0)  # (B, L, n)
        if points.weight is not None:
            gap *= points.weight
        remaining = torch.minimum(gap, nearest)
        best = remaining.sum(-1).argmin(-1)  # (B,)
        nearest = remaining[batch, best][:, None]
        drawn_centers.append(trial[batch, best][:, None])
    return torch.cat(drawn_centers, dim=1)


def utility(points: Points, scores: Tensor) -> Tensor:
    """What the objective grows by without each centre, (B, k), from the scores (B, k, n)."""
    first = scores.amax(1, keepdim=True)  # (B, 1, n)
    mine = scores == first
    second = scores.masked_fill(mine, -torch.inf).amax(1, keepdim=True)
    loss = 2 * (first - second)
    if points.weight is not None:
        loss = torch.where(points.weight > 0, loss * points.weight, torch.zeros_like(loss))
    return (mine.to(loss.dtype) @ loss.transpose(1, 2))[..., 0]
