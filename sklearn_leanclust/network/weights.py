"""The three kinds of weights of the layer.

exact   analytic; with hard attention the layer equals Lloyd's step
tied    every W is diag(a I_d, b I_m): a few scalars serve every d, k and n
dense   every W is a free D x D matrix, for one (d, k): the paper's
"""

from __future__ import annotations

import math
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
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, own_score, w, hard: bool
) -> tuple[Tensor, Tensor]:
    """What each centre reads from the points, (B, k, v), and the share it keeps of itself."""
    own = query.square().sum(-1, keepdim=True) + own_score  # scores leave out -|query|^2
    if hard:
        return hard_average_attention(distance_scores(query, key, bias), value, w, own)
    if w is not None:
        bias = w.log() if bias is None else bias + w.log()
    return softmax_attention(distance_scores(query, key, bias), value, own)


class DiagonalStep(NamedTuple):
    """One step with every W = diag(a I_d, b I_m); floats, or tensors while they are learned.

    A block that is zero adds nothing to a score or a value and is left out. Distances are measured
    in units of the task itself, its mean nearest squared distance, so that one set of scalars
    serves data of every scale and dimension.
    """

    assign_sharpness: float | Tensor = 1.0  # beta: W_qa = W_ka = diag(sqrt(beta / unit) I_d, 0)
    code_sharpness: float | Tensor = 1.0  # gamma: W_qu = W_ku = diag(0, sqrt(gamma) I_m)
    step_length: float | Tensor = 1.0  # alpha: W_vu = diag(alpha I_d, 0), W_r = I - W_vu
    own_penalty: float | Tensor = 1.0  # delta: a centre sees itself with score -delta
    ambiguity: float | Tensor = 0.0  # omega: key bias of points that lie between clusters
    hard: bool = False

    def assign(self, z: Tensor, y: Tensor, d: int, w: Tensor | None) -> Tensor:
        x, c, codes = z[..., :d], y[..., :d], y[..., d:]
        scores = distance_scores(x, c)  # (B, n, k)
        if not self.hard:
            scores = scores * (self.assign_sharpness / nearest_unit(x, scores, w))
        marks = z[..., d:] + point_attention(scores, codes, self.hard)  # (B, n, m)
        return torch.cat([x.expand(len(marks), -1, -1), marks], dim=-1)

    def update(self, y: Tensor, z: Tensor, d: int, w: Tensor | None) -> Tensor:
        x, marks, c, codes = z[..., :d], z[..., d:], y[..., :d], y[..., d:]
        root, bias = self.code_sharpness**0.5, None
        if not self.hard:
            # a point torn between clusters has a mark shorter than a code, far from every code
            full = codes[:, :1].square().sum(-1)  # (B, 1), |P|^2 is the same for all
            bias = self.ambiguity * (full - marks.square().sum(-1))  # (B, n)
        mean, own = center_attention(
            root * codes, root * marks, x, bias, -self.own_penalty, w, self.hard
        )  # (B, k, d), (B, k, 1)
        c = c + self.step_length * (mean + own * c - c)
        return torch.cat([c, codes], dim=-1)


def nearest_unit(x: Tensor, scores: Tensor, w: Tensor | None) -> Tensor:
    """Mean squared distance of the points to their nearest centres, (B, 1, 1), never zero."""
    nearest = (x.square().sum(-1) - scores.amax(-1)).clamp(min=0)  # (B, n)
    unit = nearest.mean(-1) if w is None else (w * nearest).sum(-1) / w.sum(-1)
    return unit.clamp(min=torch.finfo(unit.dtype).tiny ** 0.5)[:, None, None]


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
            return DiagonalStep(hard=True)
        return DiagonalStep(self.sharpness, self.sharpness, 1.0, self.sharpness)


class TiedWeights(nn.Module):
    """A few learned scalars a step, given at equally spaced shares of the steps done.

    Parameters
    ----------
    n_knots : int, default=4
        Number of shares between 0 and 1 at which the scalars are learned; the others are
        interpolated, so that any number of steps works.
    """

    # start: close to Lloyd's step, soft enough to have a gradient
    START = {
        "log_assign_sharpness": math.log(5.0),
        "log_code_sharpness": math.log(3.0),
        "step_length": 1.0,
        "log_own_penalty": math.log(4.0),
        "ambiguity": 0.0,
    }

    def __init__(self, n_knots: int = 4) -> None:
        super().__init__()
        self.knots = nn.ParameterDict(
            {name: nn.Parameter(torch.full((n_knots,), start)) for name, start in self.START.items()}
        )

    def at(self, progress: float) -> Step:
        """Weights of the step at this share of the steps done, by linear interpolation."""
        place = progress * (len(self.knots["step_length"]) - 1)
        low = min(int(place), len(self.knots["step_length"]) - 2)
        share = place - low

        def value(name: str) -> Tensor | float:
            knot = self.knots[name]
            mixed = (1 - share) * knot[low] + share * knot[low + 1]
            mixed = mixed.exp() if name.startswith("log_") else mixed
            return mixed if torch.is_grad_enabled() else mixed.item()

        return DiagonalStep(*map(value, self.START))


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
            y @ self.query_update.T, z @ self.key_update.T, z @ self.value_update.T,
            None, -self.own_penalty, w, self.hard,
        )  # fmt: skip
        return y @ self.residual.T + mean + own * (y @ self.value_update.T)
