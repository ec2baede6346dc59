"""The compilation of a workload's kernels, of all its precisions, before any is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from logging import Logger

from argand import Device, DeviceError
from argand.runtime.compile.loading import NotLaunchedError, compiling_only

from workflow.data import Staged
from workflow.implementation import Implementation, NoResultError
from workflow.steps.resident import free, upload


def compile_kernels(
    implementations: Iterable[Implementation],
    staged: Callable[[], Staged],
    device: Device,
    log: Logger,
) -> None:
    """Call each of ours until it would launch a kernel, and wait for the compiler; log how much.

    The CPU has no kernels, and nothing is logged where there are none. An implementation that
    cannot be computed is left to its own turn, which says why. One of a library is computed once
    more, and one of several steps is followed to the first kernel that is not loaded.
    """
    arch = device.arch
    if arch is None:
        return
    ours = [x for x in implementations if x.is_ours and x.precision.min_sm <= arch.sm]
    with compiling_only() as found:
        for one in ours:
            with suppress(NotLaunchedError, NoResultError, DeviceError, MemoryError):
                one.compute(upload(one.prepare(staged().operands), device))
            free(device)
    if found.compiled or found.cached:
        log.info("%s", found)
