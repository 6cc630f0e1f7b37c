"""Index codes: sizes, values, distinctness."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_leanclust.network.embedding import (
    center_tokens,
    code_size,
    index_codes,
    point_tokens,
)


@given(k=st.integers(1, 2000))
def test_binary_codes_are_the_bits_of_the_index(k):
    codes = index_codes("binary", k)
    assert codes.shape == (k, max(1, math.ceil(math.log2(k))))
    decoded = ((codes + 1) / 2 @ (2.0 ** torch.arange(codes.shape[1]))).long()
    assert torch.equal(decoded, torch.arange(k))
    assert set(codes.unique().tolist()) <= {-1.0, 1.0}


def test_onehot_codes_are_the_unit_vectors_and_none_is_empty():
    assert torch.equal(index_codes("onehot", 5), torch.eye(5))
    assert index_codes("none", 5).shape == (5, 0)


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
@pytest.mark.parametrize("k", [1, 2, 3, 8, 9, 100])
def test_no_two_clusters_share_a_code(embedding, k):
    codes = index_codes(embedding, k, dtype=torch.float64)
    assert codes.dtype == torch.float64
    assert len(codes.unique(dim=0)) == k
    assert codes.square().sum(1).unique().numel() == 1  # hard attention compares inner products


def test_unknown_embedding_lists_the_known_ones():
    with pytest.raises(ValueError, match="embedding='gray' is unknown; use one of binary, onehot"):
        code_size("gray", 3)


def test_tokens_put_codes_after_coordinates():
    X, C = torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    codes = index_codes("binary", 4)
    assert torch.equal(point_tokens(X, 2), torch.cat([X, torch.zeros(2, 5, 2)], -1))
    tokens = center_tokens(C, codes)
    assert torch.equal(tokens[..., :3], C)
    assert torch.equal(tokens[1, :, 3:], codes)
