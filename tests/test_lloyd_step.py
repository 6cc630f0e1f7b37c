"""LloydStep, against its definition in NumPy and against KMeans."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs

from sklearn_leanclust import LloydStep

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X_IRIS = load_iris().data


def square_gaps(X, centers):
    return ((X[:, None] - centers[None]) ** 2).sum(-1)


def lloyd(X, centers, steps, weight=None):
    """One cluster at a time; an empty one stays, a tie goes to the lowest index."""
    X, centers = X.astype(np.float64), np.array(centers, np.float64)
    weight = np.ones(len(X)) if weight is None else weight
    for _ in range(steps):
        labels = square_gaps(X, centers).argmin(1)
        for j in range(len(centers)):
            mine = (labels == j) & (weight > 0)
            if mine.any():
                centers[j] = np.average(X[mine], axis=0, weights=weight[mine])
    return centers


def inertia(X, centers, weight=1.0):
    return (weight * square_gaps(X, centers).min(1)).sum()


@settings(max_examples=200, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_one_step_is_its_definition_where_ties_and_empty_clusters_abound(data, dtype):
    """On a grid of whole numbers no distance is rounded, so that a tie is a tie."""
    n, d = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3))
    k = data.draw(st.sampled_from([1, n]) | st.integers(1, n))
    grid = st.integers(-4, 4).map(float)
    X = data.draw(arrays(dtype, (n, d), elements=grid))
    init = data.draw(arrays(dtype, (k, d), elements=grid))
    weight = data.draw(st.none() | arrays(float, n, elements=st.integers(0, 3).map(float)))
    assume(weight is None or weight.any())
    model = LloydStep(k, init=init).fit(X, sample_weight=weight)
    expected = lloyd(X, init, 1, weight)
    atol = 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(model.cluster_centers_, expected, atol=atol)
    w = 1.0 if weight is None else weight
    np.testing.assert_allclose(model.inertia_, inertia(X, expected, w), rtol=1e-4, atol=1e-4)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 80),
    d=st.integers(1, 5),
    steps=st.integers(1, 12),
    weighted=st.booleans(),
    data=st.data(),
)
def test_many_steps_are_their_definition(seed, n, d, steps, weighted, data):
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, n))
    X, init = rng.normal(size=(n, d)), 2 * rng.normal(size=(k, d))
    weight = rng.uniform(0.5, 2, n) if weighted else None
    model = LloydStep(k, init=init, max_iter=steps).fit(X, sample_weight=weight)
    expected = lloyd(X, init, steps, weight)
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, square_gaps(X, expected).argmin(1))
    np.testing.assert_allclose(
        model.inertia_, inertia(X, expected, 1.0 if weight is None else weight), atol=1e-12
    )
    assert 1 <= model.n_iter_ <= steps


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(8, 80),
    k=st.integers(1, 8),
    steps=st.integers(1, 4),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_steps_are_those_of_kmeans_while_no_cluster_is_empty(seed, n, k, steps, dtype, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    weight = rng.uniform(0.5, 2, n).astype(dtype) if weighted else None
    init = X[rng.permutation(n)[:k]]
    for made in range(steps + 1):
        gaps = square_gaps(X, lloyd(X, init, made, weight))
        assume(len(np.unique(gaps.argmin(1))) == k)  # KMeans would move a centre without points
        two = np.sort(gaps, axis=1)[:, :2]
        assume(k == 1 or np.diff(two).min() > 1e-5)  # where float32 would tie
    ours = LloydStep(k, init=init, max_iter=steps).fit(X, sample_weight=weight)
    theirs = KMeans(k, init=init, n_init=1, max_iter=steps, tol=0).fit(X, sample_weight=weight)
    rtol = 1e-4 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol, rtol)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol, atol=1e-12)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.cluster_centers_.dtype == theirs.cluster_centers_.dtype == dtype


@pytest.mark.parametrize("init", [X_IRIS[:3], X_IRIS[[0, 60, 120]]], ids=["one class", "spread"])
def test_one_step_is_kmeans_with_one_iteration(init):
    ours = LloydStep(3, init=init).fit(X_IRIS)
    theirs = KMeans(3, init=init, n_init=1, max_iter=1).fit(X_IRIS)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_)
    np.testing.assert_array_equal(ours.predict(X_IRIS[::7]), theirs.predict(X_IRIS[::7]))
    np.testing.assert_allclose(ours.transform(X_IRIS[::7]), theirs.transform(X_IRIS[::7]))
    np.testing.assert_allclose(ours.score(X_IRIS[::7]), theirs.score(X_IRIS[::7]))


def test_a_centre_without_points_stays():
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match=r"distinct clusters \(1\) found smaller than n_clusters"):
        model = LloydStep(2, init=[[1.5], [100.0]]).fit(X)
    assert model.cluster_centers_.tolist() == [[1.0], [100.0]]


def test_weights_are_repeated_rows_and_have_no_unit():
    rng = np.random.default_rng(0)
    X, init, weight = rng.normal(size=(60, 3)), rng.normal(size=(6, 3)), rng.integers(0, 4, 60)

    def fit(X, weight=None):
        return LloydStep(6, init=init, max_iter=3).fit(X, sample_weight=weight)

    weighted, repeated = fit(X, weight), fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_)
    for unit in (1e-6, 1e6):
        scaled = fit(X, unit * weight)
        np.testing.assert_allclose(scaled.cluster_centers_, weighted.cluster_centers_)
        np.testing.assert_allclose(scaled.inertia_, unit * weighted.inertia_)


def test_inertia_never_rises_and_the_end_is_noticed():
    runs = [LloydStep(3, random_state=0, max_iter=t).fit(X_IRIS) for t in (1, 2, 3, 5, 10, 300)]
    inertias = [run.inertia_ for run in runs]
    assert inertias == sorted(inertias, reverse=True)
    assert [run.n_iter_ for run in runs[:2]] == [1, 2]
    assert runs[-1].n_iter_ < 300
    again = LloydStep(3, init=runs[-1].cluster_centers_, max_iter=300).fit(X_IRIS)
    np.testing.assert_allclose(again.cluster_centers_, runs[-1].cluster_centers_)
    assert again.n_iter_ <= 2


def draw_start(X, n_clusters, random_state):
    return random_state.uniform(size=(n_clusters, X.shape[1]))


@pytest.mark.parametrize("init", ["k-means++", "random", draw_start])
def test_starts_follow_the_seed(init):
    first, second, other = (
        LloydStep(5, init=init, random_state=seed).fit(X_IRIS).cluster_centers_
        for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_blobs_are_found():
    X, _ = make_blobs(300, centers=4, cluster_std=0.3, random_state=5)
    model = LloydStep(4, max_iter=50, random_state=0).fit(X)
    assert model.inertia_ <= 1.01 * KMeans(4, n_init=10, random_state=0).fit(X).inertia_
