"""Checks that the calls of all operations and of frameworks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np

from argand.device import is_cupy_array

_FP32_MAX = float(np.finfo(np.float32).max)


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise ValueError where ``out`` is given and is not of this shape and type.

    Raises TypeError where it is no array, ValueError where it cannot be written to
    (`check_written`).
    """
    if out is None:
        return
    if shape_of(out, "out") != shape or type_name(out) != dtype:
        raise ValueError(
            f"out must have shape {shape} and type {dtype}, "
            f"got {tuple(out.shape)} and {type_name(out)}"
        )
    if not (_own_type(out) or isinstance(out, np.ndarray) or is_cupy_array(out)):
        raise TypeError(f"out must be an array of NumPy or CuPy, got {type(out).__name__}")
    check_written("out", out)


def check_written(name: str, x: Any) -> None:
    """Raise ValueError for an array, or `argand.Pairs`, that a call cannot write to.

    It is misaligned, read-only, or has several numbers in one place (`share_memory`). Anything but
    an array of NumPy or CuPy passes.
    """
    refuse_misaligned(name, x)
    x = getattr(x, "array", x)
    on_host = isinstance(x, np.ndarray)
    if on_host and not x.flags.writeable:
        raise ValueError(f"{name} must be writeable, got a read-only array")
    if not (on_host or is_cupy_array(x)) or x.flags.c_contiguous:
        return
    if share_memory(x.shape, x.strides, x.itemsize):
        raise ValueError(
            f"{name} must have memory for each of its numbers, got shape {tuple(x.shape)} and "
            f"strides {x.strides}: copy it first"
        )


def check_contiguous(name: str, x: Any) -> None:
    """Raise ValueError for an array that is given and is not C-contiguous."""
    if x is not None and not x.flags.c_contiguous:
        raise ValueError(
            f"{name} must be C-contiguous, got strides {x.strides} of shape {tuple(x.shape)}"
        )


def all_on_gpu(on_gpu: Mapping[str, bool]) -> bool:
    """Return whether arrays, by name, are on a GPU. Raises TypeError where only some are."""
    if len({*on_gpu.values()}) > 1:
        *names, last = on_gpu
        found = ", ".join(f"{x} of {'CuPy' if gpu else 'NumPy'}" for x, gpu in on_gpu.items())
        raise TypeError(
            f"{', '.join(names)} and {last} must all be NumPy arrays or all be CuPy arrays, "
            f"got {found}"
        )
    return any(on_gpu.values())


def share_memory(shape: Sequence[int], strides: Sequence[int], item: int) -> bool:
    """Return whether numbers of an array share memory, as where an axis is broadcast.

    Strides and the size of an item are in one unit. Axes that interleave without one containing the
    other count as sharing it.
    """
    if 0 in shape:
        return False
    reach = item
    axes = zip(map(abs, strides), shape, strict=True)
    for step, length in sorted(axis for axis in axes if axis[1] > 1):
        if step < reach:
            return True
        reach += step * (length - 1)
    return False


def as_array(x: Any, name: str) -> Any:
    """Return an argument as NumPy's array.

    Raises ValueError for lists that form no array, such as lists of different lengths, and
    TypeError for an object that is no array, such as None or `argand.Pairs`.
    """
    try:
        found = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array: {error}") from error
    if found.dtype.kind == "O" and found.ndim == 0:
        kind = _own_type(x) or type(x).__name__  # not a dtype, which sparse arrays have
        raise TypeError(f"{name} must be an array, got {kind}")
    return found


def check_numbers(name: str, x: Any, *, flags: bool = False) -> None:
    """Raise TypeError for an array that holds no numbers; with ``flags`` truth values are some."""
    if x.dtype.kind not in ("biufc" if flags else "iufc"):
        raise TypeError(f"{name} must be numbers, got {x.dtype}")


