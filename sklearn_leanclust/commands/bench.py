"""``bench``: compare k-means methods on data sets, by inertia, time and memory."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "compare k-means methods on data sets, by inertia, time and memory"
QUICK_POINTS, QUICK_SEEDS = 5_000, 2


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser("bench", help=HELP, description=HELP)
    parser.add_argument("--datasets", metavar="A,B", help="names of data sets (all of the split)")
    parser.add_argument("--methods", metavar="A,B", help="names of methods (all)")
    parser.add_argument("--seeds", metavar="N", type=int, default=5, help="seeds of each (5)")
    parser.add_argument(
        "--out",
        metavar="DIR",
        default="benchmark",
        help="folder of the results; what it holds already is not measured again (benchmark)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"only data sets of at most {QUICK_POINTS} points, and at most {QUICK_SEEDS} seeds",
    )
    parser.add_argument(
        "--split",
        choices=("bench", "dev"),
        default="bench",
        help="data sets to measure on, or those to develop on (bench)",
    )
    parser.add_argument(
        "--reference",
        action="store_true",
        help="run KMeans(n_init=50) as well, once, to know the best better; slow",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Measure, then report on all that the folder holds."""
    if args.seeds < 1:
        raise ValueError(f"--seeds is {args.seeds}; it must be at least 1")

    from sklearn_leanclust.experiments.benchmark import read_results, run_benchmark
    from sklearn_leanclust.experiments.datasets import DATASETS
    from sklearn_leanclust.experiments.methods import METHODS, REFERENCES
    from sklearn_leanclust.experiments.report import write_report

    out = Path(args.out)
    split = {name: dataset for name, dataset in DATASETS.items() if dataset.split == args.split}
    datasets = choose("--datasets", args.datasets, split)
    methods = choose("--methods", args.methods, METHODS)
    n_seeds = args.seeds
    if args.quick:
        datasets = {name: data for name, data in datasets.items() if data.n <= QUICK_POINTS}
        n_seeds = min(n_seeds, QUICK_SEEDS)
        if not datasets:
            raise ValueError(
                f"{args.datasets} has more than {QUICK_POINTS} points; leave out --quick"
            )

    def say(line: str) -> None:
        print(line, flush=True)

    run_benchmark(datasets, methods, n_seeds, out, say)
    if args.reference:
        run_benchmark(datasets, REFERENCES, 1, out, say)
    write_report(read_results(out, METHODS | REFERENCES), split, out)
    say(f"report: {out / 'report.md'}")


def choose(option: str, names: str | None, known: dict) -> dict:
    """Pick entries by a comma-separated list of names, all of them by default."""
    if names is None:
        return known
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise ValueError(f"{option}: there is no {name!r}; there are {', '.join(known)}")
    return {name: known[name] for name in wanted}
