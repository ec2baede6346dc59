"""Types in which a user's numbers are stored, and what attributes say that they stand for.

The attributes are those of netCDF and its CF conventions: packed numbers, each ``stored *
scale_factor + add_offset``, and stored values that stand for missing ones: by name, or because they
are outside of the valid ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from workflow.files.text_attributes import text_attribute

Array = npt.NDArray[Any]

COMPONENT_TYPES = ("float16", "float32", "float64", "int8", "int16", "int32")
"""Types of a real or imaginary part that are read."""
UNSIGNED_TYPES = ("uint8", "uint16", "uint32")
"""Types that are read too, where it is said which of their numbers stands for 0."""
PARTS = (("r", "i"), ("re", "im"), ("real", "imag"), ("i", "q"))
"""Names of the fields of a compound that is a complex number."""
_SCALE, _OFFSET = "scale_factor", "add_offset"
_MISSING = ("_FillValue", "missing_value")
_VALID = ("valid_min", "valid_max", "valid_range")
_FITS = {"BSCALE": (_SCALE, 1.0), "BZERO": (_OFFSET, 0.0), "BLANK": (_MISSING[0], math.nan)}
"""FITS's attributes: netCDF's name of each, and the value that changes nothing."""
_MAX_VALUES = 16
"""Values of an attribute that are read."""


class StoredError(ValueError):
    """Attributes that cannot be, or of numbers that have none; the text follows the dataset's."""


@dataclass(frozen=True)
class Stored:
    """The numbers that a dataset of real ones stands for.

    ``kind`` is their type, ``scale`` and ``offset`` are what stored ones are multiplied by and then
    raised by, ``missing`` are stored ones that are NaN, and ``bits`` of signed ones hold unsigned
    ones (0 where they do not). A number below ``least`` or above ``most`` is NaN too, of stored
    ones or, with ``limits_numbers``, of the numbers that these stand for.
    """

    kind: str
    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[float, ...] = ()
    bits: int = 0
    least: float = -math.inf
    most: float = math.inf
    limits_numbers: bool = False

    @property
    def changes(self) -> bool:
        """Whether the numbers are others than those that are stored."""
        return bool(self.lacks or self.bits or self.packed)

    @property
    def limited(self) -> bool:
        """Whether some numbers are not valid."""
        return (self.least, self.most) != (-math.inf, math.inf)

    @property
    def lacks(self) -> bool:
        """Whether stored ones may be NaN."""
        return bool(self.missing) or self.limited

    @property
    def scales(self) -> bool:
        """Whether a scale is all that changes them, which complex numbers may have too."""
        return not self.lacks and not self.bits and self.offset == 0.0

    @property
    def packed(self) -> bool:
        """Whether a scale or an offset says what unsigned numbers stand for."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def values(self, stored: Array) -> Array:
        """Return the numbers that stored ones stand for: these themselves where nothing changes."""
        numbers = stored
        if self.bits == 8 * stored.dtype.itemsize:
            numbers = stored.view(stored.dtype.str.replace("i", "u"))
        elif self.bits:  # in a wider type
            numbers = stored & ((1 << self.bits) - 1)
        if not self.lacks and not self.packed:
            return numbers
        found = numbers.astype(np.result_type(self.kind, np.float32))
        found *= self.scale
        found += self.offset
        for value in self.missing:
            found[(stored == value) | (numbers == value)] = np.nan
        if self.limited:
            held = found if self.limits_numbers else numbers
            found[(held < self.least) | (held > self.most)] = np.nan
        return found


def stored_in(dataset: h5py.Dataset) -> Stored:
    """Return the type, scale, offset and missing values of a dataset's numbers or their parts.

    Raises StoredError. Packed numbers have at least the type of the scale and the offset, as CF has
    them.
    """
    _refuse_of_fits(dataset)
    factors = {name: _numbers(dataset, name) for name in (_SCALE, _OFFSET)}
    given = [values for values in factors.values() if values is not None]
    if any(len(values) != 1 or not np.isfinite(values).all() for values in given):
        raise StoredError(f"must have one finite number as {_SCALE} and {_OFFSET}, or none")
    unsigned = text_attribute(dataset, "_Unsigned").lower() == "true"
    found = [_numbers(dataset, name) for name in _MISSING]
    missing = [float(one) for values in found if values is not None for one in values]
    fields = complex_fields(dataset.dtype)
    kind, bits = dataset.dtype[fields[0]] if fields else dataset.dtype, 0
    if unsigned and kind.kind == "i":
        kind, bits = np.dtype(f"u{kind.itemsize}"), 8 * kind.itemsize
    if given and kind.kind in "fiu":
        kind = np.result_type(kind, np.float32, *(values.dtype for values in given))
    scale, offset = factors[_SCALE], factors[_OFFSET]
    return Stored(
        kind.name, 1.0 if scale is None else float(scale[0]),
        0.0 if offset is None else float(offset[0]),
        tuple(one for one in missing if not np.isnan(one)), bits, *_limits(dataset, bits),
    )  # fmt: skip


def _refuse_of_fits(dataset: h5py.Dataset) -> None:
    """Raise StoredError for attributes of FITS that say that stored numbers are others.

    Programs that copy FITS into HDF5 apply them or do not, and some keep them either way. ``BLANK``
    is for integers only.
    """
    fields = complex_fields(dataset.dtype)
    kind = dataset.dtype[fields[0]].kind if fields else dataset.dtype.kind
    for name, (ours, none) in _FITS.items():
        values = _numbers(dataset, name)
        if values is None or (name == "BLANK" and kind == "f") or values.tolist() == [none]:
            continue
        shown = ", ".join(map(str, values.tolist()))
        raise StoredError(
            f"has FITS's {name} {shown}, and nothing says whether it is applied already; delete it "
            f"where it is, and where it is not write {ours} in its place"
        )


def _limits(dataset: h5py.Dataset, bits: int) -> tuple[float, float, bool]:
    """Return the least and the largest valid number, and whether these are unpacked ones.

    They are where their type is that of unpacked numbers: floating point beside stored integers.
    Raises StoredError for an attribute that is no such number.
    """
    found = {name: _numbers(dataset, name) for name in _VALID}
    for name, values in found.items():
        if values is not None and len(values) != 1 + (name == "valid_range"):
            raise StoredError(f"must have {1 + (name == 'valid_range')} numbers as {name}, or none")
    least, most, both = (found[name] for name in _VALID)
    if both is not None:
        least, most = both[:1], both[1:]
    given = [values for values in (least, most) if values is not None]
    if not given:
        return -math.inf, math.inf, False
    fields = complex_fields(dataset.dtype)
    stored = dataset.dtype[fields[0]] if fields else dataset.dtype
    unpacked = given[0].dtype.kind == "f" and stored.kind in "iu"
    turn = bits and not unpacked
    low, high = (
        bound if values is None else float(int(values[0]) % (1 << bits) if turn else values[0])
        for values, bound in ((least, -math.inf), (most, math.inf))
    )
    return low, high, unpacked


def complex_fields(dtype: np.dtype[Any]) -> tuple[str, str] | None:
    """Return the fields of a compound that are real and imaginary part, whichever comes first."""
    names = {name.lower(): name for name in dtype.names or ()}
    found = next((parts for parts in PARTS if {*parts} == {*names}), None)
    if found is None or len(dtype.names or ()) != 2:
        return None
    return names[found[0]], names[found[1]]


def is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether a part has a type that is read; an enumeration's numbers stand for names."""
    known = (*COMPONENT_TYPES, *UNSIGNED_TYPES)
    return dtype.name in known and h5py.check_enum_dtype(dtype) is None


