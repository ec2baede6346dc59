"""Programmatic dependent launch (sm_90): a kernel begins while the one before it ends.

Every kernel of ours begins with `WAIT_FIRST`. In a graph those of a `PendingKernel` take their
multiprocessors as soon as all blocks of the kernel before have ended or have said that they may,
and wait there until that one's writes are visible: 0.3 us less a kernel than by the driver's own
order (products on an H200). Functions that `load` returns keep that order: those of softmax,
transforms and gates were not measured otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from argand.runtime.driver_bindings import driver_bindings, made

WAIT_FIRST = "    wait_for_kernel_before();\n"
"""First statement of a kernel (`device/dependent_launch.cuh`), before any access to memory."""
_FIRST_ARCH = 90


def waits_first(source: str, target: str) -> bool:
    """Return whether a kernel of this source, compiled for ``sm_80`` or ``sm_90a``, waits first."""
    found = re.match(r"sm_(\d+)", target)
    return found is not None and int(found[1]) >= _FIRST_ARCH and WAIT_FIRST in source


def launch_dependent(form: Sequence[int], stream: int, parameters: int) -> None:
    """Launch a kernel that may begin while the one before it in the stream ends.

    ``form`` has the function's address, three sizes of the grid, three of a block, and the bytes of
    dynamic shared memory. Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
    """
    driver = driver_bindings()
    function, *sizes, shared_bytes = form
    overlap = driver.CUlaunchAttribute()
    overlap.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    overlap.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = sizes[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = sizes[3:]
    config.sharedMemBytes, config.hStream = shared_bytes, driver.CUstream(stream)
    config.attrs, config.numAttrs = [overlap], 1
    made(driver.cuLaunchKernelEx(config, driver.CUfunction(function), parameters, 0))
