"""Fixtures of the workflow's tests."""

from __future__ import annotations

import pytest
from argand import Device, devices


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Device:
    """The CPU, and a GPU where one answers: what streams through it is the same."""
    return next(device for device in devices() if device.backend == request.param)
