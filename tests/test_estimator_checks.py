"""scikit-learn's own checks on both estimators, none skipped."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from sklearn_leanclust import LloydStep, TransformerKMeans
from sklearn_leanclust.network.shipped import find_shipped
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import ExactWeights

SHARED_WITH_KMEANS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "KMeans fails it too: what is drawn depends on the number of rows"
    ),
}


def fixed_start(X, n_clusters, random_state):
    """The same for weighted and for repeated rows."""
    return np.random.RandomState(0).normal(size=(n_clusters, X.shape[1]))


def draws(estimator) -> bool:
    """Whether chance has a say: not with one cluster, nor with one step from a fixed start."""
    if estimator.n_clusters == 1:
        return False
    relocates = isinstance(estimator, TransformerKMeans) and estimator.max_iter > 1
    return relocates or not callable(estimator.init)


@parametrize_with_checks(
    [
        LloydStep(),
        LloydStep(n_clusters=1),
        LloydStep(n_clusters=3, init=fixed_start, max_iter=20),
        LloydStep(n_clusters=2, init="random", max_iter=5),
        TransformerKMeans(),
        TransformerKMeans(n_clusters=1),
        TransformerKMeans(n_clusters=3, init=fixed_start, max_iter=1, tol=0, weights="exact"),
        TransformerKMeans(n_clusters=2, init="random", n_init=3, embedding="onehot", tau=1.0),
        TransformerKMeans(n_clusters=3, weights="exact", regularizer="l2", device="cpu"),
        TransformerKMeans(n_clusters=2, weights="exact", embedding="onehot", max_iter=1),
        TransformerKMeans(
            n_clusters=3, weights=find_shipped("tied", "binary", "entropy", 0.1), tol=0
        ),
        TransformerKMeans(n_clusters=3, weights=ClusteringTransformer(ExactWeights())),
    ],
    expected_failed_checks=lambda e: SHARED_WITH_KMEANS if draws(e) else {},
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", sorted(SHARED_WITH_KMEANS))
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_kmeans_itself_fails_what_we_expect_to_fail(name, init):
    results = check_estimator(KMeans(n_clusters=3, init=init), on_fail=None)
    assert {r["status"] for r in results if r["check_name"] == name} == {"failed"}


@pytest.mark.parametrize("estimator", [LloydStep(3), TransformerKMeans(3)])
def test_no_check_is_skipped(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 50
    assert "skipped" not in {r["status"] for r in results}


@pytest.mark.parametrize("estimator", [LloydStep(), TransformerKMeans()])
def test_tags_are_those_of_kmeans_except_for_sparse_data(estimator):
    ours, theirs = get_tags(estimator), get_tags(KMeans())
    assert ours.transformer_tags.preserves_dtype == ["float64", "float32"]  # KMeans forgets one
    assert ours.estimator_type == theirs.estimator_type
    theirs.input_tags.sparse = False
    assert ours.input_tags == theirs.input_tags
