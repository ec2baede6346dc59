"""The only list of precisions: what each holds, how it rounds, which products it keeps.

Everything else (the CPU model, the CUDA templates, the bounds, the tables, the README) is derived
from the rows of ``PRECISIONS``. To add a precision, add a row. An operand format is a `Format`
here, and its conversions and MMA atom in ``cuda/device/operand_format.cuh``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from argand.checks import as_names
from argand.operand_format import ROUNDINGS, Format, Rounding

PeerClass = Literal["fp64", "fp32", "tf32", "half"]
"""The baselines that a precision competes with, from the most accurate to the least."""
PEER_CLASSES: tuple[PeerClass, ...] = get_args(PeerClass)

FP64 = Format("fp64", 53, -1022, (2 - 2.0**-52) * 2.0**1023, 8, (1, 1, 70))
FP32 = Format("fp32", 24, -126, (2 - 2.0**-23) * 2.0**127, 4, (0, 0, 68))
TF32 = Format("tf32", 11, -126, (2 - 2.0**-10) * 2.0**127, 4, (0, 0, 77), "tf32")
FP16 = Format("fp16", 11, -14, 65504.0, 2, (2, 0, 68), "f16")
INT8 = Format("int8", 8, 0, 127.0, 1, (3, 10, 72), "s8")
BF16 = Format("bf16", 8, -126, (2 - 2.0**-7) * 2.0**127, 2, (14, 0, 68), "bf16")
HALF_FORMATS: Mapping[str, Format] = MappingProxyType({row.name: row for row in (FP16, BF16)})
"""Formats of 16 bits by name, which data may have and results be in."""


@dataclass(frozen=True)
class Precision:
    """A precision of complex products: terms of an operand, and the pairs that are multiplied.

    An operand x is replaced by the sum of ``len(roundings)`` terms of format ``operand``: the first
    is x rounded, each further one the rounded remainder. ``products`` lists the pairs (term of A,
    term of B) that are multiplied, in the order in which they are added. ``scaled`` says that rows
    of A and columns of B are multiplied by powers of two before rounding (exactly undone after).
    Within `full_range` of such a line's largest value others are accurate to `u`; smaller ones are
    off by `scaled_floor`. ``min_sm`` is ten times the lowest compute capability of a GPU that has
    it.

    ``moduli`` is 0, or the number of moduli of a product by exact integers
    (`argand.gemm.modular`): its lines are rounded to integers, and sums are not rounded at all.

    ``counterpart`` is, for a scaled precision, the one with as many terms and significant bits in
    the range of fp32. It needs no scales, so products may be computed at it
    (`argand.gemm.in_tf32`).
    """

    name: str
    operand: Format
    accumulator: Format
    output: Literal["complex64", "complex128"]
    peer_class: PeerClass
    summary: str
    _: KW_ONLY
    roundings: tuple[Rounding, ...] = ("nearest_even",)
    products: tuple[tuple[int, int], ...] = ((0, 0),)
    scaled: bool = False
    min_sm: int = 80
    moduli: int = 0
    counterpart: Precision | None = None

    def __repr__(self) -> str:
        """Return name and roundings, in which rows differ: problems and plans print it."""
        return f"Precision({self.name!r}, roundings={self.roundings})"

    def __hash__(self) -> int:
        """Return the hash of the name: rows are looked up at every call, and few differ in more."""
        return hash(self.name)

    @property
    def symbol(self) -> str:
        """The name as part of a kernel's symbol."""
        return self.name if self.name.isidentifier() else f"x{self.name}"

    @property
    def terms(self) -> int:
        """Number of terms that stand for one operand."""
        return len(self.roundings)

    @property
    def planar_bytes(self) -> int:
        """Bytes of a complex number in planes: all terms of both parts."""
        return 2 * self.terms * self.operand.bytes

    @property
    def term_roundoffs(self) -> tuple[float, ...]:
        """The largest relative error of each rounding: 2^-p to nearest, 2^(1-p) toward zero.

        The remainder of fp32's 24 bits after rounding to 11 has 12 bits. Cut to 11 bits it loses
        one bit, so it is off by no more than when rounded.
        """
        half = 2.0**-self.operand.significand
        cut = self.roundings[0] == "toward_zero"
        return tuple(2 * half if mode == "toward_zero" and cut else half for mode in self.roundings)

    @property
    def u(self) -> float:
        """Unit roundoff of an operand: |x - sum of its terms| <= u |x|, without underflow."""
        return math.prod(self.term_roundoffs)

    @property
    def scaled_floor(self) -> float:
        """Largest error of a scaled component where u is less, relative to its line's largest.

        The largest is brought to 2^e or more (`Format.scaled_exponent`), and below the normal
        numbers a term is off by half the spacing of the subnormal ones. The last term decides: the
        first one's remainder goes into it. So it is the same for any number of terms, and
        components smaller than this are rounded to zero. 0 where nothing is scaled.
        """
        half_spacing = self.operand.smallest_subnormal / 2
        return half_spacing * 2.0**-self.operand.scaled_exponent if self.scaled else 0.0

    @property
    def full_range(self) -> int | None:
        """Powers of two by which a component may be below its line's largest and be accurate to u.

        From there on `scaled_floor` is more than u times the component. None where nothing is
        scaled: every normal number is accurate to u.
        """
        return math.frexp(self.u / self.scaled_floor)[1] - 1 if self.scaled else None

    @property
    def without_scales(self) -> Precision | None:
        """The counterpart with this precision's rounding; None where there is none.

        Numbers whose terms are normal in a scaled line are rounded to the same bits there, and
        smaller ones to as many, in fp32's range: bounds at this precision hold.
        """
        return self.counterpart and self.counterpart.with_rounding(self.roundings)

    @property
    def dropped(self) -> float:
        """Bound on the products that are not kept, relative to |a||b|: 0 when all are."""
        sizes = [1.0]
        for roundoff in self.term_roundoffs[:-1]:
            sizes.append(sizes[-1] * roundoff)
        grown = [
            size * (1 + roundoff) for size, roundoff in zip(sizes, self.term_roundoffs, strict=True)
        ]
        every = {(i, j) for i in range(self.terms) for j in range(self.terms)}
        return sum(grown[i] * grown[j] for i, j in sorted(every - set(self.products)))

    @property
    def real_output(self) -> str:
        """The NumPy type of a real result (softmax)."""
        return "float64" if self.output == "complex128" else "float32"

    @property
    def exact_operands(self) -> bool:
        """Whether an operand of the output's type is taken as it is."""
        return self.operand.significand >= 24

    def with_rounding(self, rounding: Sequence[str] | str | None) -> Precision:
        """Return the precision with other rounding of its terms (one name for all, or one each).

        Raises ValueError for an unknown rounding, a wrong count, or an operand that is not rounded.
        """
        if rounding is None:
            return self
        modes = as_names(rounding, "rounding")
        if isinstance(rounding, str):
            modes *= self.terms
        allowed = self.allowed_roundings
        if len(modes) != self.terms or any(mode not in allowed for mode in modes):
            raise ValueError(
                f"rounding for {self.name} must be {self.terms} of {list(allowed)}, "
                f"got {list(modes)}"
            )
        return replace(self, roundings=modes)

    @property
    def allowed_roundings(self) -> tuple[Rounding, ...]:
        """tf32 terms are rounded by our own code, the others by the hardware's conversion."""
        return ROUNDINGS if self.operand == TF32 else ("nearest_even",)


