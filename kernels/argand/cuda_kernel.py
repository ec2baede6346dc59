"""A kernel with its grid and its arguments at hand, launched by the driver itself.

CuPy's launch looks at every argument anew, which takes longer than a small product on the card.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
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
        pointers: the first of neighbouring 64-bit members and how many there are, for each group of
            them that `launch` fills in.
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
        pointers: Sequence[tuple[str, int]] = (),
    ) -> None:
        self._kernel = kernel  # whose module must stay loaded
        self._form = (kernel.kernel.ptr, blocks, 1, 1, threads, 1, 1, shared_bytes)
        self._arguments = arguments
        self._pointers = np.zeros(maps + 1, np.uint64)
        self._pointers[maps] = arguments.bytes.ctypes.data
        self._at = int(self._pointers.ctypes.data)
        self._write_maps = partial(struct.Struct(f"={maps}Q").pack_into, self._pointers.data, 0)
        self._writers = [arguments.writer(*group) for group in pointers]
        self._together = together
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, members: Mapping[str, int], maps: Sequence[int] = ()) -> None:
        """Launch on the current stream with these members and addresses of tensor maps.

        Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
        """
        with self._lock:
            self._arguments.set(members)
            if maps:
                self._write_maps(*maps)
            self._start(cupy.cuda.get_current_stream().ptr)

    def launch(self, stream: int, *groups: Sequence[int], maps: Sequence[int] = ()) -> None:
        """The same on a stream, with values for each group of ``pointers``; in less time."""
        with self._lock:
            for write, values in zip(self._writers, groups, strict=False):
                write(*values)
            if maps:
                self._write_maps(*maps)
            self._start(stream)

    def _start(self, stream: int) -> None:
        if self._together:
            error = driver.cuLaunchCooperativeKernel(*self._form, stream, self._at)[0]
        else:
            error = driver.cuLaunchKernel(*self._form, stream, self._at, 0)[0]
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
