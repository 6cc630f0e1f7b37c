"""The public contract of TransformerKMeans."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import euclidean_distances

from sklearn_leanclust import TransformerKMeans
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights


def inertia(X, centers, weight=1.0):
    X, centers = np.asarray(X, np.float64), np.asarray(centers, np.float64)
    return (weight * ((X[:, None] - centers[None]) ** 2).sum(-1).min(1)).sum()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 120),
    d=st.integers(1, 6),
    dtype=st.sampled_from([np.float32, np.float64]),
    heavy=st.booleans(),
    weighted=st.booleans(),
    data=st.data(),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fitted_attributes_agree_and_the_start_is_never_worse(
    seed, n, d, dtype, heavy, weighted, data
):
    rng = np.random.default_rng(seed)
    X = (rng.standard_cauchy((n, d)) if heavy else rng.normal(size=(n, d))).astype(dtype)
    k = data.draw(st.integers(1, n))
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    if weighted:
        weight[0] = 1.0
    init = rng.normal(size=(k, d))
    model = TransformerKMeans(k, init=init, random_state=seed).fit(X, sample_weight=weight)
    w = 1.0 if weight is None else weight
    rtol = 1e-3 if dtype is np.float32 else 1e-9
    assert model.inertia_ <= inertia(X, init, w) * (1 + rtol) + rtol
    np.testing.assert_allclose(model.inertia_, inertia(X, model.cluster_centers_, w), rtol, rtol)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    gap = euclidean_distances(X.astype(float), model.cluster_centers_.astype(float))
    chosen = gap[np.arange(n), model.labels_]
    assert (chosen <= gap.min(1) + rtol * (1 + gap.max())).all()
    assert model.cluster_centers_.dtype == dtype
    assert model.cluster_centers_.shape == (k, d)
    assert model.labels_.dtype == np.int32
    assert 1 <= model.n_iter_ <= model.max_iter
    score = model.score(X, sample_weight=weight)
    np.testing.assert_allclose(score, -model.inertia_, rtol, rtol)


@pytest.mark.parametrize("load, k", [(load_iris, 3), (load_wine, 3), (load_digits, 10)])
def test_inertia_is_that_of_kmeans_or_near(load, k):
    X = load().data
    ours = np.median([TransformerKMeans(k, random_state=s).fit(X).inertia_ for s in range(5)])
    theirs = np.median([KMeans(k, n_init=1, random_state=s).fit(X).inertia_ for s in range(5)])
    assert ours <= 1.01 * theirs


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_separate_blobs_are_found(init, embedding):
    X, y = make_blobs(400, centers=5, cluster_std=0.05, random_state=1)
    model = TransformerKMeans(5, init=init, n_init=10, embedding=embedding, random_state=0)
    assert adjusted_rand_score(model.fit_predict(X), y) == 1.0


def test_the_same_seed_gives_the_same_result():
    X = np.random.default_rng(0).normal(size=(500, 4))
    first, second = (TransformerKMeans(6, random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_one_cluster_is_the_mean_and_n_clusters_the_points():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 100
    w = np.random.default_rng(1).uniform(size=30)
    one = TransformerKMeans(1).fit(X, sample_weight=w)
    np.testing.assert_allclose(one.cluster_centers_[0], np.average(X, axis=0, weights=w))
    assert TransformerKMeans(30, random_state=0).fit(X).inertia_ < 1e-20


def test_fewer_distinct_points_than_clusters_warns_like_kmeans():
    X = np.repeat([[0.0, 1], [2, 3]], 10, axis=0)
    with pytest.warns(ConvergenceWarning) as ours:
        TransformerKMeans(3, random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning) as theirs:
        KMeans(3, random_state=0).fit(X)
    assert str(ours[0].message) == str(theirs[0].message)


def test_exact_steps_are_those_of_kmeans():
    X = load_iris().data
    for steps in (1, 3):
        ours = TransformerKMeans(3, init=X[:150:50], max_iter=steps, tol=0, weights="exact")
        theirs = KMeans(3, init=X[:150:50], max_iter=steps, tol=0, n_init=1).fit(X)
        assert ours.fit(X).inertia_ <= theirs.inertia_ * (1 + 1e-9)


def test_the_code_does_not_matter_to_exact_weights():
    X = np.random.default_rng(0).normal(size=(300, 5))
    binary, onehot = (
        TransformerKMeans(9, embedding=e, weights="exact", random_state=0).fit(X)
        for e in ("binary", "onehot")
    )
    np.testing.assert_allclose(binary.cluster_centers_, onehot.cluster_centers_)


def test_a_network_of_ones_own_is_used_and_left_alone():
    X = load_iris().data
    network = ClusteringTransformer(DenseWeights(4, 3).set_exact(1e4))
    before = copy.deepcopy(network.state_dict())
    model = TransformerKMeans(3, weights=network, random_state=0).fit(X)
    for name, value in network.state_dict().items():
        assert value.dtype == before[name].dtype
        torch.testing.assert_close(value, before[name])
    assert model.inertia_ < 1.1 * KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    exact = ClusteringTransformer(ExactWeights())
    by_name = TransformerKMeans(3, weights="exact", random_state=0).fit(X)
    by_object = TransformerKMeans(3, weights=exact, random_state=0).fit(X)
    np.testing.assert_array_equal(by_name.cluster_centers_, by_object.cluster_centers_)


def test_a_given_start_is_taken_once_with_the_warning_of_kmeans():
    X = load_iris().data
    with pytest.warns(RuntimeWarning, match="performing only one init in TransformerKMeans"):
        TransformerKMeans(3, init=X[:3], n_init=4).fit(X)


def test_a_callable_start_gets_the_data_in_their_own_units():
    X = load_iris().data
    seen = {}

    def first_rows(X, n_clusters, random_state):
        seen["X"] = X.copy()
        return X[:n_clusters]

    by_call = TransformerKMeans(3, init=first_rows, random_state=0).fit(X)
    by_array = TransformerKMeans(3, init=X[:3], random_state=0).fit(X)
    np.testing.assert_array_equal(seen["X"], X)
    np.testing.assert_allclose(by_call.cluster_centers_, by_array.cluster_centers_)


def test_verbose_prints_and_quiet_does_not(capsys):
    X = load_iris().data
    TransformerKMeans(3, random_state=0).fit(X)
    assert capsys.readouterr().out == ""
    TransformerKMeans(3, random_state=0, verbose=1).fit(X)
    assert "inertia" in capsys.readouterr().out
