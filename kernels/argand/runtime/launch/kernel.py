"""A kernel bound to its grid and its arguments, launched by the driver API.

CuPy's launch examines every argument again, which takes longer than a small product on the card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import cupy
import numpy as np

from argand.device import Device
from argand.runtime.compile.loading import LoadedKernel, PendingKernel
from argand.runtime.driver.driver_bindings import driver_bindings
from argand.runtime.driver.launch_config import (
    COOPERATIVE,
    DEPENDENT,
    LaunchConfig,
    driver_function,
)
from argand.runtime.launch.arguments import (
    Address,
    Arguments,
    Fields,
    arguments_dtype,
    unset_members,
)
from argand.runtime.launch.tensor_map import WORDS, MovingMap, TensorMap


class ArgumentUpdate(NamedTuple):
    """The addresses of a call that a launch's arguments need, and where each is written.

    Each of ``words`` is a memory, the index of a 64-bit number in it, the index of an address, and
    an offset in bytes. ``moves`` are tensor maps that only the driver can move to another address.
    """

    words: list[tuple[memoryview, int, int, int]]
    moves: list[tuple[Callable[[int], None], int, int]]


class BoundKernel:
    """One launch of a kernel from `argand.runtime.compile.loading`, for any addresses.

    Args:
        kernel: a kernel of the device that is current when it is called. The first launch waits for
            a `PendingKernel`.
        blocks, threads: the grid and the block, along x.
        arguments: the structure that is the kernel's last argument.
        maps: makes a tensor map of the array at an address, one for each tensor map argument.
        shared_bytes: dynamic shared memory of a block.
        cooperative: blocks wait for each other, so all must be resident. The driver starts none
            before all fit, and refuses a grid that never fits the device.
        overlaps: a kernel that waits itself (`runtime.compile.dependent_launch`) may begin while
            the one before ends.
    """

    def __init__(
        self,
        kernel: LoadedKernel | PendingKernel,
        blocks: int,
        threads: int,
        arguments: Arguments,
        *,
        maps: Sequence[Callable[[int], TensorMap]] = (),
        shared_bytes: int = 0,
        cooperative: bool = False,
        overlaps: bool = True,
    ) -> None:
        self._kernel = kernel  # whose module must stay loaded
        #: Whether it is a cooperative launch.
        self.cooperative = cooperative
        #: Whether it may begin while the one before ends, for which it waits itself.
        self.overlaps = overlaps and not cooperative and kernel.waits
        attribute = COOPERATIVE if cooperative else DEPENDENT if self.overlaps else None
        self._config = LaunchConfig((blocks, 1, 1, threads, 1, 1), shared_bytes, attribute)
        self._arguments = arguments
        self._map_words = np.zeros((len(maps), WORDS), np.uint64)
        self._maps = [
            MovingMap(x, row.data.cast("B").cast("Q"))
            for x, row in zip(maps, self._map_words, strict=True)
        ]
        pointers = [*(row.ctypes.data for row in self._map_words), arguments.bytes.ctypes.data]
        self._pointers = np.array(pointers, np.uint64)
        self._kernel_params = int(self._pointers.ctypes.data)
        self._call = driver_function("cuLaunchKernelEx")
        self._given: tuple[Any, ...] = ()  # what the driver is given
        self._stream = -1  # that of the last launch
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, members: Mapping[str, int]) -> None:
        """Launch on the current stream with these members.

        Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
        """
        with self._lock:
            self._arguments.set(members)
            self.start(cupy.cuda.get_current_stream().ptr)

    def argument_update(
        self, members: Mapping[str, Address], maps: Sequence[Address], addresses: Sequence[int]
    ) -> ArgumentUpdate:
        """Return how the arguments of `start` follow from addresses like these.

        Each member becomes its address, each tensor map describes the array at its address. Raises
        KeyError where another member has no value.
        """
        self._arguments.require(members)
        found = ArgumentUpdate([], [])
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
        """Launch on a stream with the arguments that were written last, one thread at a time.

        Raises cupy.cuda.driver.CUDADriverError where the driver refuses.
        """
        if stream != self._stream:
            if not self._given:  # waits for the compiler
                self._given = self._config.arguments(self._kernel.ptr, self._kernel_params)
            self._config.stream = self._stream = stream
        if self._call(*self._given):
            ensure_context()
            error = self._call(*self._given)
            if error:
                raise cupy.cuda.driver.CUDADriverError(error)

    def node(self) -> Any:
        """Return the same launch as a graph node, which reads the arguments whenever it is set."""
        bindings = driver_bindings()
        found = bindings.CUDA_KERNEL_NODE_PARAMS()
        found.func = bindings.CUfunction(self._kernel.ptr)
        found.gridDimX, found.gridDimY, found.gridDimZ, *block = self._config.sizes
        found.blockDimX, found.blockDimY, found.blockDimZ = block
        found.sharedMemBytes = self._config.shared_bytes
        found.kernelParams = self._kernel_params
        return found


def bound_kernel(
    source: str, name: str, blocks: int, threads: int, fields: Fields, device: Device,
    values: Mapping[str, Any] | None = None, shared_bytes: int = 0,
    maps: Sequence[Callable[[int], TensorMap]] = (),
) -> BoundKernel:  # fmt: skip
    """Return a kernel, which another thread compiles, bound to its grid and its arguments.

    ``fields`` are the members of the structure. A pointer without one of ``values`` is null until a
    launch sets it, and an int64 without one must be set by the first launch, which else raises
    KeyError, as this function does for a member of another type.
    """
    given = values or {}
    pointers, later = unset_members(fields, given)
    arguments = Arguments(arguments_dtype(fields), {**pointers, **given}, later)
    kernel = PendingKernel(source, device.target, name, shared_bytes)
    return BoundKernel(kernel, blocks, threads, arguments, maps=maps, shared_bytes=shared_bytes)


def ensure_context() -> None:
    """Make the device's context current in a thread that has not used the device yet."""
    if not cupy.cuda.driver.ctxGetCurrent():
        cupy.cuda.Device().use()


def max_active_clusters(function: int, cluster: int, threads: int, shared_bytes: int) -> int:
    """Return how many clusters of blocks can be resident on the current device.

    They are fewer than the multiprocessors hold blocks for, because the blocks of a cluster share
    one GPC. The result is 0 where the driver does not say.
    """
    bindings = driver_bindings()
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
