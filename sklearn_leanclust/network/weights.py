"""Weights of the layer that are matrices: exact and dense ones.

exact   analytic; with hard attention the layer equals Lloyd's step
dense   every W is a free D x D matrix, for one (d, k): the paper's
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from sklearn_leanclust.network.attention import (
    distance_scores,
    hard_attention,
    hard_average_attention,
    softmax_attention,
)
from sklearn_leanclust.network.embedding import code_size


class Step(Protocol):
    """What the layer needs of its weights: the two attentions, on tokens of D = d + m."""

    def assign(self, z: Tensor, y: Tensor, d: int, w: Tensor | None) -> Tensor:
        """Return the tokens of the points after they looked at the centres, (B, n, D)."""

    def update(self, y: Tensor, z: Tensor, d: int, w: Tensor | None) -> Tensor:
        """Return the tokens of the centres after they looked at the points, (B, k, D)."""


def point_attention(scores: Tensor, value: Tensor, hard: bool) -> Tensor:
    """What each point reads from the centres, (B, n, v)."""
    return hard_attention(scores, value) if hard else softmax_attention(scores, value)[0]


def center_attention(
    query: Tensor, key: Tensor, value: Tensor, own_score, w: Tensor | None, hard: bool
) -> tuple[Tensor, Tensor]:
    """What each centre reads from the points, (B, k, v), and the share it keeps of itself."""
    own = query.square().sum(-1, keepdim=True) + own_score  # scores leave out -|query|^2
    if hard:
        return hard_average_attention(distance_scores(query, key), value, w, own)
    bias = None if w is None else w.log()
    return softmax_attention(distance_scores(query, key, bias), value, own)


class ExactStep(NamedTuple):
    """One step with the analytic weights, every W = diag(a I_d, b I_m).

    W_qa = W_ka = W_vu = diag(I_d, 0) and W_va = W_qu = W_ku = W_r = diag(0, I_m). A block that is
    zero adds nothing to a score or a value and is left out.
    """

    sharpness: float = 1.0
    hard: bool = True

    def assign(self, z: Tensor, y: Tensor, d: int, w: Tensor | None) -> Tensor:
        x, c, codes = z[..., :d], y[..., :d], y[..., d:]
        scores = self.sharpness * distance_scores(x, c)  # (B, n, k)
        marks = z[..., d:] + point_attention(scores, codes, self.hard)  # (B, n, m)
        return torch.cat([x.expand(len(marks), -1, -1), marks], dim=-1)

    def update(self, y: Tensor, z: Tensor, d: int, w: Tensor | None) -> Tensor:
        x, marks, c, codes = z[..., :d], z[..., d:], y[..., :d], y[..., d:]
        root = self.sharpness**0.5
        mean, own = center_attention(
            root * codes, root * marks, x, -self.sharpness, w, self.hard
        )  # (B, k, d), (B, k, 1)
        return torch.cat([mean + own * c, codes], dim=-1)


class ExactWeights(nn.Module):
    """Analytic weights.

    Parameters
    ----------
    sharpness : float or None, default=None
        None takes hard attention: the layer is Lloyd's step. A number is the sharpness of the
        softmax in both attentions, and the step tends to Lloyd's as it grows.
    """

    def __init__(self, sharpness: float | None = None) -> None:
        super().__init__()
        self.sharpness = sharpness

    def at(self, progress: float) -> Step:
        """Weights of the step at this share of the steps done; here always the same."""
        if self.sharpness is None:
            return ExactStep()
        return ExactStep(self.sharpness, hard=False)


class DenseWeights(nn.Module):
    """Free matrices, for one number of features and clusters.

    Parameters
    ----------
    n_features, n_clusters : int
        Size d and k of the tasks.
    embedding : {"binary", "onehot", "none"}, default="binary"
        Code, which sets the size D of the tokens.
    hard : bool, default=False
        Hard attention, which has no gradient.
    """

    NAMES = ("query_assign", "key_assign", "value_assign", "query_update", "key_update",
             "value_update", "residual")  # fmt: skip

    def __init__(
        self, n_features: int, n_clusters: int, embedding: str = "binary", hard: bool = False
    ) -> None:
        super().__init__()
        self.n_features, self.n_clusters, self.embedding = n_features, n_clusters, embedding
        self.hard = hard
        size = n_features + code_size(embedding, n_clusters)
        for name in self.NAMES:
            setattr(self, name, nn.Parameter(torch.zeros(size, size)))
        self.own_penalty = nn.Parameter(torch.ones(()))

    @torch.no_grad()
    def set_exact(self, sharpness: float = 1.0) -> DenseWeights:
        """Set the matrices to the analytic values, at this sharpness of a soft attention."""
        d, size = self.n_features, len(self.residual)
        coordinates = torch.diag((torch.arange(size) < d).float()).to(self.residual)
        codes = torch.eye(size).to(self.residual) - coordinates
        for name in ("query_assign", "key_assign"):
            getattr(self, name).copy_(sharpness**0.5 * coordinates)
        for name in ("query_update", "key_update"):
            getattr(self, name).copy_(sharpness**0.5 * codes)
        self.value_assign.copy_(codes)
        self.value_update.copy_(coordinates)
        self.residual.copy_(codes)
        self.own_penalty.fill_(sharpness)
        return self

    @torch.no_grad()
    def set_random(self, generator: torch.Generator, scale: float = 1.0) -> DenseWeights:
        """Draw the matrices from N(0, scale^2 / D)."""
        for name in self.NAMES:
            weight = getattr(self, name)
            draw = torch.randn(weight.shape, generator=generator, device=generator.device)
            weight.copy_(draw * scale / len(weight) ** 0.5)
        self.own_penalty.fill_(1.0)
        return self

    def at(self, progress: float) -> Step:
        """Weights of the step at this share of the steps done; here always the same."""
        return self

    def assign(self, z: Tensor, y: Tensor, d: int, w: Tensor | None) -> Tensor:
        scores = distance_scores(z @ self.query_assign.T, y @ self.key_assign.T)  # (B, n, k)
        return z + point_attention(scores, y @ self.value_assign.T, self.hard)

    def update(self, y: Tensor, z: Tensor, d: int, w: Tensor | None) -> Tensor:
        mean, own = center_attention(
            y @ self.query_update.T,
            z @ self.key_update.T,
            z @ self.value_update.T,
            -self.own_penalty,
            w,
            self.hard,
        )
        return y @ self.residual.T + mean + own * (y @ self.value_update.T)
