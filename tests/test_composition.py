"""Inside scikit-learn: pipelines, searches, clones, persistence, output, metadata."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_leanclust import LloydStep, TransformerKMeans

FRAME = load_iris(as_frame=True).data
X, y = load_iris(return_X_y=True)


@pytest.fixture(params=[TransformerKMeans, LloydStep], ids=lambda c: c.__name__)
def estimator(request):
    return request.param(n_clusters=3, random_state=0)


def test_swapped_for_kmeans_in_a_pipeline(estimator):
    ours = make_pipeline(StandardScaler(), estimator)
    theirs = make_pipeline(StandardScaler(), KMeans(3, random_state=0))
    assert ours.fit_predict(X).shape == theirs.fit_predict(X).shape
    assert ours.transform(X).shape == theirs.transform(X).shape
    assert ours.score(X) >= 2 * theirs.score(X)


def test_features_for_a_classifier_in_a_grid_search(estimator):
    pipeline = make_pipeline(StandardScaler(), estimator, LogisticRegression())
    step = type(estimator).__name__.lower()
    search = GridSearchCV(pipeline, {f"{step}__n_clusters": [2, 6]}, n_jobs=2, cv=3).fit(X, y)
    assert search.best_score_ > 0.8


def test_search_over_tau_regularizer_and_embedding():
    grid = {"tau": [0.1, 1.0], "regularizer": ["entropy", "l2"], "embedding": ["binary", "onehot"]}
    search = GridSearchCV(TransformerKMeans(3, random_state=0), grid, n_jobs=2, cv=2).fit(X)
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_columns_and_names(estimator):
    columns = ColumnTransformer([("c", estimator, list(FRAME.columns[:2]))], remainder="drop")
    out = columns.set_output(transform="pandas").fit_transform(FRAME)
    prefix = type(estimator).__name__.lower()
    assert list(out.columns) == [f"c__{prefix}{j}" for j in range(3)]
    assert out.index.equals(FRAME.index)


@pytest.mark.parametrize("transform", ["pandas", "polars"])
def test_set_output(estimator, transform):
    out = estimator.set_output(transform=transform).fit_transform(FRAME)
    assert type(out).__module__.startswith(transform)
    assert list(out.columns) == list(estimator.get_feature_names_out())
    assert list(estimator.feature_names_in_) == list(FRAME.columns)
    assert isinstance(estimator.predict(FRAME), np.ndarray)


def test_other_feature_names_are_refused(estimator):
    estimator.fit(FRAME)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(FRAME.rename(columns=str.upper))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        estimator.predict(FRAME.to_numpy())


def test_clone_of_a_fitted_estimator_is_unfitted(estimator):
    estimator.set_params(init=X[:3]).fit(X)
    copy = clone(estimator)
    assert not hasattr(copy, "cluster_centers_")
    np.testing.assert_array_equal(copy.fit(X).cluster_centers_, estimator.cluster_centers_)


def test_round_trips_keep_everything(estimator):
    estimator.fit(FRAME)
    stream = io.BytesIO()
    joblib.dump(estimator, stream)
    for back in (pickle.loads(pickle.dumps(estimator)), joblib.load(io.BytesIO(stream.getvalue()))):
        np.testing.assert_array_equal(back.predict(FRAME), estimator.labels_)
        assert back.get_params().keys() == estimator.get_params().keys()
        assert back.inertia_ == estimator.inertia_


def test_fitted_state_is_plain_numpy(estimator):
    fitted = {k: v for k, v in vars(estimator.fit(X)).items() if k.endswith("_")}
    assert {type(v).__module__ for v in fitted.values()} <= {"numpy", "builtins"}


def test_sample_weight_is_routed(estimator):
    weight = np.r_[np.ones(50), np.zeros(100)]
    with sklearn.config_context(enable_metadata_routing=True):
        estimator.set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False).set_fit_request(
            sample_weight=False
        )
        pipeline = make_pipeline(scaler, estimator)
        pipeline.fit(X, sample_weight=weight)
    alone = clone(estimator).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(pipeline[-1].cluster_centers_, alone.cluster_centers_)
    assert pipeline[-1].inertia_ < clone(estimator).fit(X).inertia_


def test_points_without_weight_do_not_count(estimator):
    weight = np.r_[np.ones(50), np.zeros(100)]
    weighted = estimator.set_params(init=X[:3]).fit(X, sample_weight=weight)
    alone = clone(estimator).fit(X[:50])
    np.testing.assert_allclose(weighted.inertia_, alone.inertia_, rtol=0.02)


def test_pandas_in_pandas_out_is_numpy_in_numpy_out(estimator):
    with sklearn.config_context(transform_output="pandas"):
        out = clone(estimator).fit_transform(FRAME)
    assert isinstance(out, pd.DataFrame)
    np.testing.assert_array_equal(out.to_numpy(), estimator.fit_transform(FRAME))
