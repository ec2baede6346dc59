"""How calls of torch.matmul and cupy.matmul reach a router, within a context."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
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
    """Put a function in the place of ``cupy.matmul``."""
    original = cupy.matmul

    def matmul(a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        arrays = isinstance(a, cupy.ndarray) and isinstance(b, cupy.ndarray)
        capturing = arrays and cupy.cuda.get_current_stream().is_capturing()
        if rest or named or not arrays or capturing or not _are_complex_matrices(a, b):
            return original(a, b, *rest, **named)
        form = a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides, a.device.id
        with a.device:
            return router.product("cupy", original, a, b, form)

    cupy.matmul = matmul
    try:
        yield
    finally:
        cupy.matmul = original


def _are_complex_matrices(a: Any, b: Any) -> bool:
    return all(x.ndim >= 2 and x.dtype.kind == "c" for x in (a, b)) and a.device == b.device
