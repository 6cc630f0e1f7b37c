"""Names of devices."""

import pytest
import torch

from sklearn_leanclust.network.device import resolve_device


def test_auto_takes_a_gpu_where_there_is_one():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert resolve_device("auto").type == expected
    assert resolve_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "", 3.5, None])
def test_a_device_that_is_not_there_is_named_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"device=.* is not available here; use one of auto, cpu"):
        resolve_device(name)
