"""Points of a batch of tasks, with what every step needs of them worked out once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Points(NamedTuple):
    """Points of B tasks, or of one task that several starts share (B = 1)."""

    augmented: Tensor  # (B, d + 1, n), [x ; 1]: with [c ; -|c|^2 / 2] one product gives a score
    squares: Tensor  # (B, 1, n), |x|^2
    weight: Tensor | None  # (B, 1, n), sample weights with mean 1

    def scores(self, centers: Tensor) -> Tensor:
        """``x.c - |c|^2 / 2`` for centres (B, k, d): (B, k, n), the larger the nearer."""
        half = centers.square().sum(-1, keepdim=True) * -0.5
        return product(torch.cat([centers, half], dim=-1), self.augmented)

    def objective(self, top: Tensor) -> Tensor:
        """Weighted mean of nearest squared distances, (B,), from the best scores (B, 1, n)."""
        return self.mean((self.squares - 2 * top).clamp(min=0))[:, 0]

    def mean(self, values: Tensor) -> Tensor:
        """Weighted mean over the points, (B, 1) from (B, 1, n)."""
        return (values if self.weight is None else values * self.weight).mean(-1)


def prepare(X: Tensor, sample_weight: Tensor | None = None) -> Points:
    """Work out what the steps need.

    Parameters
    ----------
    X : Tensor of shape (B, n, d)
        Points, centred.
    sample_weight : Tensor of shape (B, n), optional
        Not negative, with a positive sum.

    Returns
    -------
    Points
    """
    augmented = torch.nn.functional.pad(X, (0, 1), value=1.0).transpose(1, 2).contiguous()
    squares = X.square().sum(-1)[:, None]
    if sample_weight is not None:
        sample_weight = (sample_weight / sample_weight.mean(-1, keepdim=True))[:, None]
    return Points(augmented, squares, sample_weight)


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right`` for (B, p, q) and (B or 1, q, r), as one product where right is shared."""
    if right.shape[0] == 1 and left.shape[0] > 1:
        flat = left.reshape(-1, left.shape[-1]) @ right[0]
        return flat.view(*left.shape[:2], -1)
    return left @ right


def standardise(X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Centre tasks and divide each by one scalar.

    The scalar is robust: the median over points of the distance to the coordinatewise median,
    over ``sqrt(d)``, so that a few far points do not press all others together.

    Parameters
    ----------
    X : Tensor of shape (B, n, d)

    Returns
    -------
    X : Tensor of shape (B, n, d)
        ``(X - offset) / scale``.
    offset : Tensor of shape (B, 1, d)
    scale : Tensor of shape (B, 1, 1)
        1 where at least half of the points are the same.
    """
    offset = X.median(dim=1, keepdim=True).values
    distance = (X - offset).square().mean(-1, keepdim=True).sqrt()  # (B, n, 1)
    scale = distance.median(dim=1, keepdim=True).values
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return (X - offset) / scale, offset, scale
