"""Attention whose scores are negative squared distances.

``-|q - k|^2 = 2 q.k - |k|^2 - |q|^2`` and the last term is the same for every key, so this is
dot-product attention with a key bias. Shapes: B tasks, q queries, t keys.
"""

from __future__ import annotations

import torch
from torch import Tensor


def distance_scores(query: Tensor, key: Tensor, key_bias: Tensor | None = None) -> Tensor:
    """``2 q.k - |k|^2 + bias``, which is ``-|q - k|^2 + bias`` up to ``|q|^2``.

    Parameters
    ----------
    query : Tensor of shape (B, q, e)
    key : Tensor of shape (B, t, e)
    key_bias : Tensor of shape (B, t), optional
        Added to the scores of each key.

    Returns
    -------
    Tensor of shape (B, q, t)
        Either batch size may be 1 and is then shared.
    """
    bias = -key.square().sum(-1)  # (B, t)
    if key_bias is not None:
        bias = bias + key_bias
    batch = max(query.shape[0], key.shape[0])
    return torch.baddbmm(
        bias.unsqueeze(-2),
        query.expand(batch, -1, -1),
        key.transpose(-2, -1).expand(batch, -1, -1),
        alpha=2,
    )


def softmax_attention(
    scores: Tensor, value: Tensor, own_score: Tensor | None = None
) -> tuple[Tensor, Tensor | float]:
    """Average of the values, weighted by the softmax of the scores.

    Parameters
    ----------
    scores : Tensor of shape (B, q, t)
    value : Tensor of shape (B, t, v)
    own_score : Tensor broadcastable to (B, q, 1), optional
        Score of one more key for each query: its own token.

    Returns
    -------
    out : Tensor of shape (B, q, v)
        Share of the keys in the weighted average.
    own_share : Tensor of shape (B, q, 1), or 0.0 without `own_score`
        Weight left for the query's own token.
    """
    if own_score is None:
        return scores.softmax(-1) @ value, 0.0
    top = torch.maximum(scores.detach().amax(-1, keepdim=True), own_score.detach())  # (B, q, 1)
    weight = (scores - top).exp()  # (B, q, t)
    own = (own_score - top).exp()  # (B, q, 1)
    total = weight.sum(-1, keepdim=True) + own
    return weight @ value / total, own / total


def hard_attention(scores: Tensor, value: Tensor) -> Tensor:
    """Value of the key with the highest score; ties go to the lowest index.

    Shapes as in :func:`softmax_attention`.
    """
    best = scores.argmax(-1)  # (B, q)
    batch = torch.arange(best.shape[0], device=best.device)[:, None]
    return value.expand(best.shape[0], -1, -1)[batch, best]


def hard_average_attention(
    scores: Tensor, value: Tensor, weight: Tensor | None, own_score: Tensor
) -> tuple[Tensor, Tensor]:
    """Average of the values of all keys that share the highest score.

    Parameters
    ----------
    scores : Tensor of shape (B, q, t)
    value : Tensor of shape (B, t, v)
    weight : Tensor of shape (B, t) or None
        Weight of each key in the average; a key of weight zero is never chosen.
    own_score : Tensor broadcastable to (B, q, 1)
        The query's own token wins where no key reaches this score.

    Returns
    -------
    out, own_share : Tensors of shape (B, q, v) and (B, q, 1)
        As :func:`softmax_attention`; `own_share` is 0 or 1.
    """
    if weight is not None:
        scores = scores.masked_fill(weight.unsqueeze(-2) == 0, -torch.inf)
    top = scores.amax(-1, keepdim=True)  # (B, q, 1)
    own = top < own_score
    chosen = ((scores == top) & ~own).to(value.dtype)  # (B, q, t)
    if weight is not None:
        chosen = chosen * weight.unsqueeze(-2)
    total = chosen.sum(-1, keepdim=True)
    out = chosen @ value / torch.where(own, torch.ones_like(total), total)
    return out, own.to(value.dtype)
