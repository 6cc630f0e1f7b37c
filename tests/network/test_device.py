"""Names of devices."""

import pytest
import torch

from sklearn_leanclust.network.device import resolve_device


@pytest.mark.parametrize("there, expected", [(True, "cuda"), (False, "cpu")])
def test_auto_takes_a_gpu_where_there_is_one(monkeypatch, there, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert resolve_device("auto") == resolve_device() == torch.device(expected)


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_the_cpu_is_always_there(device):
    assert resolve_device(device) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "meta", "", 3.5, None])
def test_a_device_that_is_not_there_is_named_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"device=.* is not available here; use one of auto, cpu"):
        resolve_device(name)
