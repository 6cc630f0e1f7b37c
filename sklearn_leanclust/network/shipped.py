"""The weights that come with the package."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from sklearn_leanclust.network.checkpoint import load_network
from sklearn_leanclust.network.transformer import ClusteringTransformer

SUFFIX = ".safetensors"


def file_stem(
    kind: str,
    embedding: str,
    regularizer: str,
    tau: float,
    n_features: int | None = None,
    n_clusters: int | None = None,
) -> str:
    """Name of weights, such as ``tied-binary-entropy-0.1`` or ``dense-onehot-l2-1.0-d4-k8``.

    Parameters
    ----------
    kind : {"tied", "dense"}
    embedding : {"binary", "onehot", "none"}
    regularizer : {"entropy", "l2"}
    tau : float
    n_features, n_clusters : int, optional
        Of dense weights, which serve one size only; those of tied weights do not matter.
    """
    stem = f"{kind}-{embedding}-{regularizer}-{float(tau)!r}"
    return f"{stem}-d{n_features}-k{n_clusters}" if kind == "dense" else stem


def find_shipped(
    kind: str,
    embedding: str,
    regularizer: str,
    tau: float,
    n_features: int | None = None,
    n_clusters: int | None = None,
) -> Path | None:
    """File with these weights, None if they are not shipped.

    Parameters as in :func:`file_stem`.
    """
    stem = file_stem(kind, embedding, regularizer, tau, n_features, n_clusters)
    path = _folder() / f"{stem}{SUFFIX}"
    return path if path.is_file() else None


@lru_cache(maxsize=32)
def load_shipped(path: Path) -> ClusteringTransformer:
    """Network of a shipped file, read once in a process and never to be changed."""
    return load_network(path)[0]


def shipped_files() -> list[Path]:
    """Files with weights that come with the package, in the order of their names."""
    return sorted(_folder().glob(f"*{SUFFIX}"))


@lru_cache(maxsize=1)
def _folder() -> Path:
    return Path(str(files("sklearn_leanclust"))) / "weights"
