"""Checkpoints: tensors and how they came about, in one safetensors file.

The header of the file holds, under one key, a JSON object: the caller's metadata, the number of the
format, the version of the package and a hash of all of it and of the tensors. Nothing is a pickle,
and nothing larger than the file itself is ever allocated to read it.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from sklearn_leanclust._files import write_atomically
from sklearn_leanclust.network import EMBEDDINGS
from sklearn_leanclust.network.tied import TiedWeights
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import DenseWeights

KEY = "sklearn_leanclust"
FORMAT_VERSION = 1  # raise it when a file changes its meaning, and keep the old reader
MAX_HEADER = 2**20  # bytes
MAX_FILE = 2**30


class CheckpointError(ValueError):
    """A file that is not a sound checkpoint; the message is one sentence that names it."""


class Checkpoint(NamedTuple):
    """What a file holds."""

    tensors: dict[str, Tensor]  # on the CPU
    metadata: dict[str, Any]  # the caller's, format_version, package_version, sha256


def save_checkpoint(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write tensors and metadata, whole or not at all.

    The same content gives the same bytes.

    Parameters
    ----------
    path : str or Path
    tensors : mapping of str to Tensor
        Of any shape and device, and any dtype that safetensors has.
    metadata : mapping of str to what JSON can hold
        Tuples come back as lists. `format_version`, `package_version` and `sha256` are set here.

    Raises
    ------
    ValueError
        If the metadata are not what JSON can hold, or the file would be larger than can be read
        again.
    OSError
        If the file cannot be written; what stood there before still stands.
    """
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    try:
        record = json.loads(json.dumps(dict(metadata)))  # as it will be read: lists, string keys
    except TypeError as error:
        raise ValueError(f"metadata cannot be written as JSON: {error}.") from error
    record.pop("sha256", None)  # of the file that the metadata were read from
    record |= {"format_version": FORMAT_VERSION, "package_version": version("sklearn_leanclust")}
    record["sha256"] = content_hash(copies, record)
    data = save(copies, metadata={KEY: canonical(record)})
    if len(data) > MAX_FILE or int.from_bytes(data[:8], "little") > MAX_HEADER:
        raise ValueError(
            f"the checkpoint {path} would take {len(data)} bytes; at most {MAX_FILE} can be read "
            f"again, {MAX_HEADER} of them for the metadata."
        )
    with write_atomically(path) as file:
        file.write(data)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint and check its hash.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Checkpoint

    Raises
    ------
    CheckpointError
        If the file is cut short, altered, not a checkpoint of this package, or of a newer format.
    OSError
        If the file is missing or cannot be read.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} is not a file.")
    try:
        record, data = _read(path)
        tensors = load(data)
        if record.pop("sha256") != (sha256 := content_hash(tensors, record)):
            raise CheckpointError(f"{path} was altered: its content does not match its hash.")
    except (CheckpointError, OSError):
        raise
    # what the parsers raise for bytes that were made to be read wrongly
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
            RuntimeError) as error:  # fmt: skip
        raise CheckpointError(f"{path} is damaged, or not a checkpoint of {KEY}.") from error
    return Checkpoint(tensors, record | {"sha256": sha256})


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Metadata, and the bytes of the file once its sizes agree with each other."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE:
            raise CheckpointError(f"{path} has {size} bytes, more than any checkpoint of {KEY}.")
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(MAX_HEADER, size - 8):
            raise CheckpointError(f"{path} is cut short, or not a safetensors file.")
        header = json.loads(file.read(length))
        record = json.loads(header.pop("__metadata__", {}).get(KEY, "null"))
        if record is None:
            raise CheckpointError(f"{path} is not a checkpoint of {KEY}.")
        if record["format_version"] > FORMAT_VERSION:
            raise CheckpointError(
                f"{path} has format {record['format_version']!r:.20} of {KEY} "
                f"{record['package_version']!r:.20}, newer than format {FORMAT_VERSION} that this "
                "version reads."
            )
        end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
        if 8 + length + end != size:
            raise CheckpointError(f"{path} is cut short, or was altered.")
        file.seek(0)
        return record, file.read(size)


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def content_hash(tensors: Mapping[str, Tensor], record: Mapping[str, Any]) -> str:
    """SHA-256 of metadata and tensors, whatever the layout of the file, as hexadecimal digits."""
    ordered = sorted(tensors.items())
    shapes = [[name, str(tensor.dtype), list(tensor.shape)] for name, tensor in ordered]
    digest = hashlib.sha256(canonical([record, shapes]).encode())
    for _, tensor in ordered:
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def save_network(
    path: str | Path,
    network: ClusteringTransformer,
    *,
    settings: Mapping[str, Any],
    score: Mapping[str, Any],
    recipe: str | None = None,
) -> None:
    """Write a network with learned weights, as float32.

    Parameters
    ----------
    path : str or Path
    network : ClusteringTransformer
        With tied or dense weights.
    settings : mapping
        All settings of the training.
    score : mapping
        Validation score.
    recipe : str, optional
        Command that trains these weights again.

    Raises
    ------
    ValueError
        If the weights are of another kind, or not finite.
    """
    about = _describe(network)
    tensors = {name: tensor.float() for name, tensor in network.state_dict().items()}
    if not _finite(tensors):
        raise ValueError(f"the weights for {path} are not finite.")
    metadata = {"network": about, "settings": settings, "score": score, "recipe": recipe}
    save_checkpoint(path, tensors, metadata)


