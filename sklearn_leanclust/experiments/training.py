"""What meta-training reaches, on tasks that it has not seen.

dense   one step against one Lloyd step from the same random centres, trained from random and from
        exact weights, on one family of noise and evaluated on the same
tied    the shipped weights, none of them made for a size: 20 steps from k-means++ centres against
        Lloyd's algorithm run to its end from the same ones
cauchy  the same dense training on Cauchy noise
kills   training killed at random moments, resumed, and compared with an uninterrupted run
"""

from __future__ import annotations

import itertools
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from torch import Generator, Tensor

from sklearn_leanclust.meta.objective import kmeans_objective
from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.tasks import TaskFamily, initial_centers
from sklearn_leanclust.meta.trainer import CHECKPOINT, METRICS, WEIGHTS, run_steps, train
from sklearn_leanclust.network.checkpoint import load_network
from sklearn_leanclust.network.points import standardise
from sklearn_leanclust.network.shipped import find_shipped
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import ExactWeights

FAMILIES = ("normal", "laplace", "gumbel")
DEVIATION = 0.3  # of the noise, whatever its family
# standard deviation of the standard noise; that of a Cauchy variable is infinite, its scale is used
STANDARD = {"normal": 1.0, "laplace": 2**0.5, "gumbel": math.pi / 6**0.5, "cauchy": 1.0}
SIZES = ((2, 3), (4, 8), (8, 16), (16, 32), (32, 10))
UNSEEN_SEED = 123_456_789


class Trial(NamedTuple):
    """Unseen tasks with what Lloyd's algorithm makes of them."""

    X: Tensor  # (B, n, d)
    centers: Tensor  # (B, k, d), initial
    lloyd: Tensor  # (B,), objective it reaches

    def against(self, network: ClusteringTransformer, n_steps: int) -> tuple[float, float, float]:
        """Compare the objective after steps of a network.

        Returns the median over tasks of the ratio, the share of tasks with a ratio under 1, and the
        ratio of the mean objectives.
        """
        with torch.no_grad():
            ours = kmeans_objective(self.X, run_steps(network, self.X, self.centers, n_steps))
        ratio = ours / self.lloyd
        below = (ratio < 1).float().mean()
        return float(ratio.median()), float(below), float(ours.mean() / self.lloyd.mean())


def draw_trial(family: TaskFamily, init: str, n_tasks: int, most_steps: int) -> Trial:
    """Draw tasks and run Lloyd's algorithm on them, to its end or for `most_steps`."""
    generator = Generator().manual_seed(UNSEEN_SEED)
    X, _, _ = standardise(family.sample(n_tasks, generator))
    centers = initial_centers(X, family.n_clusters, init, generator)
    step, moved, before = ClusteringTransformer(ExactWeights()), centers, None
    with torch.no_grad():
        while most_steps > 0 and (before is None or not torch.equal(before, moved)):
            before, moved = moved, step(X, moved)
            most_steps -= 1
        return Trial(X, centers, kmeans_objective(X, moved))


