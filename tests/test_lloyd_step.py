"""LloydStep, against KMeans and against its own definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs

from sklearn_leanclust import LloydStep


def kmeans_steps(X, init, steps, weight=None):
    model = KMeans(len(init), init=init, n_init=1, max_iter=steps, tol=0)
    return model.fit(X, sample_weight=weight)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 8),
    steps=st.integers(1, 4),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_steps_are_those_of_kmeans_while_no_cluster_is_empty(seed, k, steps, dtype, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)).astype(dtype)
    weight = rng.uniform(0.5, 2, 80).astype(dtype) if weighted else None
    init = X[rng.permutation(80)[:k]]  # points as centres: none is empty in the first step
    ours = LloydStep(k, init=init, max_iter=steps).fit(X, sample_weight=weight)
    theirs = kmeans_steps(X, init, steps, weight)
    if len(set(theirs.labels_)) < k:
        return
    rtol = 1e-4 if dtype is np.float32 else 1e-9
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol, rtol)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol)
    assert np.mean(ours.labels_ == theirs.labels_) > 0.98
    assert ours.cluster_centers_.dtype == dtype


def test_a_centre_without_points_stays():
    X = np.array([[0.0], [1.0], [2.0]])
    with pytest.warns(UserWarning, match=r"distinct clusters \(1\) found smaller than n_clusters"):
        model = LloydStep(2, init=[[1.5], [100.0]]).fit(X)
    assert model.cluster_centers_.tolist() == [[1.0], [100.0]]


def test_inertia_never_rises_and_the_end_is_noticed():
    X = load_iris().data
    runs = [LloydStep(3, random_state=0, max_iter=t).fit(X) for t in (1, 2, 3, 5, 10, 300)]
    inertias = [run.inertia_ for run in runs]
    assert inertias == sorted(inertias, reverse=True)
    assert runs[0].n_iter_ == 1
    assert runs[-1].n_iter_ < 300
    converged = LloydStep(3, init=runs[-1].cluster_centers_, max_iter=5).fit(X)
    assert converged.n_iter_ <= 2


def test_blobs_are_found():
    X, y = make_blobs(300, centers=4, cluster_std=0.3, random_state=5)
    model = LloydStep(4, max_iter=50, random_state=0).fit(X)
    assert model.inertia_ <= 1.01 * KMeans(4, n_init=10, random_state=0).fit(X).inertia_
