"""Writing results: whole or not at all."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from sklearn_leanclust._files import write_atomically


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
