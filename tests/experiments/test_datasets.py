"""The data sets of the benchmark: as declared, always the same, the two splits apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sklearn_leanclust.experiments import datasets
from sklearn_leanclust.experiments.datasets import DATASETS, SIZE_CLASSES, size_class


@pytest.fixture(scope="module")
def points() -> dict[str, np.ndarray]:
    return {name: dataset.load() for name, dataset in DATASETS.items()}


def test_sets_are_what_the_registry_says(points):
    for name, dataset in DATASETS.items():
        X = points[name]
        assert X.shape == (dataset.n, dataset.d), name
        assert X.dtype == np.float64 and X.flags.c_contiguous, name
        assert np.isfinite(X).all(), name
        assert dataset.split in ("bench", "dev"), name


def test_sets_are_always_the_same(points):
    for name, dataset in DATASETS.items():
        np.testing.assert_array_equal(dataset.load(), points[name], err_msg=name)


def test_there_are_enough_points_to_cluster(points):
    for name, dataset in DATASETS.items():
        assert len(np.unique(points[name], axis=0)) > 2 * dataset.k, name


def test_splits_share_no_points(points):
    def rows(split: str) -> set[bytes]:
        return {row.tobytes() for name, X in points.items()
                if DATASETS[name].split == split and X.shape[1] > 3 for row in X[:100]}  # fmt: skip

    assert rows("bench").isdisjoint(rows("dev"))
    sources = {split: {dataset.load.args[0] for dataset in DATASETS.values()
                       if dataset.split == split} for split in ("bench", "dev")}  # fmt: skip
    assert sources["bench"].isdisjoint(sources["dev"])  # seeds, tables and images


@pytest.mark.parametrize("split", ["bench", "dev"])
def test_every_size_class_has_at_least_five_sets(split):
    sizes = Counter(dataset.size for dataset in DATASETS.values() if dataset.split == split)
    assert all(sizes[size] >= 5 for size in SIZE_CLASSES)


@pytest.mark.parametrize(
    "n, size",
    [(1_999, "small"), (2_000, "medium"), (49_999, "medium"), (50_000, "large")],
)
def test_size_classes(n, size):
    assert size_class(n) == size


@pytest.mark.parametrize("together", [True, False])
def test_far_points_are_few_and_far(together):
    X = datasets.far_points(0, 1_000, 3, 4, far=3, together=together)
    far = X[np.linalg.norm(X, axis=1) > 100]
    assert len(far) == 3
    spread = np.linalg.norm(far - far.mean(axis=0), axis=1).max()
    assert spread < 10 if together else spread > 100


def test_unbalanced_clusters_have_their_sizes():
    X = datasets.unbalanced(0, (500, 20, 10), (0.1, 0.1, 0.1))
    assert X.shape == (530, 2)
    assert np.count_nonzero(np.linalg.norm(X, axis=1) < 5) == 500


def test_patches_are_squares_of_the_image():
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("flower.jpg").mean(axis=2) / 255
    X = datasets.patches("flower.jpg", 8)
    np.testing.assert_array_equal(X[0], grey[:8, :8].ravel())
    np.testing.assert_array_equal(X[81], grey[8:16, 8:16].ravel())  # 80 to a row
