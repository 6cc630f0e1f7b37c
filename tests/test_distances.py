"""Exact passes in blocks, against direct formulas and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from sklearn_leanclust import _distances
from sklearn_leanclust._distances import assign, euclidean, frame_around, nearest_centers


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    k=st.integers(1, 40),
    d=st.integers(1, 5),
    offset=st.sampled_from([0.0, 1e3, -1e7]),
    scale=st.sampled_from([1e-100, 1e-3, 1.0, 1e100]),
)
def test_labels_inertia_and_distances(seed, n, k, d, offset, scale):
    rng = np.random.default_rng(seed)
    X, centers = ((rng.normal(size=(m, d)) + offset) * scale for m in (n, k))
    expected = cdist(X, centers)
    labels, inertia = nearest_centers(X, centers)
    slack = 1e-7 * (1 + abs(offset) * 1e-6) * scale
    np.testing.assert_allclose(expected[np.arange(n), labels], expected.min(1), atol=slack)
    np.testing.assert_allclose(inertia / scale**2, ((expected.min(1) / scale) ** 2).sum(), 1e-6)
    np.testing.assert_allclose(euclidean(X, centers), expected, rtol=1e-5, atol=slack)


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    X, centers, w = rng.normal(size=(1000, 3)), rng.normal(size=(7, 3)), rng.uniform(size=1000)
    frame = frame_around(X)
    inner = frame.enter(centers, np.float64)
    whole = assign(X, inner, frame, w)
    monkeypatch.setattr(_distances, "BLOCK_SIZE", 7 * 33)
    pieces = assign(X, inner, frame, w)
    np.testing.assert_array_equal(whole.labels, pieces.labels)
    np.testing.assert_allclose(whole.sums, pieces.sums)
    np.testing.assert_allclose(whole.inertia, pieces.inertia)
    np.testing.assert_allclose(pieces.mass, np.bincount(pieces.labels, w, 7))


def test_a_label_does_not_depend_on_the_other_points():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(300, 4)), rng.normal(size=(9, 4))
    whole, _ = nearest_centers(X, centers)
    alone = np.concatenate([nearest_centers(X[i : i + 1], centers)[0] for i in range(300)])
    far, _ = nearest_centers(np.vstack([X, [[1e9, 0, 0, 0]]]), centers)
    np.testing.assert_array_equal(whole, alone)
    np.testing.assert_array_equal(whole, far[:-1])


@pytest.mark.parametrize("values", [[[5.0]], [[1e-320], [3e-320]], [[0.0], [1e308]]])
def test_frames_of_extreme_data_are_finite(values):
    X = np.array(values)
    frame = frame_around(X)
    inner = frame.enter(X, np.float64)
    assert np.isfinite(inner).all()
    assert np.abs(inner).max() <= 1
    np.testing.assert_allclose(frame.leave(inner, np.float64), X)
