"""Exact passes over the points: nearest centres, inertia, Lloyd's step. NumPy, in blocks.

Everything runs in a frame of its own: an offset and a power of two as scale, in which the numbers
are of order one. So float32 far from the origin loses nothing and squares do not overflow. Points
enter the frame block by block and are never copied or changed as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

SOME_ROWS = 4096
BLOCK_SIZE = 2**20  # scores of a block, points x clusters: a few MB, what the caches hold


class Frame(NamedTuple):
    """Coordinates ``(x - offset) / scale``, the same scale for all features."""

    offset: np.ndarray  # (d,)
    scale: float

    def enter(self, X: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Map points into the frame, a new array of `dtype`."""
        return ((X - self.offset) * (1 / self.scale)).astype(dtype, copy=False)

    def leave(self, X: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Map points of the frame back, a new array of `dtype`."""
        return (X * self.scale + self.offset).astype(dtype, copy=False)


def frame_around(X: np.ndarray) -> Frame:
    """Frame in which `X`, shape (n, d), is of order one.

    The origin is a median, of at most some thousand rows: where a few points are very far away, a
    mean would lie far from all others, which would then lose their digits. The unit is the largest
    deviation from it, up to the next power of two.
    """
    offset = np.median(some_rows(X), axis=0).astype(np.float64)
    spread = max(float((X.max(axis=0) - offset).max()), float((offset - X.min(axis=0)).max()))
    # the bound keeps 1 / scale finite where all deviations are denormal
    return Frame(offset, 2.0 ** max(math.ceil(math.log2(spread)), -1000) if spread > 0 else 1.0)


def some_rows(X: np.ndarray) -> np.ndarray:
    """At most some thousand rows, evenly spread."""
    return X[:: max(1, len(X) // SOME_ROWS)]


def variance_in(frame: Frame, X: np.ndarray) -> float:
    """Mean variance of the features of some rows, in the frame."""
    return float(frame.enter(some_rows(X), np.float64).var(axis=0).mean())


class Assignment(NamedTuple):
    """What one pass over the points finds."""

    labels: np.ndarray  # (n,) int32, index of the nearest centre, ties to the lowest
    inertia: float  # weighted sum of squared distances, in units of the frame
    sums: np.ndarray  # (k, d) float64, weighted sum of the points of each cluster, in the frame
    mass: np.ndarray  # (k,) float64, weight of each cluster


def blocks(n_samples: int, n_clusters: int) -> Iterator[slice]:
    """Cut the points into pieces whose scores fit the caches."""
    size = max(16, BLOCK_SIZE // n_clusters)
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


def scored_blocks(
    X: np.ndarray, centers: np.ndarray, frame: Frame
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Points block by block, in the frame, and their scores: the larger the nearer.

    Yields
    ------
    part : slice
    points : ndarray of shape (b, d)
    scores : ndarray of shape (b, k)
        ``x.c - |c|^2 / 2``. Both arrays are written over by the next block.
    """
    n, (k, d) = len(X), centers.shape
    half_norms = 0.5 * np.einsum("kd,kd->k", centers, centers)
    # the bias rides along as one more feature
    augmented = np.concatenate([centers, -half_norms[:, None]], axis=1).T.copy()
    size = min(n, max(16, BLOCK_SIZE // k))
    points = np.ones((size, d + 1), dtype=centers.dtype)
    scores = np.empty((size, k), dtype=centers.dtype)
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        length = part.stop - start
        points[:length, :d] = frame.enter(X[part], centers.dtype)
        yield part, points[:length, :d], np.matmul(points[:length], augmented, out=scores[:length])


def assign(
    X: np.ndarray, centers: np.ndarray, frame: Frame, sample_weight: np.ndarray | None = None
) -> Assignment:
    """Assign every point to its nearest centre.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points, outside of the frame.
    centers : ndarray of shape (k, d)
        Centres, in the frame; their dtype is that of the work.
    frame : Frame
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    Assignment
    """
    n, (k, d) = len(X), centers.shape
    labels = np.empty(n, dtype=np.int32)
    inertia, sums, mass = 0.0, np.zeros((k, d)), np.zeros(k)
    for part, points, scores in scored_blocks(X, centers, frame):
        nearest = scores.argmax(axis=1)
        labels[part] = nearest
        squares = squared_gaps(points, centers[nearest])
        weight = (
            np.ones(len(points), centers.dtype) if sample_weight is None else sample_weight[part]
        )
        inertia += float(squares @ weight)
        members = csr_matrix((weight, nearest, np.arange(len(points) + 1)), shape=(len(points), k))
        sums += members.T @ points
        mass += np.bincount(nearest, weights=weight, minlength=k)
    return Assignment(labels, inertia, sums, mass)


def assign_two(
    X: np.ndarray, centers: np.ndarray, frame: Frame
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nearest and second-nearest centre of every point.

    Parameters as in :func:`assign`; at least two centres.

    Returns
    -------
    first, second : ndarrays of shape (n,), int32
        Indices.
    nearest, further : ndarrays of shape (n,), dtype of `centers`
        Squared distances in the frame.
    """
    first, second = np.empty((2, len(X)), dtype=np.int32)
    nearest, further = np.empty((2, len(X)), dtype=centers.dtype)
    for part, points, scores in scored_blocks(X, centers, frame):
        rows = np.arange(len(points))
        first[part] = scores.argmax(axis=1)
        scores[rows, first[part]] = -np.inf
        second[part] = scores.argmax(axis=1)
        nearest[part] = squared_gaps(points, centers[first[part]])
        further[part] = squared_gaps(points, centers[second[part]])
    return first, second, nearest, further


def squared_gaps(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances row by row, by differences: no cancellation."""
    gap = points - others
    return np.einsum("nd,nd->n", gap, gap)


def lloyd_step(centers: np.ndarray, found: Assignment) -> np.ndarray:
    """Means of the clusters; a centre without points stays where it is. Shape (k, d)."""
    mass = found.mass[:, None]
    means = np.divide(found.sums, mass, out=centers.astype(np.float64), where=mass > 0)
    return means.astype(centers.dtype)


def nearest_centers(
    X: np.ndarray, centers: np.ndarray, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Labels and inertia of points, given centres in the units of the data.

    The frame follows from the centres alone, so that a point's label does not depend on the other
    points. Worked out in float64, since in float32 far points close to each other look the same.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    labels : ndarray of shape (n,), int32
    inertia : float
        Weighted sum of squared distances to the nearest centres.
    """
    frame = frame_around(centers)
    found = assign(X, frame.enter(centers, np.float64), frame, sample_weight)
    return found.labels, found.inertia * frame.scale * frame.scale


def euclidean(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Distances of all points to all centres.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)

    Returns
    -------
    ndarray of shape (n, k), dtype of `X`
        Worked out in float64 around the centres' median.
    """
    frame = frame_around(centers)
    inner = frame.enter(centers, np.float64)
    out = np.empty((len(X), len(centers)), dtype=X.dtype)
    norms = np.einsum("kd,kd->k", inner, inner)
    for part in blocks(len(X), len(centers)):
        points = frame.enter(X[part], np.float64)
        squares = np.einsum("nd,nd->n", points, points)[:, None] - 2 * points @ inner.T + norms
        out[part] = np.sqrt(np.maximum(squares, 0)) * frame.scale
    return out
