"""Rounds of steps and relocations."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_leanclust.meta.objective import kmeans_objective
from sklearn_leanclust.network.points import prepare
from sklearn_leanclust.network.search import plan_rounds, search
from sklearn_leanclust.network.shipped import find_shipped, load_shipped
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights


def networks():
    yield ClusteringTransformer(ExactWeights())
    yield load_shipped(find_shipped("tied", "binary", "entropy", 0.1))
    yield ClusteringTransformer(DenseWeights(3, 6).set_exact(50.0))


def run(network, X, starts, **changes):
    options = {"n_branches": 1, "n_trials": 4, "patience": 100} | changes
    rounds = plan_rounds(20, starts.shape[1], first=6, later=3, share=(0.3, 0.1))
    generator = torch.Generator().manual_seed(0)
    return search(network, prepare(X), starts, rounds, generator=generator, **options)


@given(
    n_steps=st.integers(1, 100),
    n_clusters=st.integers(1, 300),
    first=st.integers(1, 20),
    later=st.integers(1, 9),
)
def test_the_plan_uses_all_steps_and_moves_what_can_move(n_steps, n_clusters, first, later):
    rounds = plan_rounds(n_steps, n_clusters, first=first, later=later, share=(0.4, 0.02))
    assert sum(r.n_steps for r in rounds) == n_steps
    assert rounds[0].n_moves == 0
    moves = [r.n_moves for r in rounds[1:]]
    assert moves == sorted(moves, reverse=True)
    assert all(1 <= m < n_clusters for m in moves)
    assert n_clusters > 1 or len(rounds) == 1


@pytest.mark.parametrize("network", networks(), ids=["exact", "tied", "dense"])
def test_never_worse_than_the_start_and_the_objective_is_that_of_the_centres(network):
    torch.manual_seed(0)
    X, starts = torch.randn(1, 200, 3), torch.randn(5, 6, 3)
    found = run(network, X, starts, n_branches=3)
    assert found.centers.shape == (15, 6, 3)
    objective = kmeans_objective(X.expand(15, -1, -1), found.centers)
    torch.testing.assert_close(found.objective, objective)
    start = kmeans_objective(X.expand(5, -1, -1), starts).repeat(3)
    assert (found.objective <= start * (1 + 1e-5)).all()


def test_relocation_frees_centres_that_steps_alone_leave_stuck():
    """Two centres in one far group and one for two groups: a local optimum of Lloyd's algorithm."""
    X = torch.tensor([[0.0, 0], [10, 0], [100, 0]]).repeat_interleave(30, 0)
    X = (X + 0.1 * torch.randn(90, 2, generator=torch.Generator().manual_seed(0)))[None]
    starts = torch.tensor([[[5.0, 0], [100, 0.1], [100, -0.1]]])
    for network in (ClusteringTransformer(ExactWeights()), *list(networks())[1:2]):
        assert run(network, X, starts).objective < 0.1


def test_it_stops_when_relocations_lead_nowhere():
    X = torch.tensor([[0.0, 0], [10, 0], [100, 0]]).repeat_interleave(30, 0)[None]
    starts = X[:, ::30]
    found = run(ClusteringTransformer(ExactWeights()), X, starts, patience=2)
    assert found.n_steps < 20
    assert run(ClusteringTransformer(ExactWeights()), X, starts).n_steps == 20


def test_tasks_of_a_batch_do_not_mix():
    torch.manual_seed(0)
    X, starts = torch.randn(3, 100, 2), torch.randn(3, 4, 2)
    network = ClusteringTransformer(ExactWeights())
    rounds = plan_rounds(5, 1, first=5, later=3, share=(0.1, 0.1))  # no relocation, no draws
    options = {"n_branches": 1, "n_trials": 1, "patience": 9}
    together = search(network, prepare(X), starts, rounds, generator=torch.Generator(), **options)
    for task in range(3):
        alone = search(
            network,
            prepare(X[task][None]),
            starts[task][None],
            rounds,
            generator=torch.Generator(),
            **options,
        )
        torch.testing.assert_close(together.centers[task], alone.centers[0])
