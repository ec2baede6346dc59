"""The kernels of a workload are compiled together, and the log says so."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, DeviceError
from argand.device import arch_for, cpu
from argand.gemm.absmax_source import ABSMAX_KERNEL, absmax_source
from argand.runtime.compile import loading
from argand.runtime.compile.loading import PendingKernel

from workflow.data import Staged
from workflow.implementation import Implementation
from workflow.steps.compiling import compile_kernels

LOG = logging.getLogger("test")
HOPPER = replace(cpu(), arch=arch_for(90))
"""A GPU's architecture on the host, to which nothing has to be moved."""


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_begun", {})


def staged() -> Staged:
    found: Any = type("Operands", (), {"operands": {"x": np.ones(3)}})()
    return found


def calling(precision: str, *kernels: tuple[str, str], name: str = "argand") -> Implementation:
    """An implementation that prepares launches of kernels, and then starts the first."""

    def compute(operands: Mapping[str, Any]) -> Any:
        launches = [PendingKernel(source, "sm_90a", kernel) for source, kernel in kernels]
        return [launch.ptr for launch in launches]

    return Implementation(name, PRECISIONS[precision], "", compute, dict)


ONE, OTHER = ((absmax_source(k_major, False), ABSMAX_KERNEL) for k_major in (False, True))


def test_kernels_of_all_precisions_are_compiled(caplog: pytest.LogCaptureFixture) -> None:
    every = [calling("3xfp16", ONE, OTHER), calling("tf32", OTHER)]
    with caplog.at_level(logging.INFO):
        compile_kernels(every, staged, HOPPER, LOG)
        loading._begun.clear()  # as in the next process
        compile_kernels(every, staged, HOPPER, LOG)
    cold, warm = (record.getMessage() for record in caplog.records)
    assert cold.startswith("2 kernels compiled in ")
    assert cold.endswith(" s, 0 from the cache")
    assert warm.startswith("0 kernels compiled in ")
    assert warm.endswith(" s, 2 from the cache")


def refused(operands: Any) -> Any:
    raise DeviceError("it says why in its turn")


@pytest.mark.parametrize(("device", "first"), [
    (cpu(), calling("tf32", ONE)),
    (HOPPER, calling("tf32", ONE, name="a library")),
    (HOPPER, replace(calling("tf32"), compute=refused)),
])  # fmt: skip
def test_what_has_no_kernels_says_nothing(
    device: Device, first: Implementation, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        compile_kernels([first], staged, device, LOG)
    assert caplog.records == []
    assert loading._begun == {}
