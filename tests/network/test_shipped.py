"""The weights that come with the package: found by what they are for, sound, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from sklearn_leanclust.network import shipped
from sklearn_leanclust.network.checkpoint import load_network
from sklearn_leanclust.network.shipped import file_stem, find_shipped, shipped_files


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Another folder in place of the package's, with a tau that nothing else asks for."""
    for name in ("tied-binary-l2-7.0", "tied-onehot-entropy-0.1", "dense-onehot-l2-7.0-d4-k8"):
        (tmp_path / f"{name}.safetensors").touch()
    (tmp_path / "README.md").touch()
    monkeypatch.setattr(shipped, "_folder", lambda: tmp_path)
    return tmp_path


def test_names():
    assert file_stem("tied", "binary", "entropy", 0.1) == "tied-binary-entropy-0.1"
    assert file_stem("tied", "binary", "entropy", 1) == "tied-binary-entropy-1.0"
    assert file_stem("tied", "binary", "entropy", 1.0, 4, 8) == "tied-binary-entropy-1.0"
    assert file_stem("dense", "onehot", "l2", 1.0, 4, 8) == "dense-onehot-l2-1.0-d4-k8"


def test_what_is_shipped_is_found(folder):
    assert find_shipped("tied", "binary", "l2", 7) == folder / "tied-binary-l2-7.0.safetensors"
    assert find_shipped("tied", "binary", "l2", 7.0, 3, 7) is not None
    assert find_shipped("dense", "onehot", "l2", 7.0, 4, 8) is not None


def test_what_is_not_shipped_is_not_found(folder):
    assert find_shipped("tied", "binary", "l2", 0.7) is None
    assert find_shipped("dense", "onehot", "l2", 7.0, 8, 4) is None
    assert find_shipped("dense", "onehot", "l2", 7.0) is None


def test_files_are_listed_by_name(folder):
    assert [path.stem for path in shipped_files()] == [
        "dense-onehot-l2-7.0-d4-k8",
        "tied-binary-l2-7.0",
        "tied-onehot-entropy-0.1",
    ]


def test_the_folder_is_that_of_the_package():
    assert shipped._folder() == Path(shipped.__file__).parents[1] / "weights"


def test_shipped_weights_are_sound_and_what_their_names_say():
    for path in shipped_files():
        network, metadata = load_network(path)
        settings = metadata["settings"]
        sizes = settings["n_features"][0], settings["n_clusters"][0]
        names = [settings[name] for name in ("kind", "embedding", "regularizer", "tau")]
        assert path.stem == file_stem(*names, *sizes)
        assert network.embedding == settings["embedding"]
        assert metadata["network"]["kind"] == settings["kind"]
        assert metadata["recipe"].startswith("python -m sklearn_leanclust train ")
    assert sum(path.stat().st_size for path in shipped_files()) < 2_000_000
