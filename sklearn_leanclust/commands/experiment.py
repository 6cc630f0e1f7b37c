"""``experiment``: make the results of the paper again."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

HELP = "run one of the experiments and write its tables"
EXPERIMENTS = {"training": "what meta-training reaches on tasks that it has not seen"}


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments."""
    names = "\n".join(f"  {name:12}{text}" for name, text in EXPERIMENTS.items())
    parser = subparsers.add_parser(
        "experiment",
        help=HELP,
        description=f"{HELP}\n\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", choices=EXPERIMENTS, help=", ".join(EXPERIMENTS))
    parser.add_argument("--quick", action="store_true", help="small settings, under two minutes")
    parser.add_argument(
        "--out", metavar="DIR", default="results", help="folder of the results (results)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run it."""
    experiment = import_module(f"sklearn_leanclust.experiments.{args.name}")
    experiment.run(Path(args.out), args.quick)
