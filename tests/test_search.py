"""Samples, and the exact steps on all points that follow."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from sklearn_leanclust import TransformerKMeans
from sklearn_leanclust._distances import assign, assign_two, frame_around
from sklearn_leanclust._exact import exact_steps, relocate_on_all
from sklearn_leanclust._search import draw_sample, sample_size


def test_the_size_of_a_sample_keeps_its_bounds():
    sizes = {k: sample_size(k) for k in (1, 2, 10, 64, 100, 200, 5000)}
    assert sizes[10] == 10_240
    assert sizes[5000] == 256 * 5000
    assert all(256 * k <= size <= 1024 * k for k, size in sizes.items())


def test_large_data_are_sampled_and_small_ones_are_not():
    state = check_random_state(0)
    X = np.random.default_rng(0).normal(size=(100_000, 2))
    frame = frame_around(X)
    assert draw_sample(X[:300], None, frame, 2, state) is None
    rows, weight = draw_sample(X, None, frame, 3, state)
    assert 0.95 * sample_size(3) < len(rows) <= sample_size(3)
    assert (np.diff(rows) > 0).all()
    given = np.zeros(100_000)
    given[:900] = 1
    rows, weight = draw_sample(X, given, frame, 3, state)
    assert rows.max() < 900
    assert (weight > 0).all()
    rows, weight = draw_sample(np.ones((8000, 2)), None, frame_around(np.ones((2, 2))), 3, state)
    assert np.isfinite(weight).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_weighted_sample_is_right_on_average(weighted):
    """The inertia of fixed centres, over many samples, against that of all points."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(8000, 2))
    given = rng.uniform(size=8000) if weighted else None
    frame = frame_around(X)
    centers = frame.enter(rng.normal(size=(3, 2)), np.float64)
    whole = assign(X, centers, frame, given)
    estimates = []
    for number in range(200):
        rows, weight = draw_sample(X, given, frame, 3, check_random_state(number))
        weight = weight / (sample_size(3))
        estimates.append(assign(X[rows], centers, frame, weight).inertia)
    error = np.std(estimates) / 200**0.5
    assert abs(np.mean(estimates) - whole.inertia) < 4 * error
    assert error < 0.02 * whole.inertia


def test_assign_two_is_assign_and_the_runner_up():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(500, 3)), rng.normal(size=(8, 3))
    frame = frame_around(X)
    inner = frame.enter(C, np.float64)
    first, second, nearest, further = assign_two(X, inner, frame)
    np.testing.assert_array_equal(first, assign(X, inner, frame).labels)
    squares = ((X[:, None] - C[None]) ** 2).sum(-1) / frame.scale**2
    order = np.argsort(squares, axis=1)
    np.testing.assert_array_equal(second, order[:, 1])
    np.testing.assert_allclose(nearest, np.sort(squares)[:, 0])
    np.testing.assert_allclose(further, np.sort(squares)[:, 1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relocation_on_all_points_never_raises_the_inertia(weighted, dtype):
    for number in range(20):
        rng = np.random.default_rng(number)
        X = (rng.standard_t(1.5, size=(400, 3))).astype(dtype)
        w = rng.integers(0, 3, 400).astype(dtype) if weighted else None
        frame = frame_around(X)
        centers = frame.enter(X[rng.permutation(400)[:12]], dtype)
        moved = relocate_on_all(X, centers, frame, w, check_random_state(number))
        before, after = (assign(X, c, frame, w).inertia for c in (centers, moved))
        assert after <= before * (1 + 1e-5)
        assert assign(X, exact_steps(X, moved, frame, w, 0.0, None), frame, w).inertia <= after * (
            1 + 1e-5
        )


def test_a_rare_far_group_is_not_lost_to_the_sample():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60_000, 3)), rng.normal(500, 1, (3, 3))])
    for seed in range(3):
        model = TransformerKMeans(4, random_state=seed).fit(X)
        assert len(set(model.labels_[-3:])) == 1
        assert (model.labels_ == model.labels_[-1]).sum() == 3
        assert model.inertia_ <= 1.01 * KMeans(4, n_init=10, random_state=0).fit(X).inertia_


def test_outliers_of_a_heavy_tail_in_large_data():
    X = np.random.default_rng(1).standard_cauchy((20_000, 2))
    ours = np.median([TransformerKMeans(10, random_state=s).fit(X).inertia_ for s in range(3)])
    assert ours <= 1.01 * KMeans(10, n_init=10, random_state=0).fit(X).inertia_


def test_all_points_count_for_a_given_start():
    """A start that is the optimum of all points must not be spoiled by what a sample says."""
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(40_000, 2)), [[1e4, 1e4]]])
    best = KMeans(3, n_init=5, random_state=0).fit(X)
    model = TransformerKMeans(3, init=best.cluster_centers_, random_state=0).fit(X)
    assert model.inertia_ <= best.inertia_ * (1 + 1e-9)


def test_memory_maps_give_the_same_as_arrays(tmp_path):
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    X.tofile(tmp_path / "X.bin")
    mapped = np.memmap(tmp_path / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)
    first, second = (TransformerKMeans(5, random_state=0).fit(data) for data in (X, mapped))
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