def load_network(path: str | Path) -> tuple[ClusteringTransformer, dict[str, Any]]:
    """Read a network that :func:`save_network` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    network : ClusteringTransformer
        On the CPU, float32.
    metadata : dict
        ``network``, ``settings``, ``score``, ``recipe`` and what :func:`load_checkpoint` adds.

    Raises
    ------
    CheckpointError
        If the file is no sound checkpoint, or its tensors are not those of the network.
    """
    tensors, metadata = load_checkpoint(path)
    if not all(isinstance(metadata.get(name), dict) for name in ("network", "settings", "score")):
        raise CheckpointError(f"{path} is a checkpoint, but not one of a network.")
    try:
        # no memory is taken for what the file only says it holds
        with torch.device("meta"):
            network = _build(metadata["network"])
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"{path} describes a network that this version of {KEY} does not know."
        ) from error
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    if expected != {name: tensor.shape for name, tensor in tensors.items()}:
        raise CheckpointError(f"{path} holds tensors that do not fit the network it describes.")
    if {tensor.dtype for tensor in tensors.values()} != {torch.float32} or not _finite(tensors):
        raise CheckpointError(f"{path} holds weights that are not finite float32.")
    network.load_state_dict(tensors, assign=True)
    return network, metadata


def _finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors.values())


def _describe(network: ClusteringTransformer) -> dict[str, Any]:
    """What :func:`_build` needs to make the network again."""
    weights, about = network.weights, {"embedding": network.embedding, "dtype": "float32"}
    if isinstance(weights, TiedWeights):
        return about | {"kind": "tied", "n_knots": len(next(iter(weights.knots.values())))}
    if isinstance(weights, DenseWeights):
        sizes = {"n_features": weights.n_features, "n_clusters": weights.n_clusters}
        return about | {"kind": "dense", "hard": weights.hard} | sizes
    raise ValueError(f"{type(weights).__name__} holds nothing that was learned; nothing to save.")


def _build(about: Mapping[str, Any]) -> ClusteringTransformer:
    """Network of a description; what is unknown raises ValueError, KeyError or TypeError."""
    kind, embedding = about["kind"], about["embedding"]
    if embedding not in EMBEDDINGS or about["dtype"] != "float32":
        raise ValueError("unknown embedding or dtype")
    if kind == "tied":
        weights = TiedWeights(_count(about["n_knots"]))
    elif kind == "dense":
        sizes = _count(about["n_features"]), _count(about["n_clusters"])
        weights = DenseWeights(*sizes, embedding, hard=bool(about["hard"]))
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return ClusteringTransformer(weights, embedding)


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r} is not a positive whole number")
    return value
