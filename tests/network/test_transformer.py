"""The layer with exact and dense weights, against NumPy: Lloyd's step, and the layer's formula."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_leanclust.network.embedding import code_size, index_codes
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights

CODES = ("binary", "onehot")
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def lloyd_step(X, centers, weight=None):
    """Direct differences, one cluster at a time; ties to the lowest index."""
    X, out = X.astype(np.float64), centers.astype(np.float64)
    weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    labels = ((X[:, None] - out[None]) ** 2).sum(-1).argmin(1)
    for j in range(len(centers)):
        mass = weight[labels == j].sum()
        if mass > 0:
            out[j] = (weight[labels == j, None] * X[labels == j]).sum(0) / mass
    return out


def step(network, X, centers, weight=None):
    w = None if weight is None else torch.tensor(weight)[None]
    with torch.no_grad():
        return network(torch.tensor(X)[None], torch.tensor(centers)[None], w)[0].numpy()


def exact(embedding, sharpness=None):
    return ClusteringTransformer(ExactWeights(sharpness), embedding)


@st.composite
def problems(draw, coarse=True):
    """Points, centres and weights whose scores are exact in float32, so that ties are ties.

    The coarse grid abounds in ties, duplicates and empty clusters; the fine one hardly has any.
    """
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    if coarse:
        n, d = draw(st.integers(1, 24)), draw(st.integers(1, 4))
        X = draw(arrays(dtype, (n, d), elements=st.integers(-3, 3).map(float)))
    else:
        n, d = draw(st.integers(1, 150)), draw(st.integers(1, 8))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        X = np.round(rng.normal(size=(n, d)).clip(-7, 7) * 64).astype(dtype) / 64
    k = draw(st.sampled_from([1, n]) | st.integers(1, n))
    if draw(st.booleans()):
        centers = X[draw(st.permutations(range(n)))[:k]]
    else:
        centers = draw(arrays(dtype, (k, d), elements=st.integers(-4, 4).map(float)))
    weight = draw(st.none() | arrays(dtype, n, elements=st.integers(0, 3).map(float)))
    if weight is not None and not weight.any():
        weight[draw(st.integers(0, n - 1))] = 1
    return X, centers, weight


@settings(max_examples=300, deadline=None)
@given(problem=problems(), embedding=st.sampled_from(CODES))
def test_exact_layer_is_lloyds_step_where_ties_abound(problem, embedding):
    X, centers, weight = problem
    moved = step(exact(embedding), X, centers, weight)
    assert moved.dtype == X.dtype
    np.testing.assert_allclose(moved, lloyd_step(X, centers, weight), atol=TOLERANCE[X.dtype.type])


@settings(max_examples=200, deadline=None)
@given(problem=problems(coarse=False), embedding=st.sampled_from(CODES))
def test_exact_layer_is_lloyds_step_on_random_data(problem, embedding):
    X, centers, weight = problem
    moved = step(exact(embedding), X, centers, weight)
    np.testing.assert_allclose(moved, lloyd_step(X, centers, weight), atol=TOLERANCE[X.dtype.type])


NAMED = {
    "duplicated points": ([[1, 1], [1, 1], [1, 1], [4, 0]], [[1, 1], [4, 0]], None),
    "equal centres": ([[0, 0], [2, 0]], [[1, 1], [1, 1], [1, 1]], None),
    "a tie goes to the lower index": ([[0], [1], [2]], [[2], [0]], None),
    "an empty cluster in the middle": ([[0], [9]], [[0], [100], [9]], None),
    "only the last centre has points": ([[7], [9]], [[-50], [-60], [-70], [-80], [8]], None),
    "one cluster": ([[0], [1], [5]], [[-3]], None),
    "as many clusters as points": ([[0, 1], [2, 3], [4, 5]], [[4, 5], [0, 1], [2, 3]], None),
    "one point": ([[3]], [[8]], None),
    "a cluster whose weight is zero": ([[0], [1], [9]], [[0], [5]], [1, 1, 0]),
    "one point has all the weight": ([[0, 0], [1, 1], [2, 2]], [[1, 0]], [0, 2.5, 0]),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_layer_in_the_corners(name, embedding, dtype):
    X, centers, weight = (None if v is None else np.array(v, dtype) for v in NAMED[name])
    moved = step(exact(embedding), X, centers, weight)
    np.testing.assert_allclose(moved, lloyd_step(X, centers, weight), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 5, 13, 60])
def test_exact_layer_on_continuous_data(embedding, dtype, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(60, 6)).astype(dtype)
    centers = X[rng.permutation(60)[:k]]
    moved = step(exact(embedding), X, centers)
    np.testing.assert_allclose(moved, lloyd_step(X, centers), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("sharpness", [None, 2.0])
def test_exact_layer_moves_with_its_task(embedding, sharpness):
    rng = np.random.default_rng(5)
    X, C, w = rng.normal(size=(70, 3)), rng.normal(size=(6, 3)), rng.uniform(size=70)
    network = exact(embedding, sharpness)
    base = step(network, X, C, w)
    order, offset = rng.permutation(70), rng.normal(size=3)
    np.testing.assert_allclose(step(network, X[order], C, w[order]), base)
    np.testing.assert_allclose(step(network, X + offset, C + offset, w), base + offset)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(step(network, X @ turn, C @ turn, w), base @ turn)
    if sharpness is None:
        # soft attention has a scale, weighs w against the self score, and knows near codes
        np.testing.assert_allclose(step(network, 300 * X, 300 * C, w), 300 * base)
        np.testing.assert_allclose(step(network, X, C, 1e-3 * w), base)
        swap = rng.permutation(6)
        np.testing.assert_allclose(step(network, X, C[swap], w), base[swap])


@settings(max_examples=100, deadline=None)
@given(problem=problems(), embedding=st.sampled_from(CODES))
def test_dense_weights_at_the_exact_values_are_the_exact_ones(problem, embedding):
    X, centers, weight = problem
    dense = DenseWeights(X.shape[1], len(centers), embedding, hard=True).set_exact()
    network = ClusteringTransformer(dense, embedding).to(torch.tensor(X).dtype)
    np.testing.assert_allclose(
        step(network, X, centers, weight),
        step(exact(embedding), X, centers, weight),
        atol=TOLERANCE[X.dtype.type],
    )


@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("sharpness", [0.3, 1.0, 20.0])
def test_soft_dense_weights_at_the_exact_values_are_the_soft_exact_ones(embedding, sharpness):
    rng = np.random.default_rng(2)
    X, C, w = rng.normal(size=(50, 3)), rng.normal(size=(5, 3)), rng.integers(0, 3, 50) / 2
    dense = DenseWeights(3, 5, embedding).double().set_exact(sharpness)
    found = step(ClusteringTransformer(dense, embedding), X, C, w)
    np.testing.assert_allclose(found, step(exact(embedding, sharpness), X, C, w), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("embedding", CODES)
@pytest.mark.parametrize("kind", ["exact", "dense"])
def test_soft_attention_tends_to_hard_as_sharpness_grows(embedding, kind, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(80, 3)), rng.integers(0, 4, 80).astype(float)
    centers = np.vstack([X[:7] + 0.1, [[40.0, 0, 0]]])  # the last one has no points
    hard = lloyd_step(X, centers, weight)

    def error(sharpness):
        if kind == "exact":
            network = exact(embedding, sharpness)
        else:
            dense = DenseWeights(3, 8, embedding).double().set_exact(sharpness)
            network = ClusteringTransformer(dense, embedding)
        return np.linalg.norm(step(network, X, centers, weight) - hard)

    rounding = 1e-9  # of the scores, which grow with the sharpness
    errors = np.maximum([error(10.0 ** (power / 2)) for power in range(11)], rounding).tolist()
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.05
    assert errors[-1] == rounding


def softmax(scores):
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


def square_gaps(query, key):
    return ((query[:, None] - key[None]) ** 2).sum(-1)


def layer_formula(W, X, C, P, w):
    """Assign and update as they are written in the docstring, with the centre's own token."""
    z = np.hstack([X, np.zeros((len(X), P.shape[1]))])
    y = np.hstack([C, P])
    attention = softmax(-square_gaps(z @ W.query_assign.T, y @ W.key_assign.T))
    z = z + attention @ (y @ W.value_assign.T)
    with np.errstate(divide="ignore"):
        scores = np.log(w) - square_gaps(y @ W.query_update.T, z @ W.key_update.T)
    own = np.full((len(C), 1), -W.own_penalty)
    attention = softmax(np.hstack([scores, own]))
    value = attention[:, :-1] @ (z @ W.value_update.T) + attention[:, -1:] * (y @ W.value_update.T)
    return (y @ W.residual.T + value)[:, : X.shape[1]]


