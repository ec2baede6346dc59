"""Complex matrices as pairs of reals: the types that neither NumPy nor CuPy has as complex numbers.

Half of complex64 (fp16 or bf16 parts) and the integers of receivers and converters lie in memory as
real and imaginary part one after the other. `Pairs` gives such an array its meaning, on the CPU and
on a GPU alike: everything here is done by the array's own methods, and CuPy is never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from argand.checks import as_array, check_one_of, refuse_masked, refuse_misaligned, shape_of
from argand.device import is_cuda_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.precision import BF16, FP16, FP32, HALF_FORMATS
from argand.runtime.calls.array_context import context_of

PAIR_FORMATS: Mapping[str, str] = MappingProxyType(
    {FP16.name: "float16", BF16.name: "uint16", "int8": "int8", "int16": "int16",
     FP32.name: "float32"}
)  # fmt: skip
"""The array type that holds the parts of each format; bf16 are the bits, for want of a type."""
_FORMATS_BY_TYPE = {dtype: name for name, dtype in PAIR_FORMATS.items() if name != BF16.name}
_FIELDS = {"r", "i"}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Complex numbers ``(..., rows, columns)`` as a real array ``(..., rows, columns, 2)``.

    Attributes:
        array: the parts, a NumPy or a CuPy array of any strides; the last axis is real, imaginary.
            Parts that lie one after the other are what files hold and what is fastest.
        format: a name of ``PAIR_FORMATS``. ``array`` has its type; at bf16 that is uint16, the
            upper 16 bits of an fp32 number.

    Raises ValueError for an unknown format, an array of another type, or a last axis that is not 2.
    """

    array: Any
    format: str

    def __post_init__(self) -> None:
        check_one_of("format", self.format, PAIR_FORMATS)
        refuse_masked("array", self.array)
        refuse_misaligned("array", self.array)
        shape = shape_of(self.array, "array")
        dtype = str(getattr(self.array, "dtype", type(self.array).__name__))
        held = PAIR_FORMATS[self.format]
        if dtype != held:
            raise ValueError(f"pairs of {self.format} must be an array of {held}, got {dtype}")
        if not shape or shape[-1] != 2:
            raise ValueError(
                f"pairs must have a last axis of length 2 (real, imaginary), got shape {shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of complex numbers: without the last axis."""
        return tuple(self.array.shape[:-1])

    @property
    def ndim(self) -> int:
        """Axes of the complex numbers."""
        return int(self.array.ndim) - 1

    @property
    def type_name(self) -> str:
        """The type's name in messages."""
        return f"Pairs of {self.format}"

    @property
    def device(self) -> Any:
        """The array's own: CuPy's device, or the name of NumPy's."""
        return self.array.device

    @property
    def on_gpu(self) -> bool:
        """Whether the array lives on a GPU."""
        return is_cuda_array(self.array)

    def to_complex64(self) -> Any:
        """Return the same numbers as complex64, exactly; fp32 without a copy if contiguous.

        On a GPU those that begin in the middle of 8 bytes are copied.
        """
        with context_of(self.array):
            if self.format == BF16.name:
                bits = self.array.astype("uint32", order="C")
                bits <<= 16  # in place: a second array would take as much again
                parts = bits.view("float32")
            else:
                parts = self.array.astype("float32", order="C", copy=False)
                if self.on_gpu and parts.data.ptr % 8:  # kernels read both parts at once
                    parts = parts.copy()
            return parts.view("complex64")[..., 0]

    def assign(self, other: Pairs) -> None:
        """Copy the numbers of other pairs of this format, shape and device into these."""
        with context_of(self.array):
            self.array[...] = other.array


def pairs(array: Any, format: str | None = None) -> Pairs:
    """Give an array its meaning as complex numbers, without a copy where its layout allows.

    Args:
        array: ``(..., 2)`` of a type of ``PAIR_FORMATS``, on the CPU or a GPU; or a NumPy
            structured array ``(...)`` of two fields ``r`` and ``i`` of one type, as h5py reads
            HDF5's compounds. Byte orders and paddings that hardware does not read are copied away.
        format: a name of ``PAIR_FORMATS``; the array's type says it where it is left out, except
            that uint16 needs ``format="bf16"``.

    Raises:
        ValueError: a type that no format has, a format of another type, a last axis that is not 2.

    Example:
        >>> voltages = np.array([[[3, -1], [0, 4]]], np.int8)  # a row of 3 - i and 4i
        >>> argand.gemm(argand.pairs(voltages), argand.pairs(voltages), op_b="C", precision="fp16")
        array([[26.+0.j]], dtype=complex64)
    """
    if has_foreign(array):
        found: Pairs = call_on_foreign(pairs, {"array": array}, format=format)
        return found
    if not is_cuda_array(array):
        array = as_array(array, "array")
        if array.dtype.names is not None:
            array = _parts(array)
        elif not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
    if format is None:
        dtype = str(array.dtype)
        if dtype == PAIR_FORMATS[BF16.name]:
            raise ValueError('pairs of uint16 need format="bf16": bits, not numbers')
        if dtype not in _FORMATS_BY_TYPE:
            raise ValueError(
                f"pairs must be of {list(_FORMATS_BY_TYPE)}, or uint16 with format='bf16', "
                f"got {dtype}"
            )
        format = _FORMATS_BY_TYPE[dtype]
    return Pairs(array, format)


def _parts(array: Any) -> Any:
    """Return a structured array ``(...)`` of r and i as ``(..., 2)``, a view where possible."""
    if set(array.dtype.names) != _FIELDS:
        raise ValueError(
            f"a structured array must have the fields ['r', 'i'], got {list(array.dtype.names)}"
        )
    real, imag = (array.dtype[name].newbyteorder("=") for name in ("r", "i"))
    if real != imag:
        raise ValueError(f"the fields r and i must be of one type, got {real} and {imag}")
    if array.dtype == np.dtype([("r", real), ("i", real)]):
        return array[..., np.newaxis].view(real)
    return np.stack([array["r"], array["i"]], axis=-1).astype(real, copy=False)


def to_pairs(x: Any, format: str) -> Pairs:
    """Round complex64 to fp16 or bf16, each part to nearest, ties to even.

    Args:
        x: complex64 ``(...)``, on the CPU or a GPU. Another type would be rounded twice.
        format: fp16 or bf16.

    Returns:
        A new array. What is too large becomes an infinity, NaN stays NaN.

    Raises:
        ValueError: another type or format.

    Example:
        >>> argand.to_pairs(np.array([[1 + 2j]], np.complex64), "fp16").array
        array([[[1., 2.]]], dtype=float16)
    """
    check_one_of("format", format, HALF_FORMATS)
    if has_foreign(x):
        found: Pairs = call_on_foreign(to_pairs, {"x": x}, format=format)
        return found
    x = x if is_cuda_array(x) else as_array(x, "x")
    if str(x.dtype) != "complex64":
        raise ValueError(f"x must be complex64, got {x.dtype}")
    refuse_misaligned("x", x)
    with context_of(x), np.errstate(over="ignore"):
        parts = x.astype(x.dtype, order="C", copy=False).reshape(*x.shape, 1).view("float32")
        if format == FP16.name:
            return Pairs(parts.astype("float16"), format)
        bits = parts.view("uint32")
        # Half of the last place kept, less one unit of the bits where it is even: ties stay there.
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16")
        rounded[(bits & 0x7FFFFFFF) > 0x7F800000] = 0x7FC0
        return Pairs(rounded, format)
