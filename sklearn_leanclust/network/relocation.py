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

from sklearn_leanclust.network.points import Points, product


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
    batch = torch.arange(len(centers), device=centers.device)
    places = points.augmented[:, :-1].transpose(1, 2)  # (B or 1, n, d)
    arriving = []
    for _ in range(n_moves):
        # where nothing is left to gain any point does
        drawn = torch.multinomial(
            nearest[:, 0] + torch.finfo(nearest.dtype).tiny,
            n_trials,
            replacement=True,
            generator=generator,
        )  # (B, L)
        trial = places.expand(len(batch), -1, -1)[batch[:, None], drawn]  # (B, L, d)
        half = trial.square().sum(-1, keepdim=True) * -0.5
        gap = points.squares - 2 * product(torch.cat([trial, half], -1), points.augmented)
        gap = gap.clamp(min=0)  # (B, L, n)
        if points.weight is not None:
            gap = gap * points.weight
        remaining = torch.minimum(gap, nearest)
        best = remaining.sum(-1).argmin(-1)  # (B,)
        nearest = remaining[batch, best][:, None]
        arriving.append(trial[batch, best])
    index = leaving[..., None].expand(-1, -1, centers.shape[2])
    return centers.scatter(1, index, torch.stack(arriving, dim=1))


def utility(points: Points, scores: Tensor) -> Tensor:
    """What the objective grows by without each centre, (B, k), from the scores (B, k, n)."""
    first = scores.amax(1, keepdim=True)  # (B, 1, n)
    mine = scores == first
    second = scores.masked_fill(mine, -torch.inf).amax(1, keepdim=True)
    loss = 2 * (first - second)
    if points.weight is not None:
        loss = torch.where(points.weight > 0, loss * points.weight, torch.zeros_like(loss))
    return (mine.to(loss.dtype) @ loss.transpose(1, 2))[..., 0]
