"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_leanclust.__main__ import main


@pytest.fixture(scope="session")
def wine() -> Path:
    """Path of a real table."""
    return Path(__file__).parents[2] / "examples" / "wine.csv"


@pytest.fixture(scope="session")
def run() -> Callable[..., int]:
    """Run the command line in this process; return its exit status."""
    return lambda *args: main([str(arg) for arg in args])


@pytest.fixture
def refusal(run, capsys) -> Callable[..., str]:
    """Run what must fail with one line and status 2; return the line without the program's name."""

    def refused(*args: object) -> str:
        capsys.readouterr()
        try:
            status = run(*args)
        except SystemExit as error:  # argparse
            status = error.code
        out, err = capsys.readouterr()
        assert status == 2
        assert err.startswith("sklearn_leanclust: error: ")
        assert err.count("\n") == 1 and err.endswith("\n")
        assert out == ""
        return err.removeprefix("sklearn_leanclust: error: ").rstrip()

    return refused


@pytest.fixture
def frame() -> pd.DataFrame:
    """Three groups of points, and a column of text."""
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0, 0.0, 5.0], [9.0, 0.0, 5.0], [0.0, 9.0, 5.0]], [10, 20, 30], axis=0)
    frame = pd.DataFrame(centers + rng.normal(size=centers.shape), columns=["a", "b", "c d"])
    return frame.assign(kind="x")


@pytest.fixture(scope="session")
def save() -> Callable[[pd.DataFrame, Path], Path]:
    """Write a frame in the format that the name tells; only its numbers to arrays."""

    def saved(frame: pd.DataFrame, path: Path) -> Path:
        numbers = frame.select_dtypes("number").to_numpy()
        match path.suffix:
            case ".csv":
                frame.to_csv(path, index=False)
            case ".parquet":
                frame.to_parquet(path)
            case ".npy":
                np.save(path, numbers)
            case ".npz":
                np.savez(path, X=numbers, y=np.arange(3))
        return path

    return saved
