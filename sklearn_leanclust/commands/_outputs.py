"""Writing results: whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np


def check_outputs(
    outputs: Mapping[str, tuple[str | None, Sequence[str]]], inputs: Iterable[str]
) -> None:
    """Find before any work is done what would fail after it.

    Parameters
    ----------
    outputs : mapping of option to (path or None, allowed suffixes)
    inputs : iterable of str
        Files that are read and must not be overwritten.

    Raises
    ------
    ValueError
        If a suffix is unknown, a folder is missing or read-only, or a file would be written over.
    """
    taken = {Path(path).resolve(): "the input" for path in inputs}
    for option, (name, suffixes) in outputs.items():
        if name is None:
            continue
        path = Path(name).resolve()
        if path.suffix.lower() not in suffixes:
            raise ValueError(f"{option} {name}: the name must end in {' or '.join(suffixes)}.")
        if path in taken:
            raise ValueError(f"{option} {name} would overwrite {taken[path]}.")
        taken[path] = f"the output of {option}"
        if path.is_dir():
            raise ValueError(f"{option} {name} is a folder.")
        if not path.parent.is_dir():
            raise ValueError(f"{option} {name}: there is no folder {path.parent}.")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{option} {name}: the folder {path.parent} is not writable.")


@contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path` that takes its place once it is complete.

    After an error or an interrupt what stood at `path` still stands there.
    """
    path = Path(path).resolve()  # behind a link, the file it points to
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def save_array(path: str | Path, array: np.ndarray, columns: Sequence[str]) -> None:
    """Write an array of shape (n,) or (n, d) as .npy, or as .csv with a line of column names."""
    with write_atomically(path) as file:
        if Path(path).suffix.lower() == ".npy":
            np.save(file, array, allow_pickle=False)
        else:
            file.write(csv_text(array, columns).encode())


def csv_text(array: np.ndarray, columns: Sequence[str]) -> str:
    """Lines of a csv file; numbers in the shortest form that reads back as the same."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(np.reshape(array, (-1, len(columns))).astype(str))
    return text.getvalue()
