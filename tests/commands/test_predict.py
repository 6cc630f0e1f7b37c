"""``predict`` and saved models."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler


@pytest.mark.parametrize("standardize", [[], ["--standardize"]])
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_predict_repeats_the_labels_of_fit(suffix, standardize, frame, tmp_path, run, save):
    data, model = save(frame, tmp_path / "data.csv"), tmp_path / f"model{suffix}"
    assert run("fit", data, "-k", 3, "--columns", "b,a", *standardize, "--model", model,
               "--labels", tmp_path / "fit.csv") == 0  # fmt: skip
    assert run("predict", data, "--model", model, "--labels", tmp_path / "predict.csv") == 0
    assert (tmp_path / "fit.csv").read_text() == (tmp_path / "predict.csv").read_text()
    assert pd.read_csv(tmp_path / "fit.csv").columns.tolist() == ["label"]


def test_predict_finds_columns_by_name(frame, tmp_path, run, save, refusal):
    model = tmp_path / "model.npz"
    run("fit", save(frame, tmp_path / "data.csv"), "-k", 3, "--columns", "a,b", "--model", model,
        "--labels", tmp_path / "fit.npy")  # fmt: skip
    shuffled = save(frame[["kind", "b", "c d", "a"]], tmp_path / "shuffled.parquet")
    run("predict", shuffled, "--model", model, "--labels", tmp_path / "predict.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "fit.npy"), np.load(tmp_path / "predict.npy"))
    lacking = save(frame[["b"]], tmp_path / "lacking.csv")
    message = refusal("predict", lacking, "--model", model)
    assert message == f"{lacking} has no column 'a'; its columns are b."


def test_predict_on_arrays_by_position_or_order(frame, tmp_path, run, save, refusal):
    array = frame[["a", "b", "c d"]].to_numpy()
    np.save(tmp_path / "data.npy", array)
    np.save(tmp_path / "two.npy", array[:, [2, 0]])
    fit = ["-k", 3, "--labels", tmp_path / "fit.npy", "--model", tmp_path / "model.npz"]
    predict = ["--model", tmp_path / "model.npz", "--labels", tmp_path / "predict.npy"]

    run("fit", tmp_path / "data.npy", "--columns", "2,0", *fit)
    run("predict", tmp_path / "data.npy", *predict)  # the same positions
    np.testing.assert_array_equal(np.load(tmp_path / "fit.npy"), np.load(tmp_path / "predict.npy"))

    run("fit", save(frame, tmp_path / "data.csv"), "--columns", "c d,a", *fit)
    run("predict", tmp_path / "two.npy", *predict)  # no names: the same order
    np.testing.assert_array_equal(np.load(tmp_path / "fit.npy"), np.load(tmp_path / "predict.npy"))
    message = refusal("predict", tmp_path / "data.npy", *predict)
    assert "has 3 features, but the model is expecting 2 features: c d,a" in message


def test_predict_writes_csv_to_standard_output(tmp_path, capsys, wine, run):
    run("fit", wine, "-k", 3, "--model", tmp_path / "m.npz", "--labels", tmp_path / "labels.csv")
    capsys.readouterr()
    assert run("predict", wine, "--model", tmp_path / "m.npz") == 0
    assert capsys.readouterr().out == (tmp_path / "labels.csv").read_text()


def test_saved_model_holds_what_it_says_and_no_pickle(tmp_path, wine, run):
    for suffix in (".npz", ".safetensors"):
        assert run("fit", wine, "-k", 3, "--standardize", "--model", tmp_path / f"m{suffix}") == 0
    scaler = StandardScaler().fit(load_wine().data)
    tensors = load_file(tmp_path / "m.safetensors")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"cluster_centers", "mean", "scale", "format_version",
                               "package_version", "feature_names"}  # fmt: skip
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(arrays[name], tensor)
    np.testing.assert_allclose(tensors["mean"], scaler.mean_)
    np.testing.assert_allclose(tensors["scale"], scaler.scale_)
    assert tensors["cluster_centers"].shape == (3, 13)


@pytest.fixture
def model(run, wine, tmp_path) -> Path:
    """A good model, saved in both formats; the path of one."""
    for suffix in (".npz", ".safetensors"):
        run("fit", wine, "-k", 3, "--model", tmp_path / f"model{suffix}")
    return tmp_path / "model.npz"


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"format_version": "2"}, "it has format 2, this version reads 1; .* wrote it"),
        ({"feature_names": "{}"}, "feature names are not a list of strings"),
        ({"feature_names": "["}, "cannot read"),
        ({"mean": np.zeros(2)}, "arrays do not fit 13 features"),
        ({"cluster_centers": np.zeros((0, 13))}, "arrays do not fit 13 features"),
        ({"cluster_centers": np.full((3, 13), np.nan)}, "not finite float32 or float64"),
        ({"mean": np.array(["a"] * 13)}, "not finite float32 or float64"),
        ({"scale": np.zeros(13)}, "a scale in it is not positive"),
        ({"mean": np.array([None] * 13)}, "cannot read .*Object arrays"),
    ],
)
def test_changed_models_are_refused(change, pattern, model, wine, refusal):
    with np.load(model) as file:
        content = dict(file)
    np.savez(model, **(content | change))
    message = refusal("predict", wine, "--model", model)
    assert re.search(pattern, message), message
    assert str(model) in message


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_truncated_models_are_refused(suffix, model, wine, refusal):
    model = model.with_suffix(suffix)
    content = model.read_bytes()
    for length in range(0, len(content), len(content) // 16):
        model.write_bytes(content[:length])
        assert f"cannot read {model}: " in refusal("predict", wine, "--model", model)


def test_other_files_are_refused_as_models(tmp_path, wine, refusal):
    np.savez(tmp_path / "other.npz", X=np.zeros((2, 2)))
    np.save(tmp_path / "array.npy", np.zeros((2, 2)))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    save_file({"w": np.zeros(2)}, tmp_path / "other.safetensors")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as file:
        file.writestr("mean.npy", b"no array")
    patterns = {
        "other.npz": "not a saved model, it lacks cluster_centers, mean",
        "other.safetensors": "not a saved model, it lacks cluster_centers, mean",
        "array.npz": "not a saved model but a single array",
        "zip.npz": "cannot read",
        "nowhere.npz": "no such file",
        "nowhere.safetensors": "no such file",
        "model.pkl": r"a saved model ends in \.npz or \.safetensors",
    }
    for name, pattern in patterns.items():
        message = refusal("predict", wine, "--model", tmp_path / name)
        assert re.search(pattern, message), message
        assert str(tmp_path / name) in message
