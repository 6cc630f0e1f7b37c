"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
