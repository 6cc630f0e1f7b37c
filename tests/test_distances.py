"""Exact passes in blocks, against direct formulas and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from sklearn_leanclust import _distances
from sklearn_leanclust._distances import (
    Frame,
    assign,
    assign_two,
    euclidean,
    frame_around,
    lloyd_step,
    nearest_centers,
)

HERE = Frame(np.zeros(3), 1.0)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    k=st.integers(1, 40),
    d=st.integers(1, 5),
    offset=st.sampled_from([0.0, 1e3, -1e7]),
    scale=st.sampled_from([1e-100, 1e-3, 1.0, 1e100]),
    weighted=st.booleans(),
)
def test_labels_inertia_and_distances(seed, n, k, d, offset, scale, weighted):
    rng = np.random.default_rng(seed)
    X, centers = ((rng.normal(size=(m, d)) + offset) * scale for m in (n, k))
    weight = rng.uniform(size=n) if weighted else None
    expected = cdist(X, centers)
    labels, inertia = nearest_centers(X, centers, weight)
    assert labels.dtype == np.int32
    slack = 1e-7 * (1 + abs(offset) * 1e-6) * scale
    np.testing.assert_allclose(expected[np.arange(n), labels], expected.min(1), atol=slack)
    squares = (expected.min(1) / scale) ** 2
    total = squares.sum() if weight is None else weight @ squares
    np.testing.assert_allclose(inertia / scale / scale, total, 1e-6)
    np.testing.assert_allclose(euclidean(X, centers), expected, rtol=1e-5, atol=slack)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_ties_go_to_the_lowest_index_and_sums_are_those_of_the_labels(data, dtype):
    n, k = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 6))
    grid = st.integers(-3, 3).map(float)
    X = data.draw(arrays(dtype, (n, 3), elements=grid))
    centers = data.draw(arrays(dtype, (k, 3), elements=grid))
    weight = data.draw(arrays(dtype, n, elements=st.integers(0, 3).map(float)))
    squares = cdist(X, centers, "sqeuclidean")
    order = np.argsort(squares, axis=1, kind="stable")

    found = assign(X, centers, HERE, weight)
    np.testing.assert_array_equal(found.labels, order[:, 0])
    member = np.eye(k)[order[:, 0]] * weight[:, None]
    np.testing.assert_array_equal(found.sums, member.T @ X)
    np.testing.assert_array_equal(found.mass, member.sum(axis=0))
    assert found.inertia == (member * squares).sum()

    moved = lloyd_step(centers, found)
    assert moved.dtype == dtype
    for j in range(k):
        mean = member[:, j] @ X / member[:, j].sum() if member[:, j].any() else centers[j]
        np.testing.assert_allclose(moved[j], mean, atol=1e-6)

    first, second, nearest, further = assign_two(X, centers, HERE)
    np.testing.assert_array_equal(first, order[:, 0])
    np.testing.assert_array_equal(second, order[:, 1])
    np.testing.assert_array_equal(nearest, squares[np.arange(n), first])
    np.testing.assert_array_equal(further, squares[np.arange(n), second])


@pytest.mark.parametrize("block_size", [1, 7 * 33, 7 * 1000])
def test_blocks_do_not_show(monkeypatch, block_size):
    rng = np.random.default_rng(0)
    X, centers, w = rng.normal(size=(1000, 3)), rng.normal(size=(7, 3)), rng.uniform(size=1000)
    frame = frame_around(X)
    inner = frame.enter(centers, np.float64)
    whole, two = assign(X, inner, frame, w), assign_two(X, inner, frame)
    distances = euclidean(X, centers)
    monkeypatch.setattr(_distances, "BLOCK_SIZE", block_size)
    pieces = assign(X, inner, frame, w)
    np.testing.assert_array_equal(whole.labels, pieces.labels)
    np.testing.assert_allclose(whole.sums, pieces.sums)
    np.testing.assert_allclose(whole.inertia, pieces.inertia)
    np.testing.assert_allclose(pieces.mass, np.bincount(pieces.labels, w, 7))
    for before, after in zip(two, assign_two(X, inner, frame), strict=True):
        np.testing.assert_allclose(before, after)
    np.testing.assert_allclose(distances, euclidean(X, centers))


def test_a_label_does_not_depend_on_the_other_points():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(300, 4)), rng.normal(size=(9, 4))
    whole, _ = nearest_centers(X, centers)
    alone = np.concatenate([nearest_centers(X[i : i + 1], centers)[0] for i in range(300)])
    far, _ = nearest_centers(np.vstack([X, [[1e9, 0, 0, 0]]]), centers)
    np.testing.assert_array_equal(whole, alone)
    np.testing.assert_array_equal(whole, far[:-1])


def test_nor_does_a_tie():
    """Others that set no offset or unit of their own cannot tip it by rounding."""
    centers = np.array([[0.0], [1], [2], [3]])
    between, others = np.array([[0.5], [1.5], [2.5]]), np.random.default_rng(0).normal(size=(50, 1))
    for scale in (1e-3, 1.0, 1e3):
        labels, _ = nearest_centers(np.vstack([between, scale * others + 0.1]), centers)
        assert labels[:3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7])
def test_float32_far_apart_keeps_what_is_close(far):
    """Two pairs of clusters: in float32, products of coordinates would lose a distance of 1."""
    rng = np.random.default_rng(0)
    close = np.float32([[0, 0], [1, 0], [0, 0], [1, 0]]) + np.float32(
        [[0, 0]] * 2 + [[far, far]] * 2
    )
    truth = rng.integers(0, 4, 200)
    labels, inertia = nearest_centers(close[truth], close)
    np.testing.assert_array_equal(labels, truth)
    assert inertia == 0
    distances = euclidean(close[truth], close)
    assert distances.dtype == np.float32
    np.testing.assert_allclose(distances, cdist(close[truth], close), rtol=1e-6, atol=1e-7 * far)


@pytest.mark.parametrize(
    "values", [[[5.0]], [[1e-320], [3e-320]], [[0.0], [1e308]], [[-1e308], [0]]]
)
def test_frames_of_extreme_data_are_finite(values):
    X = np.array(values)
    frame = frame_around(X)
    inner = frame.enter(X, np.float64)
    assert np.isfinite(inner).all()
    assert np.abs(inner).max() <= 1
    np.testing.assert_allclose(frame.leave(inner, np.float64), X)


@settings(max_examples=100, deadline=None)
@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(1, 10), st.integers(1, 3)),
        elements=st.floats(-1e300, 1e300),
    )
)
def test_a_frame_makes_points_of_order_one_with_a_power_of_two(X):
    frame = frame_around(X)
    inner = frame.enter(X, np.float64)
    assert np.abs(inner).max() <= 1
    assert np.log2(frame.scale) == round(np.log2(frame.scale))
    span = np.abs(X).max()
    np.testing.assert_allclose(frame.leave(inner, np.float64), X, rtol=0, atol=1e-15 * span)
