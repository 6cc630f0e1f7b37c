"""scikit-learn's own checks on both estimators, none skipped."""

import pytest
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from sklearn_leanclust import LloydStep, TransformerKMeans

# the draws of the start follow the rows, so that weights and repeated rows start differently
SHARED_WITH_KMEANS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "KMeans fails it too: random starts depend on the number of rows"
    ),
}


@parametrize_with_checks(
    [
        LloydStep(n_clusters=3),
        LloydStep(n_clusters=2, init="random", max_iter=5),
        TransformerKMeans(n_clusters=3),
        TransformerKMeans(n_clusters=1),
        TransformerKMeans(n_clusters=2, init="random", n_init=3, embedding="onehot", tau=1.0),
        TransformerKMeans(n_clusters=3, weights="exact", regularizer="l2", device="cpu"),
        TransformerKMeans(n_clusters=3, max_iter=1, tol=0),
    ],
    # with one cluster the start does not matter
    expected_failed_checks=lambda e: SHARED_WITH_KMEANS if e.n_clusters > 1 else {},
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", sorted(SHARED_WITH_KMEANS))
def test_kmeans_itself_fails_what_we_expect_to_fail(name):
    results = check_estimator(KMeans(n_clusters=3), on_fail=None)
    assert {r["status"] for r in results if r["check_name"] == name} == {"failed"}
