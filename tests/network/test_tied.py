"""The tied step, against the same formulas written point by point, and against Lloyd's step."""

import math

import numpy as np
import pytest
import torch

from sklearn_leanclust.network.embedding import index_codes
from sklearn_leanclust.network.points import prepare
from sklearn_leanclust.network.tied import TiedStep, TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer

STEP = TiedStep(
    assign_sharpness=2.0,
    reading=0.3,
    code_sharpness=0.7,
    coordinate_sharpness=0.6,
    ambiguity=-0.2,
    own_penalty=1.5,
    step_length=1.4,
)


def tied_step(step, X, C, P, w):
    """The layer of the module's docstring, one point and one centre at a time."""
    n, k = len(X), len(C)
    w = w / w.mean()
    squares = np.array([[((x - c) ** 2).sum() for c in C] for x in X])
    unit = (w * squares.min(1)).mean()
    beta = step.assign_sharpness / unit
    marks, read = np.zeros((n, P.shape[1])), np.zeros_like(X)
    for i in range(n):
        a = np.exp(-beta * (squares[i] - squares[i].min()))
        a /= a.sum()
        marks[i], read[i] = a @ P, a @ C
    out = np.zeros_like(C)
    for l in range(k):  # noqa: E741
        total, mass = np.zeros(X.shape[1]), 0.0
        for i in range(n):
            norm = (P[l] ** 2).sum()
            score = -step.code_sharpness * ((P[l] - marks[i]) ** 2).sum()
            score += step.ambiguity * (norm - (marks[i] ** 2).sum())
            score -= step.coordinate_sharpness * beta * (squares[i, l] - squares[i].min())
            share = w[i] * math.exp(score)
            total += share * (X[i] + step.reading * read[i])
            mass += share
        own = math.exp(-step.own_penalty)
        mean = (total + own * (1 + step.reading) * C[l]) / (mass + own)
        out[l] = C[l] + step.step_length * (mean - step.reading * C[l] - C[l])
    return out, unit


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_step_is_its_formula(embedding, weighted):
    rng = np.random.default_rng(3)
    X, C = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
    w = rng.integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    codes = index_codes(embedding, 6, dtype=torch.float64)
    points = prepare(torch.tensor(X)[None], torch.tensor(w)[None] if weighted else None)
    moved, objective = STEP.advance(points, torch.tensor(C)[None], codes)
    expected, unit = tied_step(STEP, X, C, codes.numpy(), w)
    np.testing.assert_allclose(moved[0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(objective[0], unit, rtol=1e-9)


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_sharp_and_plain_it_is_lloyds_step(embedding):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    C = np.vstack([X[:6], [[50.0, 0, 0]]])  # the last one has no points
    # a centre keeps e^-20 of itself beside its points, far more than the e^-50 of other points
    sharp = TiedStep(1e7, 0.0, 1e3, 0.0, 0.0, 20.0, 1.0)
    codes = index_codes(embedding, 7, dtype=torch.float64)
    moved, _ = sharp.advance(prepare(torch.tensor(X)[None]), torch.tensor(C)[None], codes)
    labels = ((X[:, None] - C) ** 2).sum(-1).argmin(1)
    means = np.array([X[labels == j].mean(0) for j in range(6)] + [C[6]])
    np.testing.assert_allclose(moved[0], means, atol=2e-8)


def test_it_is_equivariant_to_shift_free_scale_and_weight_units():
    X, C = torch.randn(1, 50, 4).double(), torch.randn(1, 5, 4).double()
    w = torch.rand(1, 50).double()
    codes = index_codes("binary", 5, dtype=torch.float64)
    base, _ = STEP.advance(prepare(X, w), C, codes)
    scaled, _ = STEP.advance(prepare(X * 1e3, w * 1e6), C * 1e3, codes)
    torch.testing.assert_close(scaled, base * 1e3)
    order = torch.randperm(50)
    permuted, _ = STEP.advance(prepare(X[:, order], w[:, order]), C, codes)
    torch.testing.assert_close(permuted, base)


def test_shared_points_equal_repeated_ones():
    X, C = torch.randn(1, 50, 4), torch.randn(3, 5, 4)
    codes = index_codes("binary", 5)
    shared, objective = STEP.advance(prepare(X), C, codes)
    repeated, again = STEP.advance(prepare(X.expand(3, -1, -1)), C, codes)
    torch.testing.assert_close(shared, repeated)
    torch.testing.assert_close(objective, again)


def test_scalars_are_interpolated_over_the_share_of_steps():
    weights = TiedWeights(n_knots=3)
    with torch.no_grad():
        weights.knots["step_length"].copy_(torch.tensor([1.0, 2.0, 4.0]))
        lengths = [weights.at(p).step_length for p in (0, 0.25, 0.5, 0.75, 1)]
    assert lengths == [1.0, 1.5, 2.0, 3.0, 4.0]
    assert TiedWeights(n_knots=1).at(0.7).step_length.item() == pytest.approx(1.2)


@pytest.mark.parametrize("grad", [True, False])
def test_scalars_take_their_places(grad):
    weights = TiedWeights()
    with torch.no_grad():
        for number, name in enumerate(TiedWeights.START):
            weights.knots[name].fill_(number / 10)
    with torch.set_grad_enabled(grad):
        step = weights.at(0.4)
    for number, (name, field) in enumerate(zip(TiedWeights.START, TiedStep._fields, strict=True)):
        assert name.removeprefix("log_") == field
        value = number / 10 if name == field else math.exp(number / 10)
        assert float(getattr(step, field)) == pytest.approx(value)


@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_without_gradient_it_is_the_same(embedding):
    torch.manual_seed(0)
    points, C = prepare(torch.randn(2, 40, 3), torch.rand(2, 40)), torch.randn(2, 6, 3)
    codes = index_codes(embedding, 6)
    kept = [t.clone() for t in (*points, C, codes)]
    expected = STEP.advance(points, C, codes)
    with torch.no_grad():
        found = STEP.advance(points, C, codes)
    torch.testing.assert_close(found, expected)
    for before, after in zip(kept, (*points, C, codes), strict=True):
        assert torch.equal(before, after)


def test_gradient_by_finite_differences():
    torch.manual_seed(1)
    X, C = torch.randn(1, 20, 2).double(), torch.randn(1, 3, 2).double()
    network = ClusteringTransformer(TiedWeights(2).double())
    names = [name for name, _ in network.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in network.parameters())

    def run(*values):
        parameters = dict(zip(names, values, strict=True))
        return torch.func.functional_call(network, parameters, (X, C, None, 0.3))

    assert torch.autograd.gradcheck(run, values)
