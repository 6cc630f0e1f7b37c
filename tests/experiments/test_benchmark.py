"""The benchmark's runner: what it measures, what it does with failures and old results."""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from sklearn_leanclust.experiments import benchmark
from sklearn_leanclust.experiments.benchmark import read_results, run_benchmark
from sklearn_leanclust.experiments.datasets import DataSet, grid
from sklearn_leanclust.experiments.methods import METHODS, OWN, REFERENCES, Method
from sklearn_leanclust.experiments.worker import measure

TINY = {"tiny": DataSet(2_400, 2, 4, partial(grid, 0, 2_400, 2, 0.05), "bench")}

# methods must be importable from the worker
TOY_METHODS = """
import os

def first_points(X, k, seed):
    return X[seed:seed + k]

def fails_on_seed_1(X, k, seed):
    if seed == 1:
        raise ValueError("seed\\n is 1")
    return X[:k]

def crashes(X, k, seed):
    os._exit(3)

def one_too_few(X, k, seed):
    return X[:k - 1]

def not_a_number(X, k, seed):
    return X[:k] * float("nan")
"""


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Module of methods that need nothing but NumPy, and so start fast."""
    (tmp_path / "toy_methods.py").write_text(TOY_METHODS)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("toy_methods")
    del sys.modules["toy_methods"]


def seeds_of(lines: list[str]) -> list[int]:
    return [int(line.split("seed ")[1].split(":")[0]) for line in lines if "seed " in line]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_clusters(name):
    method = METHODS[name]
    if method.version() is None:
        pytest.skip(f"{method.distribution} is not installed")
    (row,) = benchmark.measure_seeds("tiny", TINY["tiny"], name, method, [3])
    X = TINY["tiny"].load()
    assert row.error == ""
    assert (row.dataset, row.method, row.seed) == ("tiny", name, 3)
    assert 0 < row.seconds < 60
    # at most two of the four groups share a centre
    assert row.inertia < KMeans(3, n_init=10, random_state=0).fit(X).inertia_ * 1.01
    assert row.inertia > KMeans(4, n_init=10, random_state=0).fit(X).inertia_ * 0.9999


def test_inertia_is_that_of_the_centres(toys, tmp_path):
    run_benchmark(TINY, {"toy": Method(toys.first_points)}, 2, tmp_path)
    X = TINY["tiny"].load()
    for row in read_results(tmp_path, {"toy": Method(toys.first_points)}):
        centers = X[row.seed : row.seed + 4]
        assert row.inertia == pytest.approx(cdist(X, centers, "sqeuclidean").min(axis=1).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inertia_in_blocks_and_far_from_the_origin(monkeypatch, dtype):
    monkeypatch.setattr(benchmark, "BLOCK_SIZE", 30)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(101, 3)).astype(dtype)
    expected = cdist(X, X[:7], "sqeuclidean").min(axis=1).sum()
    far = X + dtype(2**16)
    assert benchmark.inertia(far, far[:7]) == pytest.approx(expected, rel=1e-12)


def test_a_run_goes_on_where_it_stopped(toys, tmp_path):
    methods = {"toy": Method(toys.first_points)}
    lines = []
    run_benchmark(TINY, methods, 2, tmp_path)
    run_benchmark(TINY, methods, 4, tmp_path, lines.append)
    assert lines[0].startswith("2 results to measure, 2 known")
    assert seeds_of(lines) == [2, 3]
    assert [row.seed for row in read_results(tmp_path, methods)] == [0, 1, 2, 3]


def test_a_row_cut_off_is_measured_again(toys, tmp_path):
    methods = {"toy": Method(toys.first_points)}
    run_benchmark(TINY, methods, 2, tmp_path)
    path = tmp_path / "results.csv"
    path.write_text(path.read_text()[:-30])
    lines = []
    run_benchmark(TINY, methods, 2, tmp_path, lines.append)
    assert seeds_of(lines) == [1]
    assert [row.seed for row in read_results(tmp_path, methods)] == [0, 1]


def test_results_of_another_version_are_left_out(toys, tmp_path, monkeypatch):
    methods = {"toy": Method(toys.first_points)}
    run_benchmark(TINY, methods, 1, tmp_path)
    monkeypatch.setattr(Method, "version", lambda self: "9.9")
    assert read_results(tmp_path, methods) == []
    lines = []
    run_benchmark(TINY, methods, 1, tmp_path, lines.append)
    assert seeds_of(lines) == [0]
    assert [row.version for row in read_results(tmp_path, methods)] == ["9.9"]


def test_own_version_follows_the_source(tmp_path, monkeypatch):
    import sklearn_leanclust

    (tmp_path / "network").mkdir()
    (tmp_path / "network" / "layer.py").write_text("a = 1")
    monkeypatch.setattr(sklearn_leanclust, "__file__", str(tmp_path / "__init__.py"))
    method = Method(lambda X, k, seed: X[:k], OWN)
    before = method.version()
    assert method.version() == before
    (tmp_path / "network" / "layer.py").write_text("a = 2")
    assert method.version() != before


def test_failures_are_recorded_and_the_run_goes_on(toys, tmp_path):
    names = ("fails_on_seed_1", "crashes", "one_too_few", "not_a_number", "first_points")
    methods = {name: Method(getattr(toys, name)) for name in names}
    run_benchmark(TINY, methods, 2, tmp_path)
    errors = {(row.method, row.seed): row.error for row in read_results(tmp_path, methods)}
    assert errors == {
        ("fails_on_seed_1", 0): "",
        ("fails_on_seed_1", 1): "ValueError: seed is 1",
        ("crashes", 0): "the process ended early, out of memory or crashed",
        ("crashes", 1): "the process ended early, out of memory or crashed",
        ("one_too_few", 0): "centres of shape (3, 2)",
        ("one_too_few", 1): "centres of shape (3, 2)",
        ("not_a_number", 0): "inertia nan",
        ("not_a_number", 1): "inertia nan",
        ("first_points", 0): "",
        ("first_points", 1): "",
    }


def test_methods_that_are_not_installed_are_skipped(toys, tmp_path):
    methods = {
        "absent": Method(toys.first_points, "no-such-distribution"),
        "toy": Method(toys.first_points),
    }
    lines = []
    run_benchmark(TINY, methods, 1, tmp_path, lines.append)
    assert lines[0] == (
        "skipped absent, which needs no-such-distribution: pip install 'sklearn_leanclust[bench]'"
    )
    assert [row.method for row in read_results(tmp_path, methods)] == ["toy"]


def test_results_of_another_machine_are_refused(tmp_path):
    run_benchmark({}, {}, 1, tmp_path)
    path = tmp_path / "machine.json"
    machine = json.loads(path.read_text())
    assert {"cpus", "python", "numpy", "torch"} <= set(machine)
    path.write_text(json.dumps(machine | {"cpus": 1_000}))
    with pytest.raises(ValueError, match=r"measured with cpus 1000, .* another --out"):
        run_benchmark({}, {}, 1, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is known on Linux only")
def test_memory_is_the_growth_during_the_fit():
    earlier = np.ones(2**25)  # 256 MiB, gone before the fit
    del earlier

    def fit(X, k, seed):
        return np.ones(2**23)[:k]  # 64 MiB

    assert 60 < measure(fit, np.zeros((1, 1)), 1, 0, repeats=3).peak_mib < 80


def test_seconds_are_the_median_of_the_repeats(monkeypatch):
    ticks = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])  # fits of 1, 5 and 2 seconds
    monkeypatch.setattr("sklearn_leanclust.experiments.worker.perf_counter", lambda: next(ticks))
    fit = measure(lambda X, k, seed: X[:k], np.zeros((4, 1)), 2, 0, repeats=3)
    assert fit.seconds == 2


def test_the_reference_is_not_among_the_methods():
    assert set(REFERENCES).isdisjoint(METHODS)
