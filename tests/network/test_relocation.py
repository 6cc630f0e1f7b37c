"""Relocation and seeding, against definitions written out and against greedy k-means++."""

import numpy as np
import pytest
import torch
from sklearn.cluster import kmeans_plusplus

from sklearn_leanclust.network.points import prepare
from sklearn_leanclust.network.relocation import relocate, seed, utility


def inertia(X, centers, w=1.0):
    return float((w * ((X[:, None] - centers[None]) ** 2).sum(-1).min(1)).sum())


def generator(number=0):
    return torch.Generator().manual_seed(number)


@pytest.mark.parametrize("weighted", [False, True])
def test_utility_is_what_the_objective_grows_by_without_the_centre(weighted):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(60, 3)), rng.normal(size=(7, 3))
    w = rng.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    points = prepare(torch.tensor(X)[None], torch.tensor(w)[None] if weighted else None)
    found = utility(points, points.scores(torch.tensor(C)[None]))[0].numpy() * w.mean()
    expected = [inertia(X, np.delete(C, j, 0), w) - inertia(X, C, w) for j in range(7)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_an_idle_centre_moves_to_the_group_without_one():
    X = np.repeat([[0.0, 0], [10, 0], [0, 10]], 20, axis=0)
    X += np.random.default_rng(0).normal(0, 0.1, X.shape)
    C = torch.tensor([[[0.0, 0], [10, 0], [10.2, 0]]]).double()
    moved = relocate(prepare(torch.tensor(X)[None]), C, 1, 4, generator())[0].numpy()
    assert np.abs(moved - [0, 10]).sum(1).min() < 1
    assert inertia(X, moved) < 0.1 * inertia(X, C[0].numpy())


def test_every_task_is_relocated_as_if_alone():
    torch.manual_seed(0)
    X, C = torch.randn(4, 50, 2), torch.randn(4, 6, 2)
    moved = relocate(prepare(X), C, 2, 5, generator())
    for task in range(4):
        stay = (moved[task, :, None] == C[task]).all(-1).any(1)
        least = utility(prepare(X[task][None]), prepare(X[task][None]).scores(C[task][None]))
        assert set(torch.nonzero(~stay).flatten().tolist()) == set(
            least[0].topk(2, largest=False).indices.tolist()
        )
        placed = moved[task][~stay]
        assert (placed[:, None] == X[task]).all(-1).any(1).all()


def test_points_without_weight_draw_no_centre():
    X = torch.cat([torch.randn(1, 30, 2), torch.randn(1, 30, 2) + 100], dim=1)
    w = torch.cat([torch.ones(1, 30), torch.zeros(1, 30)], dim=1)
    starts = seed(prepare(X, w), 5, 8, 4, generator())
    assert starts.abs().max() < 50
    moved = relocate(prepare(X, w), starts, 3, 4, generator())
    assert moved.abs().max() < 50


def test_seeds_are_as_good_as_those_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(500, 4))
    ours = seed(prepare(torch.tensor(X)[None]), 20, 40, 2 + int(np.log(20)), generator()).numpy()
    theirs = [kmeans_plusplus(X, 20, random_state=s)[0] for s in range(40)]
    ratio = np.mean([inertia(X, c) for c in ours]) / np.mean([inertia(X, c) for c in theirs])
    assert 0.97 < ratio < 1.03


def test_equal_points_are_no_trouble():
    X = torch.ones(1, 9, 2)
    starts = seed(prepare(X), 4, 2, 3, generator())
    assert torch.equal(starts, torch.ones(2, 4, 2))
    assert torch.equal(relocate(prepare(X), starts, 3, 3, generator()), torch.ones(2, 4, 2))
