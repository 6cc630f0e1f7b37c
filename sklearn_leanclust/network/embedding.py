"""Index codes and tokens.

A point becomes the token ``[x ; 0]`` and a centre ``[c ; P_j]``, where ``P_j`` is the code of
cluster j. With binary codes the embedding has only ``d + ceil(log2 k)`` dimensions, with one-hot
codes ``d + k``.

Source: "Leaner transformers can easily learn to cluster" (NeurIPS 2026); the one-hot code:
"Transformer Circuits Can Realize Clustering Algorithms" (ICML 2026, arXiv 2506.19125).
"""

from __future__ import annotations

import torch
from torch import Tensor

from sklearn_leanclust.network import EMBEDDINGS


def code_size(embedding: str, n_clusters: int) -> int:
    """Number m of dimensions that the code of one of `n_clusters` clusters takes.

    Parameters
    ----------
    embedding : {"binary", "onehot", "none"}
        Kind of code.
    n_clusters : int
        Number k of clusters, at least 1.

    Returns
    -------
    int
        ``max(1, ceil(log2 k))``, k or 0.

    Raises
    ------
    ValueError
        If `embedding` is not a known kind.
    """
    if embedding == "binary":
        return max(1, (n_clusters - 1).bit_length())
    if embedding == "onehot":
        return n_clusters
    if embedding == "none":
        return 0
    raise ValueError(f"embedding={embedding!r} is unknown; use one of {', '.join(EMBEDDINGS)}.")


def index_codes(
    embedding: str,
    n_clusters: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Codes of all clusters.

    Parameters
    ----------
    embedding : {"binary", "onehot", "none"}
        ``"binary"``: the bits of j as ±1, least significant first; ``"onehot"``: the unit
        vectors; ``"none"``: nothing.
    n_clusters : int
        Number k of clusters.
    dtype, device : optional
        Of the result; PyTorch's defaults if omitted.

    Returns
    -------
    Tensor of shape (k, m)
        Row j is the code of cluster j. No two rows are equal, except for ``"none"``.
    """
    m = code_size(embedding, n_clusters)
    if embedding == "onehot":
        return torch.eye(n_clusters, dtype=dtype, device=device)
    index = torch.arange(n_clusters, device=device)[:, None]  # (k, 1)
    bits = (index >> torch.arange(m, device=device)) & 1  # (k, m)
    return (2 * bits - 1).to(dtype or torch.get_default_dtype())


def point_tokens(X: Tensor, m: int) -> Tensor:
    """Tokens ``[x ; 0]``: (..., n, d) -> (..., n, d + m)."""
    return torch.nn.functional.pad(X, (0, m))


def center_tokens(centers: Tensor, codes: Tensor) -> Tensor:
    """Tokens ``[c ; P_j]``: (..., k, d), (k, m) -> (..., k, d + m)."""
    return torch.cat([centers, codes.expand(*centers.shape[:-1], codes.shape[-1])], dim=-1)
