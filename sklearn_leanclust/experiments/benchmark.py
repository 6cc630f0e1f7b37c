"""The benchmark: data sets x methods x seeds, each method in a process of its own.

Several OpenMP runtimes in one process slow each other down badly, so every pair of data set and
method gets a fresh interpreter, see ``worker``. Results are appended to ``results.csv`` one by one;
a run that was interrupted goes on where it stopped. ``report`` sums them up.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import metadata
from math import isfinite, nan
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import gen_batches

from sklearn_leanclust.experiments.datasets import DataSet
from sklearn_leanclust.experiments.methods import Method
from sklearn_leanclust.experiments.worker import Fit, serve

RESULTS, MACHINE = "results.csv", "machine.json"
BLOCK_SIZE = 2**22  # scores of a block, points x clusters
SMALL_REPEATS = 5  # single fits of a few milliseconds are too short to time
SHARED_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Result:
    """A row of ``results.csv``; `error` is empty where the method succeeded."""

    dataset: str
    method: str
    version: str
    seed: int
    inertia: float = nan
    seconds: float = nan
    peak_mib: float = nan
    error: str = ""

    def __str__(self) -> str:
        head = f"{self.dataset}, {self.method}, seed {self.seed}"
        if self.error:
            return f"{head}: failed: {self.error}"
        return f"{head}: {self.inertia:.6g}, {self.seconds:.4g} s, {self.peak_mib:.0f} MiB"


def run_benchmark(
    datasets: Mapping[str, DataSet],
    methods: Mapping[str, Method],
    n_seeds: int,
    out: Path,
    say: Callable[[str], None] = print,
) -> None:
    """Measure what has no result in `out` yet.

    Parameters
    ----------
    datasets, methods : mapping
        By name. Methods whose package is not installed are skipped.
    n_seeds : int
        Each method runs with the seeds from 0 to `n_seeds` - 1.
    out : Path
        Folder of the results, made if needed.
    say : callable
        Takes the lines of progress.

    Raises
    ------
    ValueError
        If the results in `out` are of another machine, or of other versions of what all share.
    """
    out.mkdir(parents=True, exist_ok=True)
    check_machine(out)
    known = {(row.dataset, row.method, row.seed) for row in read_results(out, methods)
             if not row.error}  # fmt: skip
    for name, method in methods.items():
        if method.version() is None:
            say(
                f"skipped {name}, which needs {method.distribution}: "
                "pip install 'sklearn_leanclust[bench]'"
            )
    jobs = {
        (dataset, name): [seed for seed in range(n_seeds) if (dataset, name, seed) not in known]
        for dataset in datasets
        for name, method in methods.items()
        if method.version() is not None
    }
    total, count = sum(map(len, jobs.values())), 0
    say(f"{total} results to measure, {n_seeds * len(jobs) - total} known from {out / RESULTS}")
    for (dataset, name), seeds in jobs.items():
        for row in measure_seeds(dataset, datasets[dataset], name, methods[name], seeds):
            append_result(out, row)
            count += 1
            say(f"{count}/{total} {row}")


def measure_seeds(
    dataset_name: str, dataset: DataSet, method_name: str, method: Method, seeds: list[int]
) -> Iterator[Result]:
    """Fit all seeds in one new process; the inertia is worked out in this one."""
    if not seeds:
        return
    X = dataset.load()
    repeats = SMALL_REPEATS if dataset.size == "small" else 1
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        np.save(path, X)
        pipe, worker_end = context.Pipe()
        process = context.Process(
            target=serve, args=(worker_end, path, method.fit, dataset.k, repeats), daemon=True
        )
        process.start()
        worker_end.close()  # else the pipe would outlive the process
        try:
            for seed in seeds:
                row = Result(dataset_name, method_name, method.version(), seed)
                yield complete(row, ask(pipe, seed), X, dataset.k)
        finally:
            process.terminate()
            process.join()


def ask(pipe: Connection, seed: int) -> Fit | str:
    """Let the worker fit; an error is returned as its text."""
    try:
        pipe.send(seed)
        return pipe.recv()
    except (EOFError, OSError):
        return "the process ended early, out of memory or crashed"


def complete(row: Result, answer: Fit | str, X: np.ndarray, k: int) -> Result:
    """Fill in what the worker measured, or why there is nothing."""
    if isinstance(answer, str):
        return replace(row, error=" ".join(answer.split()))
    if answer.centers.shape != (k, X.shape[1]):
        return replace(row, error=f"centres of shape {answer.centers.shape}")
    value = inertia(X, answer.centers)
    if not isfinite(value):
        return replace(row, error=f"inertia {value}")
    return replace(row, inertia=value, seconds=answer.seconds, peak_mib=answer.peak_mib)


def inertia(X: np.ndarray, centers: np.ndarray) -> float:
    """Sum of squared distances to the nearest centres, in float64.

    Independent of what is measured. Distances are direct differences, so that nothing cancels.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (k, d)
        NaN or infinite centres make the result NaN.
    """
    if not np.isfinite(centers).all():
        return nan
    offset = X.mean(axis=0, dtype=np.float64)
    centers = centers.astype(np.float64) - offset
    total = 0.0
    for part in gen_batches(len(X), max(1, BLOCK_SIZE // len(centers))):
        points = X[part].astype(np.float64) - offset
        gap = points - centers[pairwise_distances_argmin(points, centers)]
        total += float(np.vdot(gap, gap))
    return total


def read_results(out: Path, methods: Mapping[str, Method]) -> list[Result]:
    """Rows of the present versions of `methods`, the last one of each data set, method and seed."""
    path = out / RESULTS
    if not path.exists():
        return []
    versions = {name: method.version() for name, method in methods.items()}
    rows = {}
    with path.open(newline="", encoding="utf-8") as file:
        for cells in csv.DictReader(file):
            if None in cells.values():  # cut off when a run was killed
                continue
            numbers = {name: float(cells[name]) for name in ("inertia", "seconds", "peak_mib")}
            row = Result(**cells | numbers | {"seed": int(cells["seed"])})
            if versions.get(row.method) == row.version:
                rows[row.dataset, row.method, row.seed] = row
    return list(rows.values())


def append_result(out: Path, row: Result) -> None:
    """Add a row to ``results.csv``."""
    path = out / RESULTS
    names = [field.name for field in fields(Result)]
    whole = not path.exists() or path.read_bytes()[-1:] in (b"\n", b"")
    with path.open("a", newline="", encoding="utf-8") as file:
        if not whole:
            file.write("\n")
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(asdict(row))


def check_machine(out: Path) -> None:
    """Write ``machine.json``; refuse results of another machine."""
    path, machine = out / MACHINE, describe_machine()
    if not path.exists():
        path.write_text(json.dumps(machine, indent=2) + "\n", encoding="utf-8")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    changed = [name for name in before | machine if before.get(name) != machine.get(name)]
    if changed:
        name = changed[0]
        raise ValueError(
            f"the results in {out} were measured with {name} {before.get(name)}, but here it is "
            f"{machine.get(name)}; give another --out"
        )


def describe_machine() -> dict[str, str | int]:
    """Whatever changes the times of all methods."""
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }
    machine |= {name: metadata.version(name) for name in SHARED_PACKAGES}
    return machine | {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}


def processor() -> str:
    """Name of the processor, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
