"""ClusterDisplay draws what it is given, where it is told to."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from sklearn_leanclust import ClusterDisplay, TransformerKMeans


@pytest.fixture
def ax() -> Axes:
    return Figure(layout="constrained").subplots()


def groups(d: int, k: int = 3, dtype=np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(k, d)) * 20
    return (np.repeat(centers, np.arange(5, 5 + k), axis=0) + rng.normal(size=d)).astype(dtype)


def offsets(collection) -> np.ndarray:
    return np.asarray(collection.get_offsets())


def test_two_features_are_drawn_as_they_are(ax):
    X = pd.DataFrame(groups(2), columns=["width", "height"])
    model = TransformerKMeans(3, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, ax=ax)
    np.testing.assert_allclose(offsets(display.points_), X)
    np.testing.assert_allclose(offsets(display.centers_), model.cluster_centers_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.sizes.tolist() == np.bincount(model.labels_).tolist()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [f"{j}: {size}" for j, size in enumerate(display.sizes)]


def test_more_features_are_drawn_by_principal_components(ax):
    X = groups(5)
    model = TransformerKMeans(3, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, ax=ax)
    pca = PCA(2).fit(X)
    np.testing.assert_allclose(offsets(display.points_), pca.transform(X), atol=1e-9)
    np.testing.assert_allclose(
        offsets(display.centers_), pca.transform(model.cluster_centers_), atol=1e-9
    )
    share = pca.explained_variance_ratio_[0]
    assert ax.get_xlabel() == f"principal component 1 ({share:.0%})"


def test_one_feature_is_drawn_over_the_clusters(ax):
    X = groups(1)
    model = TransformerKMeans(3, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, ax=ax)
    np.testing.assert_allclose(offsets(display.points_), np.column_stack([X, model.labels_]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "cluster")


def test_far_from_the_origin_the_components_are_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [9, 3, 1]
    labels, center = np.zeros(400, dtype=int), X.mean(axis=0, keepdims=True)
    near, far = (
        ClusterDisplay.from_predictions(
            X + offset, labels, centers=center + offset, ax=Figure().subplots()
        ).points
        for offset in (0, 1e8)
    )
    np.testing.assert_allclose(far, near, atol=1e-5)


def test_any_estimator_with_centres_will_do(ax):
    X = groups(3)
    display = ClusterDisplay.from_estimator(KMeans(3, n_init=1, random_state=0).fit(X), X, ax=ax)
    assert sorted(display.sizes) == [5, 6, 7]


def test_each_cluster_has_a_colour_and_many_have_no_legend(ax):
    X = groups(2, k=30)
    model = KMeans(30, n_init=1, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, ax=ax)
    colors = display.points_.get_facecolors()[:, :3]
    assert len(np.unique(colors, axis=0)) == len(np.unique(model.labels_))
    for j, color in enumerate(display.centers_.get_facecolors()[:, :3]):
        np.testing.assert_allclose(colors[model.labels_ == j], color[None].repeat(
            (model.labels_ == j).sum(), axis=0))  # fmt: skip
    assert ax.get_legend() is None
    assert not ax.texts


def test_an_empty_cluster_is_shown_with_size_0(ax):
    X = groups(2)
    centers = np.vstack([X[:1], X[-1:], [[1e3, 1e3]]])
    display = ClusterDisplay.from_predictions(X, np.arange(18) % 2, centers=centers, ax=ax)
    assert display.sizes.tolist() == [9, 9, 0]
    assert ax.get_title() == "18 points, 3 clusters of 0 to 9"


@pytest.mark.filterwarnings("error")
def test_constant_data_are_drawn(ax):
    display = ClusterDisplay.from_predictions(
        np.ones((5, 3)), np.zeros(5, dtype=int), centers=np.ones((1, 3)), ax=ax
    )
    display.figure_.canvas.draw()
    assert ax.get_xlabel() == "principal component 1 (0%)"


def test_the_display_can_be_drawn_again_elsewhere(ax):
    X = groups(2)
    display = ClusterDisplay.from_estimator(TransformerKMeans(3).fit(X), X, ax=ax)
    other = Figure().subplots()
    assert display.plot(ax=other) is display
    assert display.ax_ is other
    assert len(ax.collections) == len(other.collections) == 2


def test_without_axes_a_figure_of_pyplot_is_opened():
    plt = pytest.importorskip("matplotlib.pyplot")
    X = groups(2)
    before = set(plt.get_fignums())
    display = ClusterDisplay.from_estimator(TransformerKMeans(3).fit(X), X)
    opened = set(plt.get_fignums()) - before
    assert opened == {display.figure_.number}
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("labels", "centers", "message"),
    [
        ([0, 1], np.zeros((2, 2)), r"labels has shape \(2,\), but X has 3 samples"),
        ([0, 1, 2], np.zeros((2, 2)), "labels go from 0 to 2; with 2 centers .* 0 and 1"),
        ([0, -1, 1], np.zeros((2, 2)), "labels go from -1 to 1"),
        ([0, 1, 1], np.zeros((2, 3)), "centers has 3 features, but X has 2 features"),
        ([0, 1, 1], np.full((2, 2), np.nan), "Input centers contains NaN"),
    ],
)
def test_what_does_not_fit_is_refused(labels, centers, message):
    with pytest.raises(ValueError, match=message):
        ClusterDisplay.from_predictions(np.zeros((3, 2)), labels, centers=centers)


def test_an_unfitted_estimator_is_refused():
    with pytest.raises(NotFittedError):
        ClusterDisplay.from_estimator(TransformerKMeans(), np.zeros((3, 2)))


def test_importing_the_module_does_not_import_matplotlib():
    script = "import sys, sklearn_leanclust.plotting; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
