"""Synthetic tasks: distributions against SciPy, generators, initial centres."""

import numpy as np
import pytest
import scipy.stats
import torch

from sklearn_leanclust.meta.tasks import (
    NOISES,
    TaskFamily,
    initial_centers,
    sample_noise,
)
from sklearn_leanclust.network.points import standardise

ORACLES = {
    "normal": scipy.stats.norm,
    "laplace": scipy.stats.laplace,
    "gumbel": scipy.stats.gumbel_r,
    "lognormal": scipy.stats.lognorm(1),
    "cauchy": scipy.stats.cauchy,
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("noise", NOISES)
def test_noise_follows_its_distribution(noise):
    draw = sample_noise(noise, (20_000,), generator())
    assert draw.isfinite().all()
    assert scipy.stats.kstest(draw.numpy(), ORACLES[noise].cdf).pvalue > 1e-3


@pytest.mark.parametrize("noise", ["laplace", "gumbel", "cauchy"])
@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-53])
def test_noise_is_finite_at_the_ends_of_the_uniform(noise, uniform, monkeypatch):
    """Both are values that torch.rand returns."""
    monkeypatch.setattr(
        torch, "rand", lambda shape, dtype, **_: torch.full(shape, uniform, dtype=dtype)
    )
    assert sample_noise(noise, (3,), generator()).isfinite().all()


@pytest.mark.parametrize("noise", NOISES)
def test_points_are_centres_plus_scaled_noise(noise):
    """With one cluster the residuals of a task, scaled back, are the noise and its one centre."""
    X = TaskFamily(noise, 0.5, 1, 1, 20_000).sample(1, generator())
    oracle = ORACLES[noise]
    center = float(X.median()) - 0.5 * oracle.median()
    assert scipy.stats.kstest((X.flatten().numpy() - center) / 0.5, oracle.cdf).pvalue > 1e-3


def test_centres_are_standard_normal_and_clusters_equally_likely():
    X = TaskFamily("normal", 0.0, 2, 4, 500).sample(300, generator())
    centers = np.concatenate([np.unique(task, axis=0) for task in X.numpy()])
    assert len(centers) == 1200
    assert scipy.stats.kstest(centers.flatten(), scipy.stats.norm.cdf).pvalue > 1e-3
    _, counts = np.unique(X[0].numpy(), axis=0, return_counts=True)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("noise", NOISES)
def test_same_generator_same_tasks_and_the_global_one_is_left_alone(noise, init):
    family = TaskFamily(noise, 0.5, 3, 4, 50)
    before = torch.get_rng_state()
    X = family.sample(5, generator(1))
    C = initial_centers(X, 4, init, generator(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(X, family.sample(5, generator(1)))
    assert torch.equal(C, initial_centers(X, 4, init, generator(2)))
    assert not torch.equal(X, family.sample(5, generator(3)))


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_initial_centres_are_different_points_of_their_task(init):
    X = TaskFamily("normal", 0.5, 3, 4, 30).sample(20, generator())
    C = initial_centers(X, 6, init, generator(1))
    distance = (C[:, :, None] - X[:, None]).abs().sum(-1)
    assert (distance.amin(-1) == 0).all()
    assert all(len(set(row.tolist())) == 6 for row in distance.argmin(-1))


def test_kmeans_plus_plus_draws_by_squared_distance():
    """Of points at 0, 1 and 3, after 0 the next is 3 nine times as often as 1."""
    X = torch.tensor([0.0, 1.0, 3.0]).view(1, 3, 1).expand(20_000, -1, -1)
    C = initial_centers(X, 2, "k-means++", generator())[..., 0]
    second = C[C[:, 0] == 0, 1]
    share = float((second == 3).float().mean())
    assert abs(share - 0.9) < 4 * (0.09 / len(second)) ** 0.5


def test_kmeans_plus_plus_on_equal_points():
    assert initial_centers(torch.ones(2, 5, 3), 4, "k-means++", generator()).shape == (2, 4, 3)


@pytest.mark.parametrize("noise", NOISES)
def test_standardised_tasks_map_back_and_outliers_do_not_matter(noise):
    X = TaskFamily(noise, 0.5, 3, 4, 201).sample(4, generator())
    Z, offset, scale = standardise(X)
    torch.testing.assert_close(Z * scale + offset, X)
    torch.testing.assert_close(standardise(X * 100 + 7)[0], Z, rtol=1e-3, atol=1e-3)
    spoiled = X.clone()
    spoiled[:, 0] = 1e6
    ratio = standardise(spoiled)[2] / scale
    assert ((ratio > 0.9) & (ratio < 1.1)).all()
    assert standardise(torch.ones(1, 5, 2))[2].item() == 1


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="noise='uniform' is unknown; use one of normal"):
        TaskFamily("uniform", 1.0, 2, 3, 10)
    with pytest.raises(ValueError, match="init='forgy' is unknown; use one of random"):
        initial_centers(torch.ones(1, 5, 2), 2, "forgy", generator())
    for init in ("random", "k-means++"):
        for k in (0, 6):
            with pytest.raises(ValueError, match=f"n_clusters={k} must be from 1 to .* 5"):
                initial_centers(torch.ones(1, 5, 2), k, init, generator())
