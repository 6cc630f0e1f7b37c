"""Synthetic clustering tasks.

A task has k cluster centres from N(0, I); each of its n points is one of them plus scaled noise.
All draws come from a generator of their own; the global state of PyTorch is never touched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from sklearn_leanclust.meta.settings import INITS, NOISES


@dataclass(frozen=True)
class TaskFamily:
    """Distribution of tasks of one size.

    Parameters
    ----------
    noise : {"normal", "laplace", "gumbel", "lognormal", "cauchy"}
        Standard distribution of the noise, independent in each coordinate.
    scale : float
        Factor of the noise.
    n_features, n_clusters, n_samples : int
        Size d, k, n of a task.
    """

    noise: str
    scale: float
    n_features: int
    n_clusters: int
    n_samples: int

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            raise ValueError(f"noise={self.noise!r} is unknown; use one of {', '.join(NOISES)}.")

    def sample(self, n_tasks: int, generator: Generator) -> Tensor:
        """Draw the points of tasks, (n_tasks, n, d) float32 on the generator's device."""
        device, d = generator.device, self.n_features
        centers = torch.randn(
            n_tasks, self.n_clusters, d, generator=generator, device=device
        )  # (B, k, d)
        member = torch.randint(
            self.n_clusters, (n_tasks, self.n_samples, 1), generator=generator, device=device
        )  # (B, n, 1)
        noise = sample_noise(self.noise, (n_tasks, self.n_samples, d), generator)
        return centers.gather(1, member.expand(-1, -1, d)) + self.scale * noise


def sample_noise(noise: str, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Draw from a standard distribution by its quantile function; always finite.

    Parameters
    ----------
    noise : str
        One of `NOISES`; ``"lognormal"`` is ``exp(N(0, 1))``.
    shape : tuple of int
    generator : torch.Generator

    Returns
    -------
    Tensor of `shape`, float32
    """
    device = generator.device
    if noise in ("normal", "lognormal"):
        draw = torch.randn(shape, generator=generator, device=device)
        return draw if noise == "normal" else draw.exp()
    # float64 and the open interval: the quantiles of 0 and 1 are infinite
    uniform = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    uniform = uniform.clamp(2.0**-53, 1 - 2.0**-53)
    if noise == "laplace":
        centred = uniform - 0.5
        draw = -centred.sign() * torch.log1p(-2 * centred.abs())
    elif noise == "gumbel":
        draw = -(-uniform.log()).log()
    else:  # cauchy
        draw = torch.tan(math.pi * (uniform - 0.5))
    return draw.float()


def initial_centers(X: Tensor, n_clusters: int, init: str, generator: Generator) -> Tensor:
    """Draw initial centres among the points of each task.

    Parameters
    ----------
    X : Tensor of shape (B, n, d)
    n_clusters : int
        Number k of centres, at most n.
    init : {"random", "k-means++"}
        ``"random"`` takes k different points; ``"k-means++"`` draws one after the other with
        probability in proportion to the squared distance to the nearest one so far (Arthur and
        Vassilvitskii, 2007).
    generator : torch.Generator

    Returns
    -------
    Tensor of shape (B, k, d)

    Raises
    ------
    ValueError
        If `init` is unknown or `n_clusters` is not from 1 to n.
    """
    if init not in INITS:
        raise ValueError(f"init={init!r} is unknown; use one of {', '.join(INITS)}.")
    n_tasks, n, d = X.shape
    if not 1 <= n_clusters <= n:
        raise ValueError(f"n_clusters={n_clusters} must be from 1 to the number of points, {n}.")
    if init == "random":
        order = torch.rand(n_tasks, n, generator=generator, device=X.device).argsort(1)
        return X.gather(1, order[:, :n_clusters, None].expand(-1, -1, d))
    chosen = torch.randint(n, (n_tasks, 1), generator=generator, device=X.device)
    centers = [X.gather(1, chosen[..., None].expand(-1, -1, d))]  # each (B, 1, d)
    nearest = (X - centers[0]).square().sum(-1)  # (B, n)
    for _ in range(n_clusters - 1):
        total = nearest.sum(-1, keepdim=True)
        share = torch.where(total > 0, nearest, torch.ones_like(nearest))
        chosen = torch.multinomial(share, 1, generator=generator)
        centers.append(X.gather(1, chosen[..., None].expand(-1, -1, d)))
        nearest = torch.minimum(nearest, (X - centers[-1]).square().sum(-1))
    return torch.cat(centers, dim=1)
