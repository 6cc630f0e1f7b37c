"""``weights``: what is shipped and cached, how it was trained, whether it is whole."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

HELP = "list, show or verify trained weights"


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser("weights", help=HELP, description=HELP)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="name, size and score of all weights")
    listing.set_defaults(run=run_list)
    show = actions.add_parser("show", help="configuration, recipe and score of one")
    show.add_argument("name", metavar="NAME", help="a name from the list, or a file")
    show.set_defaults(run=run_show)
    verify = actions.add_parser("verify", help="read the files and compare their hashes")
    verify.add_argument("names", metavar="NAME", nargs="*", help="names or files (all)")
    verify.set_defaults(run=run_verify)


def run_list(args: argparse.Namespace) -> None:
    """One line for each file."""
    for place, path in places():
        print(f"{place:8}{path.stem:48}{path.stat().st_size:8} bytes  {score_of(path)}")


def run_show(args: argparse.Namespace) -> None:
    """The metadata, in which `recipe` is the command that trains the weights again."""
    from sklearn_leanclust.network.checkpoint import load_network

    path = find(args.name)
    metadata = load_network(path)[1]
    print(f"{path}\n{json.dumps(metadata, indent=2)}")


def run_verify(args: argparse.Namespace) -> None:
    """Fail in one line that names every file that is not whole."""
    from sklearn_leanclust.network.checkpoint import CheckpointError, load_network

    paths = [find(name) for name in args.names] or [path for _, path in places()]
    broken = []
    for path in paths:
        try:
            load_network(path)
        except (CheckpointError, OSError) as error:
            broken.append(str(error))
    if broken:
        raise ValueError(" ".join(broken))
    print(f"whole files: {len(paths)}")


def score_of(path: Path) -> str:
    """Score of weights as text, or that their file is broken."""
    from sklearn_leanclust.network.checkpoint import CheckpointError, load_network

    try:
        score = load_network(path)[1]["score"]
    except (CheckpointError, OSError):
        return f"broken, see: weights verify {path.stem}"
    ratio = score.get("ratio_to_lloyd")
    return f"{ratio:.4f} times Lloyd's objective" if isinstance(ratio, float) else "no score"


def places() -> list[tuple[str, Path]]:
    """All weights there are, and where."""
    from sklearn_leanclust.meta.cache import cached_files
    from sklearn_leanclust.network.shipped import shipped_files

    return [("shipped", p) for p in shipped_files()] + [("cached", p) for p in cached_files()]


def find(name: str) -> Path:
    """Path of weights by their name in the list, or as a path."""
    for _, path in places():
        if name in (path.stem, path.name):
            return path
    if Path(name).is_file():
        return Path(name)
    raise ValueError(f"there are no weights {name!r}; 'weights list' names those there are.")