@pytest.mark.parametrize("embedding", [*CODES, "none"])
@pytest.mark.parametrize("seed", range(3))
def test_dense_layer_is_its_formula(embedding, seed):
    rng = np.random.default_rng(seed)
    d, k = 3, 5
    X, C, w = rng.normal(size=(30, d)), rng.normal(size=(k, d)), rng.integers(0, 4, 30) / 2
    dense = DenseWeights(d, k, embedding).set_random(torch.Generator().manual_seed(seed)).double()
    found = step(ClusteringTransformer(dense, embedding), X, C, w)
    matrices = SimpleNamespace(**{n: p.detach().numpy() for n, p in dense.named_parameters()})
    codes = index_codes(embedding, k, dtype=torch.float64).numpy()
    np.testing.assert_allclose(found, layer_formula(matrices, X, C, codes, w), rtol=1e-8)


def test_dense_layer_has_the_gradients_of_finite_differences():
    torch.manual_seed(0)
    X, C = torch.randn(1, 9, 2).double(), torch.randn(1, 3, 2).double()
    weight = torch.rand(1, 9).double()
    dense = DenseWeights(2, 3).set_random(torch.Generator().manual_seed(0), 0.7).double()
    network = ClusteringTransformer(dense)
    names = [name for name, _ in network.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in network.parameters())

    def run(*values):
        parameters = dict(zip(names, values, strict=True))
        return torch.func.functional_call(network, parameters, (X, C, weight))

    assert torch.autograd.gradcheck(run, values)


