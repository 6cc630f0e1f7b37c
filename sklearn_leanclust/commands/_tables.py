"""Reading tables: named columns of .csv and .parquet, numbered ones of .npy and .npz."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FORMATS = (".csv", ".parquet", ".npy", ".npz")


def parse_columns(text: str) -> list[str]:
    """Split ``a,b,"c,d"`` as one line of a csv file."""
    return next(csv.reader([text], skipinitialspace=True), [])


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into one ValueError with its name.

    The readers raise a dozen types between them: of zipfile, zlib, struct, json, pyarrow, ...
    """
    try:
        yield
    except ImportError:
        raise  # a reader that is not installed
    except FileNotFoundError:
        raise ValueError(f"no such file: {path}") from None
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ValueError(
            f"cannot read {path}: {reason or error or type(error).__name__}"
        ) from error


@dataclass(frozen=True)
class Table:
    """Data as read.

    Attributes
    ----------
    path : Path
        Where it came from.
    columns : list of str
        Names of the columns, their positions for an array.
    data : ndarray or DataFrame, shape (n, len(columns))
    """

    path: Path
    columns: list[str]
    data: object

    @property
    def is_named(self) -> bool:
        """Whether the columns have names of their own."""
        return not isinstance(self.data, np.ndarray)

    def numbers(self, columns: Sequence[str]) -> np.ndarray:
        """Take some columns as numbers.

        Parameters
        ----------
        columns : sequence of str
            Which ones, in this order.

        Returns
        -------
        ndarray of shape (n, len(columns)), float32 if all columns are, else float64

        Raises
        ------
        ValueError
            If a column is unknown, asked for twice, not numeric, or holds a missing or infinite
            value; or if there are no rows.
        """
        self._check_names(columns)
        positions = [self.columns.index(name) for name in columns]
        part = self.data.iloc[:, positions] if self.is_named else self.data[:, positions]
        if len(part) == 0:
            raise ValueError(f"{self.path} holds no rows.")
        values = self._frame_values(part) if self.is_named else self._array_values(part)
        self._check_finite(values, columns)
        return values

    def _check_names(self, columns: Sequence[str]) -> None:
        if not columns:
            raise ValueError(f"no columns were chosen; those of {self.path} are {self._listed()}.")
        for i, name in enumerate(columns):
            if name not in self.columns:
                raise ValueError(
                    f"{self.path} has no column {name!r}; its columns are {self._listed()}."
                )
            if name in columns[:i]:
                raise ValueError(f"column {name!r} is chosen twice.")

    def _listed(self) -> str:
        shown = ",".join(self.columns[:30])
        return shown if len(self.columns) <= 30 else f"{shown},... ({len(self.columns)} in all)"

    def _frame_values(self, frame) -> np.ndarray:
        from pandas.api.types import is_complex_dtype, is_numeric_dtype

        numeric = [is_numeric_dtype(t) and not is_complex_dtype(t) for t in frame.dtypes]
        if not all(numeric):
            name = frame.columns[numeric.index(False)]
            usable = ",".join(str(c) for c, ok in zip(frame.columns, numeric, strict=True) if ok)
            remedy = f"choose others: --columns {usable}" if usable else "no column is."
            raise ValueError(f"column {str(name)!r} of {self.path} is not numeric; {remedy}")
        dtype = np.float32 if all(t == np.float32 for t in frame.dtypes) else np.float64
        return frame.to_numpy(dtype=dtype, na_value=np.nan)

    def _array_values(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{self.path} holds values of type {array.dtype}, not numbers.")
        return array.astype(array.dtype if array.dtype == np.float32 else np.float64, copy=False)

    def _check_finite(self, values: np.ndarray, columns: Sequence[str]) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            what = "NaN" if np.isnan(values[row, column]) else "infinity"
            raise ValueError(
                f"Input X contains {what}: column {columns[column]!r} of {self.path}, row {row} "
                "(counted from 0); fill in or drop such rows first."
            )


def read_table(path: str | Path) -> Table:
    """Read a table in the format that the end of its name tells.

    Parameters
    ----------
    path : str or Path
        A .csv file with a line of column names, a .parquet file, a .npy file, or a .npz file with
        one array or one called X. Arrays are (n, d); nothing in a file is ever unpickled.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If the file is missing, damaged, empty or of another format.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"unknown format of {path}; the known ones are {', '.join(FORMATS)}.")
    if suffix in (".csv", ".parquet"):
        frame = _read_csv(path) if suffix == ".csv" else _read_parquet(path)
        return Table(path, [str(name) for name in frame.columns], frame)
    array = _read_array(path)
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got {array.ndim}D array instead in {path}.")
    return Table(path, [str(i) for i in range(array.shape[1])], array)


def load_numpy(path: Path) -> np.ndarray | np.lib.npyio.NpzFile:
    """Load a .npy or .npz file, and nothing else: numpy would advise to unpickle the rest."""
    with open(path, "rb") as file:
        if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
            raise ValueError("it is neither a .npy nor a .npz file")
    return np.load(path, allow_pickle=False)


def _read_csv(path: Path):
    import pandas as pd

    with reading(path):
        names = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0].fillna("").tolist()
        with warnings.catch_warnings():
            # pandas only warns where rows have more fields than the first line, and drops them
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, index_col=False, low_memory=False)
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"two columns of {path} are called {twice!r}.")
    if all(map(_is_number, names)) and names != [str(i) for i in range(len(names))]:
        raise ValueError(f"the first line of {path} holds numbers; it must name the columns.")
    return frame.set_axis(names, axis=1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path):
    import pandas as pd

    with reading(path):
        return pd.read_parquet(path)


def _read_array(path: Path) -> np.ndarray:
    with reading(path):
        content = load_numpy(path)
        if isinstance(content, np.ndarray):
            return content
        with content:
            names = content.files
            if len(names) != 1 and "X" not in names:
                raise ValueError(f"it holds {names or 'no arrays'}; none is called X")
            return content["X" if "X" in names else names[0]]
