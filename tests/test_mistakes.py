"""Mistakes: each is refused, in the words of KMeans where it refuses the same."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
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
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(
    params=ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{e.get_params().get('weights')}"
)
def estimator(request):
    return clone(request.param)


def nan(X):
    Z = X.copy()
    Z[3, 1] = np.nan
    return Z


def two_rows(X, n_clusters, random_state):
    return X[:2]


WORDS = [["a", "b"], ["c", "d"], ["e", "f"]]
MISTAKES = {
    "nan": lambda e: e.fit(nan(X)),
    "missing value": lambda e: e.fit(pd.DataFrame({"a": [1, None, 3, 4]}, dtype="Int64")),
    "infinity": lambda e: e.fit(np.where(X > 7, np.inf, X)),
    "predict nan": lambda e: e.fit(X).predict(nan(X)),
    "transform nan": lambda e: e.fit(X).transform(nan(X)),
    "score infinity": lambda e: e.fit(X).score(-np.where(X > 7, np.inf, X)),
    "too few samples": lambda e: e.fit(X[:2]),
    "no samples": lambda e: e.fit(X[:0]),
    "no samples to predict": lambda e: e.fit(X).predict(X[:0]),
    "no features": lambda e: e.fit(X[:, :0]),
    "one dimension": lambda e: e.fit(X[:, 0]),
    "three dimensions": lambda e: e.fit(X[None]),
    "one row to predict": lambda e: e.fit(X).predict(X[0]),
    "nothing": lambda e: e.fit(None),
    "strings": lambda e: e.fit(WORDS),
    "column of strings": lambda e: e.fit(pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3]})),
    "complex": lambda e: e.fit(X + 1j),
    "too few features": lambda e: e.fit(X).predict(X[:, :2]),
    "too many features": lambda e: e.fit(X).transform(np.hstack([X, X])),
    "features of score": lambda e: e.fit(X).score(X[:, :2]),
    "predict before fit": lambda e: e.predict(X),
    "transform before fit": lambda e: e.transform(X),
    "score before fit": lambda e: e.score(X),
    "names before fit": lambda e: e.get_feature_names_out(),
    "rows of init": lambda e: e.set_params(init=X[:2]).fit(X),
    "columns of init": lambda e: e.set_params(init=X[:3, :2]).fit(X),
    "one dimension of init": lambda e: e.set_params(init=X[0]).fit(X),
    "strings as init": lambda e: e.set_params(init=WORDS).fit(X[:, :2]),
    "rows of a callable init": lambda e: e.set_params(init=two_rows).fit(X),
    "unknown init": lambda e: e.set_params(init="kmeans").fit(X),
    "number as init": lambda e: e.set_params(init=3).fit(X),
    "no clusters": lambda e: e.set_params(n_clusters=0).fit(X),
    "negative clusters": lambda e: e.set_params(n_clusters=-2).fit(X),
    "half clusters": lambda e: e.set_params(n_clusters=2.5).fit(X),
    "string clusters": lambda e: e.set_params(n_clusters="3").fit(X),
    "None clusters": lambda e: e.set_params(n_clusters=None).fit(X),
    "more clusters than samples": lambda e: e.set_params(n_clusters=len(X) + 1).fit(X),
    "no iterations": lambda e: e.set_params(max_iter=0).fit(X),
    "half iterations": lambda e: e.set_params(max_iter=1.5).fit(X),
    "random state": lambda e: e.set_params(random_state="seed").fit(X),
    "parameter name": lambda e: e.set_params(n_cluster=3),
    "weights of another length": lambda e: e.fit(X, sample_weight=np.ones(3)),
    "weights of two dimensions": lambda e: e.fit(X, sample_weight=np.ones((len(X), 1))),
    "nan weights": lambda e: e.fit(X, sample_weight=nan(X)[:, 1]),
    "infinite weights": lambda e: e.fit(X, sample_weight=np.where(X[:, 0] > 7, np.inf, 1)),
    "all-zero weights": lambda e: e.fit(X, sample_weight=np.zeros(len(X))),
    "length of score weights": lambda e: e.fit(X).score(X, sample_weight=np.ones(3)),
    "all-zero score weights": lambda e: e.fit(X).score(X, sample_weight=np.zeros(len(X))),
}
MISTAKES_OF_PARAMETERS = {
    "n_init": [0, -1, 1.5, "many", None],
    "tol": [-1.0, "small", None],
    "verbose": [-1, "loud"],
}


def check_words_are_those_of_kmeans(mistake, estimator):
    with pytest.raises((ValueError, TypeError, NotFittedError)) as theirs:
        mistake(KMeans(3, n_init=1))
    words = str(theirs.value).replace("KMeans", type(estimator).__name__)
    if "Invalid parameter" in words:  # the rest lists all parameters, which are not the same
        words = words.partition("Valid parameters")[0].partition("(")[0]
    with pytest.raises(type(theirs.value), match=re.escape(words)):
        mistake(estimator)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_the_words_of_kmeans(estimator, mistake):
    check_words_are_those_of_kmeans(MISTAKES[mistake], estimator)


@pytest.mark.parametrize(
    "parameter, value", [(p, v) for p, values in MISTAKES_OF_PARAMETERS.items() for v in values]
)
def test_parameters_are_refused_in_the_words_of_kmeans(parameter, value):
    check_words_are_those_of_kmeans(
        lambda e: e.set_params(**{parameter: value}).fit(X), TransformerKMeans(3)
    )


def test_after_a_mistake_a_model_still_serves(estimator):
    labels = estimator.fit(X).predict(X)
    for wrong in (nan(X), X[:, :2], X[:0]):
        with pytest.raises(ValueError):
            estimator.predict(wrong)
    np.testing.assert_array_equal(estimator.predict(X), labels)


def test_sparse_data_are_refused_with_the_remedy(estimator):
    for format in (scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        with pytest.raises(TypeError, match=r"Sparse data was passed.*Use '\.toarray\(\)'"):
            estimator.fit(format(X))


@pytest.mark.parametrize("weight", [-np.ones(len(X)), np.r_[-1e-9, np.ones(len(X) - 1)]])
def test_negative_weights(estimator, weight):
    words = "Negative values in data passed to `sample_weight`"
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, sample_weight=weight)
    estimator.fit(X)
    with pytest.raises(ValueError, match=words):
        estimator.score(X, sample_weight=weight)


@pytest.mark.parametrize("bad, word", [(np.nan, "NaN"), (np.inf, "infinity")])
def test_not_finite_init(estimator, bad, word):
    init = np.where(np.arange(12).reshape(3, 4) == 5, bad, X[:3])
    for given in (init, lambda X, n_clusters, random_state: init):
        with pytest.raises(ValueError, match=f"Input init contains {word}"):
            clone(estimator).set_params(init=given).fit(X)


@pytest.mark.parametrize(
    "parameter, value, known",
    [
        ("embedding", "gray", "'binary'.*'onehot'|'onehot'.*'binary'"),
        ("embedding", "none", "'binary'.*'onehot'|'onehot'.*'binary'"),
        ("regularizer", "l1", "'entropy'.*'l2'|'l2'.*'entropy'"),
        ("tau", 0.0, r"range \(0"),
        ("tau", np.inf, r"range \(0.*inf\)"),
        ("tau", np.nan, r"range \(0"),
        ("device", "tpu9", "use one of auto, cpu"),
        ("device", "cuda:99", "use one of auto, cpu"),
        ("device", "meta", "use one of auto, cpu"),
        ("device", 0.5, "use one of auto, cpu"),
    ],
)
def test_unknown_options_list_the_known_ones(parameter, value, known):
    with pytest.raises(ValueError, match=known) as error:
        TransformerKMeans(3, **{parameter: value}).fit(X)
    assert parameter in str(error.value)
    assert str(value) in str(error.value)