def is_coordinate(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of a type may be coordinates: fp64 and 64-bit integers hold them."""
    is_enum = h5py.check_enum_dtype(dtype) is not None
    return dtype.kind in "fiu" and dtype.itemsize <= 8 and not is_enum


def widened(numbers: Array) -> Array:
    """Return coordinates as fp64, and integers as int64, or uint64 where they do not fit."""
    if numbers.dtype.kind == "f":
        return numbers.astype(np.float64, copy=False)
    large = int(numbers.max(initial=0)) > np.iinfo(np.int64).max
    return numbers.astype(np.uint64 if large else np.int64, copy=False)


def type_in_words(dtype: np.dtype[Any]) -> str:
    """Return a stored type in words."""
    if h5py.check_enum_dtype(dtype) is not None:
        return f"an enumeration in {dtype.name}"
    if dtype.names is None:
        return "text or objects" if dtype.kind == "O" else dtype.name
    fields = ", ".join(f"{name}: {dtype[name].name}" for name in dtype.names)
    return f"a compound {{{fields}}}"


def _numbers(dataset: h5py.Dataset, name: str) -> Array | None:
    """Return the numbers of an attribute; None where there is none. Raises StoredError."""
    if name not in dataset.attrs:
        return None
    held = dataset.attrs.get_id(name)
    count = 0 if held.shape is None else math.prod(held.shape)
    if held.dtype.kind not in "fiu" or not 1 <= count <= _MAX_VALUES:
        raise StoredError(
            f"has an attribute {name} that is not one number, or a few; correct or delete it"
        )
    return np.atleast_1d(np.asarray(dataset.attrs[name])).reshape(-1)
