"""Inside scikit-learn: pipelines, searches, clones, persistence, output, metadata."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_leanclust import LloydStep, TransformerKMeans

FRAME = load_iris(as_frame=True).data
X, y = load_iris(return_X_y=True)
HALF = np.r_[np.ones(75), np.zeros(75)]


@pytest.fixture(params=[TransformerKMeans, LloydStep], ids=lambda c: c.__name__)
def estimator(request):
    return request.param(n_clusters=3, random_state=0)


def test_swapped_for_kmeans_in_a_pipeline(estimator):
    ours = make_pipeline(StandardScaler(), estimator)
    theirs = make_pipeline(StandardScaler(), KMeans(3, random_state=0))
    for method in ("fit_predict", "fit_transform", "predict", "transform", "score"):
        mine, other = getattr(ours, method)(X), getattr(theirs, method)(X)
        assert np.shape(mine) == np.shape(other)
        assert np.asarray(mine).dtype == np.asarray(other).dtype
    np.testing.assert_array_equal(ours.predict(X), ours[-1].labels_)
    assert ours.score(X) >= 2 * theirs.score(X)


def test_features_for_a_classifier_in_a_grid_search(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator, LogisticRegression())
    step = type(estimator).__name__.lower()
    search = GridSearchCV(pipeline, {f"{step}__n_clusters": [2, 6]}, n_jobs=2, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert len(search.best_estimator_[1].cluster_centers_) in (2, 6)


def test_search_by_its_own_score_in_processes_and_alone():
    grid = {"weights": ["tied", "exact"], "embedding": ["binary", "onehot"]}
    parallel, alone = (
        GridSearchCV(TransformerKMeans(3, random_state=0), grid, n_jobs=n_jobs, cv=2).fit(X)
        for n_jobs in (2, 1)
    )
    for fold in ("split0_test_score", "split1_test_score"):
        np.testing.assert_allclose(parallel.cv_results_[fold], alone.cv_results_[fold])
        assert (parallel.cv_results_[fold] < 0).all()
    np.testing.assert_array_equal(parallel.predict(X), alone.predict(X))


def test_fits_in_threads_are_those_of_one_thread(estimator):
    def labels(seed):
        return clone(estimator).set_params(n_clusters=8, random_state=seed).fit(X).labels_

    together = Parallel(n_jobs=4, prefer="threads")(delayed(labels)(seed) for seed in range(12))
    for seed, found in enumerate(together):
        np.testing.assert_array_equal(found, labels(seed))


def test_columns_and_names(estimator):
    columns = ColumnTransformer([("c", estimator, list(FRAME.columns[:2]))])
    out = columns.set_output(transform="pandas").fit_transform(FRAME)
    prefix = type(estimator).__name__.lower()
    assert list(out.columns) == [f"c__{prefix}{j}" for j in range(3)]
    assert out.index.equals(FRAME.index)
    alone = clone(estimator).fit_transform(FRAME.iloc[:, :2])
    np.testing.assert_array_equal(out.to_numpy(), alone)


def test_beside_other_features(estimator):
    union = FeatureUnion([("same", FunctionTransformer()), ("distances", estimator)])
    out = union.fit_transform(X)
    np.testing.assert_array_equal(out, np.hstack([X, clone(estimator).fit_transform(X)]))


@pytest.mark.parametrize("transform", ["pandas", "polars"])
def test_set_output(estimator, transform):
    frame = FRAME.set_index(FRAME.index * 3 + 7)
    out = estimator.set_output(transform=transform).fit_transform(frame)
    assert type(out).__module__.startswith(transform)
    names = list(estimator.get_feature_names_out())
    assert (
        list(out.columns) == names == [f"{type(estimator).__name__.lower()}{j}" for j in (0, 1, 2)]
    )
    assert list(estimator.feature_names_in_) == list(FRAME.columns)
    assert isinstance(estimator.predict(frame), np.ndarray)
    if transform == "pandas":
        assert out.index.equals(frame.index)


def test_pandas_in_pandas_out_is_numpy_in_numpy_out(estimator):
    with sklearn.config_context(transform_output="pandas"):
        out = clone(estimator).fit_transform(FRAME)
    assert isinstance(out, pd.DataFrame)
    np.testing.assert_array_equal(out.to_numpy(), estimator.fit_transform(X))


def test_other_feature_names_are_refused(estimator):
    estimator.fit(FRAME)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(FRAME.rename(columns=str.upper))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.predict(X)
    assert not hasattr(estimator.fit(X), "feature_names_in_")  # nothing stays of an earlier fit


def test_parameters_are_stored_as_they_are_given(estimator):
    given = {"n_clusters": np.int64(3), "init": X[:3].tolist(), "max_iter": np.int32(2)}
    estimator.set_params(**given).fit(X)
    for name, value in given.items():
        assert getattr(estimator, name) is value
    assert estimator.cluster_centers_.shape == (3, 4)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int16, np.uint64, np.int64])
@pytest.mark.parametrize("n_repeats", [1, 100], ids=["small", "sampled"])
def test_numbers_of_numpy_are_numbers(estimator, kind, n_repeats):
    """Counts come out of searches as NumPy integers, whose products may not fit their own type."""
    many = np.tile(X, (n_repeats, 1))
    estimator.set_params(n_clusters=20, max_iter=12)
    plain = clone(estimator).fit(many)
    estimator.set_params(n_clusters=kind(20), max_iter=kind(12))
    if isinstance(estimator, TransformerKMeans):
        estimator.set_params(n_init=kind(1), random_state=np.int32(0))
        plain.set_params(n_init=1).fit(many)
    np.testing.assert_array_equal(estimator.fit(many).cluster_centers_, plain.cluster_centers_)
    assert estimator.n_iter_ == plain.n_iter_


def test_clone_of_a_fitted_estimator_is_unfitted(estimator):
    estimator.set_params(init=X[:3]).fit(X)
    copy = clone(estimator)
    assert not [name for name in vars(copy) if name.endswith("_")]
    np.testing.assert_array_equal(copy.fit(X).cluster_centers_, estimator.cluster_centers_)


def through_joblib(estimator):
    stream = io.BytesIO()
    joblib.dump(estimator, stream)
    stream.seek(0)
    return joblib.load(stream)


@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), through_joblib])
def test_round_trips_keep_everything(estimator, travel):
    back = travel(estimator.fit(FRAME))
    assert vars(back).keys() == vars(estimator).keys()
    assert repr(back) == repr(estimator)
    for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_", "feature_names_in_"):
        np.testing.assert_array_equal(getattr(back, name), getattr(estimator, name))
    np.testing.assert_array_equal(back.transform(FRAME), estimator.transform(FRAME))
    np.testing.assert_array_equal(back.fit(FRAME).labels_, estimator.labels_)


def test_fitted_state_is_plain_numpy_and_does_not_hold_the_data(estimator):
    many = np.tile(X, (100, 1))
    fitted = {name: value for name, value in vars(estimator.fit(many)).items() if name[-1] == "_"}
    assert {type(value).__module__ for value in fitted.values()} <= {"numpy", "builtins"}
    assert len(pickle.dumps(estimator)) < estimator.labels_.nbytes + 3000


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_sample_weight_is_routed_to_fit(estimator):
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, estimator.set_fit_request(sample_weight=True))
    pipeline.fit(X, sample_weight=HALF)
    alone = clone(estimator).fit(StandardScaler().fit_transform(X), sample_weight=HALF)
    np.testing.assert_array_equal(pipeline[-1].cluster_centers_, alone.cluster_centers_)
    without = clone(estimator).fit(StandardScaler().fit_transform(X))
    assert not np.allclose(alone.cluster_centers_, without.cluster_centers_)


@pytest.mark.usefixtures("routing")
def test_sample_weight_is_routed_to_score(estimator):
    order = np.random.default_rng(0).permutation(len(X))
    weight = np.random.default_rng(1).uniform(size=len(X))
    estimator.set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
    search = GridSearchCV(estimator, {"n_clusters": [3]}, cv=[(order[:75], order[75:])])
    search.fit(X, sample_weight=weight)
    train, test = order[:75], order[75:]
    expected = clone(estimator).fit(X[train]).score(X[test], sample_weight=weight[test])
    assert search.cv_results_["mean_test_score"] == pytest.approx([expected])


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_asked_for_are_refused(estimator):
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(StandardScaler(), estimator).fit(X, sample_weight=HALF)


def test_points_without_weight_do_not_count(estimator):
    estimator.set_params(init=X[:70:24], max_iter=1)
    if isinstance(estimator, TransformerKMeans):
        estimator.set_params(weights="exact", tol=0)
    far = np.vstack([X[:75], 50 + X[75:]])  # where no centre comes unless these points count
    weighted = clone(estimator).fit(far, sample_weight=HALF)
    alone = estimator.fit(X[:75])
    np.testing.assert_allclose(weighted.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_allclose(weighted.inertia_, alone.inertia_)
    np.testing.assert_array_equal(weighted.labels_[:75], alone.labels_)
    np.testing.assert_allclose(weighted.score(far, sample_weight=HALF), -weighted.inertia_)
