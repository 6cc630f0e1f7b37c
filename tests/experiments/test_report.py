"""What the benchmark's results come to, and the command that writes it."""

from __future__ import annotations

import argparse
from functools import partial
from math import sqrt

import pandas as pd
import pytest

from sklearn_leanclust.commands import bench
from sklearn_leanclust.experiments.benchmark import Result, run_benchmark
from sklearn_leanclust.experiments.datasets import DataSet
from sklearn_leanclust.experiments.report import per_method, per_set, write_report

DATASETS = {
    "little": DataSet(100, 2, 3, None, "bench"),
    "middle": DataSet(5_000, 4, 5, None, "bench"),
    "bigger": DataSet(6_000, 4, 5, None, "bench"),
}


def results(dataset: str, method: str, inertias: list[float], seconds: float) -> list[Result]:
    return [Result(dataset, method, "1.0", seed, inertia, seconds, 10.0 + seed)
            for seed, inertia in enumerate(inertias)]  # fmt: skip


ROWS = [
    *results("middle", "kmeans-10", [110, 100, 130], 8.0),
    *results("middle", "ours", [105, 105, 121], 1.0),
    *results("little", "kmeans-10", [10, 10, 10], 0.3),
    *results("little", "ours", [11, 11.01, 9], 0.1),
    *results("bigger", "kmeans-10", [20, 20, 20], 6.0),
    *results("bigger", "ours", [20.04, 20.04, 20.04], 3.0),
]


def test_each_set_has_medians_over_the_best_known():
    sets = per_set(ROWS, DATASETS).set_index(["dataset", "method"])
    assert list(sets.index.unique("dataset")) == ["little", "middle", "bigger"]
    ours = sets.loc["middle", "ours"]
    assert (ours["size"], ours.n, ours.d, ours.k, ours.seeds) == ("medium", 5_000, 4, 5, 3)
    assert ours.inertia == 105
    assert ours.ratio == 1.05  # the best known is of one seed of kmeans-10
    assert ours.against == pytest.approx(105 / 110)
    assert ours.speed == 8
    assert ours.memory == 12
    assert sets.loc["little", "kmeans-10"].ratio == pytest.approx(10 / 9)


def test_each_method_has_means_and_the_worst_over_the_sets():
    ours = per_method(per_set(ROWS, DATASETS)).loc["ours"]
    assert (ours.sets, ours.seeds) == (3, 3)
    assert ours.inertia == pytest.approx((11 / 9 * 1.05 * 1.002) ** (1 / 3))
    assert (ours.worst, ours["worst set"]) == (pytest.approx(11 / 9), "little")
    assert ours.worse == 1  # `bigger` is at the tolerance
    assert (ours["speed small"], ours["min small"]) == (pytest.approx(3), pytest.approx(3))
    assert ours["speed medium"] == pytest.approx(sqrt(8 * 2))
    assert ours["min medium"] == 2
    assert pd.isna(ours["speed large"])


def test_a_failed_method_shows_in_the_report(tmp_path):
    run_benchmark({}, {}, 1, tmp_path)  # writes the machine
    rows = ROWS[:-3] + [Result("bigger", "ours", "1.0", 0, error="ValueError: no")]
    write_report(rows, DATASETS, tmp_path)
    page = (tmp_path / "report.md").read_text()
    assert "- `ours` failed on bigger: ValueError: no" in page
    assert "| bigger | 6000 | 4 | 5 | 1.0000 | failed |" in page
    assert "| middle | 5000 | 4 | 5 | 1.1000 | 1.0500 |" in page
    assert "- `ours` is worse than `kmeans-10` on little\n" in page
    assert "- ours: 1.0\n" in page
    assert (tmp_path / "report.png").read_bytes()[1:4] == b"PNG"
    assert pd.read_csv(tmp_path / "summary.csv").sets.tolist() == [3, 2]
    assert len(pd.read_csv(tmp_path / "sets.csv")) == 5


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([Result("little", "ours", "1.0", 0, error="no")], id="all failed"),
        pytest.param(results("little", "ours", [3.0], 1.0), id="no baseline"),
    ],
)
def test_a_report_on_little(tmp_path, rows):
    run_benchmark({}, {}, 1, tmp_path)
    write_report(rows, DATASETS, tmp_path)
    assert "ours" in (tmp_path / "report.md").read_text()
    assert (tmp_path / "report.png").exists()


def command(*args: object) -> None:
    parser = argparse.ArgumentParser()
    bench.add_parser(parser.add_subparsers())
    args = parser.parse_args(["bench", *map(str, args)])
    args.run(args)


def test_the_command_measures_and_reports(tmp_path, capsys):
    run = partial(command, "--datasets", "iris", "--methods", "kmeans-1", "--out", tmp_path)
    run("--quick", "--seeds", 3)
    out = capsys.readouterr().out
    assert out.startswith("2 results to measure, 0 known")
    assert f"report: {tmp_path / 'report.md'}" in out
    assert "| iris | 150 | 4 | 3 |" in (tmp_path / "report.md").read_text()
    run("--quick", "--seeds", 3)
    assert capsys.readouterr().out.startswith("0 results to measure, 2 known")


@pytest.mark.parametrize(
    "args, message",
    [
        (["--datasets", "iris,irsi"], r"--datasets: there is no 'irsi'; there are iris, wine"),
        (["--datasets", "iris", "--split", "dev"], r"--datasets: there is no 'iris'"),
        (["--methods", "kmeans"], r"--methods: there is no 'kmeans'; there are kmeans-1"),
        (["--seeds", "0"], r"--seeds is 0; it must be at least 1"),
        (["--datasets", "dim-64", "--quick"], r"dim-64 has more than 5000 points"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(tmp_path, args, message):
    with pytest.raises(ValueError, match=message):
        command("--out", tmp_path / "out", *args)
    assert not (tmp_path / "out").exists()
