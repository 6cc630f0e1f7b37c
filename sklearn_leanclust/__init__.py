"""Clustering with a small attention layer, as scikit-learn estimators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn_leanclust._lloyd_step import LloydStep
    from sklearn_leanclust._transformer_kmeans import TransformerKMeans
    from sklearn_leanclust.plotting import ClusterDisplay

__version__ = "0.1.0"

__all__ = ["ClusterDisplay", "LloydStep", "TransformerKMeans", "__version__"]

_HOMES = {
    "ClusterDisplay": "plotting",
    "LloydStep": "_lloyd_step",
    "TransformerKMeans": "_transformer_kmeans",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that the package itself imports fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
