"""The function that repeats an operation's calls, chosen by the type of their first operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argand.device import is_cupy_array, require_cupy
from argand.framework import framework_of
from argand.frameworks.foreign import is_cuda_tensor

Repeat = Callable[[tuple[Any, ...], Any, tuple[Any, ...]], tuple[Any, Any]]
"""Returns a call's key and its result, given its operands, ``out`` and all other arguments.

The key is None for calls that are never kept, the result where the call has to be made again.
"""


def nothing(operands: tuple[Any, ...], out: Any, options: tuple[Any, ...]) -> tuple[None, None]:
    """Repeat no call."""
    return None, None


class Repeats:
    """The functions that repeat calls of one operation.

    Args:
        cache: imports the call cache, which needs CuPy.
        on_host: repeats calls on NumPy's arrays.
        on_gpu: whether an object of ours is on a GPU.
    """

    def __init__(
        self,
        cache: Callable[[], Any],
        on_host: Repeat = nothing,
        on_gpu: Callable[[Any], bool] = lambda x: False,
    ) -> None:
        self._cache, self._on_gpu = cache, on_gpu
        #: Repeats by types that alone decide it, which calls look up first.
        self.known: dict[type, Repeat] = {np.ndarray: on_host}

    def of(self, x: Any) -> Repeat:
        """Return the function that repeats calls on an operand, of a type that is not known yet."""
        if is_cupy_array(x):
            self.known[type(x)] = self._cache().repeat
            return self.known[type(x)]
        if framework_of(x) is None:
            return self._cache().repeat if self._on_gpu(x) else nothing
        if not is_cuda_tensor(x):
            return nothing
        require_cupy()
        from argand.frameworks.torch_repeats import TensorCalls

        self.known[type(x)] = TensorCalls(self._cache()).repeat
        return self.known[type(x)]
