"""The program as a whole: dispatch, messages, behaviour as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from sklearn_leanclust import TransformerKMeans


def test_a_missing_extra_is_named(refusal, wine, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'sklearn_leanclust[cli]'" in refusal("fit", wine, "-k", 3)


def test_warnings_are_one_line_each(run, tmp_path, capsys):
    np.save(tmp_path / "same.npy", np.ones((6, 2)))
    assert run("fit", tmp_path / "same.npy", "-k", 2) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("sklearn_leanclust: warning: Number of distinct") for line in lines)


def test_an_interrupt_is_quiet(run, wine, monkeypatch, capsys):
    def interrupted(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(TransformerKMeans, "fit", interrupted)
    assert run("fit", wine, "-k", 3) == 130
    assert capsys.readouterr() == ("", "")


def process(*args: object, **kwargs) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sklearn_leanclust", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def test_process_exits_2_without_traceback(tmp_path):
    done = process("fit", tmp_path / "nowhere.csv", "-k", 3)
    assert done.returncode == 2
    assert done.stderr == f"sklearn_leanclust: error: no such file: {tmp_path}/nowhere.csv\n"


def test_process_whose_reader_leaves_stays_quiet(tmp_path):
    np.save(tmp_path / "long.npy", np.arange(200_000.0)[:, None])
    fitted = process("fit", tmp_path / "long.npy", "-k", 2, "--model", tmp_path / "m.npz")
    assert fitted.returncode == 0
    command = f"'{sys.executable}' -m sklearn_leanclust predict long.npy --model m.npz | head -n 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("label\n", "")


def test_process_prints_names_that_its_terminal_lacks(tmp_path, frame, save):
    data = save(frame, tmp_path / "é.npy")
    done = process("fit", data, "-k", 2, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\xe9.npy: 60 rows x 3 columns" in done.stdout


def test_console_script():
    script = Path(sys.executable).with_name("sklearn-leanclust")
    done = subprocess.run([script, "fit", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "-k K" in done.stdout


def test_help_is_fast_to_answer():
    script = """
import sys
from sklearn_leanclust.__main__ import build_parser
build_parser()
print(*{"torch", "pandas", "sklearn", "matplotlib"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
