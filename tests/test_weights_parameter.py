"""What can be given as `weights` of TransformerKMeans: names, files, networks."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris

from sklearn_leanclust import TransformerKMeans
from sklearn_leanclust.network.checkpoint import save_network
from sklearn_leanclust.network.shipped import find_shipped
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights, ExactWeights

X = load_iris().data

NETWORKS = {
    "exact": lambda: ClusteringTransformer(ExactWeights(), "onehot"),
    "soft": lambda: ClusteringTransformer(ExactWeights(50.0)),
    "tied": lambda: ClusteringTransformer(TiedWeights(2)),
    "tied double": lambda: ClusteringTransformer(TiedWeights(2), "onehot").double(),
    "dense": lambda: ClusteringTransformer(DenseWeights(4, 3).set_exact(100.0)),
    "dense double": lambda: ClusteringTransformer(DenseWeights(4, 3).set_exact(100.0)).double(),
    "dense none": lambda: ClusteringTransformer(
        DenseWeights(4, 3, "none").set_random(torch.Generator().manual_seed(0)), "none"
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_network_of_ones_own_is_used_and_left_alone(name, dtype):
    network = NETWORKS[name]()
    network.train()
    before = copy.deepcopy(network.state_dict())
    model = TransformerKMeans(3, init=X[:3], weights=network, random_state=0)
    model.fit(X.astype(dtype), sample_weight=np.ones(len(X)))
    assert model.weights is network
    assert network.training
    assert network.state_dict().keys() == before.keys()
    for key, value in network.state_dict().items():
        assert value.dtype == before[key].dtype
        assert value.device == before[key].device
        assert torch.equal(value, before[key])
    for parameter in network.parameters():
        assert parameter.requires_grad
        assert parameter.grad is None
    assert model.inertia_ < ((X[:, None] - X[:3]) ** 2).sum(-1).min(1).sum()
    assert model.cluster_centers_.dtype == dtype


def test_it_is_the_given_network_that_runs():
    calls = []

    class Watched(ExactWeights):
        def at(self, progress):
            calls.append(progress)
            return super().at(progress)

    model = TransformerKMeans(3, weights=ClusteringTransformer(Watched()), max_iter=7).fit(X)
    assert len(calls) == model.n_iter_ == 7
    assert all(0 <= progress <= 1 for progress in calls)
    calls.clear()
    model.predict(X), model.transform(X), model.score(X)
    assert calls == []  # the network runs in fit only


def test_names_files_and_networks_of_the_same_weights_agree(tmp_path):
    shipped = find_shipped("tied", "onehot", "entropy", 0.1)
    by_name = TransformerKMeans(3, embedding="onehot", random_state=0).fit(X)
    for path in (shipped, str(shipped)):
        by_path = TransformerKMeans(3, weights=path, random_state=0).fit(X)
        np.testing.assert_array_equal(by_path.cluster_centers_, by_name.cluster_centers_)
    exact = ClusteringTransformer(ExactWeights())
    by_object = TransformerKMeans(3, weights=exact, random_state=0).fit(X)
    by_name = TransformerKMeans(3, weights="exact", random_state=0).fit(X)
    np.testing.assert_array_equal(by_object.cluster_centers_, by_name.cluster_centers_)
    dense = ClusteringTransformer(DenseWeights(4, 3).set_exact(100.0))
    save_network(tmp_path / "dense.safetensors", dense, settings={}, score={})
    by_path = TransformerKMeans(3, weights=tmp_path / "dense.safetensors", random_state=0).fit(X)
    by_object = TransformerKMeans(3, weights=dense, random_state=0).fit(X)
    np.testing.assert_array_equal(by_path.cluster_centers_, by_object.cluster_centers_)


@pytest.mark.parametrize("name", ["exact", "tied", "dense"])
def test_an_estimator_with_a_network_is_cloned_and_pickled(name):
    model = TransformerKMeans(3, weights=NETWORKS[name](), random_state=0).fit(X)
    for other in (clone(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.fit(X).cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize(
    "d, k, embedding",
    [
        (5, 3, "binary"),
        (3, 3, "onehot"),
        (4, 2, "binary"),
        (4, 9, "onehot"),
        (4, 4, "binary"),  # tokens of the same size as those of the data
        (5, 2, "binary"),
        (5, 2, "onehot"),
    ],
)
@pytest.mark.parametrize("from_file", [False, True])
def test_dense_weights_of_another_size_are_refused(tmp_path, d, k, embedding, from_file):
    weights = ClusteringTransformer(DenseWeights(d, k, embedding).set_exact(100.0), embedding)
    if from_file:
        save_network(tmp_path / "w.safetensors", weights, settings={}, score={})
        weights = tmp_path / "w.safetensors"
    with pytest.raises(ValueError, match="weights") as error:
        TransformerKMeans(3, weights=weights).fit(X)
    words = str(error.value)
    assert {str(d), str(k), "3", "4"} <= set(words.replace(",", " ").replace(".", " ").split())


@pytest.mark.parametrize("name", ["learned", "Tied", "binary", ""])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises((ValueError, OSError)) as error:
        TransformerKMeans(3, weights=name).fit(X)
    for word in ("weights", repr(name), "tied", "dense", "exact"):
        assert word in str(error.value)


def test_a_file_that_is_not_there_or_no_weights_is_named(tmp_path):
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises((ValueError, OSError), match=str(path)):
            TransformerKMeans(3, weights=path).fit(X)
    (tmp_path / "notes.txt").write_text("no weights")
    with pytest.raises(ValueError, match="notes.txt"):
        TransformerKMeans(3, weights=tmp_path / "notes.txt").fit(X)


@pytest.mark.parametrize(
    "thing",
    [3, None, ["tied"], torch.nn.Linear(4, 3), DenseWeights(4, 3), ClusteringTransformer],
    ids=["int", "None", "list", "other module", "bare weights", "class"],
)
def test_what_is_no_network_is_refused(thing):
    with pytest.raises((ValueError, TypeError), match="weights"):
        TransformerKMeans(3, weights=thing).fit(X)
