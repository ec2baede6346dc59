"""`contract`: einsum of two complex arrays, by the kernels of `argand.gemm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.checks import as_flag, as_number, check_scalar, check_written, shape_of, type_name
from argand.contract.axes import axes_of, best_orders, merged, merges, transposed
from argand.contract.libraries import beside, converted, kind_of, namespace, type_in, type_like
from argand.contract.lone_axes import reduced
from argand.contract.subscripts import Subscripts, parse, sizes_of
from argand.defaults import is_double
from argand.device import is_cupy_array
from argand.framework import framework_of
from argand.frameworks.foreign import call_on_foreign
from argand.gemm.api import gemm
from argand.gemm.operands import Op, as_operand
from argand.gemm.pairs import Pairs
from argand.gemm.squares import squared
from argand.precision import Precision, get_precision
from argand.runtime.calls.array_context import context_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from argand.array_types import TensorType


def contract(
    subscripts: str,
    a: Any,
    b: Any,
    *,
    conj_a: bool = False,
    conj_b: bool = False,
    scale: Any = 1,
    bias: Any = None,
    conj: bool = False,
    power: bool = False,
    precision: str | Precision | None = None,
    tolerance: float | None = None,
    rounding: Sequence[str] | str | None = None,
    dtype: DTypeLike | TensorType | None = None,
    out: Any = None,
) -> Any:
    """Contract two arrays over the labels that the result does not have, as numpy.einsum does.

    Args:
        subscripts: labels of the axes of a, of b and, behind ``->``, of the result:
            ``"bij,bjk->bik"``. A label that appears twice in an operand takes its diagonal; one
            that appears in one operand alone is summed over before, in fp64 where the data or the
            precision are in fp64, else in fp32.
        a, b: arrays of one library, as in `argand.gemm`, of any strides. Axes are put in order and
            merged by views; where strides do not allow that, the operand is copied.
        conj_a, conj_b: conjugate the operand, which costs nothing.
        scale: a number, by which the kernel multiplies; or an array that broadcasts to the result,
            by which it is multiplied afterwards. An array counts among the data that decide the
            result's type, a number does not.
        bias: a number or an array, as for the scale, added after it; by the kernel where the scale
            is a number.
        conj: conjugate the result, which costs nothing.
        power: the squared magnitude of the result, after all else.
        precision, tolerance, rounding: those of the product, as in `argand.gemm`.
        dtype: the type of the result, of any library, to which it is converted last.
            Products of torch's complex32 alone are rounded to complex32 by the kernel.
        out: where the result goes, of its type; it must not overlap the operands.

    Returns:
        The result with its axes in the order of its labels; a view where that is not the order of a
        product (batch, rows, columns). Complex as in `argand.gemm`; real with ``power``.

    Raises:
        ValueError: text that is no subscripts, subscripts that do not fit the arrays, a scale or
            bias that does not broadcast to the result, an ``out`` of another shape or kind, a
            ``dtype`` that is not complex without ``power``.
        TypeError: operands that are `argand.Pairs`, subscripts that are no text, a truth value that
            is neither true nor false; else as `argand.gemm`.

    Example:
        >>> a, b = np.array([[1, 1j]]), np.array([[[2, 0], [0, 3]]])
        >>> argand.contract("ij,kjl->kil", a, b, conj_a=True, bias=1)
        array([[[3.+0.j, 1.-3.j]]])
    """
    if {"masked", "exchange"} & set(map(framework_of, (a, b, scale, bias, out))):
        return call_on_foreign(
            contract, {"a": a, "b": b, "scale": scale, "bias": bias, "out": out},
            subscripts=subscripts, conj_a=conj_a, conj_b=conj_b, conj=conj, power=power,
            precision=precision, tolerance=tolerance, rounding=rounding, dtype=dtype,
        )  # fmt: skip
    if not isinstance(subscripts, str):
        raise TypeError(f"subscripts must be text such as 'ij,jk->ik', got {subscripts!r}")
    flags = {"conj_a": conj_a, "conj_b": conj_b, "conj": conj, "power": power}
    conj_a, conj_b, conj, power = (as_flag(flag, name) for name, flag in flags.items())
    found = parse(subscripts)
    a, b = (_operand(x, name) for name, x in (("a", a), ("b", b)))
    sizes = sizes_of(found, tuple(a.shape), tuple(b.shape))
    shape = tuple(sizes[label] for label in found.result)
    _check_out(out, shape)
    if scale is None:
        raise TypeError("scale must be a number or an array, got None")
    scale, bias = (_factor(x, name, shape) for name, x in (("scale", scale), ("bias", bias)))
    if precision is None and tolerance is None and _widens((a, b), (out, scale, bias)):
        precision = "fp64"  # also where the product is given none of them
    _check_numbers({"scale": scale, "bias": bias}, double=_in_fp64((a, b), precision))
    product = partial(gemm, precision=precision, tolerance=tolerance, rounding=rounding)
    with context_of(a, b, out):
        of_result = a if framework_of(a) or not framework_of(b) else b
        scale, bias = beside(of_result, scale, "scale"), beside(of_result, bias, "bias")
        by_kernel = _is_number(scale)
        target = out if by_kernel and not power and dtype is None else None
        added = by_kernel and _is_number(bias)
        alone = added or found.lone_a or found.lone_b
        double = bool(alone) and _in_fp64((a, b), precision)
        if added:  # the type of the data, as in NumPy
            bias = namespace(a).asarray(bias, dtype=type_like(a, "complex", double=double))
        operands = (
            reduced(a, found.a, found.lone_a, double=double),
            reduced(b, found.b, found.lone_b, double=double),
        )
        made = _multiplied(
            found, sizes, operands, (conj_a, conj_b, conj),
            (scale, bias) if by_kernel else (1, None), target, product,
        )  # fmt: skip
        if made is out:
            return out
        if not by_kernel:
            made = _scaled(made, scale, bias, conj)
        return _stored(_power(made) if power else made, dtype, out)


def _multiplied(
    found: Subscripts, sizes: dict[str, int], operands: tuple[tuple[Any, str], tuple[Any, str]],
    conjugates: tuple[bool, bool, bool], factors: tuple[Any, Any], out: Any,
    product: Callable[..., Any],
) -> Any:  # fmt: skip
    """Return scale a b + bias with the result's axes: ``out`` where a product can be written to it.

    Args:
        found, sizes: the labels, and how long each axis is.
        operands: a and b, each with its labels, as `reduced` returns them.
        conjugates: whether a, b and the result are conjugated.
        factors: the scale, a number, and the bias.
        out: memory of the result or None.
        product: makes the product, as `argand.gemm` does.
    """
    (a, labels_a), (b, labels_b) = operands
    (conj_a, conj_b, conj), (scale, bias) = conjugates, factors
    into = None if out is None else axes_of(out, found.result)
    orders = best_orders(found, axes_of(a, labels_a), axes_of(b, labels_b), into)
    rows, columns, sums = orders
    x, op_a = _conjugated(merged(a, labels_a, (rows, sums), found.batch), conj_a != conj)
    y, op_b = _conjugated(merged(b, labels_b, (sums, columns), found.batch), conj_b != conj)
    options: dict[str, Any] = {}
    if scale != 1 or bias is not None:
        options["alpha"] = complex(scale).conjugate() if conj else scale
    if bias is not None:
        shape = tuple(sizes[label] for label in found.result)
        options |= {"beta": 1, "c": _addend(a, bias, shape, found, orders, conj)}
    written = _written(out, found, orders)
    made = product(x, y, op_a=op_a, op_b=op_b, out=written, **options)
    return _split(made, found, orders, sizes) if written is None else out


def _widens(operands: tuple[Any, Any], others: tuple[Any, ...]) -> bool:
    """Return whether a result, scale or bias makes a product of narrower operands one of fp64."""
    return any(map(is_double, others)) and not any(map(is_double, operands))


def _in_fp64(arrays: tuple[Any, ...], precision: str | Precision | None) -> bool:
    """Return whether sums beside the product are in fp64: where an array or the precision is."""
    if any(map(is_double, arrays)):
        return True
    return precision is not None and get_precision(precision, exact=True).name == "fp64"


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    if out is not None and shape_of(out, "out") != shape:
        raise ValueError(f"out must have shape {shape}, got {tuple(out.shape)}")
    check_written("out", out)


def _operand(x: Any, name: str) -> Any:
    if isinstance(x, Pairs):
        raise TypeError(f"{name} must be an array, got {x.type_name}: use argand.gemm")
    if framework_of(x) is not None or (type(x) is np.ndarray and x.dtype.kind in "biufc"):
        return x
    x = as_operand(x, name)
    return x.to_complex64() if isinstance(x, Pairs) else x


def _factor(x: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return a scale or bias: a number, None, or an array that broadcasts to the result's shape."""
    if x is None or _is_number(x):
        return x.item() if isinstance(x, np.number) else x  # NumPy's would count among the data
    x = _operand(x, name)
    given = tuple(x.shape)
    if len(given) > len(shape) or any(
        n not in (1, size) for n, size in zip(given[::-1], shape[::-1], strict=False)
    ):
        raise ValueError(f"{name} must broadcast to the result's shape {shape}, got {given}")
    return x