def test_random_matrices_follow_their_generator_alone():
    before = torch.get_rng_state()
    first, second, other = (
        DenseWeights(3, 6).set_random(torch.Generator().manual_seed(seed)).state_dict()
        for seed in (4, 4, 5)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.items():
        assert torch.equal(value, second[name])
    assert not torch.equal(first["query_assign"], other["query_assign"])


@pytest.mark.parametrize("embedding", CODES)
def test_a_batch_is_its_tasks_one_by_one(embedding):
    torch.manual_seed(0)
    X, C, w = torch.randn(5, 40, 3), torch.randn(5, 6, 3), torch.randint(1, 4, (5, 40)).float()
    for weights in (ExactWeights(), ExactWeights(3.0), DenseWeights(3, 6, embedding).set_exact(2)):
        network = ClusteringTransformer(weights, embedding)
        alone = [network(X[b : b + 1], C[b : b + 1], w[b : b + 1]) for b in range(5)]
        torch.testing.assert_close(network(X, C, w), torch.cat(alone))
        shared = network(X[:1], C, w[:1])
        repeated = network(X[:1].expand(5, -1, -1), C, w[:1].expand(5, -1))
        torch.testing.assert_close(shared, repeated)
        torch.testing.assert_close(network(X, C, torch.ones(5, 40)), network(X, C))


def test_a_step_leaves_its_input_alone():
    X, C, w = torch.randn(1, 30, 3), torch.randn(1, 4, 3), torch.rand(1, 30)
    kept = [t.clone() for t in (X, C, w)]
    for weights in (ExactWeights(), ExactWeights(1.0), DenseWeights(3, 4).set_exact()):
        ClusteringTransformer(weights)(X, C, w)
    for before, after in zip(kept, (X, C, w), strict=True):
        assert torch.equal(before, after)


def test_carried_tokens_drift_where_fresh_ones_do_not():
    """The codes of all steps add up in a carried token: the second step is no Lloyd step."""
    torch.manual_seed(0)
    X, C = torch.randn(1, 100, 3), torch.randn(1, 6, 3)
    network = exact("binary")
    z, y = network.tokens(X, C)
    for _ in range(2):
        z, y = network.layer(z, y, 3)
    fresh = network(X, network(X, C))
    assert (y[..., :3] - fresh).abs().max() > 0.01


@pytest.mark.parametrize("embedding", [*CODES, "none"])
def test_tokens_are_as_wide_as_the_embedding_says(embedding):
    network = ClusteringTransformer(DenseWeights(3, 9, embedding), embedding)
    z, y = network.tokens(torch.randn(2, 20, 3), torch.randn(2, 9, 3))
    assert z.shape == (2, 20, 3 + code_size(embedding, 9))
    assert y.shape == (2, 9, 3 + code_size(embedding, 9))


def test_none_needs_dense_weights():
    with pytest.raises(ValueError, match="embedding='none' leaves ExactWeights nothing"):
        exact("none")


def test_dense_weights_of_another_embedding_are_refused():
    with pytest.raises(ValueError, match="the dense weights are for 'onehot'"):
        ClusteringTransformer(DenseWeights(3, 4, "onehot"), "binary")
