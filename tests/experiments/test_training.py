"""What the table of meta-training measures."""

import pandas as pd
import pytest

from sklearn_leanclust.experiments.training import draw_trial, markdown, report
from sklearn_leanclust.meta.tasks import TaskFamily
from sklearn_leanclust.network.shipped import find_shipped, load_shipped, shipped_files
from sklearn_leanclust.network.transformer import ClusteringTransformer
from sklearn_leanclust.network.weights import ExactWeights


def test_exact_weights_are_as_good_as_lloyd():
    family = TaskFamily("normal", 0.3, 3, 5, 100)
    trial = draw_trial(family, "random", 50, 3)
    median, share, ratio = trial.against(ClusteringTransformer(ExactWeights()), 3)
    assert median == pytest.approx(1)
    assert share < 0.5
    assert ratio == pytest.approx(1)


@pytest.mark.parametrize("tau", [0.1, 1.0])
@pytest.mark.parametrize("regularizer", ["entropy", "l2"])
@pytest.mark.parametrize("embedding", ["binary", "onehot"])
def test_shipped_tied_weights_beat_lloyd_run_to_its_end(embedding, regularizer, tau):
    """On sizes from the middle and from outside of those trained on; tasks are unseen."""
    network = load_shipped(find_shipped("tied", embedding, regularizer, tau))
    for family in (TaskFamily("laplace", 0.5, 8, 16, 400), TaskFamily("normal", 0.5, 48, 5, 200)):
        assert draw_trial(family, "k-means++", 40, 80).against(network, 20)[2] < 1


def test_all_shipped_weights_take_less_than_two_megabytes():
    assert sum(path.stat().st_size for path in shipped_files()) < 2e6


def test_the_report_shows_every_table():
    tied = pd.DataFrame(
        [{"embedding": "binary", "regularizer": "l2", "tau": 0.1, "d": 2, "k": 3,
          "noise": "normal", "ratio of means": 0.98765, "tasks under Lloyd": 0.6}]
    )  # fmt: skip
    other = pd.DataFrame([{"noise": "gumbel", "median ratio": 0.91}])
    kills = pd.DataFrame([{"kill": 0, "checkpoint": True}, {"kill": "end", "same weights": True}])
    text = report({"tied": tied, "dense": other, "cauchy": other, "kills": kills}, quick=False)
    assert "| d | k | noise | binary l2 0.1 |" in text
    assert "| 2 | 3 | normal | 0.9877 |" in text
    assert markdown(other) in text
