"""The smoothed min: bounds of theory, gradients, and solvers that know nothing of ours."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from sklearn_leanclust.meta.objective import (
    kmeans_objective,
    smoothed_min,
    smoothed_objective,
    squared_distances,
)

DTYPES = {np.float32: 4e-7, np.float64: 1e-15}
TAUS = (0.01, 0.1, 1.0, 10.0)


@st.composite
def rows(draw):
    """Values from 0 to 1e30 side by side, or a few units of tau apart and far from zero."""
    dtype, tau = draw(st.sampled_from(list(DTYPES))), draw(st.sampled_from(TAUS))
    size = st.integers(1, 12)
    if draw(st.booleans()):
        offset = draw(st.sampled_from([100.0, 1e3, 1e4]))
        gaps = draw(arrays(np.float64, size, elements=st.floats(0, 3)))
        return (offset + tau * gaps).astype(dtype), tau
    large = st.floats(0, float(np.float32(1e30)), width=32)
    return draw(arrays(dtype, size, elements=large | st.floats(0, 4, width=32))), tau


@settings(max_examples=300, deadline=None)
@given(row=rows())
def test_bounds(row):
    v, tau = row
    low, k = float(v.min()), len(v)
    slack = DTYPES[v.dtype.type] * (abs(low) + tau * (1 + math.log(k)))
    entropy = float(smoothed_min(torch.tensor(v), tau, "entropy"))
    assert low - tau * math.log(k) - slack <= entropy <= low + slack
    l2 = float(smoothed_min(torch.tensor(v), tau, "l2"))
    assert low + tau / (2 * k) - slack <= l2 <= low + tau / 2 + slack


@settings(max_examples=300, deadline=None)
@given(row=rows())
def test_against_independent_solvers(row):
    """SciPy's softmax, and the threshold of sparsemax found by bisection, in float64."""
    v, tau = row
    leaf = torch.tensor(v, requires_grad=True)
    rtol = 2e-6 if v.dtype == np.float32 else 1e-9
    scaled = (v.astype(np.float64) - float(v.min())) / tau

    value = smoothed_min(leaf, tau, "entropy")
    expected = float(v.min()) - tau * logsumexp(-scaled)
    np.testing.assert_allclose(float(value.detach()), expected, rtol=rtol, atol=rtol * tau)
    (gradient,) = torch.autograd.grad(value, leaf)
    np.testing.assert_allclose(gradient, softmax(-scaled), rtol=1e-4, atol=rtol)

    value = smoothed_min(leaf, tau, "l2")
    threshold = brentq(lambda t: np.maximum(-scaled - t, 0).sum() - 1, -1.0, 0.0, xtol=1e-15)
    p = np.maximum(-scaled - threshold, 0)
    expected = float(v.min()) + tau * (p @ np.where(p > 0, scaled, 0) + p @ p / 2)
    np.testing.assert_allclose(float(value.detach()), expected, rtol=rtol, atol=rtol * tau)
    (gradient,) = torch.autograd.grad(value, leaf)
    np.testing.assert_allclose(gradient, p, atol=10 * rtol)
    np.testing.assert_allclose(gradient.sum(), 1, rtol=10 * rtol)


def test_sparsemax_is_that_of_entmax():
    entmax = pytest.importorskip("entmax")
    rng = np.random.default_rng(0)
    v = torch.tensor(rng.random((50, 9)), requires_grad=True)
    (gradient,) = torch.autograd.grad(smoothed_min(v, 0.3, "l2").sum(), v)
    torch.testing.assert_close(gradient, entmax.sparsemax(-v.detach() / 0.3))


@pytest.mark.parametrize("regularizer", ["entropy", "l2"])
def test_gradcheck(regularizer):
    torch.manual_seed(0)
    v = torch.rand(4, 3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: smoothed_min(v, 0.4, regularizer), v)
    assert torch.autograd.gradgradcheck(lambda v: smoothed_min(v.square(), 0.4, regularizer), v)


@pytest.mark.parametrize("regularizer", ["entropy", "l2"])
def test_special_rows(regularizer):
    alone = smoothed_min(torch.tensor([[3.0]]), 0.5, regularizer)
    assert alone.tolist() == [3.0 if regularizer == "entropy" else 3.25]
    equal = smoothed_min(torch.full((4,), 2.0), 0.5, regularizer)
    assert float(equal) == pytest.approx(
        2 - 0.5 * math.log(4) if regularizer == "entropy" else 2 + 0.5 / 8
    )
    v = torch.tensor([[1.0, torch.nan], [1.0, torch.inf], [1e30, 3e30]], requires_grad=True)
    value = smoothed_min(v, 0.1, regularizer)
    assert value[0].isnan()
    assert value[1:].isfinite().all()
    gradient = torch.autograd.grad(value.sum(), v)[0]
    assert gradient[0].isnan().all()  # and NaN stays in its row
    assert gradient[1:].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    infinite = torch.full((2,), torch.inf, requires_grad=True)
    value = smoothed_min(infinite, 0.1, regularizer)
    assert value.item() == torch.inf
    assert torch.autograd.grad(value, infinite)[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("regularizer", ["entropy", "l2"])
def test_a_tau_that_float32_rounds_to_zero(regularizer):
    v = torch.tensor([2.0, 1.0, 1.0], requires_grad=True)
    value = smoothed_min(v, 1e-60, regularizer)
    assert value.item() == 1
    assert torch.autograd.grad(value, v)[0].tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("regularizer", ["entropy", "l2"])
def test_it_tends_to_the_min(regularizer):
    v = torch.tensor(np.random.default_rng(0).random((100, 7)))
    gaps = [
        float((smoothed_min(v, tau, regularizer) - v.amin(-1)).abs().max())
        for tau in (1.0, 0.1, 1e-2, 1e-4)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3


def test_objectives_of_tasks():
    torch.manual_seed(0)
    X, C = torch.randn(3, 40, 5).double(), torch.randn(3, 6, 5).double()
    expected = torch.cdist(X, C).square()
    torch.testing.assert_close(squared_distances(X, C), expected)
    torch.testing.assert_close(kmeans_objective(X, C), expected.amin(-1).mean(-1))
    smoothed = -0.3 * torch.logsumexp(-expected / 0.3, -1).mean(-1)
    torch.testing.assert_close(smoothed_objective(X, C, 0.3, "entropy"), smoothed)


def test_points_at_their_centres_have_no_negative_distance():
    X = torch.tensor(np.random.default_rng(0).normal(size=(4, 200, 7)), dtype=torch.float32)
    distances = squared_distances(X, X)
    assert (distances >= 0).all()
    rounding = 2 * X.shape[-1] * torch.finfo(X.dtype).eps * X.square().sum(-1)
    assert (distances.diagonal(dim1=1, dim2=2) <= rounding).all()


def test_mistakes_are_named():
    for tau in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"tau={tau} must be positive and finite"):
            smoothed_min(torch.ones(2), tau, "l2")
    with pytest.raises(ValueError, match="regularizer='l1' is unknown; use one of entropy, l2"):
        smoothed_min(torch.ones(2), 1.0, "l1")