_TF32 = Precision(
    "tf32", TF32, FP32, "complex64", "tf32",
    "operands rounded to 11 significant bits, range of fp32",
    roundings=("half_ulp_truncate",),
)  # fmt: skip
_3XTF32 = Precision(
    "3xtf32", TF32, FP32, "complex64", "fp32",
    "each operand as big + small in tf32; products small.big, big.small, big.big",
    roundings=("nearest_even", "toward_zero"), products=((1, 0), (0, 1), (0, 0)),
)  # fmt: skip
_ROWS = (
    Precision("fp64", FP64, FP64, "complex128", "fp64", "IEEE double: the yardstick"),
    Precision("fp32", FP32, FP32, "complex64", "fp32", "IEEE single"),
    _TF32,
    _3XTF32,
    Precision(
        "3xfp16", FP16, FP32, "complex64", "fp32",
        "operands scaled by powers of two, each as hi + lo in fp16; products lo.hi, hi.lo, hi.hi",
        roundings=("nearest_even", "nearest_even"), products=((1, 0), (0, 1), (0, 0)),
        scaled=True, counterpart=_3XTF32,
    ),
    Precision(
        "fp16", FP16, FP32, "complex64", "half",
        "operands scaled by powers of two and rounded to 11 significant bits",
        scaled=True, counterpart=_TF32,
    ),
    Precision(
        "bf16", BF16, FP32, "complex64", "half",
        "operands rounded to 8 significant bits, range of fp32",
    ),
)  # fmt: skip

