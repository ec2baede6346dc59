"""cuBLAS where CuPy does not call it: functions that it does not bind, and calls that are captured.

CuPy refuses cuBLAS in a capture, because a graph must hold a workspace that outlives the call. Here
it is that of the stream, which is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from argand.runtime.library_routine import library_routine

WORKSPACE_BYTES = 32 << 20
"""Workspace of a captured call: cuBLAS's own on Hopper, and more than its own on older cards."""
_get_handle = cupy.cuda.device.get_cublas_handle


def routine(name: str, *types: Any) -> Callable[..., None]:
    """Return a function of cuBLAS, as `library_routine` does, once CuPy has loaded it."""
    _get_handle()
    return library_routine("cublas", name, *types)


@contextmanager
def handle_on(stream: int, workspace: int | None = None) -> Iterator[int]:
    """Have CuPy's handle work on a stream, with scalars in host memory, in this context.

    Args:
        stream: its address; it may be one that is captured.
        workspace: address of ``WORKSPACE_BYTES`` that serve in place of the library's own.
    """
    handle, library = _get_handle(), cupy.cuda.cublas
    set_stream = routine("cublasSetStream_v2", ctypes.c_void_p, ctypes.c_void_p)
    set_stream(handle, stream)
    mode = library.getPointerMode(handle)
    library.setPointerMode(handle, library.CUBLAS_POINTER_MODE_HOST)
    try:
        if workspace is not None:
            types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
            routine("cublasSetWorkspace_v2", *types)(handle, workspace, WORKSPACE_BYTES)
        yield handle
    finally:
        library.setPointerMode(handle, mode)
        if workspace is not None:  # to set a stream also returns to the library's own workspace
            set_stream(handle, 0)
