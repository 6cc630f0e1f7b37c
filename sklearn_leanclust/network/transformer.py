"""The clustering layer: points look at centres, then centres look at points.

    assign:  z_i <- z_i + sum_j softmax_j( -|W_qa z_i - W_ka y_j|^2 ) W_va y_j
    update:  y_l <- W_r y_l + sum_t softmax_t( log w_t - |W_qu y_l - W_ku z_t|^2 ) W_vu z_t

In the update a centre also sees its own token, with score -delta, so that a centre which no point
chose stays where it is. The first d coordinates of y_l are the new centre l.

Shapes: B tasks of n points and k centres in d dimensions, codes of m dimensions, D = d + m.

Source: "Leaner transformers can easily learn to cluster" (NeurIPS 2026).
"""

from __future__ import annotations

from torch import Tensor, nn

from sklearn_leanclust.network.embedding import center_tokens, index_codes, point_tokens
from sklearn_leanclust.network.points import prepare
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights


class ClusteringTransformer(nn.Module):
    """One step of clustering by one attention layer.

    Parameters
    ----------
    weights : ExactWeights, TiedWeights or DenseWeights
        Weights of the layer.
    embedding : {"binary", "onehot", "none"}, default="binary"
        Code that tells the centres apart. ``"none"`` needs dense weights.

    Examples
    --------
    >>> import torch
    >>> from sklearn_leanclust.network.transformer import ClusteringTransformer
    >>> from sklearn_leanclust.network.weights import ExactWeights
    >>> X = torch.tensor([[[0.0], [1.0], [10.0], [12.0]]])
    >>> network = ClusteringTransformer(ExactWeights())
    >>> network(X, torch.tensor([[[0.0], [9.0]]])).flatten().tolist()
    [0.5, 11.0]
    """

    def __init__(
        self, weights: ExactWeights | TiedWeights | DenseWeights, embedding: str = "binary"
    ) -> None:
        super().__init__()
        dense = isinstance(weights, DenseWeights)
        if embedding == "none" and not dense:
            raise ValueError(
                f"embedding='none' leaves {type(weights).__name__} nothing to tell clusters apart "
                "by; use 'binary' or 'onehot', or DenseWeights."
            )
        if dense and weights.embedding != embedding:
            raise ValueError(
                f"embedding={embedding!r}, but the dense weights are for {weights.embedding!r}."
            )
        self.weights = weights
        self.embedding = embedding

    def forward(
        self,
        X: Tensor,
        centers: Tensor,
        sample_weight: Tensor | None = None,
        progress: float = 0.0,
    ) -> Tensor:
        """Make one step from fresh tokens ("re-embedding").

        Parameters
        ----------
        X : Tensor of shape (B, n, d) or (1, n, d)
            Points, centred; one set of points may be shared by all tasks.
        centers : Tensor of shape (B, k, d)
            Current centres, of the dtype of `X`.
        sample_weight : Tensor of shape (B, n) or (1, n), optional
            Weights of the points, not negative, with a positive sum.
        progress : float in [0, 1], default=0.0
            Share of the steps done; tied weights depend on it.

        Returns
        -------
        Tensor of shape (B, k, d)
            New centres.
        """
        if isinstance(self.weights, TiedWeights):
            step, codes = self.weights.at(progress), self.codes(centers)
            return step.advance(prepare(X, sample_weight), centers, codes)[0]
        z, y = self.tokens(X, centers)
        _, y = self.layer(z, y, X.shape[-1], sample_weight, progress)
        return y[..., : X.shape[-1]]

    def codes(self, centers: Tensor) -> Tensor:
        """Codes of the clusters, (k, m), for centres (B, k, d)."""
        return index_codes(
            self.embedding, centers.shape[-2], dtype=centers.dtype, device=centers.device
        )

    def tokens(self, X: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        """Build the tokens of points and centres, (B, n, D) and (B, k, D)."""
        codes = self.codes(centers)
        return point_tokens(X, codes.shape[-1]), center_tokens(centers, codes)

    def layer(
        self,
        z: Tensor,
        y: Tensor,
        n_features: int,
        sample_weight: Tensor | None = None,
        progress: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        """Apply exact or dense weights to tokens; naive iteration does so again and again.

        Parameters
        ----------
        z, y : Tensors of shape (B, n, D) and (B, k, D)
            Tokens of points and centres.
        n_features : int
            Number d of coordinates in a token.
        sample_weight, progress
            As in :meth:`forward`.

        Returns
        -------
        z, y : Tensors of shape (B, n, D) and (B, k, D)
        """
        step = self.weights.at(progress)
        z = step.assign(z, y, n_features, sample_weight)
        y = step.update(y, z, n_features, sample_weight)
        return z, y
