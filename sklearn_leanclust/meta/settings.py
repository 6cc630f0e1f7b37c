"""All that decides how a network is trained, in one record that is stored with its weights."""

from __future__ import annotations

import json
import math
import operator
from dataclasses import asdict, dataclass, fields

from sklearn_leanclust.network import EMBEDDINGS

KINDS = ("tied", "dense")
REGULARIZERS = ("entropy", "l2")
NOISES = ("normal", "laplace", "gumbel", "lognormal", "cauchy")
INITS = ("random", "k-means++")
STARTS = ("random", "exact")


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of one training run.

    Ranges are pairs (low, high), both included; sizes are drawn log-uniformly, one for each update.
    Numbers are stored as plain ints and floats, whatever type they come in, and lists as tuples, so
    that equal settings have the same JSON.

    Parameters
    ----------
    kind : {"tied", "dense"}
        Kind of weights. Dense weights serve one size, so `n_features` and `n_clusters` must then be
        ranges of one number.
    embedding : {"binary", "onehot", "none"}
    regularizer : {"entropy", "l2"}
    tau : float
        Strength of the regularizer. Its unit is the mean squared distance that Lloyd's steps reach
        on the same task from the same start, over the number of features, so that it means the same
        for all tasks: with entropy and tau = 2 the minimiser is the posterior of a mixture of round
        Gaussians of that variance.
    noises : tuple of str
        Families of noise; one is drawn for each update.
    scale : pair of float
        Range of the noise's scale.
    n_features, n_clusters, points_per_cluster : pairs of int
        Ranges of task sizes.
    n_tasks : int
        Tasks of an update.
    n_steps : pair of int
        Range of the number of steps from the initial centres to those that are judged.
    init : {"random", "k-means++"}
        Initial centres.
    start : {"random", "exact"}
        Initial weights: random, or near the exact ones at the given `sharpness`. Tied weights
        always start near the exact ones.
    sharpness : float
        Of the exact start of dense weights.
    n_knots : int
        Number of shares of the steps at which the scalars of tied weights are learned.
    n_updates : int
    learning_rate : float
        Of Adam at its height; it rises over the first 5 % and then falls to 0 as a cosine.
    clip_norm : float
        Largest norm of a gradient.
    skip_limit : int
        Number of updates with a loss or gradient that is not finite, past which training stops.
    checkpoint_every : int
        Updates from one checkpoint, and one validation, to the next.
    seed : int

    Raises
    ------
    ValueError
        If a value is out of range, unknown, or of another type than the default.
    """

    kind: str = "tied"
    embedding: str = "binary"
    regularizer: str = "entropy"
    tau: float = 0.1
    noises: tuple[str, ...] = ("normal", "laplace", "gumbel", "lognormal")
    scale: tuple[float, float] = (0.2, 1.0)
    n_features: tuple[int, int] = (2, 32)
    n_clusters: tuple[int, int] = (3, 48)
    points_per_cluster: tuple[int, int] = (15, 60)
    n_tasks: int = 24
    n_steps: tuple[int, int] = (4, 20)
    init: str = "k-means++"
    start: str = "exact"
    sharpness: float = 5.0
    n_knots: int = 4
    n_updates: int = 400
    learning_rate: float = 0.05
    clip_norm: float = 0.5
    skip_limit: int = 100
    checkpoint_every: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = plain(field.name, getattr(self, field.name), field.default)
            object.__setattr__(self, field.name, value)
        known = {
            "kind": KINDS,
            "embedding": EMBEDDINGS,
            "regularizer": REGULARIZERS,
            "init": INITS,
            "start": STARTS,
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is unknown; use one of {', '.join(values)}."
                )
        for noise in self.noises:
            if noise not in NOISES:
                raise ValueError(f"noises={noise!r} is unknown; use some of {', '.join(NOISES)}.")
        for name in ("scale", "n_features", "n_clusters", "points_per_cluster", "n_steps"):
            low, high = getattr(self, name)
            if not 0 < low <= high < math.inf:
                raise ValueError(f"{name}={low},{high} must be a range of positive numbers.")
        for name in ("tau", "n_tasks", "n_updates", "learning_rate", "clip_norm", "sharpness",
                     "n_knots", "checkpoint_every"):  # fmt: skip
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name}={getattr(self, name)!r} must be positive and finite.")
        for name in ("skip_limit", "seed"):
            if not 0 <= getattr(self, name) < 2**63:
                raise ValueError(f"{name}={getattr(self, name)!r} must be from 0 to 2**63 - 1.")
        if self.points_per_cluster[0] == 1:
            raise ValueError(
                "points_per_cluster must be at least 2: with a centre on each point nothing "
                "is left to learn."
            )
        if not self.noises:
            raise ValueError(f"noises is empty; use some of {', '.join(NOISES)}.")
        if self.kind == "tied" and self.embedding == "none":
            raise ValueError("embedding='none' needs kind='dense'.")
        if self.kind == "dense":
            for name in ("n_features", "n_clusters"):
                low, high = getattr(self, name)
                if low != high:
                    raise ValueError(
                        f"{name}={low},{high} must be one number: dense weights serve one size."
                    )

    @classmethod
    def dense(cls, n_features: int, n_clusters: int, **changes) -> TrainingSettings:
        """Defaults for the single step of dense weights of one size."""
        defaults = {
            "noises": ("normal", "laplace", "gumbel"),
            "scale": (0.3, 0.3),
            "points_per_cluster": (25, 25),
            "n_tasks": 32,
            "n_steps": (1, 1),
            "init": "random",
            "n_updates": 4000,
            "learning_rate": 1e-2,
            "clip_norm": 1.0,
            "checkpoint_every": 500,
        }
        sizes = {"n_features": (n_features,) * 2, "n_clusters": (n_clusters,) * 2}
        return cls(kind="dense", **{**defaults, **sizes, **changes})

    def to_json(self) -> str:
        """Canonical JSON: the same settings give the same text."""
        return json.dumps(asdict(self), sort_keys=True)

    def command(self) -> str:
        """Command that trains with these settings."""
        parts = ["python -m sklearn_leanclust train --out DIR"]
        for name, value in asdict(self).items():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"--{name.replace('_', '-')} {text}")
        return " ".join(parts)

    @classmethod
    def from_json(cls, text: str) -> TrainingSettings:
        """Settings from :meth:`to_json`."""
        values = json.loads(text)
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown training settings: {', '.join(sorted(unknown))}.")
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def plain(name: str, value: object, default: object) -> object:
    """Value of a setting in the type of its default."""
    try:
        if isinstance(default, tuple) and not isinstance(value, str):
            values = tuple(plain(name, one, default[0]) for one in value)
            if isinstance(default[0], str) or len(values) == 2:
                return values
        elif isinstance(default, str) and isinstance(value, str):
            return value
        elif isinstance(default, int):
            return operator.index(value)
        elif isinstance(default, float) and not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name}={value!r} must be of the kind of {default!r}.")