def dense_rows(n_updates: int, noises: tuple[str, ...], done: set[tuple]) -> Iterator[dict]:
    """One step of dense weights of d = 4, k = 8, for what is not done yet."""
    grid = itertools.product(noises, ("binary", "onehot"), (0.1, 1.0), ("random", "exact"))
    for noise, embedding, tau, start in (key for key in grid if key not in done):
        scale = DEVIATION / STANDARD[noise]
        settings = TrainingSettings.dense(
            4, 8, regularizer="l2", tau=tau, embedding=embedding, noises=(noise,), start=start,
            scale=(scale, scale), n_updates=n_updates,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            network = train(settings, folder, progress=False)
            seconds = time.perf_counter() - began
            skipped = load_network(Path(folder) / WEIGHTS)[1]["score"]["skipped_updates"]
        family = TaskFamily(noise, scale, 4, 8, 200)
        median, share, _ = draw_trial(family, "random", 2000, 1).against(network, 1)
        yield {
            "noise": noise, "embedding": embedding, "tau": tau, "start": start,
            "median ratio": median, "tasks under Lloyd": share, "skipped": skipped,
            "seconds": seconds,
        }  # fmt: skip


def tied_rows(n_tasks: int) -> Iterator[dict]:
    """Twenty steps of the shipped tied weights."""
    for (d, k), noise in itertools.product(SIZES, (*FAMILIES, "lognormal")):
        family = TaskFamily(noise, 0.5, d, k, max(200, 25 * k))
        trial = draw_trial(family, "k-means++", n_tasks, 1000)
        grid = itertools.product(("binary", "onehot"), ("entropy", "l2"), (0.1, 1.0))
        for embedding, regularizer, tau in grid:
            network, _ = load_network(find_shipped("tied", embedding, regularizer, tau))
            _, share, ratio = trial.against(network, 20)
            yield {
                "embedding": embedding, "regularizer": regularizer, "tau": tau, "d": d, "k": k,
                "noise": noise, "ratio of means": ratio, "tasks under Lloyd": share,
            }  # fmt: skip


def kill_rows(n_kills: int, seed: int = 0) -> Iterator[dict]:
    """Training that is killed again and again against training that is not."""
    settings = TrainingSettings.dense(
        2, 3, n_updates=6000, checkpoint_every=20, n_tasks=8, noises=("normal",)
    )
    options = settings.command().split()[5:]  # after "python -m sklearn_leanclust train --out"
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        command = [sys.executable, "-m", "sklearn_leanclust", "train", "--quiet", "--out"]
        began = time.perf_counter()
        subprocess.run([*command, whole, *options[1:]], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        for kill in range(n_kills):
            process = subprocess.Popen(
                [*command, broken, "--resume", *options[1:]], stdout=subprocess.DEVNULL
            )
            time.sleep(rng.uniform(0.15, 0.3) * seconds)  # the first third is imports
            finished = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            yield {"kill": kill, "finished before": finished,
                   "checkpoint": (broken / CHECKPOINT).exists()}  # fmt: skip
        subprocess.run(
            [*command, broken, "--resume", *options[1:]], check=True, capture_output=True
        )
        same = (whole / WEIGHTS).read_bytes() == (broken / WEIGHTS).read_bytes()
        metrics = (whole / METRICS).read_text() == (broken / METRICS).read_text()
        yield {"kill": "end", "same weights": same, "same metrics": metrics}


def run(out: Path, quick: bool) -> None:
    """Write a CSV for each part and ``training.md``; what a CSV holds is not trained again."""
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"training-{name}.csv" for name in ("dense", "cauchy", "kills", "tied")}
    kept = {name: pd.read_csv(files[name]) if files[name].exists() else pd.DataFrame()
            for name in ("dense", "cauchy")}  # fmt: skip
    done = {tuple(row[:4]) for table in kept.values() for row in table.itertuples(index=False)}
    updates = 200 if quick else TrainingSettings.dense(4, 8).n_updates
    parts = {
        "dense": dense_rows(updates, FAMILIES[:1] if quick else FAMILIES, done),
        "cauchy": dense_rows(updates, ("cauchy",), done),
        "kills": kill_rows(2 if quick else 10),
        "tied": tied_rows(8 if quick else 100),
    }
    tables = {}
    for name, rows in parts.items():
        collected = kept[name].to_dict("records") if name in kept else []
        for row in rows:
            print(f"{name}: {row}", flush=True)
            collected.append(row)
            pd.DataFrame(collected).to_csv(files[name], index=False)
        tables[name] = pd.DataFrame(collected)
    (out / "training.md").write_text(report(tables, quick))


def report(tables: dict[str, pd.DataFrame], quick: bool) -> str:
    """Markdown summary of all parts."""
    columns = ["d", "k", "noise"]
    tied = tables["tied"].assign(
        weights=lambda t: t["embedding"] + " " + t["regularizer"] + " " + t["tau"].astype(str)
    )
    wide = tied.pivot(index=columns, columns="weights", values="ratio of means").reset_index()
    option = " --quick" if quick else ""
    lines = [
        "# What meta-training reaches",
        "",
        f"Written by `python -m sklearn_leanclust experiment training{option}`; torch "
        f"{torch.__version__}. All tasks are unseen in training. Under 1 is better than Lloyd.",
        "",
        "## Tied weights, 20 steps, against Lloyd's algorithm run to its end",
        "",
        "Ratio of the mean inertias, from the same k-means++ centres. One set of weights a column.",
        "",
        markdown(wide),
        "",
        "## Dense weights, d = 4, k = 8, one step, against one Lloyd step",
        "",
        "From the same random centres; trained and evaluated on the same family of noise, with "
        f"standard deviation {DEVIATION} (Cauchy: scale).",
        "",
        markdown(tables["dense"]),
        "",
        "## The same on Cauchy noise",
        "",
        markdown(tables["cauchy"]),
        "",
        "## Training killed at random moments and resumed",
        "",
        markdown(tables["kills"].fillna("")),
        "",
    ]
    return "\n".join(lines)


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown, numbers to four digits."""
    rows = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    for record in table.itertuples(index=False):
        rows.append([f"{v:.4f}" if isinstance(v, float) else str(v) for v in record])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
