"""``train``: meta-train a network."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path

from sklearn_leanclust.meta.settings import TrainingSettings

HELP = "meta-train weights on synthetic tasks"


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Declare the arguments; settings that are not given stay out of the namespace."""
    parser = subparsers.add_parser("train", help=HELP, description=HELP)
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder for weights, checkpoint and metrics"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from DIR's checkpoint, with its settings where none are given",
    )
    parser.add_argument("--device", default="cpu", help="where to train (cpu)")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")

    group = parser.add_argument_group(
        "settings",
        "A range is LOW,HIGH or one number. With --kind dense, which needs --n-features and "
        "--n-clusters, the defaults are those of a single step.",
    )
    for field in fields(TrainingSettings):
        group.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=field.name,
            type=parser_of(field.default),
            metavar=metavar_of(field.default),
            default=argparse.SUPPRESS,
            help=f"({text_of(field.default)})",
        )
    parser.set_defaults(run=run)


def parser_of(default: object):
    """Function that reads the text of an argument into the type of a setting's default."""
    if not isinstance(default, tuple):
        return type(default)
    one = type(default[0])

    def read(text: str) -> tuple:
        values = tuple(one(part) for part in text.split(","))
        if one is str:
            return values
        if len(values) > 2:
            raise ValueError
        return values if len(values) == 2 else values * 2

    read.__name__ = "list" if one is str else "range"
    return read


def metavar_of(default: object) -> str:
    """What the help shows in place of a value."""
    if not isinstance(default, tuple):
        return "X"
    return "A,B" if isinstance(default[0], str) else "LOW,HIGH"


def text_of(default: object) -> str:
    """A default as it would be given."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def run(args: argparse.Namespace) -> None:
    """Train, then say what came out and where it lies."""
    given = {f.name: getattr(args, f.name) for f in fields(TrainingSettings) if f.name in args}
    settings = settings_from(given)

    from sklearn_leanclust.meta.trainer import CHECKPOINT, WEIGHTS, TrainingError, train
    from sklearn_leanclust.network.checkpoint import load_checkpoint, load_network

    out = Path(args.out)
    if args.resume and not given and (out / CHECKPOINT).exists():
        stored = load_checkpoint(out / CHECKPOINT).metadata["settings"]
        settings = TrainingSettings.from_json(json.dumps(stored))
    try:
        train(settings, out, device=args.device, resume=args.resume, progress=not args.quiet)
    except TrainingError as error:
        raise ValueError(error) from error
    ratio = load_network(out / WEIGHTS)[1]["score"]["ratio_to_lloyd"]
    print(
        f"{out / WEIGHTS}: objective {ratio:.4f} times that of as many Lloyd steps, on "
        "validation tasks"
    )


def settings_from(given: dict) -> TrainingSettings:
    """Settings with what was given in place of the defaults of their kind."""
    if given.get("kind") != "dense":
        return TrainingSettings(**given)
    for name in ("n_features", "n_clusters"):
        if name not in given:
            raise ValueError(f"--kind dense needs --{name.replace('_', '-')}.")
    defaults = TrainingSettings.dense(given["n_features"][0], given["n_clusters"][0])
    return replace(defaults, **given)
