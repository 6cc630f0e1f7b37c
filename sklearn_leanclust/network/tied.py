"""Tied weights: every W is diag(a I_d, b I_m), a few learned scalars for each step.

One set of them serves every d, k and n, since distances are measured in units of the task itself,
its mean nearest squared distance. Beside the codes, the update looks at the coordinates: where a
point lies between clusters, its mark (a mean of codes) is as near to the codes of clusters that
have nothing to do with it, and the coordinates rule those out.

The step is written centre by centre, scores of shape (B, k, n): sums over the centres then run
over whole rows of points, several times faster on a CPU than over short rows of centres.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sklearn_leanclust.network.points import Points, product

LOWEST = -50.0  # of an exponent: exp keeps clear of denormal numbers, which stall a CPU


class TiedStep(NamedTuple):
    """Scalars of one step; floats, or tensors while they are learned."""

    assign_sharpness: float | Tensor  # W_qa = W_ka = diag(sqrt(beta / unit) I_d, 0)
    reading: float | Tensor  # W_va = diag(v I_d, I_m)
    code_sharpness: float | Tensor  # W_qu = W_ku = diag(sqrt(eta / unit) I_d, sqrt(gamma) I_m)
    coordinate_sharpness: float | Tensor  # eta / beta
    ambiguity: float | Tensor  # key bias for points whose mark is shorter than a code
    own_penalty: float | Tensor  # a centre sees itself with score -delta
    step_length: float | Tensor  # W_vu = diag(alpha I_d, 0), W_r = diag((1 - alpha) I_d, I_m)

    def advance(self, points: Points, centers: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Make one step.

        Parameters
        ----------
        points : Points
            Of B tasks, or one set of points for all.
        centers : Tensor of shape (B, k, d)
        codes : Tensor of shape (k, m)

        Returns
        -------
        centers : Tensor of shape (B, k, d)
            After the step.
        objective : Tensor of shape (B,)
            Mean nearest squared distance before the step.
        """
        scores = points.scores(centers)  # (B, k, n)
        top = scores.amax(1, keepdim=True)  # (B, 1, n)
        objective = points.objective(top)  # (B,)
        unit = objective.clamp(min=torch.finfo(objective.dtype).tiny ** 0.5)

        # assign: each point reads the codes and the coordinates of the centres near it
        sharpness = (2 * self.assign_sharpness / unit)[:, None, None]
        if torch.is_grad_enabled():
            logits = ((scores - top) * sharpness).clamp(min=LOWEST)
        else:  # the same without new memory, which is what takes the time
            logits = scores.sub_(top).mul_(sharpness).clamp_(min=LOWEST)
        near = logits.exp()
        total = near.sum(1, keepdim=True)  # (B, 1, n)
        marks = codes.T @ near / total  # (B, m, n)

        # update: each centre averages what the points hold that carry its code and lie near it
        gamma = self.code_sharpness
        norm = codes[:1].square().sum()  # |P_l|^2, the same for every code
        torn = norm - marks.square().sum(1, keepdim=True)  # (B, 1, n), 0 for a firm mark
        # -gamma |P_l - z|^2 + omega torn, the terms without l as one more feature
        rest = (gamma + self.ambiguity) * torn - 2 * gamma * norm
        match = nn.functional.pad(2 * gamma * codes, (0, 1), value=1.0) @ torch.cat(
            [marks, rest], 1
        )
        if torch.is_grad_enabled():
            chosen = (match + self.coordinate_sharpness * logits).clamp(min=LOWEST).exp()
        else:
            chosen = match.add_(logits, alpha=self.coordinate_sharpness).clamp_(min=LOWEST).exp_()
        if points.weight is not None:
            chosen = chosen * points.weight
        sums = product(chosen, points.augmented.transpose(1, 2))  # (B, k, d + 1), masses last
        if codes.shape[0] > centers.shape[2]:  # the same product from its cheaper end
            read = chosen @ (centers.transpose(1, 2) @ near / total).transpose(1, 2)
        else:
            read = (chosen / total) @ near.transpose(1, 2) @ centers  # (B, k, d)
        own = math.e**-self.own_penalty
        held = sums[..., :-1] + self.reading * read  # a point holds x + v c, its centre (1 + v) c
        mean = (held + own * (1 + self.reading) * centers) / (sums[..., -1:] + own)
        target = mean - self.reading * centers
        return torch.lerp(centers, target, self.step_length), objective


class TiedWeights(nn.Module):
    """Learned scalars at equally spaced shares of the steps done.

    Parameters
    ----------
    n_knots : int, default=4
        Number of shares between 0 and 1 at which the scalars are learned. Those of other shares
        are interpolated, so that any number of steps works.
    """

    # near Lloyd's step, and soft enough to have a gradient
    START = {
        "log_assign_sharpness": 1.5,
        "reading": 0.0,
        "log_code_sharpness": -1.0,
        "log_coordinate_sharpness": -0.5,
        "ambiguity": -0.3,
        "log_own_penalty": 1.5,
        "step_length": 1.2,
    }

    def __init__(self, n_knots: int = 4) -> None:
        super().__init__()
        self.knots = nn.ParameterDict(
            {
                name: nn.Parameter(torch.full((n_knots,), start))
                for name, start in self.START.items()
            }
        )

    def at(self, progress: float) -> TiedStep:
        """Scalars of the step at this share of the steps done, by linear interpolation."""
        return self.schedule()(progress)

    def schedule(self) -> Callable[[float], TiedStep]:
        """The scalars as a function of the share of the steps done, for many steps in a row."""
        # in the order of TiedStep; that of a ParameterDict is another
        knots = [(self.knots[name], name.startswith("log_")) for name in self.START]
        last = knots[0][0].shape[0] - 1
        if not torch.is_grad_enabled():
            knots = [(knot.tolist(), logarithm) for knot, logarithm in knots]

        def at(progress: float) -> TiedStep:
            low = min(int(progress * last), max(last - 1, 0))
            high, share = min(low + 1, last), progress * last - low
            values = [(1 - share) * knot[low] + share * knot[high] for knot, _ in knots]
            return TiedStep(
                *(math.e**v if log else v for v, (_, log) in zip(values, knots, strict=True))
            )

        return at
