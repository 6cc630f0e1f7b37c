"""Many steps: rounds of steps of the network with relocations between them, the best kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sklearn_leanclust.network.points import Points, standardise
from sklearn_leanclust.network.relocation import relocate
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights

IMPROVEMENT = 1e-5  # what counts as better: more than rounding, less than anyone would notice


class Round(NamedTuple):
    """What happens from one relocation to the next."""

    n_moves: int  # centres that relocate first, none in the first round
    n_steps: int  # steps of the network then


class Found(NamedTuple):
    """The best centres seen from each start."""

    centers: Tensor  # (B, k, d)
    objective: Tensor  # (B,), weighted mean of nearest squared distances
    n_steps: int  # made from each start


def plan_rounds(
    n_steps: int, n_clusters: int, *, first: int, later: int, share: tuple[float, float]
) -> list[Round]:
    """Cut a number of steps into rounds.

    Parameters
    ----------
    n_steps : int
        Steps in all.
    n_clusters : int
        Number k of clusters.
    first, later : int
        Steps of the first and of each later round.
    share : pair of float
        Share of the centres that relocate before the second and before the last round; between
        them it falls evenly. At least one centre moves, and at most k - 1.

    Returns
    -------
    list of Round
    """
    first = min(first, n_steps)
    n_later = (n_steps - first) // later if n_clusters > 1 else 0
    # what is left over goes to the first round, where the way is longest
    rounds = [Round(0, n_steps - n_later * later)]
    for r in range(n_later):
        part = share[0] + (share[1] - share[0]) * r / max(1, n_later - 1)
        rounds.append(Round(min(n_clusters - 1, max(1, round(part * n_clusters))), later))
    return rounds


@torch.no_grad()
def search(
    network: ClusteringTransformer,
    points: Points,
    centers: Tensor,
    rounds: Sequence[Round],
    *,
    n_branches: int,
    n_trials: int,
    patience: int,
    generator: Generator,
) -> Found:
    """Run the rounds from every start.

    Each round begins at the best centres seen so far, some of them relocated. After the first round
    every start goes on in several branches, which differ in what relocates.

    Parameters
    ----------
    network : ClusteringTransformer
    points : Points
        Of B tasks, or one set of points for all starts.
    centers : Tensor of shape (B, k, d)
        Starts.
    rounds : sequence of Round
    n_branches : int
        Above 1 only where all starts are on the same points.
    n_trials : int
        Points drawn for each centre that relocates.
    patience : int
        Number of relocations, over rounds and branches, that lead to nothing better anywhere, after
        which the rest of the rounds is left out.
    generator : torch.Generator
        On the device of the points.

    Returns
    -------
    Found
        For each start and branch, B n_branches in all; none worse than its start.
    """
    step = stepper(network, points, centers)
    best, least = centers, evaluate(points, centers)
    made, failures = 0, 0
    shared = points.squares.shape[0] == 1  # then only the best of all starts counts
    for n_moves, n_steps in rounds:
        current = best
        if n_moves:
            if best.shape[0] < n_branches * centers.shape[0]:
                best, least = best.repeat(n_branches, 1, 1), least.repeat(n_branches)
            current = relocate(points, best, n_moves, n_trials, generator)
        for t in range(n_steps):
            current = step(current, t / (n_steps - 1) if n_steps > 1 else 1.0)
        objective, before = evaluate(points, current), least
        better = objective < (1 - IMPROVEMENT) * least
        best = torch.where(better[:, None, None], current, best)
        least = torch.where(better, objective, least)
        made += n_steps
        if shared:
            better = least.min() < (1 - IMPROVEMENT) * before.min()
        failures = 0 if better.any() else failures + best.shape[0]
        if failures >= patience:
            break
    return Found(best, least, made)


def evaluate(points: Points, centers: Tensor) -> Tensor:
    """Mean nearest squared distance of each task, (B,)."""
    return points.objective(points.scores(centers).amax(1, keepdim=True))


def stepper(
    network: ClusteringTransformer, points: Points, centers: Tensor
) -> Callable[[Tensor, float], Tensor]:
    """One step as a function of the centres and the share of the steps done."""
    if isinstance(network.weights, TiedWeights):
        codes, at = network.codes(centers), cache(network.weights.schedule())
        return lambda current, share: at(share).advance(points, current, codes)[0]
    X = points.augmented[:, :-1].transpose(1, 2)
    weight = None if points.weight is None else points.weight[:, 0]
    if isinstance(network.weights, DenseWeights):  # they know one scale only, that of training
        X, offset, scale = standardise(X)
        return lambda current, share: (
            network(X, (current - offset) / scale, weight, share) * scale + offset
        )
    return lambda current, share: network(X, current, weight, share)
