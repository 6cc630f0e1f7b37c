"""The public contract of TransformerKMeans."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning

from sklearn_leanclust import TransformerKMeans

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X_IRIS = load_iris().data
KINDS = ["tied", "exact"]


def square_gaps(X, centers):
    return cdist(np.asarray(X, np.float64), np.asarray(centers, np.float64), "sqeuclidean")


def check_fit(model, X, weight=None):
    """Attributes agree with each other, as far as the dtype of the data can tell."""
    n, d = X.shape
    w = np.ones(n) if weight is None else weight
    centers, labels = model.cluster_centers_, model.labels_
    assert centers.dtype == X.dtype
    assert centers.shape == (model.n_clusters, d)
    assert np.isfinite(centers).all()
    assert labels.dtype == np.int32
    assert labels.shape == (n,)
    assert isinstance(model.inertia_, float)
    assert 1 <= model.n_iter_ <= model.max_iter

    gaps = square_gaps(X, centers)
    mine = gaps[np.arange(n), labels]
    # what rounding to the dtype does to a coordinate, and to a squared distance
    blur = 8 * np.finfo(X.dtype).eps * np.abs(X - np.median(X, axis=0)).max() * d
    assert (mine <= gaps.min(1) + blur * np.sqrt(gaps.max())).all()
    slack = np.sqrt(w.sum()) * blur
    assert np.sqrt(model.inertia_) == pytest.approx(np.sqrt((w * mine).sum()), 1e-5, abs=slack)
    np.testing.assert_array_equal(model.predict(X), labels)
    score = model.score(X, sample_weight=weight)
    assert score == pytest.approx(-model.inertia_, rel=1e-6, abs=slack**2)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 120),
    d=st.integers(1, 6),
    dtype=st.sampled_from([np.float32, np.float64]),
    weights=st.sampled_from(KINDS),
    embedding=st.sampled_from(["binary", "onehot"]),
    max_iter=st.integers(1, 30),
    heavy=st.booleans(),
    weighted=st.booleans(),
    data=st.data(),
)
def test_attributes_agree_and_the_start_is_never_better(
    seed, n, d, dtype, weights, embedding, max_iter, heavy, weighted, data
):
    rng = np.random.default_rng(seed)
    X = (rng.standard_cauchy((n, d)) if heavy else rng.normal(size=(n, d))).astype(dtype)
    k = data.draw(st.integers(1, n))
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    if weighted:
        weight[0] = 1.0
    init = rng.normal(size=(k, d))
    model = TransformerKMeans(k, init=init, weights=weights, embedding=embedding)
    model.set_params(max_iter=max_iter, random_state=seed).fit(X, sample_weight=weight)
    check_fit(model, X, weight)
    w = np.ones(n) if weight is None else weight
    start = (w * square_gaps(X, init).min(1)).sum()
    blur = 8 * np.finfo(dtype).eps * np.square(X.astype(float)).max() * d * w.sum()
    assert model.inertia_ <= start * (1 + 1e-5) + blur


@settings(max_examples=60, deadline=None)
@given(data=st.data(), weights=st.sampled_from(KINDS))
def test_any_finite_data_are_clustered(data, weights):
    n, d = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 4))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    largest, width = (2.0**50, 32) if dtype is np.float32 else (2.0**500, 64)
    X = data.draw(arrays(dtype, (n, d), elements=st.floats(-largest, largest, width=width)))
    k = data.draw(st.integers(1, n))
    init = data.draw(st.sampled_from(["k-means++", "random"]))
    model = TransformerKMeans(k, init=init, weights=weights, random_state=0).fit(X)
    check_fit(model, X)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_points_are_as_good_as_few(weights, weighted, dtype):
    X, _ = make_blobs(20_000, 3, centers=6, cluster_std=1.5, random_state=0)
    X = X.astype(dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else None
    model = TransformerKMeans(6, weights=weights, random_state=0).fit(X, sample_weight=weight)
    check_fit(model, X, weight)
    theirs = KMeans(6, n_init=10, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ <= 1.01 * theirs.inertia_
    start = TransformerKMeans(6, init=theirs.cluster_centers_, weights=weights, random_state=0)
    assert start.fit(X, sample_weight=weight).inertia_ <= theirs.inertia_ * (1 + 1e-5)


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("n", [50, 20_000])
@pytest.mark.parametrize("n_weighty", [1, 3])
def test_fewer_points_of_weight_than_clusters(init, n, n_weighty):
    X, weight = np.random.default_rng(0).normal(size=(n, 2)), np.zeros(n)
    weight[: 7 * n_weighty : 7] = 1
    model = TransformerKMeans(5, init=init, random_state=0).fit(X, sample_weight=weight)
    check_fit(model, X, weight)
    assert model.inertia_ < 1e-20


def draw_start(X, n_clusters, random_state):
    return X[random_state.choice(len(X), n_clusters, replace=False)]


@pytest.mark.parametrize("init", ["k-means++", "random", draw_start])
@pytest.mark.parametrize("n", [300, 6000])
def test_the_same_seed_gives_the_same_result(init, n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    first, second, other = (
        TransformerKMeans(6, init=init, n_init=2, random_state=seed).fit(X)
        for seed in (3, np.random.RandomState(3), 4)
    )
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.inertia_ == second.inertia_
    assert first.n_iter_ == second.n_iter_
    assert not np.array_equal(first.cluster_centers_, other.cluster_centers_)
    again = first.fit(X[::-1]).fit(X)  # nothing is left of an earlier fit
    np.testing.assert_array_equal(again.cluster_centers_, second.cluster_centers_)


def test_a_shared_random_state_moves_on():
    X, shared = np.random.default_rng(0).normal(size=(200, 4)), np.random.RandomState(0)
    first, second = (TransformerKMeans(9, random_state=shared).fit(X) for _ in range(2))
    assert not np.array_equal(first.cluster_centers_, second.cluster_centers_)


def process_state():
    return (
        random.getstate(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002 - the state of others
        np.geterr(),
        torch.get_rng_state().tolist(),
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )


@pytest.mark.parametrize("weights", KINDS)
def test_settings_of_the_process_are_left_alone(weights):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    before = process_state()
    model = TransformerKMeans(4, init="random", n_init=2, weights=weights, random_state=0).fit(X)
    model.predict(X), model.transform(X), model.score(X)
    assert process_state() == before


def test_one_cluster_is_the_mean_and_as_many_as_points_are_the_points():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 100
    w = np.random.default_rng(1).uniform(size=30)
    for weights in KINDS:
        one = TransformerKMeans(1, weights=weights).fit(X, sample_weight=w)
        np.testing.assert_allclose(one.cluster_centers_[0], np.average(X, axis=0, weights=w))
        every = TransformerKMeans(30, weights=weights, random_state=0).fit(X)
        assert every.inertia_ < 1e-20
        assert sorted(every.labels_) == list(range(30))


def test_fewer_distinct_points_than_clusters_warns_like_kmeans():
    X = np.repeat([[0.0, 1], [2, 3]], 10, axis=0)
    with pytest.warns(ConvergenceWarning) as ours:
        model = TransformerKMeans(3, random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning) as theirs:
        KMeans(3, random_state=0).fit(X)
    assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]
    assert model.inertia_ == 0
    check_fit(model, X)


def test_the_code_does_not_matter_to_exact_weights():
    X = np.random.default_rng(0).normal(size=(300, 5))
    binary, onehot = (
        TransformerKMeans(9, embedding=e, weights="exact", random_state=0).fit(X)
        for e in ("binary", "onehot")
    )
    np.testing.assert_allclose(binary.cluster_centers_, onehot.cluster_centers_)


def test_a_given_start_is_taken_once_with_the_warning_of_kmeans():
    X = np.random.default_rng(0).normal(size=(300, 5))
    with pytest.warns(RuntimeWarning) as theirs:
        KMeans(12, init=X[:12], n_init=4).fit(X)
    with pytest.warns(RuntimeWarning) as ours:
        many = TransformerKMeans(12, init=X[:12], n_init=4, random_state=0).fit(X)
    words = str(theirs[0].message).replace("KMeans", "TransformerKMeans")
    assert [str(w.message) for w in ours] == [words]
    once = TransformerKMeans(12, init=X[:12], n_init=1, random_state=0).fit(X)
    np.testing.assert_array_equal(many.cluster_centers_, once.cluster_centers_)


@pytest.mark.parametrize("n", [200, 4000])
def test_a_callable_start_gets_the_data_in_their_own_units(n):
    X = 1e3 + np.random.default_rng(0).normal(size=(n, 2))
    seen = []

    def first_rows(X, n_clusters, random_state):
        seen.append((X.copy(), n_clusters, random_state.randint(2**31)))
        return X[:n_clusters]

    by_call = TransformerKMeans(3, init=first_rows, n_init=2, random_state=0).fit(X)
    assert len(seen) == 2
    for rows, n_clusters, _ in seen:
        np.testing.assert_array_equal(rows, X)
        assert n_clusters == 3
    assert seen[0][2] != seen[1][2]  # each start draws for itself
    start = ((X[:, None] - X[:3]) ** 2).sum(-1).min(1).sum()
    assert by_call.inertia_ < start


def test_verbose_prints_and_quiet_does_not(capfd):
    TransformerKMeans(3, random_state=0).fit(X_IRIS)
    assert capfd.readouterr() == ("", "")
    model = TransformerKMeans(3, random_state=0, verbose=1).fit(X_IRIS)
    assert f"inertia {model.inertia_:.6g}" in capfd.readouterr().out
