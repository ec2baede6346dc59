"""Shape and gradient of a product, for frameworks that trace and differentiate it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from argand.defaults import default_precision
from argand.frameworks.rules import Differentiated, FrameworkRules, Spec, broadcast, stored
from argand.gemm.modular.moduli import EXACT, MODULAR_PRECISIONS
from argand.gemm.problem import check_c, product_sizes
from argand.precision import PRECISIONS, get_precision

_OF_ANY_PRODUCT = ("precision", "tolerance", "check", "rounding", "kernels")
"""Options that the products of a gradient share with the product."""


def _result(arrays: Mapping[str, Spec | None], options: Mapping[str, Any], on_gpu: bool) -> Spec:
    a, b = arrays["a"], arrays["b"]
    assert a is not None
    assert b is not None
    m, n = _matrix(a, b, options)
    given = (a, b, arrays.get("c"))
    shape = (*broadcast(*(x.shape[:-2] for x in given if x is not None)), m, n)
    wide = default_precision("product", given, on_gpu=on_gpu) == "fp64"
    own = "complex128" if wide else "complex64"
    precision = options.get("precision")
    if options.get("output") == "complex-half":
        return Spec(shape, "complex32")
    if precision is None or precision in MODULAR_PRECISIONS or precision == EXACT:
        found = np.dtype(own)
    else:
        found = np.dtype(get_precision(precision, exact=True).output)
    power = options.get("output") == "power"
    return Spec(shape, np.empty(0, found).real.dtype if power else found)


def _gradient(of: Differentiated, grad: Any) -> dict[str, Any]:
    """Return alpha* G op(B)^H for A, alpha* op(A)^H G for B, each op undone, and beta* G for C."""
    options = of.options
    op_a, op_b = options.get("op_a", "N"), options.get("op_b", "N")
    shared = {name: options[name] for name in _OF_ANY_PRODUCT if name in options}
    shared["alpha"] = complex(options.get("alpha", 1)).conjugate()
    if options.get("output") == "power":  # of |z|^2, z computed again
        without = {name: x for name, x in options.items() if name != "output"}
        grad = 2 * grad * of.call(**of.arrays, **without)
    found = {}
    if "a" in of.needed:
        b, op = _adjoint(of.arrays["b"], op_b)
        found["a"] = _undone(of.call(grad, b, op_b=op, **shared), op_a)
    if "b" in of.needed:
        a, op = _adjoint(of.arrays["a"], op_a)
        found["b"] = _undone(of.call(a, grad, op_a=op, **shared), op_b)
    if "c" in of.needed:
        found["c"] = complex(options.get("beta", 0)).conjugate() * grad
    return found


def _reads(options: Mapping[str, Any], needed: frozenset[str]) -> frozenset[str]:
    """Return the other factor of each that a gradient is asked of, of squares all operands."""
    if options.get("output") == "power":
        return frozenset({"a", "b", "c"})
    return frozenset({"a": "b", "b": "a"}[name] for name in needed - {"c"})


def _adjoint(x: Any, op: str) -> tuple[Any, str]:
    """Return op(x)^H as an array and its op."""
    return (x.conj(), "N") if op == "T" else (x, "C" if op == "N" else "N")


def _undone(x: Any, op: str) -> Any:
    """Return y where op(y) is x."""
    return x if op == "N" else x.mT if op == "T" else x.mT.conj()


def _adapted(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    """Take conjugate views as ops and negative ones into alpha; multiply complex32 to complex32."""
    for name, op_name in (("a", "op_a"), ("b", "op_b")):
        x, negative, conjugate = stored(arrays[name])
        if negative:
            options["alpha"] = -options.get("alpha", 1)
        if conjugate:
            x, options[op_name] = of_conjugate(x, options.get(op_name, "N"))
        arrays[name] = x
    _check_c(arrays, options)
    if any(options.get(name) is not None for name in ("precision", "tolerance", "output")):
        return
    given = [x for x in arrays.values() if x is not None]
    if all(_is_complex_half(getattr(x, "dtype", None)) for x in given):
        options |= {"precision": "fp16", "output": "complex-half"}


def _matrix(a: Any, b: Any, options: Mapping[str, Any]) -> tuple[int, int]:
    """Return rows and columns of op(a) op(b)."""
    ops = options.get("op_a", "N"), options.get("op_b", "N")
    return product_sizes(a.shape, b.shape, *ops)[:2]


def _check_c(arrays: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Raise ValueError for a c that NumPy's call refuses: under vmap a batch gives it more axes."""
    a, b, c = arrays["a"], arrays["b"], arrays.get("c")
    if c is None:
        return
    m, n = _matrix(a, b, options)
    shape = (*broadcast(a.shape[:-2], b.shape[:-2]), m, n)
    check_c(options.get("beta", 0), tuple(c.shape), shape)


_OPS_OF_CONJUGATES = {"N": "C", "T": "C", "C": "T"}


def of_conjugate(x: Any, op: str) -> tuple[Any, str]:
    """Return a view and its op that are op(conj(x))."""
    return (x.mT if op == "N" and x.ndim >= 2 else x), _OPS_OF_CONJUGATES.get(op, op)


def adapted_operand(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    """Pack a conjugate view as an op of what lies in memory."""
    x = arrays["x"]
    if stored(x)[2]:
        arrays["x"], options["op"] = of_conjugate(x.conj(), options["op"])


@cache
def _is_complex_half(dtype: Any) -> bool:
    return str(dtype) == "torch.complex32"


def _same_launches(options: Mapping[str, Any]) -> bool:
    """Return whether a repeated call has the same launches; exact ones wait for what they find."""
    return options.get("tolerance") is None and options.get("precision") in (None, *PRECISIONS)


def _spread(arrays: dict[str, Any], broadcast_to: Callable[[Any, Any], Any]) -> None:
    """Give c all leading axes, which a product wants it to have, and a them too."""
    if arrays.get("c") is None:
        return
    leading = broadcast(*(x.shape[:-2] for x in arrays.values() if x is not None))
    for name in ("a", "c"):
        x = arrays[name]
        arrays[name] = broadcast_to(x, (*leading, *x.shape[-2:]))


@cache
def _calls() -> Any:
    from argand.gemm.gpu_calls import CALLS

    return CALLS


RULES = FrameworkRules(
    _result, _gradient, _reads, _adapted, same_launches=_same_launches, spread=_spread,
    calls=_calls,
)  # fmt: skip