PRECISIONS: Mapping[str, Precision] = MappingProxyType({row.name: row for row in _ROWS})
"""Every precision that all operations have, by name, from the most to the least accurate operand
type."""
ROUNDED_PRECISIONS = tuple(name for name, row in PRECISIONS.items() if not row.exact_operands)
"""Names of precisions that round operands: kernels of ours multiply them on tensor cores."""


def _exact(moduli: int) -> Precision:
    """Return the row of products by exact integers modulo ``moduli`` numbers.

    The type and the peers are those whose errors it has: cuBLAS's fp32 errs more than 7 moduli, its
    fp64 more than 15 (docs/tables/products-exact.md).
    """
    wide = moduli > 8
    return Precision(
        f"{moduli}xint8", INT8, FP64 if wide else FP32, "complex128" if wide else "complex64",
        "fp64" if moduli >= 15 else "fp32" if moduli >= 7 else "tf32",
        f"operands rounded to integers, multiplied exactly modulo {moduli} numbers", moduli=moduli,
    )  # fmt: skip


EXACT_PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {row.name: row for row in map(_exact, range(6, 18))}
)
"""The precisions of products alone, by exact integers, from the fewest to the most moduli."""


_OF_DTYPES = {
    "float64": "fp64", "complex128": "fp64", "float32": "fp32", "complex64": "fp32",
    "float16": "fp16", "bfloat16": "bf16",
}  # fmt: skip


def precision_name(precision: Any) -> Any:
    """Return the name of a precision that is given as a dtype of NumPy, CuPy, ml_dtypes or torch.

    Names and rows are returned as they are. Raises TypeError for anything else.
    """
    if isinstance(precision, str | Precision):
        return precision
    name = str(precision).removeprefix("torch.")
    if name not in _OF_DTYPES and precision is not None:  # which NumPy takes for float64
        with suppress(TypeError):
            name = np.dtype(precision).name
    if name not in _OF_DTYPES:
        raise TypeError(
            f"precision must be one of {list(PRECISIONS)}, a row of them, or one of the types "
            f"{list(_OF_DTYPES)}, got {precision!r}"
        )
    return _OF_DTYPES[name]


def get_precision(
    precision: Any, rounding: Sequence[str] | str | None = None, *, exact: bool = False
) -> Precision:
    """Return the row for a name or a dtype (or the row itself), with a rounding that is given.

    ``exact`` allows those of `EXACT_PRECISIONS`, as in products. Raises ValueError with the choices
    for an unknown name, TypeError for what is neither.

    Example:
        >>> argand.get_precision("tf32").u, argand.get_precision(np.complex64).name
        (0.00048828125, 'fp32')
    """
    precision = precision_name(precision)
    if isinstance(precision, str):
        rows = {**PRECISIONS, **EXACT_PRECISIONS} if exact else PRECISIONS
        if precision not in rows:
            raise ValueError(f"precision must be one of {list(rows)}, got {precision!r}")
        precision = rows[precision]
    assert isinstance(precision, Precision)
    if precision.moduli and not exact:
        raise ValueError(f"{precision.name} is for products (argand.gemm): use {list(PRECISIONS)}")
    return precision.with_rounding(rounding)


def any_precision(name: str, rounding: Sequence[str] | str | None = None) -> Precision:
    """Return the row of any name, with its rounding replaced where one is given.

    Raises ValueError with the choices for an unknown name.
    """
    return get_precision(name, rounding, exact=True)
