"""What people pass in: containers, dtypes, memory layouts, units."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs

from sklearn_leanclust import LloydStep, TransformerKMeans

X = load_iris().data
ESTIMATORS = [
    TransformerKMeans(3, random_state=0),
    TransformerKMeans(3, weights="exact", random_state=0),
    LloydStep(3, random_state=0),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(
    params=ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{e.get_params().get('weights')}"
)
def estimator(request):
    return clone(request.param)


CONTAINERS = {
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
    "objects": lambda X: X.astype(object),
    "long double": lambda X: X.astype(np.longdouble),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda X: pd.DataFrame(X).convert_dtypes(),
    "pandas pyarrow": lambda X: pd.DataFrame(X).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_give_the_same_result(estimator, name):
    wrapped = CONTAINERS[name](X)
    plain = clone(estimator).fit(X)
    other = estimator.fit(wrapped)
    assert other.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(other.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(other.predict(wrapped), plain.labels_)
    np.testing.assert_array_equal(other.transform(wrapped), plain.transform(X))
    assert other.score(wrapped) == plain.score(X)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, bool])
def test_other_dtypes_are_worked_out_in_float64(estimator, dtype):
    Z = np.rint(X * 10).astype(dtype)
    result = estimator.fit(Z)
    assert result.cluster_centers_.dtype == np.float64
    assert result.transform(Z).dtype == np.float64
    same = clone(estimator).fit(Z.astype(np.float64))
    np.testing.assert_array_equal(result.cluster_centers_, same.cluster_centers_)
    np.testing.assert_array_equal(result.labels_, result.predict(Z))


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, np.asfortranarray])
def test_float32_stays_float32(estimator, wrap):
    blobs, _ = make_blobs(150, 4, cluster_std=0.5, random_state=0)
    narrow, wide = estimator.set_params(init=blobs[:3]), clone(estimator)
    Z = wrap(blobs.astype(np.float32))
    assert narrow.fit(Z).cluster_centers_.dtype == np.float32
    assert narrow.fit_transform(Z).dtype == np.float32
    wide.fit(blobs)
    np.testing.assert_allclose(narrow.cluster_centers_, wide.cluster_centers_, rtol=1e-5)
    np.testing.assert_allclose(narrow.inertia_, wide.inertia_, rtol=1e-5)
    # a model serves either dtype
    np.testing.assert_array_equal(wide.predict(Z), wide.labels_)
    np.testing.assert_array_equal(narrow.predict(blobs), narrow.labels_)


@pytest.mark.parametrize(
    "wrap",
    [list, pd.Series, pl.Series, lambda w: w.astype(np.float32), lambda w: w.astype(int)],
    ids=["list", "pandas", "polars", "float32", "int"],
)
def test_containers_of_weights_give_the_same_result(estimator, wrap):
    weight = np.arange(len(X)) % 4.0
    plain = clone(estimator).fit(X, sample_weight=weight)
    other = estimator.fit(X, sample_weight=wrap(weight))
    np.testing.assert_array_equal(other.cluster_centers_, plain.cluster_centers_)
    assert other.inertia_ == plain.inertia_
    assert other.score(X, sample_weight=wrap(weight)) == plain.score(X, sample_weight=weight)


def test_one_number_as_weight_is_that_of_every_point(estimator):
    plain, doubled = clone(estimator).fit(X), estimator.fit(X, sample_weight=2.0)
    np.testing.assert_allclose(doubled.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_allclose(doubled.inertia_, 2 * plain.inertia_)


@pytest.mark.parametrize("unit", [2.0**-300, 2.0**-200, 2.0**20, 2.0**200])
def test_units_of_weights_do_not_matter(estimator, unit):
    weight = np.arange(len(X)) % 4.0
    plain = clone(estimator).fit(X, sample_weight=weight)
    scaled = estimator.fit(X, sample_weight=unit * weight)
    np.testing.assert_allclose(scaled.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_allclose(scaled.inertia_ / unit, plain.inertia_)


@pytest.mark.parametrize(
    "wrap",
    [np.ndarray.tolist, pd.DataFrame, np.asfortranarray, lambda c: c.astype(int)],
    ids=["list", "pandas", "fortran", "int"],
)
def test_containers_of_init_give_the_same_result(estimator, wrap):
    init = np.rint(X[::50])
    plain = clone(estimator).set_params(init=init).fit(X)
    other = estimator.set_params(init=wrap(init)).fit(X)
    np.testing.assert_array_equal(other.cluster_centers_, plain.cluster_centers_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_memory_map_is_neither_changed_nor_complained_about(
    estimator, tmp_path, dtype, recwarn
):
    X.astype(dtype).tofile(tmp_path / "data.bin")
    Z = np.memmap(tmp_path / "data.bin", dtype=dtype, mode="r", shape=X.shape)
    weight, init = np.ones(len(X)), X[:3].copy()
    weight.flags.writeable = init.flags.writeable = False
    estimator.set_params(init=init).fit(Z, sample_weight=weight)
    np.testing.assert_array_equal(estimator.predict(Z), estimator.labels_)
    np.testing.assert_array_equal(Z, X.astype(dtype))
    assert not recwarn.list


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_repeats", [1, 40], ids=["small", "sampled"])
def test_arrays_of_the_caller_are_not_changed(estimator, dtype, n_repeats):
    Z = np.tile(X, (n_repeats, 1)).astype(dtype)
    weight, init = np.linspace(0, 2, len(Z), dtype=dtype), Z[:3].copy()
    kept = [array.copy() for array in (Z, weight, init)]
    estimator.set_params(init=init).fit(Z, sample_weight=weight)
    centers = estimator.cluster_centers_.copy()
    estimator.predict(Z), estimator.transform(Z), estimator.score(Z, sample_weight=weight)
    given = [Z, weight, init, estimator.cluster_centers_]
    for before, after in zip([*kept, centers], given, strict=True):
        np.testing.assert_array_equal(before, after)
    assert not np.shares_memory(init, estimator.cluster_centers_)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_float32_far_from_the_origin(estimator, offset):
    """Multiples of 1/8 stay exact in float32 up to 1e6, so that only the method can lose digits."""
    Z = (np.rint(X * 8) / 8 * 16).astype(np.float32)
    near = clone(estimator).fit(Z)
    far = estimator.fit(Z + np.float32(offset))
    assert np.mean(near.labels_ == far.labels_) > 0.99
    spacing = np.spacing(np.float32(offset))
    np.testing.assert_allclose(
        far.cluster_centers_ - offset, near.cluster_centers_, atol=2 * spacing
    )
    np.testing.assert_allclose(far.inertia_, near.inertia_, rtol=1e-3)
    np.testing.assert_array_equal(far.predict(Z + np.float32(offset)), far.labels_)
    np.testing.assert_allclose(
        far.transform(Z + np.float32(offset)), near.transform(Z), atol=4 * spacing
    )


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**-100, 2.0**100, 2.0**460])
def test_units_do_not_matter(estimator, scale):
    """Powers of two, with which no tie is broken by rounding."""
    base = clone(estimator).fit(X)
    scaled = estimator.fit(X * scale)
    np.testing.assert_array_equal(scaled.labels_, base.labels_)
    np.testing.assert_allclose(scaled.cluster_centers_ / scale, base.cluster_centers_)
    np.testing.assert_allclose(scaled.transform(X * scale) / scale, base.transform(X), rtol=1e-6)
