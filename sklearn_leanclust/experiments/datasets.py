"""Data sets of the benchmark, and others to develop on.

Nothing is downloaded: the sets come with scikit-learn or are generated, always the same ones, as
each carries a seed of its own. What is tuned or trained sees sets of the split ``dev`` only; the
two splits share no data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

SIZE_CLASSES = {"small": "n < 2,000", "medium": "2,000 to 50,000", "large": "n ≥ 50,000"}
SPLITS = ("bench", "dev")


@dataclass(frozen=True)
class DataSet:
    """A data set and the number of clusters that it is cut into.

    Parameters
    ----------
    n, d, k : int
        Numbers of points, features and clusters.
    load : callable
        Makes the points, ndarray of shape (n, d), float64.
    split : {"bench", "dev"}
        Whether methods are measured on it, or may be tuned on it.
    """

    n: int
    d: int
    k: int
    load: Callable[[], np.ndarray]
    split: str

    @property
    def size(self) -> str:
        """Class of its size, a key of ``SIZE_CLASSES``."""
        return size_class(self.n)


def size_class(n: int) -> str:
    """Name the class of a number of points."""
    if n < 2_000:
        return "small"
    return "medium" if n < 50_000 else "large"


def bundled(name: str, standardize: bool = False) -> np.ndarray:
    """Load a table that comes with scikit-learn, such as ``iris``."""
    from sklearn import datasets

    X = getattr(datasets, f"load_{name}")().data.astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X


def pixels(image: str) -> np.ndarray:
    """Colours of an image that comes with scikit-learn, from 0 to 1; shape (n, 3)."""
    from sklearn.datasets import load_sample_image

    return load_sample_image(image).reshape(-1, 3) / 255


def patches(image: str, side: int) -> np.ndarray:
    """Disjoint square patches of the image in grey, shape (n, side * side)."""
    from sklearn.datasets import load_sample_image

    grey = load_sample_image(image).mean(axis=2) / 255
    rows, columns = grey.shape[0] // side, grey.shape[1] // side
    grey = grey[: rows * side, : columns * side].reshape(rows, side, columns, side)
    return grey.swapaxes(1, 2).reshape(-1, side * side)


def noisy(seed: int, n: int, d: int, k: int, noise: str, scale: float) -> np.ndarray:
    """Standard normal centres plus noise: one of the families of synthetic tasks.

    `noise` is a distribution of :class:`numpy.random.Generator`, at its default parameters.
    """
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((k, d))
    return centers[rng.integers(k, size=n)] + scale * getattr(rng, noise)(size=(n, d))


def grid(seed: int, n: int, side: int, scale: float) -> np.ndarray:
    """Round clusters on a square grid of `side` by `side`, shape (n, 2)."""
    rng = np.random.default_rng(seed)
    return rng.integers(side, size=(n, 2)) + scale * rng.standard_normal((n, 2))


def sine(seed: int, n: int, k: int, scale: float) -> np.ndarray:
    """Round clusters along two waves of a sine curve, shape (n, 2)."""
    rng = np.random.default_rng(seed)
    x = rng.integers(k, size=n) * (4 * np.pi / k)
    return np.column_stack([x, 3 * np.sin(x)]) + scale * rng.standard_normal((n, 2))


def overlapping(seed: int, n: int, d: int, k: int) -> np.ndarray:
    """Clusters of unequal shape and spread that run into each other."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 10, (k, d))
    shapes = rng.normal(scale=0.5, size=(k, d, d)) + 0.6 * np.eye(d)
    labels = rng.integers(k, size=n)
    return centers[labels] + np.einsum("nd,nde->ne", rng.standard_normal((n, d)), shapes[labels])


def unbalanced(seed: int, sizes: tuple[int, ...], spreads: tuple[float, ...]) -> np.ndarray:
    """Round clusters of very different sizes: the largest close together, the others around them.

    Parameters
    ----------
    sizes, spreads : tuple of the same length
        Number of points and standard deviation of each cluster, the large ones first.

    Returns
    -------
    ndarray of shape (sum(sizes), 2)
    """
    rng = np.random.default_rng(seed)
    crowded = np.asarray(sizes) > np.mean(sizes)
    angle = np.linspace(0, 2 * np.pi, len(sizes), endpoint=False)
    radius = np.where(crowded, 2.0, 20.0)
    centers = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    noise = rng.standard_normal((sum(sizes), 2))
    return centers.repeat(sizes, axis=0) + np.repeat(spreads, sizes)[:, None] * noise


