"""``fit``: what it writes and reports."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from sklearn_leanclust import LloydStep, TransformerKMeans


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_formats_give_the_estimators_result(suffix, frame, tmp_path, run, save):
    data = save(frame, tmp_path / f"data{suffix}")
    columns = "a,b,c d" if suffix in (".csv", ".parquet") else "0,1,2"
    labels, centers = tmp_path / "labels.npy", tmp_path / "centers.npy"
    assert run("fit", data, "-k", 3, "--columns", columns, "--labels", labels, "--centers", centers,
               "--seed", 5) == 0  # fmt: skip
    expected = TransformerKMeans(3, random_state=5).fit(frame[["a", "b", "c d"]].to_numpy())
    np.testing.assert_array_equal(np.load(labels), expected.labels_)
    np.testing.assert_allclose(np.load(centers), expected.cluster_centers_, rtol=1e-12)


def test_all_columns_by_default_and_chosen_ones_in_order(tmp_path, frame, run, save):
    data = save(frame.drop(columns="kind"), tmp_path / "data.csv")
    centers = tmp_path / "centers.csv"
    assert run("fit", data, "-k", 2, "--centers", centers) == 0
    assert list(pd.read_csv(centers).columns) == ["a", "b", "c d"]
    assert run("fit", data, "-k", 2, "--columns", "c d,a", "--centers", centers) == 0
    assert list(pd.read_csv(centers).columns) == ["c d", "a"]


def test_columns_may_be_quoted(tmp_path, run, save):
    frame = pd.DataFrame({"x,y": [0.0, 1, 10, 11], "z": [1.0, 2, 3, 4]})
    data, centers = save(frame, tmp_path / "data.csv"), tmp_path / "centers.csv"
    assert run("fit", data, "-k", 2, "--columns", '"x,y"', "--centers", centers) == 0
    assert sorted(pd.read_csv(centers)["x,y"]) == [0.5, 10.5]


def test_standardize_reports_standardised_inertia_and_writes_centres_in_data_units(
    tmp_path, capsys, wine, run
):
    centers = tmp_path / "centers.csv"
    assert run("fit", wine, "-k", 3, "--standardize", "--centers", centers) == 0
    X = load_wine().data
    scaler = StandardScaler().fit(X)
    expected = TransformerKMeans(3, random_state=0).fit(scaler.transform(X))
    written = pd.read_csv(centers)
    np.testing.assert_allclose(
        written.to_numpy(), scaler.inverse_transform(expected.cluster_centers_), rtol=1e-9
    )
    assert list(written.columns) == list(pd.read_csv(wine).columns)
    assert f"{expected.inertia_:.6g}" in capsys.readouterr().out


def test_report(capsys, wine, run):
    assert run("fit", wine, "-k", 3, "--standardize", "--seed", 1) == 0
    out = capsys.readouterr().out
    X = StandardScaler().fit_transform(load_wine().data)
    model = TransformerKMeans(3, random_state=1).fit(X)
    step = LloydStep(3, random_state=1).fit(X)
    sizes = sorted(np.bincount(model.labels_), reverse=True)
    assert [int(line.split()[1]) for line in out.splitlines()[3:6]] == sizes
    rows = {line[:28].strip(): line[28:].split() for line in out.splitlines()[8:]}
    assert rows["TransformerKMeans"][0] == f"{model.inertia_:.6g}"
    assert rows["one Lloyd step"][0] == f"{step.inertia_:.6g}"
    assert float(rows["KMeans, n_init=10"][0]) == pytest.approx(1277.93, rel=1e-4)
    assert all(float(seconds) >= 0 for _, seconds in rows.values())


def test_report_of_many_clusters_stays_on_one_screen(capsys, tmp_path, run):
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(0).normal(size=(300, 2)))
    assert run("fit", data, "-k", 100) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 24
    assert "and 90 more of " in out


def test_parameters_reach_the_estimator(monkeypatch, frame, tmp_path, run, save):
    seen = {}
    fit = TransformerKMeans.fit

    def spy(self, X):
        seen.update(self.get_params())
        return fit(self, X)

    monkeypatch.setattr(TransformerKMeans, "fit", spy)
    data = save(frame.drop(columns="kind"), tmp_path / "data.csv")
    defaults = TransformerKMeans(2, random_state=0).get_params()
    assert run("fit", data, "-k", 2) == 0
    assert seen == defaults
    given = {
        "max_iter": 7,
        "embedding": "onehot",
        "regularizer": "l2",
        "tau": 1.0,
        "weights": "exact",
        "device": "cpu",
    }
    options = [part for name, x in given.items() for part in (f"--{name.replace('_', '-')}", x)]
    assert run("fit", data, "-k", 2, "--seed", 4, *options) == 0
    assert seen == defaults | given | {"random_state": 4}


def test_float32_stays_float32(tmp_path, run):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", X)
    for name in ("data.parquet", "data.npy"):
        assert run("fit", tmp_path / name, "-k", 2, "--centers", tmp_path / "centers.npy") == 0
        assert np.load(tmp_path / "centers.npy").dtype == np.float32


def test_integers_booleans_and_nullable_columns_are_numbers(tmp_path, run):
    frame = pd.DataFrame({"i": [0, 1, 9, 10], "b": [True, True, False, False]})
    frame["n"] = pd.array([1, 2, 3, 4], dtype="Int64")
    frame.to_parquet(tmp_path / "data.parquet")
    assert run("fit", tmp_path / "data.parquet", "-k", 2, "--centers", tmp_path / "c.csv") == 0
    assert pd.read_csv(tmp_path / "c.csv").sort_values("i").to_numpy().tolist() == [
        [0.5, 1.0, 1.5],
        [9.5, 0.0, 3.5],
    ]


def test_plot_is_a_picture_and_needs_no_display(tmp_path, wine):
    picture = tmp_path / "wine.png"
    script = """
import sys
from sklearn_leanclust.__main__ import main
status = main(sys.argv[1:])
assert "matplotlib.pyplot" not in sys.modules
sys.exit(status)
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
    subprocess.run(
        [sys.executable, "-c", script, "fit", wine, "-k", "3", "--plot", picture],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000
