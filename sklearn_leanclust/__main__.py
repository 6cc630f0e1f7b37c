"""The command line: ``python -m sklearn_leanclust``, also installed as ``sklearn-leanclust``."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from sklearn_leanclust.commands import COMMANDS

PROGRAM = "sklearn_leanclust"


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others of this program."""

    def error(self, message: str) -> None:
        sys.exit(complain(f"{message} (see {self.prog} --help)"))


def build_parser() -> argparse.ArgumentParser:
    """Collect the parsers of all subcommands."""
    parser = OneLineParser(
        prog=PROGRAM, description="k-means clustering by one learned attention layer."
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"sklearn_leanclust.commands.{name}").add_parser(subparsers)
    return parser


def complain(message: object, kind: str = "error") -> int:
    """Print one line on standard error; return the exit status of bad input."""
    print(f"{PROGRAM}: {kind}: {' '.join(str(message).split())}", file=sys.stderr)
    return 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments, those of the process by default.

    Returns
    -------
    int
        Exit status: 0, 2 for bad input, 130 after an interrupt, 1 where the reader of standard
        output went away.
    """
    args = build_parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files may not fit its encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain(message, "warning")
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it exits, and must find an open file then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ImportError as error:
        return complain(f"{error}; the command line needs: pip install '{PROGRAM}[cli]'")
    except (OSError, ValueError, MemoryError) as error:
        return complain(error)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
