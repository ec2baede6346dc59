"""A kernel with its grid and its arguments at hand, launched by the driver itself.

CuPy's launch looks at every argument anew, which takes longer than a small product on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import cupy
import numpy as np
from cuda.bindings import driver as bindings

from argand.runtime.arguments import Address, Arguments
from argand.runtime.tensor_map import WORDS, MovingMap, TensorMap


class Filling(NamedTuple):
    """What has to be written where, from the addresses that a call is given, before a launch.

    Of each word: the memory, which 64-bit number of it, from which address, how many bytes further.
    ``moves`` are tensor maps that only the driver can move.
    """

    words: list[tuple[memoryview, int, int, int]]
    moves: list[tuple[Callable[[int], None], int, int]]

    def __call__(self, addresses: Sequence[int]) -> None:
        """Write them."""
        for words, index, base, offset in self.words:
            words[index] = addresses[base] + offset
        for move, base, offset in self.moves:
            move(addresses[base] + offset)


class BoundKernel:
    """One launch of a kernel from `nvrtc.load`, for any addresses.

    Args:
        kernel: of the device that is current when it is called.
        blocks, threads: the grid and the block, along x.
        arguments: the structure that is the kernel's last argument.
        maps: what describes an array to the copy engine, for each tensor map that stands before it.
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
        maps: Sequence[Callable[[int], TensorMap]] = (),
        shared_bytes: int = 0,
        together: bool = False,
    ) -> None:
        self._kernel = kernel  # whose module must stay loaded
        self._form = (kernel.ptr, blocks, 1, 1, threads, 1, 1, shared_bytes)
        self._arguments = arguments
        self._map_words = np.zeros((len(maps), WORDS), np.uint64)
        self._maps = [
            MovingMap(x, row.data.cast("B").cast("Q"))
            for x, row in zip(maps, self._map_words, strict=True)
        ]
        places = [*(row.ctypes.data for row in self._map_words), arguments.bytes.ctypes.data]
        self._places = np.array(places, np.uint64)
        at = int(self._places.ctypes.data)
        #: Whether it is a cooperative launch.
        self.together = together
        self._end = (at,) if together else (at, 0)
        driver = cupy.cuda.driver
        self._call = driver.launchCooperativeKernel if together else driver.launchKernel
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, members: Mapping[str, int]) -> None:
        """Launch on the current stream with these members.

        Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
        """
        with self._lock:
            self._arguments.set(members)
            self.start(cupy.cuda.get_current_stream().ptr)

    def filling(
        self, members: Mapping[str, Address], maps: Sequence[Address], addresses: Sequence[int]
    ) -> Filling:
        """How what `start` launches with is filled in from addresses like these.

        Each member is that address, each tensor map describes the array that lies there.
        """
        found = Filling([], [])
        for name, (base, offset) in members.items():
            found.words.append((*self._arguments.word(name), int(base), offset))
        for one, (base, offset) in zip(self._maps, maps, strict=True):
            one.move(addresses[base] + offset)
            if one.by_word:
                found.words.append((one.words, 0, int(base), offset))
            else:
                found.moves.append((one.move, int(base), offset))
        return found

    def start(self, stream: int) -> None:
        """Launch on a stream with what was filled in last."""
        try:
            self._call(*self._form, stream, *self._end)
        except cupy.cuda.driver.CUDADriverError:
            need_context()
            self._call(*self._form, stream, *self._end)

    def node(self) -> Any:
        """The same launch for a graph, which reads what is filled in whenever it is given this."""
        found = bindings.CUDA_KERNEL_NODE_PARAMS()
        function, *sizes, shared_bytes = self._form
        found.func = bindings.CUfunction(function)
        found.gridDimX, found.gridDimY, found.gridDimZ = sizes[:3]
        found.blockDimX, found.blockDimY, found.blockDimZ = sizes[3:]
        found.sharedMemBytes = shared_bytes
        found.kernelParams = self._end[0]
        return found


def need_context() -> None:
    """Give a thread that has not used its device yet what the driver wants for it."""
    if not cupy.cuda.driver.ctxGetCurrent():
        cupy.cuda.Device().use()


def clusters_at_once(function: int, cluster: int, threads: int, shared_bytes: int) -> int:
    """How many clusters of blocks run at a time on the current device.

    Fewer than multiprocessors have room for: those of a cluster are neighbours.
    """
    size = bindings.CUlaunchAttribute()
    size.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size.value.clusterDim.x, size.value.clusterDim.y, size.value.clusterDim.z = cluster, 1, 1
    config = bindings.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = cluster, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared_bytes
    config.attrs, config.numAttrs = [size], 1
    error, found = bindings.cuOccupancyMaxActiveClusters(bindings.CUfunction(function), config)
    return int(found) if error == bindings.CUresult.CUDA_SUCCESS else 0
