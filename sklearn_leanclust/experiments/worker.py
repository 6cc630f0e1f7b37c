"""The process that a method of the benchmark runs in: fits on request, and measures them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

STATUS = Path("/proc/self/status")
PEAK_RESET = Path("/proc/self/clear_refs")
WARM_UP_POINTS = 1_000


@dataclass(frozen=True)
class Fit:
    """What one seed gave.

    Parameters
    ----------
    centers : ndarray of shape (k, d)
    seconds : float
        Wall time, the median where the fit was repeated.
    peak_mib : float
        Largest memory in use during the fit, over that before it, in MiB; NaN outside of Linux.
    """

    centers: np.ndarray
    seconds: float
    peak_mib: float


def serve(
    pipe: Connection,
    path: Path,
    fit: Callable[[np.ndarray, int, int], np.ndarray],
    k: int,
    repeats: int,
) -> None:
    """Load the data, then answer each seed by a :class:`Fit` or by the text of an error.

    Before the first one the method clusters a tiny problem, so that imports and other work that
    is done once are not measured. Between answers the process is idle: what the parent does with
    one is not in the way of the next. The parent ends the process.
    """
    X = np.load(path)
    warm = False
    while True:
        seed = pipe.recv()
        try:
            if not warm:
                tiny = np.random.default_rng(0).standard_normal((WARM_UP_POINTS, X.shape[1]))
                fit(tiny, min(k, 8), 0)
                warm = True
            pipe.send(measure(fit, X, k, seed, repeats))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def measure(
    fit: Callable[[np.ndarray, int, int], np.ndarray],
    X: np.ndarray,
    k: int,
    seed: int,
    repeats: int,
) -> Fit:
    """Fit `repeats` times with the same seed."""
    reset_peak()
    before = peak_mib()
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        centers = fit(X, k, seed)
        seconds.append(perf_counter() - start)
        centers = np.array(centers)  # a view would keep memory of this fit during the next
    return Fit(centers, median(seconds), peak_mib() - before)


def reset_peak() -> None:
    """Let the peak of this process's memory be what is in use now."""
    if PEAK_RESET.exists():
        PEAK_RESET.write_text("5")


def peak_mib() -> float:
    """Peak of this process's resident memory since the last reset; NaN outside of Linux.

    Not by ``getrusage``: its peak begins with that of the parent, and is never reset.
    """
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return np.nan
