"""Saved clusterings: a .npz or .safetensors file, numbers and three strings, never a pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sklearn_leanclust import __version__
from sklearn_leanclust._distances import nearest_centers
from sklearn_leanclust.commands._outputs import write_atomically
from sklearn_leanclust.commands._tables import load_numpy, reading

FORMATS = (".npz", ".safetensors")
FORMAT_VERSION = 1  # raise it when a file changes its meaning, and keep the old reader
TENSORS = ("cluster_centers", "mean", "scale")
STRINGS = ("format_version", "package_version", "feature_names")


@dataclass(frozen=True)
class Scaling:
    """Standardised units ``(X - mean) / scale``.

    Attributes
    ----------
    mean, scale : ndarray of shape (d,), float64
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scaling:
        """Mean 0 and variance 1 for the columns of `X`, shape (n, d); constant ones are centred."""
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(X)
        return cls(scaler.mean_, scaler.scale_)

    @classmethod
    def none(cls, X: np.ndarray) -> Scaling:
        """Leave data like `X`, shape (n, d), as they are."""
        return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Bring data to standardised units; dtype kept."""
        return ((X - self.mean) / self.scale).astype(X.dtype, copy=False)

    def undo(self, X: np.ndarray) -> np.ndarray:
        """Bring standardised data back to their own units; dtype kept."""
        return (X * self.scale + self.mean).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class ClusterModel:
    """What ``predict`` needs.

    Attributes
    ----------
    cluster_centers : ndarray of shape (k, d)
        In standardised units, where distances are measured.
    scaling : Scaling
    feature_names : list of str, length d
        Names of the columns, positions for an array.
    """

    cluster_centers: np.ndarray
    scaling: Scaling
    feature_names: list[str]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Label data in their own units, shape (n, d), by the nearest centre; shape (n,), int32."""
        return nearest_centers(self.scaling.apply(X), self.cluster_centers)[0]


def save_model(path: str | Path, model: ClusterModel) -> None:
    """Write a model in the format that the end of the name tells."""
    tensors = {
        "cluster_centers": np.ascontiguousarray(model.cluster_centers),
        "mean": model.scaling.mean,
        "scale": model.scaling.scale,
    }
    strings = {
        "format_version": str(FORMAT_VERSION),
        "package_version": __version__,
        "feature_names": json.dumps(model.feature_names),
    }
    with write_atomically(path) as file:
        if Path(path).suffix.lower() == ".npz":
            np.savez(file, **tensors, **strings)
        else:
            from safetensors.numpy import save

            file.write(save(tensors, metadata=strings))


def load_model(path: str | Path) -> ClusterModel:
    """Read a saved model.

    Raises
    ------
    ValueError
        If the file is missing, damaged, not a model, or of a newer format.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"a saved model ends in {' or '.join(FORMATS)}; got {path}.")
    with reading(path):
        content = _read_npz(path) if path.suffix.lower() == ".npz" else _read_safetensors(path)
        missing = [name for name in TENSORS + STRINGS if name not in content]
        if missing:
            raise ValueError(f"not a saved model, it lacks {', '.join(missing)}")
        version = content["format_version"]
        if version != str(FORMAT_VERSION):
            raise ValueError(
                f"it has format {version}, this version reads {FORMAT_VERSION}; "
                f"sklearn_leanclust {content['package_version']} wrote it"
            )
        names = json.loads(content["feature_names"])
        centers, mean, scale = (content[name] for name in TENSORS)
        _check(centers, mean, scale, names)
    return ClusterModel(centers, Scaling(mean, scale), names)


def _read_npz(path: Path) -> dict[str, np.ndarray | str]:
    content = load_numpy(path)
    if isinstance(content, np.ndarray):
        raise ValueError("not a saved model but a single array")
    with content as file:
        arrays = {name: file[name] for name in TENSORS + STRINGS if name in file}
    return {name: str(array) if name in STRINGS else array for name, array in arrays.items()}


def _read_safetensors(path: Path) -> dict[str, np.ndarray | str]:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in TENSORS if name in file.keys()}  # noqa: SIM118
        return tensors | (file.metadata() or {})


def _check(centers: np.ndarray, mean: np.ndarray, scale: np.ndarray, names: object) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names are not a list of strings")
    for array in (centers, mean, scale):
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ValueError("its arrays are not finite float32 or float64")
    shapes = {centers.shape[1:], mean.shape, scale.shape}
    if centers.ndim != 2 or len(centers) == 0 or shapes != {(len(names),)}:
        raise ValueError(f"its arrays do not fit {len(names)} features")
    if not (scale > 0).all():
        raise ValueError("a scale in it is not positive")