def shape_of(x: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array argument. Raises TypeError where it is no array."""
    if isinstance(x, type) or not hasattr(x, "shape"):  # numpy.complex64 has one, too
        raise TypeError(f"{name} must be an array, got {type(x).__name__}")
    return tuple(x.shape)


def refuse_misaligned(name: str, x: Any) -> None:
    """Raise ValueError where elements of a GPU's array lie at no multiples of their size.

    Kernels read an element at once, CuPy's own too. At such an address that is an error after which
    CUDA answers the process no more. Anything but an array of CuPy's passes.
    """
    if not is_cupy_array(x) or not x.size:
        return
    item, begin = int(x.itemsize), int(x.data.ptr)
    steps = (step for n, step in zip(x.shape, x.strides, strict=True) if n > 1)
    if begin % item or any(step % item for step in steps):
        raise ValueError(
            f"{name} must have elements at multiples of their {item} bytes on a GPU, got address "
            f"{begin:#x} and strides {x.strides}: copy its bytes to memory of its own"
        )


def as_number(value: Any, name: str) -> complex:
    """Return a scalar argument as a complex number.

    Raises TypeError for what is none, as text, and ValueError for one beyond fp64.
    """
    return complex(_converted(complex, value, name, "a number"))


def check_scalar(name: str, value: complex, dtype: str) -> None:
    """Raise ValueError for a scalar of a product that is finite, but infinite in a result's type.

    The result would be infinite or NaN, whatever the operands are. ``name`` is the scalar's.
    """
    if dtype == "complex64" and _FP32_MAX < max(abs(value.real), abs(value.imag)) < math.inf:
        raise ValueError(
            f"{name} must be within the range of fp32, in which a complex64 result is computed, "
            f"got {value}: name precision='fp64', or scale an operand"
        )


def as_real(value: Any, name: str) -> float:
    """Return a scalar argument as a float; errors as in `as_number`."""
    if type(value) is float:
        return value
    return float(_converted(float, value, name, "a real number"))


def as_integer(value: Any, name: str) -> int:
    """Return an argument that is an integer as one.

    Raises TypeError for what is none, as a truth value: of a mask, or in the place of a flag.
    """
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return index(value)


def is_integer(value: Any) -> bool:
    """Return whether an argument is an integer, and not a truth value."""
    try:
        index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def as_flag(value: Any, name: str) -> bool:
    """Return an argument that is true or false. Raises TypeError for what is neither, as text."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be true or false, got {value!r}")
    return bool(value)


def in_order(value: Any, name: str) -> tuple[Any, ...]:
    """Return the items of a sequence.

    Raises TypeError for text, for what has no items, and for sets and mappings, which have no order
    or other items than their keys.
    """
    if not isinstance(value, str | Set | Mapping):
        with suppress(TypeError):
            return tuple(value)
    raise TypeError(f"{name} must be a sequence of them, got {value!r}")


def as_names(value: Any, name: str) -> tuple[Any, ...]:
    """Return an argument that is a name or several as names. Raises TypeError for neither."""
    with suppress(TypeError):
        found = (value,) if isinstance(value, str) else tuple(value)
        if all(isinstance(one, str) for one in found):
            return found
    raise TypeError(f"{name} must be a name or names, got {value!r}")


def check_one_of(name: str, value: Any, allowed: Collection[str], *, or_none: bool = False) -> None:
    """Raise ValueError for an argument that is none of the allowed names, such as an array.

    ``or_none`` says that the argument may also be None.
    """
    if (value is None and or_none) or (isinstance(value, str) and value in allowed):
        return
    more = " or None" if or_none else ""
    raise ValueError(f"{name} must be one of {list(allowed)}{more}, got {value!r}")


def _converted(kind: Callable[[Any], Any], value: Any, name: str, words: str) -> Any:
    try:
        none = isinstance(value, str) or value is np.ma.masked
        if not none and not (kind is float and _is_complex(value)):
            return kind(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:  # of an integer or a fraction
        raise ValueError(f"{name} must be within the range of fp64") from None
    raise TypeError(f"{name} must be {words}, got {value!r}")


def _is_complex(value: Any) -> bool:
    # np.iscomplexobj makes an array of a tensor, which fails where it is on a GPU.
    return getattr(getattr(value, "dtype", None), "kind", None) == "c"


def as_axis(axis: Any, rank: int) -> int:
    """Return an axis of x, counted from the first.

    Raises TypeError for no integer, ValueError for one that x, of ``rank`` axes, does not have.
    """
    found = as_integer(axis, "axis")
    if not -rank <= found < rank:
        raise ValueError(f"axis must be one of x's {rank} axes, got {found}")
    return found % rank


def type_name(x: Any) -> str:
    """Return an array's type for messages, or the ``type_name`` of an object that has one."""
    return _own_type(x) or str(getattr(x, "dtype", type(x).__name__))


def _own_type(x: Any) -> str | None:
    """Return the ``type_name`` of an object that has one, such as `argand.Pairs`."""
    own = getattr(x, "type_name", None)
    return own if isinstance(own, str) else None


def refuse_masked(name: str, x: Any) -> None:
    """Raise TypeError for a masked array of NumPy's with masked elements."""
    if not isinstance(x, np.ma.MaskedArray):
        return
    mask: Any = np.ma.getmaskarray(x)
    fields = [mask] if mask.dtype.names is None else [mask[field] for field in mask.dtype.names]
    count = np.count_nonzero(np.logical_or.reduce(fields))
    if count:
        raise TypeError(
            f"{name} has {count} masked elements, which would be read as all others are; "
            f"give {name}.filled(value)"
        )
