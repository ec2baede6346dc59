"""cuBLAS by one handle a GPU, which all threads share, with a workspace of each stream.

CuPy makes a handle a thread, and destroys it when that ends: the library waits for the GPU then,
which ends every capture of a stream there, also by other threads. And kernels that several streams
queue by a handle share its workspace, so the library takes other kernels, of other bits, while that
is in use. So each call here brings a workspace of its stream: one that is kept where graphs need
it, else the call's own.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_size_t, c_void_p
from threading import Lock
from typing import Any, NamedTuple

import cupy

from argand.runtime.launch.captured_graph import CAPTURING
from argand.runtime.libraries.library_routine import library_routine
from argand.runtime.memory.captured_memory import is_captured
from argand.runtime.memory.graph_memory import relaxed_capture
from argand.runtime.memory.workspace import library_memory, library_workspace
from argand.runtime.memory.workspace_limit import allowed_workspace, require_workspace

WORKSPACE_BYTES = 32 << 20
"""cuBLAS's own on Hopper, and more than its own on older cards."""
MIN_WORKSPACE_BYTES = 16 << 10
"""The least workspace: with less some routines fail (documentation of cublasSetWorkspace)."""


def workspace_bytes() -> int:
    """Return the bytes of workspace of a product by cuBLAS within the limit, a power of two.

    Raises WorkspaceError where the limit is below `MIN_WORKSPACE_BYTES`.
    """
    require_workspace("cuBLAS, whatever the size of the product,", MIN_WORKSPACE_BYTES)
    allowed = allowed_workspace()
    if allowed is None or allowed >= WORKSPACE_BYTES:
        return WORKSPACE_BYTES
    return 1 << (allowed.bit_length() - 1)


class Workspace(NamedTuple):
    """Memory of the library's kernels, which ``owner`` keeps."""

    address: int
    nbytes: int
    owner: Any = None


_OWN = Workspace(0, 0)


class CublasHandle:
    """The handle of the current device; scalars of calls lie in the host's memory."""

    def __init__(self) -> None:
        self._device = cupy.cuda.runtime.getDevice()
        with relaxed_capture():
            self._handle = cupy.cuda.cublas.create()
        self._set_stream = self.routine("cublasSetStream_v2", c_void_p, c_void_p)
        self._set_workspace = self.routine("cublasSetWorkspace_v2", c_void_p, c_void_p, c_size_t)
        self._on: tuple[int, int, int] | None = None
        self._lock = Lock()

    @staticmethod
    def routine(name: str, *types: Any) -> Callable[..., None]:
        """Return a function of cuBLAS, which CuPy has loaded, as `library_routine` does."""
        return library_routine("cublas", name, *types)

    def workspace(self, stream: int, nbytes: int = WORKSPACE_BYTES) -> Workspace:
        """Return a stream's workspace, which is kept. Raises MemoryError without room for it."""
        return Workspace(library_workspace(nbytes, stream, self._device), nbytes)

    def call_memory(self, stream: int, nbytes: int = WORKSPACE_BYTES) -> Workspace | None:
        """Return a workspace to hold until a call is queued on a stream.

        It is None where there is no room: the library then takes its own. Raises MemoryError in a
        capture, because a graph would share the library's with calls of other streams.
        """
        try:
            memory = library_memory(nbytes, stream, self._device)
            return Workspace(int(memory.ptr), nbytes, memory)
        except MemoryError:
            if is_captured(stream):
                raise
            return None

    def call(
        self, function: Callable[..., None], stream: int, memory: Workspace | None, *arguments: Any
    ) -> None:
        """Queue a function of the library, given what it takes behind the handle, on a stream.

        The stream may be captured. Without ``memory`` the library takes its own.
        """
        address, nbytes, _ = memory or _OWN
        with self._lock:
            if self._on != (stream, address, nbytes):
                self._on = None
                self._set_stream(self._handle, stream)  # which takes the library's own workspace
                if address:
                    self._set_workspace(self._handle, address, nbytes)
                self._on = stream, address, nbytes
            function(self._handle, *arguments)


_handles: dict[int, CublasHandle] = {}
_making = Lock()


def cublas_handle(device: int) -> CublasHandle:
    """Return the handle of the current device, given its index."""
    found = _handles.get(device)
    if found is None:
        with CAPTURING, _making:
            found = _handles.get(device)
            if found is None:
                found = _handles[device] = CublasHandle()
    return found
