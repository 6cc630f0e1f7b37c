"""The layer with exact and dense weights, against Lloyd's step written out in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights

CODES = ("binary", "onehot")
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def lloyd_step(X, centers, weight=None):
    """Direct differences, one cluster at a time; ties to the lowest index."""
    weight = np.ones(len(X)) if weight is None else weight
    labels = ((X[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
    out = centers.astype(np.float64)
    for j in range(len(centers)):
        mass = weight[labels == j].sum()
        if mass > 0:
            out[j] = (weight[labels == j, None] * X[labels == j]).sum(0) / mass
    return out


def step(network, X, centers, weight=None):
    w = None if weight is None else torch.tensor(weight)[None]
    with torch.no_grad():
        return network(torch.tensor(X)[None], torch.tensor(centers)[None], w)[0].numpy()


@st.composite
def problems(draw):
    """Points and centres on a small integer grid: ties, duplicates and empty clusters abound."""
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    k = draw(st.integers(1, n))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    grid = st.integers(-3, 3).map(float)
    X = draw(arrays(dtype, (n, d), elements=grid))
    if draw(st.booleans()):
        centers = X[draw(st.permutations(range(n)))[:k]]
    else:
        centers = draw(arrays(dtype, (k, d), elements=grid))
    weight = draw(st.none() | arrays(dtype, n, elements=st.integers(0, 3).map(float)))
    if weight is not None and not weight.any():
        weight[0] = 1
    return X, centers, weight


@settings(max_examples=300, deadline=None)
@given(problem=problems(), embedding=st.sampled_from(CODES))
def test_exact_layer_is_lloyds_step(problem, embedding):
    X, centers, weight = problem
    network = ClusteringTransformer(ExactWeights(), embedding)
    moved = step(network, X, centers, weight)
    assert moved.dtype == X.dtype
    np.testing.assert_allclose(moved, lloyd_step(X, centers, weight), atol=TOLERANCE[X.dtype.type])


@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 5, 13, 60])
def test_exact_layer_on_continuous_data(embedding, dtype, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(60, 6)).astype(dtype)
    centers = X[rng.permutation(60)[:k]]
    moved = step(ClusteringTransformer(ExactWeights(), embedding), X, centers)
    np.testing.assert_allclose(moved, lloyd_step(X, centers), atol=TOLERANCE[dtype])


@settings(max_examples=100, deadline=None)
@given(problem=problems(), embedding=st.sampled_from(CODES))
def test_dense_weights_at_the_exact_values_are_the_exact_ones(problem, embedding):
    X, centers, weight = problem
    dense = DenseWeights(X.shape[1], len(centers), embedding, hard=True).set_exact()
    network = ClusteringTransformer(dense, embedding).to(torch.tensor(X).dtype)
    exact = ClusteringTransformer(ExactWeights(), embedding)
    np.testing.assert_allclose(
        step(network, X, centers, weight),
        step(exact, X, centers, weight),
        atol=TOLERANCE[X.dtype.type],
    )


@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("kind", ["exact", "dense"])
def test_soft_attention_tends_to_hard_as_sharpness_grows(embedding, kind):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 3)), rng.uniform(size=80)
    centers = X[:7] + 0.1
    hard = lloyd_step(X, centers, weight)

    def error(sharpness):
        if kind == "exact":
            weights = ExactWeights(sharpness)
        else:
            weights = DenseWeights(3, 7, embedding).set_exact(sharpness).double()
        moved = step(ClusteringTransformer(weights, embedding), X, centers, weight)
        return np.abs(moved - hard).max()

    errors = [error(sharpness) for sharpness in (1.0, 10.0, 1e2, 1e3, 1e6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.05
    assert errors[-1] < 1e-9


@pytest.mark.parametrize("embedding", CODES)
def test_a_batch_is_its_tasks_one_by_one(embedding):
    X, C = torch.randn(5, 40, 3), torch.randn(5, 6, 3)
    for weights in (ExactWeights(), ExactWeights(3.0), DenseWeights(3, 6, embedding).set_exact(2)):
        network = ClusteringTransformer(weights, embedding)
        alone = torch.cat([network(X[b : b + 1], C[b : b + 1]) for b in range(5)])
        torch.testing.assert_close(network(X, C), alone)
        shared = network(X[:1], C)
        torch.testing.assert_close(shared, network(X[:1].expand(5, -1, -1), C))


def test_carried_tokens_drift_where_fresh_ones_do_not():
    """The codes of all steps add up in a carried token: the second step is no Lloyd step."""
    torch.manual_seed(0)
    X, C = torch.randn(1, 100, 3), torch.randn(1, 6, 3)
    network = ClusteringTransformer(ExactWeights())
    z, y = network.tokens(X, C)
    for _ in range(2):
        z, y = network.layer(z, y, 3)
    fresh = network(X, network(X, C))
    assert (y[..., :3] - fresh).abs().max() > 0.01


def test_none_needs_dense_weights():
    with pytest.raises(ValueError, match="embedding='none' leaves ExactWeights nothing"):
        ClusteringTransformer(ExactWeights(), "none")
    network = ClusteringTransformer(DenseWeights(3, 4, "none"), "none")
    assert network(torch.randn(1, 9, 3), torch.randn(1, 4, 3)).shape == (1, 4, 3)


def test_dense_weights_of_another_embedding_are_refused():
    with pytest.raises(ValueError, match="the dense weights are for 'onehot'"):
        ClusteringTransformer(DenseWeights(3, 4, "onehot"), "binary")
