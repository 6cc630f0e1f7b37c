"""How good the clusters of TransformerKMeans are, beside those of KMeans."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from sklearn_leanclust import LloydStep, TransformerKMeans

KINDS = ["tied", "exact"]


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("embedding", ["binary", "onehot"])
@pytest.mark.parametrize("load, k", [(load_iris, 3), (load_wine, 3), (load_digits, 10)])
def test_inertia_on_real_data_is_that_of_kmeans_or_near(load, k, weights, embedding):
    X = load().data
    ours = [
        TransformerKMeans(k, weights=weights, embedding=embedding, random_state=s).fit(X).inertia_
        for s in range(5)
    ]
    best = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
    assert np.median(ours) <= 1.01 * best


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize(
    "n, d, k, spread", [(200, 2, 4, 1.0), (500, 8, 16, 2.0), (400, 20, 30, 3.0), (300, 1, 5, 0.5)]
)
def test_inertia_on_blobs_is_that_of_kmeans_or_near(n, d, k, spread, weights):
    for seed in range(2):
        X, _ = make_blobs(n, d, centers=k, cluster_std=spread, random_state=seed)
        ours = TransformerKMeans(k, weights=weights, random_state=seed).fit(X)
        assert ours.inertia_ <= 1.05 * KMeans(k, n_init=10, random_state=seed).fit(X).inertia_


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_few_far_points_among_many_are_found(weights, seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(10_000, 2)), rng.normal(size=(4, 2)) + [1e3, 0]])
    model = TransformerKMeans(3, weights=weights, random_state=seed).fit(X)
    assert len(set(model.labels_[-4:])) == 1
    assert (model.labels_[:-4] != model.labels_[-1]).all()


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("embedding", ["binary", "onehot"])
@pytest.mark.parametrize("weights", KINDS)
def test_separate_blobs_are_found(init, embedding, weights):
    X, y = make_blobs(400, centers=5, cluster_std=0.05, random_state=1)
    model = TransformerKMeans(
        5, init=init, n_init=10, embedding=embedding, weights=weights, random_state=0
    )
    assert adjusted_rand_score(model.fit_predict(X), y) == 1.0


def test_more_starts_are_better_in_the_mean():
    X, _ = make_blobs(150, centers=12, cluster_std=0.3, random_state=3)

    def mean_inertia(n_init):
        models = [
            TransformerKMeans(12, init="random", n_init=n_init, max_iter=1, random_state=seed)
            for seed in range(5)
        ]
        return np.mean([model.fit(X).inertia_ for model in models])

    assert mean_inertia(8) < mean_inertia(1)


@pytest.mark.parametrize("steps", [1, 3])
def test_exact_steps_are_at_least_as_good_as_those_of_kmeans(steps):
    X = load_iris().data
    ours = TransformerKMeans(3, init=X[::50], max_iter=steps, tol=0, weights="exact").fit(X)
    theirs = KMeans(3, init=X[::50], max_iter=steps, tol=0, n_init=1).fit(X)
    assert ours.inertia_ <= theirs.inertia_ * (1 + 1e-9)


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_weights_rule_where_the_clusters_of_many_points_lie(weights, seed):
    """Nearly all points are spread out, nearly all weight lies in five spots close together."""
    rng = np.random.default_rng(seed)
    spots = rng.permutation(5)[rng.integers(0, 5, 500)][:, None] + rng.normal(0, 0.05, (500, 2))
    X = np.vstack([rng.uniform(-20, 20, (20_000, 2)), spots])
    weight = np.r_[np.full(20_000, 1e-6), np.ones(500)]
    ours = TransformerKMeans(6, weights=weights, random_state=seed).fit(X, sample_weight=weight)
    theirs = KMeans(6, n_init=10, random_state=seed).fit(X, sample_weight=weight)
    assert ours.inertia_ <= 1.05 * theirs.inertia_


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("n, dtype", [(300, np.float64), (300, np.float32), (20_000, np.float64)])
def test_the_end_is_where_lloyds_step_stays(weights, n, dtype):
    X, _ = make_blobs(n, 3, centers=5, cluster_std=1.0, random_state=2)
    X = X.astype(dtype)
    model = TransformerKMeans(5, weights=weights, tol=0, random_state=0).fit(X)
    after = LloydStep(5, init=model.cluster_centers_).fit(X)
    np.testing.assert_allclose(after.cluster_centers_, model.cluster_centers_, rtol=1e-5)
    np.testing.assert_array_equal(after.labels_, model.labels_)
