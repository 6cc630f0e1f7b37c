"""The device that the network runs on."""

from __future__ import annotations

import torch


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn the name of a device into one that is there.

    Parameters
    ----------
    device : str or torch.device, default="auto"
        ``"auto"`` takes CUDA where there is a usable GPU and the CPU elsewhere.

    Returns
    -------
    torch.device

    Raises
    ------
    ValueError
        If PyTorch does not know the name or the machine lacks the device.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
        if found.type == "meta":
            raise RuntimeError("holds no numbers")
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        known = ["auto", "cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        raise ValueError(
            f"device={device!r} is not available here; use one of {', '.join(known)}."
        ) from error
    return found
