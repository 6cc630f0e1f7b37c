"""The objective of meta-training: k-means with a smoothed min.

``min_{p in simplex} <p, v> + tau Omega(p)`` takes the place of ``min_j v_j``:

    entropy  Omega = sum p log p  p = softmax(-v / tau)    min - tau log k <= value <= min
    l2       Omega = |p|^2 / 2    p = sparsemax(-v / tau)  min + tau / 2k <= value <= min + tau / 2

By the envelope theorem the gradient of the value is the minimiser p.

Source: "Leaner transformers can easily learn to cluster" (NeurIPS 2026); sparsemax: Martins and
Astudillo, "From softmax to sparsemax" (ICML 2016).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sklearn_leanclust.meta.settings import REGULARIZERS
from sklearn_leanclust.network.points import prepare


def smoothed_min(values: Tensor, tau: float, regularizer: str) -> Tensor:
    """Smoothed minimum over the last dimension.

    Parameters
    ----------
    values : Tensor of shape (..., k), float32 or float64
        Finite values of any size. ``inf`` is never chosen unless it is alone; NaN gives NaN.
    tau : float
        Strength of the regularizer, positive and finite, in the units of `values`.
    regularizer : {"entropy", "l2"}

    Returns
    -------
    Tensor of shape (...)
        Its gradient is the minimiser, itself differentiable.

    Raises
    ------
    ValueError
        If `tau` is not positive and finite or `regularizer` is unknown.
    """
    if not 0 < tau < math.inf:
        raise ValueError(f"tau={tau!r} must be positive and finite.")
    if regularizer not in REGULARIZERS:
        raise ValueError(
            f"regularizer={regularizer!r} is unknown; use one of {', '.join(REGULARIZERS)}."
        )
    return _SmoothedMin.apply(values, tau, regularizer)


class _SmoothedMin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values: Tensor, tau: float, regularizer: str) -> Tensor:
        low, excess = _excess(values, tau)
        weight = _minimiser(excess, regularizer)
        if regularizer == "entropy":
            gain = -(-excess).logsumexp(-1)  # <p, e> + sum p log p
        else:
            inside = torch.where(weight > 0, excess, torch.zeros_like(excess))
            gain = (weight * inside).sum(-1) + weight.square().sum(-1) / 2
        ctx.save_for_backward(values, weight)
        ctx.tau, ctx.regularizer = tau, regularizer
        return low[..., 0] + tau * gain

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        values, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for: the weight must have one
            weight = _minimiser(_excess(values, ctx.tau)[1], ctx.regularizer)
        return grad[..., None] * weight, None, None


def _excess(values: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """Minimum (..., 1) and the values above it in units of tau, (..., k).

    The minimum is taken off first: what is far above it then cannot swallow the digits of tau.
    It is a constant to derivatives, as the minimiser does not depend on it.
    """
    low = values.detach().amin(-1, keepdim=True)
    excess = (values - low) / tau
    # inf - inf where the minimum is infinite, 0 / 0 where the dtype rounds tau to 0
    undefined = (values == low) & excess.isnan()
    return low, excess.masked_fill(undefined, 0.0)


def _minimiser(excess: Tensor, regularizer: str) -> Tensor:
    return (-excess).softmax(-1) if regularizer == "entropy" else sparsemax(-excess)


def sparsemax(scores: Tensor) -> Tensor:
    """Euclidean projection of scores (..., k), whose maximum is 0, onto the simplex.

    With the maximum at 0 only scores above -1 can take part. The others are cut there, where they
    change nothing, so that sums of the sorted scores keep their digits however far below they lie.
    """
    cut = scores.clamp(min=-1.0)
    ordered = cut.sort(-1, descending=True).values
    rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    excess = ordered.cumsum(-1) - 1
    support = (rank * ordered > excess).sum(-1, keepdim=True).clamp(min=1)  # (..., 1)
    threshold = excess.gather(-1, support - 1) / support
    return (cut - threshold).clamp(min=0)


def squared_distances(X: Tensor, centers: Tensor) -> Tensor:
    """Squared distances of points (B, n, d) to centres (B, k, d), (B, n, k).

    The product form, cut at zero: exact enough for points that are centred and of order one.
    """
    points = prepare(X)
    return (points.squares - 2 * points.scores(centers)).clamp(min=0).transpose(1, 2)


def smoothed_objective(X: Tensor, centers: Tensor, tau: float, regularizer: str) -> Tensor:
    """Mean smoothed min of the squared distances, (B,), for (B, n, d) and (B, k, d)."""
    return smoothed_min(squared_distances(X, centers), tau, regularizer).mean(-1)


def kmeans_objective(X: Tensor, centers: Tensor) -> Tensor:
    """Mean squared distance to the nearest centre, (B,), for (B, n, d) and (B, k, d)."""
    return squared_distances(X, centers).amin(-1).mean(-1)