def _check_numbers(factors: dict[str, Any], *, double: bool) -> None:
    """Raise ValueError, by its name, for a number that a product's type would make infinite."""
    for name, x in factors.items():
        if _is_number(x) and x != 1:
            check_scalar(name, as_number(x, name), "complex128" if double else "complex64")


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | complex | np.number)


def _conjugated(x: Any, conj: bool) -> tuple[Any, Op]:
    """Return a matrix and the op with which it is x or its conjugate."""
    return (x.swapaxes(-1, -2), "C") if conj else (x, "N")


def _addend(
    like: Any, bias: Any, shape: tuple[int, ...], found: Subscripts, orders: Any, conj: bool
) -> Any:
    """Return a bias as the product's C: a view that repeats it, where its axes merge."""
    arrays = namespace(like)
    bias = arrays.asarray(bias)
    if not arrays.iscomplexobj(bias):  # small integers stay narrow: NumPy adds 0j in fp64
        bias = converted(bias, type_like(like, "complex", double=is_double(bias)))
    whole = arrays.broadcast_to(bias.conj() if conj else bias, shape)
    return merged(whole, found.result, orders[:2], found.batch)


def _written(out: Any, found: Subscripts, orders: tuple[str, str, str]) -> Any:
    """Return the caller's result as the product's; None where its axes do not merge."""
    if out is None:
        return None
    axes = axes_of(out, found.result)
    if not all(merges(axes, group) for group in orders[:2]):
        return None
    return merged(out, found.result, orders[:2], found.batch)


