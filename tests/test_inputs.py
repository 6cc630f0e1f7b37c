"""What people pass in: containers, dtypes, memory layouts, and mistakes."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from sklearn_leanclust import LloydStep, TransformerKMeans

X = load_iris().data
ESTIMATORS = [
    TransformerKMeans(3, random_state=0),
    TransformerKMeans(3, weights="exact", random_state=0),
    LloydStep(3, random_state=0),
]


def fresh(estimator):
    return type(estimator)(**estimator.get_params())


@pytest.fixture(
    params=ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{e.get_params().get('weights')}"
)
def estimator(request):
    return fresh(request.param)


@pytest.mark.parametrize(
    "wrap",
    [
        np.asfortranarray,
        lambda X: X.tolist(),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        pd.DataFrame,
        lambda X: pl.DataFrame(X, schema=list("abcd")),
    ],
    ids=["fortran", "list", "strided", "pandas", "polars"],
)
def test_containers_give_the_same_result(estimator, wrap):
    plain = fresh(estimator).fit(X)
    other = estimator.fit(wrap(X))
    np.testing.assert_array_equal(other.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(other.predict(wrap(X)), plain.labels_)
    np.testing.assert_allclose(other.transform(wrap(X)), plain.transform(X))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, bool])
def test_other_dtypes_are_worked_out_in_float64(estimator, dtype):
    Z = np.rint(X * 10).astype(dtype)
    result = estimator.fit(Z)
    assert result.cluster_centers_.dtype == np.float64
    same = fresh(estimator).fit(Z.astype(np.float64))
    np.testing.assert_array_equal(result.cluster_centers_, same.cluster_centers_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_memory_map_is_neither_changed_nor_complained_about(estimator, tmp_path, dtype):
    X.astype(dtype).tofile(tmp_path / "data.bin")
    Z = np.memmap(tmp_path / "data.bin", dtype=dtype, mode="r", shape=X.shape)
    weight = np.ones(len(X))
    weight.flags.writeable = False
    estimator.fit(Z, sample_weight=weight)
    np.testing.assert_array_equal(estimator.predict(Z), estimator.labels_)
    np.testing.assert_array_equal(Z, X.astype(dtype))


def test_caller_arrays_are_not_changed(estimator):
    Z, weight, init = X.copy(), np.linspace(0, 2, len(X)), X[:3].copy()
    estimator.set_params(init=init).fit(Z, sample_weight=weight)
    estimator.predict(Z), estimator.transform(Z), estimator.score(Z, sample_weight=weight)
    np.testing.assert_array_equal(Z, X)
    np.testing.assert_array_equal(weight, np.linspace(0, 2, len(X)))
    np.testing.assert_array_equal(init, X[:3])


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_float32_far_from_the_origin(estimator, offset):
    """Multiples of 1/8 stay exact in float32 up to 1e6, so that only the method can lose digits."""
    Z = (np.rint(X * 8) / 8 * 16).astype(np.float32)
    near = fresh(estimator).fit(Z)
    far = estimator.fit(Z + np.float32(offset))
    assert np.mean(near.labels_ == far.labels_) > 0.99
    spacing = np.spacing(np.float32(offset))
    np.testing.assert_allclose(
        far.cluster_centers_ - offset, near.cluster_centers_, atol=2 * spacing
    )
    np.testing.assert_allclose(far.inertia_, near.inertia_, rtol=1e-3)


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**-100, 2.0**100, 2.0**460])
def test_units_do_not_matter(estimator, scale):
    """Powers of two, with which no tie is broken by rounding."""
    base = fresh(estimator).fit(X)
    scaled = estimator.fit(X * scale)
    np.testing.assert_array_equal(scaled.labels_, base.labels_)
    np.testing.assert_allclose(scaled.cluster_centers_ / scale, base.cluster_centers_)
    np.testing.assert_allclose(scaled.transform(X * scale) / scale, base.transform(X), rtol=1e-6)


def nan(X):
    Z = X.copy()
    Z[3, 1] = np.nan
    return Z


MISTAKES = {
    "nan": lambda e: e.fit(nan(X)),
    "infinity": lambda e: e.fit(np.where(X > 7, np.inf, X)),
    "too few samples": lambda e: e.fit(X[:2]),
    "no samples": lambda e: e.fit(X[:0]),
    "one dimension": lambda e: e.fit(X[:, 0]),
    "strings": lambda e: e.fit([["a", "b"], ["c", "d"], ["e", "f"]]),
    "complex": lambda e: e.fit(X + 1j),
    "features": lambda e: e.fit(X).predict(X[:, :2]),
    "not fitted": lambda e: e.predict(X),
    "rows of init": lambda e: e.set_params(init=X[:2]).fit(X),
    "columns of init": lambda e: e.set_params(init=X[:3, :2]).fit(X),
    "unknown init": lambda e: e.set_params(init="kmeans").fit(X),
    "clusters": lambda e: e.set_params(n_clusters=0).fit(X),
    "iterations": lambda e: e.set_params(max_iter=0).fit(X),
    "weights of another length": lambda e: e.fit(X, sample_weight=np.ones(3)),
    "all-zero weights": lambda e: e.fit(X, sample_weight=np.zeros(len(X))),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_the_words_of_kmeans(estimator, mistake):
    with pytest.raises((ValueError, TypeError, NotFittedError)) as theirs:
        MISTAKES[mistake](KMeans(3, n_init=1))
    words = str(theirs.value).replace("KMeans", type(estimator).__name__)
    with pytest.raises(type(theirs.value), match=re.escape(words)):
        MISTAKES[mistake](estimator)


def test_negative_weights(estimator):
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        estimator.fit(X, sample_weight=-np.ones(len(X)))


def test_not_finite_init(estimator):
    with pytest.raises(ValueError, match="Input init contains NaN"):
        estimator.set_params(init=nan(X[:4])[1:]).fit(X)


@pytest.mark.parametrize(
    "parameter, value, known",
    [
        ("embedding", "gray", "'binary'.*'onehot'|'onehot'.*'binary'"),
        ("regularizer", "l1", "'entropy'.*'l2'|'l2'.*'entropy'"),
        ("tau", 0.0, r"\(0.0, inf\)|range \(0"),
        ("device", "tpu9", "use one of auto, cpu"),
        ("n_init", 0, r"\[1, inf\)"),
        ("tol", -1.0, r"\[0"),
    ],
)
def test_unknown_options_list_the_known_ones(parameter, value, known):
    with pytest.raises(ValueError, match=known) as error:
        TransformerKMeans(3, **{parameter: value}).fit(X)
    assert parameter in str(error.value)
    assert str(value) in str(error.value)


def test_rows_of_init_and_callable_are_checked():
    with pytest.raises(ValueError, match="does not match the number of clusters 3"):
        TransformerKMeans(3, init=lambda X, n_clusters, random_state: X[:2]).fit(X)
