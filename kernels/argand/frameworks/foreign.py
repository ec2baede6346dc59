"""Calls on arguments of other libraries, which are imported only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.checks import refuse_masked
from argand.device import is_cuda_array
from argand.framework import KNOWN, framework_of

if TYPE_CHECKING:
    from argand.frameworks.rules import Adapted, ForeignCall, FrameworkRules


def is_cuda_tensor(x: Any) -> bool:
    """Return whether x is a tensor of torch on a GPU, which torch does not compile."""
    kind = type(x)
    if (KNOWN[kind] if kind in KNOWN else framework_of(x)) != "torch" or not x.is_cuda:
        return False
    if not _is_compiling:  # an import statement takes longer than this look
        import torch

        _is_compiling.append(torch.compiler.is_compiling)
    return not _is_compiling[0]()


def may_be_on_gpu(x: Any) -> bool:
    """Return whether x, the array of `argand.Pairs` or a packed operand may be on a GPU.

    An array of JAX may be on a GPU where JAX has one; an array that is known by DLPack alone may
    always be.
    """
    if hasattr(x, "backend_data"):
        return bool(x.device.backend == "cuda")
    x = getattr(x, "array", x)
    framework = framework_of(x)
    if framework == "jax":
        from argand.frameworks.jax_arrays import has_gpu

        return has_gpu()
    return is_cuda_array(x) or is_cuda_tensor(x) or framework == "exchange"


_is_compiling: list[Callable[[], bool]] = []
"""Torch's function of that name, once there is a tensor."""


def has_foreign(*arrays: object) -> bool:
    """Return whether some of these belong to a framework."""
    return any(framework_of(x) is not None for x in arrays)


def call_on_foreign(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    *,
    rules: FrameworkRules | None = None,
    adapted: Adapted | None = None,
    written: str = "out",
    pairs: type | None = None,
    **options: Any,
) -> Any:
    """Return the result of a function of NumPy or CuPy arrays, as an array of the caller's library.

    Args:
        function: a public call, of ``arrays`` and ``options``. The arrays that it returns, or those
            of a named tuple, become the library's.
        arrays: its array arguments by name; some of them belong to a framework.
        rules: rules of its result, where frameworks may trace and differentiate it.
        adapted: the rule of that name, of calls that have no ``rules``.
        written: the argument that the function writes to.
        pairs: `argand.Pairs` where the function takes and returns them.
        options: its other arguments.

    Raises:
        TypeError: arrays of two frameworks, or on different devices; a masked array with masked
            elements.
    """
    from argand.frameworks.rules import ForeignCall

    adapted = adapted if rules is None else rules.adapted
    return _call_library(ForeignCall(function, rules, adapted, written, pairs), arrays, options)


def _call_library(call: ForeignCall, arrays: Mapping[str, Any], options: dict[str, Any]) -> Any:
    """Make a call by the module of the library that its arrays are of."""
    found = {framework_of(x) for x in arrays.values()} - {None}
    if len(found - {"masked"}) > 1:
        raise TypeError(f"arrays must be of one library, got {sorted(map(str, found))}")
    if "masked" in found:
        plain = _unmasked(arrays)
        alone = len(found) == 1
        made = call.function(**plain, **options) if alone else _call_library(call, plain, options)
        written = call.written
        return arrays[written] if made is not None and made is plain.get(written) else made
    if "exchange" in found:
        from argand.frameworks.array_interfaces import call_on_interfaces

        return call_on_interfaces(call, arrays, options)
    if "jax" in found:
        from argand.frameworks.jax_arrays import call_on_jax

        return call_on_jax(call, arrays, options)
    from argand.frameworks.torch_tensors import call_on_tensors

    return call_on_tensors(call, arrays, options)


def _unmasked(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return NumPy's arrays in place of its masked ones, in which no element may be masked."""
    for name, x in arrays.items():
        refuse_masked(name, x)
    masked = (name for name, x in arrays.items() if framework_of(x) == "masked")
    return {**arrays, **{name: np.asarray(arrays[name]) for name in masked}}