def _split(
    made: Any, found: Subscripts, orders: tuple[str, str, str], sizes: dict[str, int]
) -> Any:
    """Return a product with the axes of the result, in their order."""
    labels = found.batch + orders[0] + orders[1]
    shape = tuple(sizes[label] for label in labels)
    if tuple(made.shape) != shape:
        made = made.reshape(shape)
    return transposed(made, [labels.index(label) for label in found.result])


def _scaled(made: Any, scale: Any, bias: Any, conj: bool) -> Any:
    """Return a product, which is conjugated with ``conj``, by an array of scales, and the bias."""
    made = (made.conj() if conj else made) * scale
    made = made if bias is None else made + bias
    return made.conj() if conj else made


def _power(x: Any) -> Any:
    """Return the squared magnitudes, on a GPU in one pass."""
    return squared(x) if is_cupy_array(x) else x.real**2 + x.imag**2


def _stored(made: Any, dtype: Any, out: Any) -> Any:
    if dtype is not None:
        dtype = type_in(made, dtype)
        if kind_of(made.dtype) == "c" and kind_of(dtype) != "c":
            raise ValueError(f"dtype must be complex but with power, got {dtype}")
        made = converted(made, dtype)
    if out is None:
        return made
    if kind_of(out.dtype) != kind_of(made.dtype):
        raise ValueError(f"out must have type {type_name(made)}, got {type_name(out)}")
    out[...] = made
    return out
