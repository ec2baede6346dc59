"""The kernels that cuFFT takes for rows of a length, read from a call that is captured, not run.

No rule of a length's factors says it: cuFFT has a table of its own. Its plan of one kernel takes up
to 0.6 s the first time in a process, which its first call takes otherwise, and 0.4 ms from then on.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import cupy
from cupy.cuda import cufft

from argand.dft.cufft_plans import CufftPlan, plan_of
from argand.dft.library_choice import LibraryKernels
from argand.runtime.driver.current_stream import OnStream
from argand.runtime.driver.driver_bindings import checked, driver_bindings
from argand.runtime.launch.captured_graph import ATTEMPTS, CAPTURING
from argand.runtime.memory.graph_memory import relaxed_capture

_runtime = cupy.cuda.runtime


@lru_cache(maxsize=1024)
def kernels_of(length: int, rows: int, device: int) -> LibraryKernels | None:
    """Return cuFFT's kernels of rows of complex64 on a device, given its index.

    Several of them need a workspace, for what is between. A single one is captured; None where some
    attempts are refused, or where no block of it fits. Raises RuntimeError as
    `dft.cufft_plans.plan_of`.
    """
    with cupy.cuda.Device(device):
        plan = plan_of(cufft.CUFFT_C2C, length, rows, device)
        if plan.workspace_bytes:
            return LibraryKernels(several=True)
        for _ in range(ATTEMPTS):
            with suppress(RuntimeError):  # cuFFT's or CUDA's, as in `runtime.launch.captured_graph`
                return _single(plan, length)
        return None


def _single(plan: CufftPlan, length: int) -> LibraryKernels | None:
    """Return a plan's only kernel, or None where CUDA says that no block of it fits.

    A block's threads along x transform one row. It is not launched, so any memory will do.
    """
    driver = driver_bindings()
    with relaxed_capture():
        memory = cupy.cuda.alloc(1)
        with CAPTURING, OnStream(cupy.cuda.Stream(non_blocking=True)) as stream:
            stream.begin_capture(_runtime.streamCaptureModeRelaxed)
            try:
                plan.queue_in_own_graph(memory.ptr, memory.ptr, cufft.CUFFT_FORWARD, stream.ptr, 0)
            finally:
                graph = stream.end_capture()
    (node,) = checked(driver.cuGraphGetNodes(driver.CUgraph(int(graph.graph)), 1))
    kernel = checked(driver.cuGraphKernelNodeGetParams(node))
    # A node has a function, or a kernel of a library that no context is bound to.
    function = kernel.func if int(kernel.func) else checked(driver.cuKernelGetFunction(kernel.kern))
    threads = kernel.blockDimX * kernel.blockDimY * kernel.blockDimZ
    blocks = int(checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        function, threads, kernel.sharedMemBytes
    )))  # fmt: skip
    if not blocks:
        return None
    return LibraryKernels(several=False, numbers=length / kernel.blockDimX, blocks=blocks)
