"""Interceptors, by which calls of torch.matmul and cupy.matmul in a context reach its router."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock
from typing import Any

from argand.accelerate.router import Router


def intercepted(router: Router) -> AbstractContextManager[Any]:
    """Return a context in which the libraries that are imported ask the router."""
    stack = ExitStack()
    if "torch" in sys.modules:
        from argand.accelerate.torch_mode import MatmulMode

        stack.enter_context(MatmulMode(router))
    if "cupy" in sys.modules:
        stack.enter_context(_patched(sys.modules["cupy"], router))
    return stack


@contextmanager
def _patched(cupy: Any, router: Router) -> Iterator[None]:
    """Put a function in the place of ``cupy.matmul``, one for the contexts of all threads.

    It asks the router of the context that was entered last. The library's function returns when
    the last context ends.
    """
    with _lock:
        if not isinstance(cupy.matmul, _Matmul):
            cupy.matmul = _Matmul(cupy)
        matmul = cupy.matmul
        matmul.routers.append(router)
    try:
        yield
    finally:
        with _lock:
            matmul.routers.remove(router)
            if not matmul.routers and cupy.matmul is matmul:
                cupy.matmul = matmul.original


_lock = Lock()


class _Matmul:
    """A function in the place of ``cupy.matmul``, with the routers of contexts not yet ended."""

    def __init__(self, cupy: Any) -> None:
        self.original, self.routers = cupy.matmul, list[Router]()
        self._cupy = cupy

    def __call__(self, a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        """Return a @ b."""
        cupy, routers = self._cupy, self.routers[-1:]
        arrays = isinstance(a, cupy.ndarray) and isinstance(b, cupy.ndarray)
        capturing = arrays and cupy.cuda.get_current_stream().is_capturing()
        given = rest or named or not routers
        if given or not arrays or capturing or not _are_complex_matrices(a, b):
            return self.original(a, b, *rest, **named)
        form = a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides, a.device.id
        with a.device:
            return routers[0].product("cupy", self.original, a, b, form)


def _are_complex_matrices(a: Any, b: Any) -> bool:
    return all(x.ndim >= 2 and x.dtype.kind == "c" for x in (a, b)) and a.device == b.device
