"""Small training runs, and what the tests of training share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sklearn_leanclust.meta.settings import TrainingSettings
from sklearn_leanclust.meta.trainer import METRICS, TrainingRun, train

SMALL = {"n_tasks": 6, "n_updates": 24, "checkpoint_every": 5}
DENSE = TrainingSettings.dense(2, 3, noises=("normal", "laplace"), start="random", **SMALL)
TIED = TrainingSettings(
    n_features=(1, 4), n_clusters=(2, 5), points_per_cluster=(4, 8), n_steps=(1, 3), **SMALL
)


@pytest.fixture
def dense() -> TrainingSettings:
    """Settings of a small run from random dense weights."""
    return DENSE


@pytest.fixture
def tied() -> TrainingSettings:
    """Settings of a small run with tied weights and tasks of many sizes."""
    return TIED


@pytest.fixture(params=[DENSE, TIED], ids=lambda settings: settings.kind)
def settings(request) -> TrainingSettings:
    """Both, one after the other."""
    return request.param


@pytest.fixture(scope="session")
def metrics() -> Callable[[Path], list[dict]]:
    """Read the metrics of a run."""
    return lambda folder: [json.loads(line) for line in (folder / METRICS).open()]


@pytest.fixture(scope="session")
def train_until() -> Callable[..., None]:
    """Train until an interrupt in the middle of an update."""
    advance = TrainingRun.advance

    def train_broken(update: int, settings: TrainingSettings, out: Path, **options) -> None:
        def broken(run):
            if run.update == update:
                raise KeyboardInterrupt
            return advance(run)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TrainingRun, "advance", broken)
            with pytest.raises(KeyboardInterrupt):
                train(settings, out, progress=False, **options)

    return train_broken
