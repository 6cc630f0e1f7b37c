"""Bad data, arguments and outputs are refused in one line, before anything is written."""

from __future__ import annotations

import io
import os
import pickle
import re
import stat

import numpy as np
import pandas as pd
import pytest

from sklearn_leanclust.commands import _outputs


def npy(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def parquet(frame: pd.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


NUMBERS = np.arange(900.0).reshape(300, 3)
BAD_DATA = {  # what is wrong: (end of the file's name, content, what the message must match)
    "empty": (".csv", b"", "cannot read .*No columns to parse"),
    "header only": (".csv", b"a,b\n", "holds no rows"),
    "text": (".csv", b"a,b\n1,x\n2,y\n", "column 'b' of .* is not numeric; .*--columns a$"),
    "only text": (".csv", b"a\nx\ny\n", "column 'a' of .* is not numeric; no column is"),
    "missing": (".csv", b"a,b\n1,2\n3,\n", "Input X contains NaN: column 'b' of .*, row 1 "),
    "infinite": (".csv", b"a,b\n1,2\n-inf,3\n", "contains infinity: column 'a' of .*, row 1 "),
    "no header": (".csv", b"1.5,2\n3,4\n5,6\n", "first line of .* holds numbers"),
    "same name": (".csv", b"a,a\n1,2\n3,4\n", "two columns of .* are called 'a'"),
    "surplus": (".csv", b"a,b\n1,2,3\n4,5,6\n", "cannot read .*Length of header or names"),
    "ragged": (".csv", b"a,b\n1,2\n3,4,5\n", "cannot read .*Expected 2 fields in line 3, saw 3"),
    "few rows": (".csv", b"a,b\n1,2\n", r"n_samples=1 should be >= n_clusters=2\."),
    "latin-1": (".csv", "a,b\n1,é\n".encode("latin-1"), "cannot read .*'utf-8' codec"),
    "binary": (".csv", bytes(range(256)) * 4, "cannot read|not numeric"),
    "other format": (".xlsx", b"PK", r"unknown format of .*\.csv, \.parquet, \.npy, \.npz"),
    "no format": ("", b"1,2", "unknown format"),
    "no parquet": (".parquet", b"PAR1 is not all it takes", "cannot read .*[Pp]arquet"),
    "empty npy": (".npy", b"", "neither a .npy nor a .npz file"),
    "pickle": (".npy", pickle.dumps([[1, 2]]), "neither a .npy nor a .npz file"),
    "objects": (".npy", npy(np.array([[None, 1]])), "cannot read .*Object arrays"),
    "text array": (".npy", npy([["a"], ["b"]]), "values of type <U1, not numbers"),
    "complex": (".npy", npy(NUMBERS + 1j), "values of type complex128, not numbers"),
    "one axis": (".npy", npy(NUMBERS[0]), "Expected 2D array, got 1D array instead"),
    "three axes": (".npy", npy(NUMBERS[None]), "Expected 2D array, got 3D array instead"),
    "no columns": (".npy", npy(NUMBERS[:, :0]), "no columns were chosen"),
    "no rows": (".npy", npy(NUMBERS[:0]), "holds no rows"),
    "nan": (".npy", npy([[1, np.nan], [2, 3]]), "contains NaN: column '1' of .*, row 0 "),
    "two arrays": (".npz", npz(a=NUMBERS, b=NUMBERS), r"\['a', 'b'\]; none is called X"),
    "no arrays": (".npz", npz(), "cannot read .*no arrays"),
    "objects in npz": (".npz", npz(X=[[None]]), "cannot read .*Object arrays"),
    "half npy": (".npy", half(npy(NUMBERS)), "cannot read"),
    "half npz": (".npz", half(npz(X=NUMBERS)), "cannot read"),
    "half parquet": (".parquet", half(parquet(pd.DataFrame(NUMBERS))), "cannot read"),
    "altered npz": (".npz", flipped(npz(X=NUMBERS)), "cannot read .*CRC"),
}


@pytest.mark.parametrize(("suffix", "content", "pattern"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_bad_data_are_refused_in_one_line(suffix, content, pattern, refusal, tmp_path):
    data = tmp_path / f"data{suffix}"
    data.write_bytes(content)
    outputs = ["--labels", tmp_path / "l.csv", "--model", tmp_path / "m.npz"]
    message = refusal("fit", data, "-k", 2, *outputs)
    assert re.search(pattern, message), message
    assert list(tmp_path.iterdir()) == [data]


def test_missing_data_are_refused(refusal, tmp_path):
    missing = tmp_path / "nowhere.parquet"
    assert refusal("fit", missing, "-k", 2) == f"no such file: {missing}"
    (tmp_path / "folder.csv").mkdir()
    assert "Is a directory" in refusal("fit", tmp_path / "folder.csv", "-k", 2)


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ([], "-k/--n-clusters"),
        (["-k", "two"], "invalid int value: 'two'"),
        (["-k", 0], "'n_clusters' parameter of TransformerKMeans must be an int in the range"),
        (["-k", 179], "n_samples=178 should be >= n_clusters=179"),
        (["-k", 3, "--columns", "hue,alcohl"], "no column 'alcohl'; its columns are alcohol,malic"),
        (["-k", 3, "--columns", "hue,hue"], "column 'hue' is chosen twice"),
        (["-k", 3, "--columns", ""], "no columns were chosen; those of .* are alcohol"),
        (["-k", 3, "--embedding", "x"], "'embedding' parameter .* among {.*'binary'.*Got 'x'"),
        (["-k", 3, "--regularizer", "l1"], "'regularizer' parameter .*'entropy'"),
        (["-k", 3, "--tau", "-1"], "'tau' parameter"),
        (["-k", 3, "--tau", "nan"], "'tau' parameter"),
        (["-k", 3, "--max-iter", "0"], "'max_iter' parameter"),
        (["-k", 3, "--weights", "x"], "weights"),
        (["-k", 3, "--device", "abacus"], "device='abacus' is not available here; use one of auto"),
        (["-k", 3, "--seed", "-1"], "'random_state' parameter|Seed must be between"),
        (["-k", 3, "--labels", "labels.txt"], r"--labels .* must end in \.csv or \.npy"),
        (["-k", 3, "--model", "model.pkl"], r"--model .* must end in \.npz or \.safetensors"),
        (["-k", 3, "--plot", "plot.gif"], r"--plot .* must end in \.png"),
        (["-k", 3, "--labels", "/no/where/labels.csv"], "there is no folder /no/where"),
        (["-k", 3, "--colour", "red"], "unrecognized arguments: --colour red"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_in_one_line(arguments, pattern, wine, refusal):
    before = wine.read_bytes()
    message = refusal("fit", wine, *arguments)
    assert re.search(pattern, message), message
    assert wine.read_bytes() == before


def test_the_input_is_not_overwritten(tmp_path, save, frame, refusal):
    data = save(frame, tmp_path / "data.csv")
    before = data.read_bytes()
    (tmp_path / "link.csv").symlink_to(data)
    for name in (data, tmp_path / "link.csv"):
        message = refusal("fit", data, "-k", 3, "--columns", "a", "--labels", name)
        assert message == f"--labels {name} would overwrite the input."
    assert data.read_bytes() == before


def test_unwritable_outputs_are_refused(tmp_path, monkeypatch, wine, refusal):
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in refusal("fit", wine, "-k", 3, "--labels", tmp_path / "folder.csv")
    same = tmp_path / "same.csv"
    message = refusal("fit", wine, "-k", 3, "--labels", same, "--centers", same)
    assert "--centers" in message and "would overwrite the output of --labels" in message
    monkeypatch.setattr(_outputs.os, "access", lambda path, mode: False)  # root may write anywhere
    assert "is not writable" in refusal("fit", wine, "-k", 3, "--labels", same)


def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch, wine, refusal):
    labels = tmp_path / "labels.csv"
    labels.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_outputs.os, "fsync", full)
    assert "No space left" in refusal("fit", wine, "-k", 3, "--labels", labels)
    assert labels.read_text() == "old"
    assert list(tmp_path.iterdir()) == [labels]


def test_outputs_follow_links_and_the_umask(tmp_path, wine, run):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    before = os.umask(0o027)
    try:
        assert run("fit", wine, "-k", 3, "--labels", link) == 0
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert target.read_text().startswith("label\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
