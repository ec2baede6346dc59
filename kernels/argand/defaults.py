"""The precision of a call that names none: that of its data.

Data of fp64 are computed at fp64. Narrower data are computed at fp32 on the CPU, where NumPy's and
SciPy's libraries are the fastest, and on a GPU at the fastest precision whose errors are those of
fp32 whatever the range of the data. Emulations run on a CPU only where they are named.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import numpy as np

Operation = Literal["product", "transform", "softmax", "filter bank", "gate"]

ON_GPU: dict[Operation, str] = {
    "product": "3xtf32", "transform": "3xfp16", "softmax": "fp32", "filter bank": "fp32",
    "gate": "3xfp16",
}  # fmt: skip
"""The precision of data below fp64, by operation. A product's rows may span all of fp32's range,
which 3xfp16 cuts; a transform is scaled as a whole, and its errors are relative to its norm at any
precision. So are a gate's, whose state has the norm 1."""
_SINGLE = np.dtype(np.complex64)
_DOUBLE = {
    dtype.name
    for dtype in map(np.dtype, np.typecodes["All"])
    if dtype.kind in "biufc" and np.result_type(dtype, _SINGLE) != _SINGLE
}
"""Names of the types whose product with complex64 NumPy computes in fp64."""
_DOUBLE_TYPES = {np.dtype(name) for name in _DOUBLE}
_DOUBLE_TYPES |= {dtype.newbyteorder() for dtype in _DOUBLE_TYPES}
_OF_NUMPY = {type(dtype) for dtype in map(np.dtype, np.typecodes["All"])}
"""The classes of NumPy's types."""
_EXTENDED = {np.dtype(kind) for kind in (np.longdouble, np.clongdouble)} - {
    np.dtype(kind) for kind in (np.float64, np.complex128)
}
"""Types wider than fp64; none where the platform's long double is fp64."""


def default_precision(operation: Operation, arrays: tuple[Any, ...], *, on_gpu: bool) -> str:
    """Return the name of the precision for these operands; some may be None.

    What NumPy would compute in fp64 (float64, complex128, int32, int64) is; all else, also types
    that NumPy has not, such as bfloat16 and `Pairs`, is narrower. Raises TypeError for NumPy's
    extended floats, whose digits no precision has.
    """
    for x in arrays:
        if getattr(x, "dtype", None) in _EXTENDED:
            raise TypeError(
                f"no precision has the digits of {x.dtype}: name one, such as precision='fp64', "
                "to which it is rounded"
            )
    if any(is_double(x) for x in arrays):
        return "fp64"
    return ON_GPU[operation] if on_gpu else "fp32"


def is_double(x: Any) -> bool:
    """Return whether NumPy would compute a product of x with complex64 in fp64.

    ``x`` is an array of any library, what NumPy makes one of, or anything else, which is narrower.
    """
    if x is None or isinstance(x, int | float | complex | np.number):
        return False
    dtype = getattr(x, "dtype", None)
    if dtype is None and (isinstance(x, list | tuple | memoryview) or hasattr(x, "__array__")):
        with suppress(ValueError):  # lists that are no array, which the call itself refuses
            dtype = np.asarray(x).dtype
    if type(dtype) in _OF_NUMPY:  # whose names take NumPy a microsecond
        return dtype in _DOUBLE_TYPES
    name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
    return name in _DOUBLE
