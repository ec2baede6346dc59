"""A kernel with its grid and its arguments at hand, launched by the driver itself.

CuPy's launch looks at every argument anew, which takes longer than a small product on the card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from argand.kernel_arguments import Arguments


class BoundKernel:
    """One launch of a kernel from `nvrtc.load`, for any addresses.

    Args:
        kernel: of the device that is current when it is called.
        blocks, threads: the grid and the block, along x.
        arguments: the structure that is the kernel's last argument.
        maps: how many tensor maps stand before it.
        shared_bytes: dynamic shared memory of a block.
        together: blocks wait for each other, so that all have to run at a time. The driver starts
            none before there is room for all, and refuses more than the device ever has room for.
    """

    def __init__(
        self,
        kernel: Any,
        blocks: int,
        threads: int,
        arguments: Arguments,
        *,
        maps: int = 0,
        shared_bytes: int = 0,
        together: bool = False,
    ) -> None:
        self._kernel = kernel  # whose module must stay loaded
        self._handle = kernel.kernel.ptr
        self._blocks, self._threads, self._shared_bytes = blocks, threads, shared_bytes
        self._arguments = arguments
        self._pointers = np.zeros(maps + 1, np.uint64)
        self._pointers[maps] = arguments.bytes.ctypes.data
        self._at = int(self._pointers.ctypes.data)
        self._together = together
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, members: Mapping[str, int], maps: Sequence[int] = ()) -> None:
        """Launch on the current stream with these members and addresses of tensor maps.

        Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
        """
        with self._lock:
            self._arguments.set(members)
            for i, address in enumerate(maps):
                self._pointers[i] = address
            launch = (
                self._handle, self._blocks, 1, 1, self._threads, 1, 1, self._shared_bytes,
                cupy.cuda.get_current_stream().ptr, self._at,
            )  # fmt: skip
            if self._together:
                error = driver.cuLaunchCooperativeKernel(*launch)[0]
            else:
                error = driver.cuLaunchKernel(*launch, 0)[0]
        if error:
            raise cupy.cuda.driver.CUDADriverError(int(error))


def clusters_at_once(function: int, cluster: int, threads: int, shared_bytes: int) -> int:
    """How many clusters of blocks run at a time on the current device.

    Fewer than multiprocessors have room for: those of a cluster are neighbours.
    """
    size = driver.CUlaunchAttribute()
    size.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size.value.clusterDim.x, size.value.clusterDim.y, size.value.clusterDim.z = cluster, 1, 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = cluster, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared_bytes
    config.attrs, config.numAttrs = [size], 1
    error, found = driver.cuOccupancyMaxActiveClusters(driver.CUfunction(function), config)
    return int(found) if error == driver.CUresult.CUDA_SUCCESS else 0
