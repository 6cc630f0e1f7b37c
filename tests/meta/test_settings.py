"""The settings of a training run: what they accept, refuse and write."""

from __future__ import annotations

import math
import re
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from sklearn_leanclust.meta.settings import TrainingSettings

EXAMPLES = {
    "tied": TrainingSettings(),
    "dense": TrainingSettings.dense(4, 8),
    "all changed": TrainingSettings(
        kind="dense", embedding="none", regularizer="l2", tau=3.5, noises=("cauchy",),
        scale=(0.1, 0.7), n_features=(3, 3), n_clusters=(5, 5), points_per_cluster=(2, 9),
        n_tasks=7, n_steps=(2, 8), init="random", start="random", sharpness=2.5, n_knots=6,
        n_updates=11, learning_rate=0.5, clip_norm=2.0, skip_limit=0, checkpoint_every=3, seed=9,
    ),
}  # fmt: skip


@pytest.mark.parametrize("settings", EXAMPLES.values(), ids=EXAMPLES)
def test_json_round_trip(settings):
    back = TrainingSettings.from_json(settings.to_json())
    assert back == settings
    assert hash(back) == hash(settings)
    assert back.to_json() == settings.to_json()


def test_the_example_that_changes_all_changes_all():
    default, example = EXAMPLES["tied"], EXAMPLES["all changed"]
    for field in fields(TrainingSettings):
        assert getattr(default, field.name) != getattr(example, field.name)


def test_equal_settings_have_the_same_json():
    odd = TrainingSettings(
        tau=np.float32(0.5), n_features=[np.int64(2), 32], scale=(1, 2), noises=["gumbel"],
        n_tasks=np.int16(24), clip_norm=1,
    )  # fmt: skip
    plain = TrainingSettings(tau=0.5, scale=(1.0, 2.0), noises=("gumbel",), clip_norm=1.0)
    assert odd.to_json() == plain.to_json()
    assert TrainingSettings.dense(np.int64(4), np.int32(8)) == EXAMPLES["dense"]


def test_they_are_frozen():
    with pytest.raises(FrozenInstanceError):
        EXAMPLES["tied"].tau = 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "free"}, "kind='free' is unknown; use one of tied, dense"),
        ({"embedding": "hex"}, "embedding='hex' is unknown; use one of binary, onehot, none"),
        ({"regularizer": "l1"}, "regularizer='l1' is unknown"),
        ({"init": "forgy"}, "init='forgy' is unknown"),
        ({"start": "zero"}, "start='zero' is unknown"),
        ({"noises": ("normal", "uniform")}, "noises='uniform' is unknown; use some of normal"),
        ({"noises": ()}, "noises is empty"),
        ({"noises": "normal"}, "noises='normal' must be of the kind of"),
        ({"noises": (1,)}, "noises=(1,) must be of the kind of ('normal',"),
        ({"tau": 0}, "tau=0.0 must be positive and finite"),
        ({"tau": math.nan}, "tau=nan must be positive and finite"),
        ({"tau": math.inf}, "tau=inf must be positive and finite"),
        ({"tau": "0.1"}, "tau='0.1' must be of the kind of 0.1"),
        ({"tau": None}, "tau=None must be of the kind of 0.1"),
        ({"n_tasks": 2.0}, "n_tasks=2.0 must be of the kind of 24"),
        ({"n_updates": 0}, "n_updates=0 must be positive"),
        ({"n_knots": 0}, "n_knots=0 must be positive"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0 must be positive"),
        ({"clip_norm": 0.0}, "clip_norm=0.0 must be positive"),
        ({"checkpoint_every": 0}, "checkpoint_every=0 must be positive"),
        ({"sharpness": 0.0}, "sharpness=0.0 must be positive"),
        ({"skip_limit": -1}, "skip_limit=-1 must be from 0"),
        ({"seed": 2**63}, "seed=9223372036854775808 must be from 0"),
        ({"scale": 0.5}, "scale=0.5 must be of the kind of"),
        ({"scale": (0.5,)}, "must be of the kind of"),
        ({"scale": (0.5, 0.4)}, "scale=0.5,0.4 must be a range of positive numbers"),
        ({"scale": (0.0, 0.4)}, "scale=0.0,0.4 must be a range of positive numbers"),
        ({"scale": (0.1, math.inf)}, "scale=0.1,inf must be a range of positive numbers"),
        ({"n_steps": (0, 3)}, "n_steps=0,3 must be a range of positive numbers"),
        ({"points_per_cluster": (1, 3)}, "points_per_cluster must be at least 2"),
        ({"embedding": "none"}, "embedding='none' needs kind='dense'"),
        ({"kind": "dense"}, "n_features=2,32 must be one number"),
        ({"kind": "dense", "n_features": (4, 4)}, "n_clusters=3,48 must be one number"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainingSettings(**changes)


def test_settings_of_another_version_are_named():
    with pytest.raises(ValueError, match="unknown training settings: heat"):
        TrainingSettings.from_json('{"heat": 1, "tau": 0.2}')