def far_points(seed: int, n: int, d: int, k: int, far: int, together: bool) -> np.ndarray:
    """Normal clusters and a few points a thousand units away, in one group or each on its own."""
    rng = np.random.default_rng(seed)
    X = 4 * rng.standard_normal((k, d))[rng.integers(k, size=n)] + rng.standard_normal((n, d))
    directions = rng.standard_normal((1 if together else far, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X[rng.choice(n, far, replace=False)] = 1_000 * directions + rng.standard_normal((far, d))
    return X


def uniform(seed: int, n: int, d: int) -> np.ndarray:
    """A cloud without any clusters, in the unit cube."""
    return np.random.default_rng(seed).random((n, d))


def moons(seed: int, n: int) -> np.ndarray:
    """Two interlocked half circles, shape (n, 2)."""
    rng = np.random.default_rng(seed)
    angle, lower = rng.uniform(0, np.pi, n), rng.integers(2, size=n)
    sign = 1 - 2 * lower
    points = np.column_stack([sign * np.cos(angle) + lower, sign * np.sin(angle) + lower / 2])
    return points + 0.08 * rng.standard_normal((n, 2))


def swiss_roll(seed: int, n: int) -> np.ndarray:
    """A rolled-up sheet, shape (n, 3)."""
    rng = np.random.default_rng(seed)
    angle = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.column_stack([angle * np.cos(angle), 21 * rng.random(n), angle * np.sin(angle)])


def noise_set(split: str, seed: int, n: int, d: int, k: int, noise: str, scale: float) -> DataSet:
    """Register a set made by :func:`noisy`."""
    return DataSet(n, d, k, partial(noisy, seed, n, d, k, noise, scale), split)


DATASETS = {
    # split "bench", small
    "iris": DataSet(150, 4, 3, partial(bundled, "iris"), "bench"),
    "wine": DataSet(178, 13, 3, partial(bundled, "wine"), "bench"),
    "wine-standardized": DataSet(178, 13, 3, partial(bundled, "wine", True), "bench"),
    "breast-cancer-2": DataSet(569, 30, 2, partial(bundled, "breast_cancer"), "bench"),
    "breast-cancer-10": DataSet(569, 30, 10, partial(bundled, "breast_cancer"), "bench"),
    "diabetes": DataSet(442, 10, 10, partial(bundled, "diabetes"), "bench"),
    "digits": DataSet(1_797, 64, 10, partial(bundled, "digits"), "bench"),
    "normal-400": noise_set("bench", 1, 400, 8, 16, "normal", 0.4),
    "laplace-400": noise_set("bench", 2, 400, 8, 16, "laplace", 0.8),
    "gumbel-1000": noise_set("bench", 3, 1_000, 16, 10, "gumbel", 0.5),
    "lognormal-400": noise_set("bench", 4, 400, 4, 10, "lognormal", 0.5),
    "cauchy-400": noise_set("bench", 5, 400, 8, 16, "standard_cauchy", 0.4),
    # split "bench", medium
    "overlapping": DataSet(5_000, 2, 15, partial(overlapping, 6, 5_000, 2, 15), "bench"),
    "unbalanced": DataSet(
        6_500, 2, 8, partial(unbalanced, 7, (2_000,) * 3 + (100,) * 5, (0.5,) * 3 + (2,) * 5),
        "bench",
    ),
    "grid-10000": DataSet(10_000, 2, 100, partial(grid, 8, 10_000, 10, 0.15), "bench"),
    "sine-20000": DataSet(20_000, 2, 100, partial(sine, 9, 20_000, 100, 0.2), "bench"),
    "uniform-20000": DataSet(20_000, 3, 50, partial(uniform, 10, 20_000, 3), "bench"),
    "dim-64": noise_set("bench", 11, 20_000, 64, 50, "normal", 0.8),
    "dim-128": noise_set("bench", 12, 20_000, 128, 50, "normal", 1.2),
    "normal-5000": noise_set("bench", 13, 5_000, 16, 32, "normal", 0.4),
    "laplace-5000": noise_set("bench", 14, 5_000, 16, 32, "laplace", 0.8),
    "gumbel-5000": noise_set("bench", 15, 5_000, 8, 20, "gumbel", 0.5),
    "lognormal-5000": noise_set("bench", 16, 5_000, 8, 20, "lognormal", 0.5),
    "cauchy-5000": noise_set("bench", 17, 5_000, 8, 20, "standard_cauchy", 0.4),
    # split "bench", large
    "grid-100000": DataSet(100_000, 2, 100, partial(grid, 18, 100_000, 10, 0.15), "bench"),
    "uniform-100000": DataSet(100_000, 2, 64, partial(uniform, 19, 100_000, 2), "bench"),
    "china-16": DataSet(273_280, 3, 16, partial(pixels, "china.jpg"), "bench"),
    "china-64": DataSet(273_280, 3, 64, partial(pixels, "china.jpg"), "bench"),
    "rare-300000": DataSet(
        300_000, 4, 13, partial(far_points, 20, 300_000, 4, 10, 3, False), "bench"
    ),
    "blobs-500000": noise_set("bench", 21, 500_000, 16, 200, "normal", 0.4),
    # split "dev": other seeds, shapes and sizes
    "moons": DataSet(1_200, 2, 7, partial(moons, 1_001, 1_200), "dev"),
    "normal-300": noise_set("dev", 1_002, 300, 3, 6, "normal", 0.5),
    "laplace-800": noise_set("dev", 1_003, 800, 5, 24, "laplace", 0.5),
    "gumbel-600": noise_set("dev", 1_004, 600, 6, 12, "gumbel", 0.4),
    "lognormal-800": noise_set("dev", 1_005, 800, 12, 8, "lognormal", 0.4),
    "cauchy-600": noise_set("dev", 1_006, 600, 3, 12, "standard_cauchy", 0.3),
    "dim-100": noise_set("dev", 1_007, 900, 100, 5, "normal", 2),
    "swiss-roll": DataSet(8_000, 3, 30, partial(swiss_roll, 1_008, 8_000), "dev"),
    "flower-patches": DataSet(4_240, 64, 24, partial(patches, "flower.jpg", 8), "dev"),
    "grid-6400": DataSet(6_400, 2, 64, partial(grid, 1_009, 6_400, 8, 0.2), "dev"),
    "uniform-10000": DataSet(10_000, 5, 40, partial(uniform, 1_010, 10_000, 5), "dev"),
    "overlapping-3d": DataSet(7_000, 3, 25, partial(overlapping, 1_011, 7_000, 3, 25), "dev"),
    "unbalanced-12": DataSet(
        12_000, 2, 12,
        partial(unbalanced, 1_012, (3_800, 3_600, 3_400) + (300,) * 2 + (100,) * 5 + (50,) * 2,
                (0.6, 0.4, 0.5) + (1.5,) * 9),
        "dev",
    ),
    "dim-32": noise_set("dev", 1_013, 15_000, 32, 30, "laplace", 0.6),
    "lognormal-3000": noise_set("dev", 1_014, 3_000, 5, 16, "lognormal", 0.4),
    "cauchy-4000": noise_set("dev", 1_015, 4_000, 5, 16, "standard_cauchy", 0.3),
    "flower-24": DataSet(273_280, 3, 24, partial(pixels, "flower.jpg"), "dev"),
    "sine-60000": DataSet(60_000, 2, 80, partial(sine, 1_016, 60_000, 80, 0.3), "dev"),
    "cauchy-60000": noise_set("dev", 1_017, 60_000, 6, 30, "standard_cauchy", 0.3),
    "rare-100000": DataSet(
        100_000, 6, 9, partial(far_points, 1_018, 100_000, 6, 8, 4, True), "dev"
    ),
    "blobs-150000": noise_set("dev", 1_019, 150_000, 24, 120, "normal", 0.5),
}  # fmt: skip
