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
    from sklearn_leanclust.network.checkpoint import load_network

    for place, path in places():
        score = load_network(path)[1]["score"]["ratio_to_lloyd"]
        size = path.stat().st_size
        print(f"{place:8}{path.stem:48}{size:8} bytes  {score:.4f} times Lloyd's objective")


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
        except CheckpointError as error:
            broken.append(str(error))
    if broken:
        raise ValueError(" ".join(broken))
    print(f"{len(paths)} files are whole")


def places() -> list[tuple[str, Path]]:
    """All weights there are, and where."""
    from sklearn_leanclust.meta.cache import cache_folder
    from sklearn_leanclust.network.shipped import shipped_files

    cached = sorted(cache_folder().glob("*.safetensors"))
    return [("shipped", p) for p in shipped_files()] + [("cached", p) for p in cached]


def find(name: str) -> Path:
    """Path of weights by their name in the list, or as a path."""
    for _, path in places():
        if name in (path.stem, path.name):
            return path
    if Path(name).is_file():
        return Path(name)
    raise ValueError(f"there are no weights {name!r}; 'weights list' names those there are.")
