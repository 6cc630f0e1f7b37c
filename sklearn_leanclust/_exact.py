"""Exact steps on all points, with relocations for what a sample may have missed."""

from __future__ import annotations

import numpy as np

from sklearn_leanclust._distances import (
    Frame,
    assign,
    assign_two,
    blocks,
    lloyd_step,
    scored_blocks,
    squared_gaps,
)

MOST_STEPS, MOST_RELOCATIONS = 30, 5


def exact_steps(
    X: np.ndarray,
    centers: np.ndarray,
    frame: Frame,
    sample_weight: np.ndarray | None,
    tol: float,
    random_state: np.random.RandomState | None,
) -> np.ndarray:
    """Lloyd's steps until they hardly move the centres.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        All points, outside of the frame.
    centers : ndarray of shape (k, d)
        In the frame.
    frame : Frame
    sample_weight : ndarray of shape (n,) or None
    tol : float
        Squared movement of all centres, in the frame, at which the steps end.
    random_state : RandomState or None
        With one, centres relocate after the first steps, judged on all points.

    Returns
    -------
    ndarray of shape (k, d)
        In the frame; no step or relocation raises the inertia.
    """
    for number in range(MOST_STEPS):
        moved = lloyd_step(centers, assign(X, centers, frame, sample_weight))
        shift = float(np.square(moved - centers, dtype=np.float64).sum())
        centers = moved
        relocated = centers
        if number < MOST_RELOCATIONS and random_state is not None:
            relocated = relocate_on_all(X, centers, frame, sample_weight, random_state)
        if np.array_equal(relocated, centers):
            random_state = None  # nothing more to gain
            if shift <= tol:
                break
        centers = relocated
    return centers


def relocate_on_all(
    X: np.ndarray,
    centers: np.ndarray,
    frame: Frame,
    sample_weight: np.ndarray | None,
    random_state: np.random.RandomState,
    n_trials: int = 8,
) -> np.ndarray:
    """Move centres to where all points show that it pays.

    Of several points drawn in proportion to their squared distance the one that lowers the inertia
    most takes the place of the least useful centre, if its gain is more than what is lost without
    that centre. The difference bounds the change of the inertia, which therefore falls.

    Parameters and return value as in :func:`exact_steps`.
    """
    labels, second, nearest, further = assign_two(X, centers, frame)
    weight = np.ones(len(X), X.dtype) if sample_weight is None else sample_weight
    utility = np.bincount(labels, weight * (further - nearest), minlength=len(centers))
    centers, free = centers.copy(), np.ones(len(centers), dtype=bool)
    for leaving in np.argsort(utility)[: len(centers) // 2]:
        if not free[leaving]:
            continue
        share = np.cumsum(weight * nearest, dtype=np.float64)
        if not share[-1] > 0:
            break
        drawn = np.searchsorted(share, random_state.uniform(size=n_trials) * share[-1])
        trials = frame.enter(X[np.minimum(drawn, len(X) - 1)], centers.dtype)
        gains = gains_of(X, trials, frame, nearest, weight)
        best = gains.argmax()
        if gains[best] <= utility[leaving]:
            break
        centers[leaving] = trials[best]
        # a centre that points would have turned to from the one that left is worth more now
        free[leaving] = False
        free[np.unique(labels[second == leaving])] = False
        nearest = np.where(labels == leaving, further, nearest)
        for part in blocks(len(X), 1):
            gaps = squared_gaps(frame.enter(X[part], centers.dtype), trials[best])
            np.minimum(nearest[part], gaps, out=nearest[part])
    return centers


def gains_of(
    X: np.ndarray, trials: np.ndarray, frame: Frame, nearest: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """What each trial, as one more centre, would take off the inertia, (n_trials,)."""
    gains = np.zeros(len(trials))
    for part, points, scores in scored_blocks(X, trials, frame):
        squares = np.einsum("nd,nd->n", points, points)[:, None]
        gaps = np.maximum(squares - 2 * scores, 0)
        gains += weight[part] @ np.maximum(nearest[part, None] - gaps, 0)
    return gains
