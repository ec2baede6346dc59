"""The kernels of exact products without a GPU: they compile, and their constants prove right."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from argand.device import Arch
from argand.gemm.modular import constants
from argand.gemm.modular.constants import (
    LARGEST_RESIDUE,
    SUM_BIAS,
    encode_modulus,
    fraction_constants,
    reduce_modulus,
)
from argand.gemm.modular.encode_plan import EncodePlan, Reading
from argand.gemm.modular.kernel_sources import (
    DECODE_KERNEL,
    ENCODE_KERNEL,
    EXPONENT_KERNEL,
    NORM_KERNELS,
    PRODUCT_KERNEL,
    SLICE_KERNEL,
    decode_kernel_source,
    encode_kernel_source,
    exponent_source,
    norm_source,
    product_source,
    slice_source,
)
from argand.gemm.modular.moduli import MAX_MODULI, MIN_MODULI, MODULI, moduli
from argand.gemm.modular.product_plan import ResiduePlan, plans_of
from argand.gemm.modular.proof_plan import (
    BEGIN_PROOF,
    END_PROOF,
    IMAGE_KERNEL,
    REDUCE_IMAGE,
    begin_proof_source,
    end_proof_source,
    image_source,
    reduce_image_source,
)

from tests.covers import EXHAUSTIVE, covered
from tests.kernels.compiled import ARCHS, assert_clean

COUNTS = range(MIN_MODULI, MAX_MODULI + 1)
Array = np.ndarray[Any, Any]


def rows(arch: Arch, **axes: Any) -> Iterator[dict[str, Any]]:
    """Every combination of arguments, or those on this architecture of a cover over all of them.

    The cover has each kernel on each architecture: they differ by how operands are read, and where
    a proof is encoded and decoded too.
    """
    every = product(ARCHS.values(), *axes.values())

    def features(row: dict[str, Any]) -> dict[str, Any]:
        kernels = {name: row[name] for name in ("reading", "proved") if name in row}
        return row | {f"kernel by {name}": (row["arch"], of) for name, of in kernels.items()}

    for one in covered(
        [dict(zip(("arch", *axes), values, strict=True)) for values in every], features, strength=1
    ):
        if one.pop("arch") == arch:
            yield one


def clusters(counts: range) -> list[dict[str, Any]]:
    """Kernels of clusters of CTAs that hold one block of lines or two, or one kernel of each."""
    every = [
        {"dtype": "complex64", "count": count, "permuted": permuted, "cluster": cluster,
         "proved": proved}
        for count, permuted, cluster, proved in product(
            counts, (True, False), ((4, 1), (8, 2)), (True, False)
        )
    ]  # fmt: skip
    return every if EXHAUSTIVE else [every[0], every[-2]]


def every_source(
    arch: Arch, plans: tuple[ResiduePlan, ...], counts: range
) -> Iterator[tuple[str, str]]:
    """Every kernel of the plans and numbers of moduli, or a cover: its source and its name."""
    types, both = ("complex64", "complex128"), (False, True)
    for one in plans:
        # What adds to a result has all that the other has.
        for adds in both if EXHAUSTIVE or one is plans[0] else (True,):
            yield product_source(one, adds=adds), f"modular_{PRODUCT_KERNEL}"
    yield exponent_source(), f"modular_{EXPONENT_KERNEL}"
    yield slice_source(), f"modular_{SLICE_KERNEL}"
    for dtype, along_k in product(types, both):
        yield norm_source(dtype, along_k=along_k), f"modular_{NORM_KERNELS[along_k]}"
    apart = [reading for reading in get_args(Reading) if reading != "clustered lines"]
    for row in rows(arch, dtype=types, count=counts, reading=apart, permuted=both, proved=both):
        plan = EncodePlan(row.pop("reading"))
        yield encode_kernel_source(plan=plan, **row), f"modular_{ENCODE_KERNEL}"
    if arch.sm == 90:
        for row in clusters(counts):
            plan = EncodePlan("clustered lines", cluster=row.pop("cluster"))
            yield encode_kernel_source(plan=plan, **row), f"modular_{ENCODE_KERNEL}"
    for row in rows(arch, dtype=types, count=counts, proved=both):
        yield decode_kernel_source(**row), f"modular_{DECODE_KERNEL}"
    for row in rows(arch, dtype=types, count=counts, lines_summed=both, lanes_sum=both):
        yield image_source(**row), f"modular_{IMAGE_KERNEL}"
    for dtype in types:
        yield begin_proof_source(dtype), f"modular_{BEGIN_PROOF}"
    yield end_proof_source(), f"modular_{END_PROOF}"
    yield reduce_image_source(), f"modular_{REDUCE_IMAGE}"


@pytest.mark.slow
def test_every_kernel_compiles(arch: Arch) -> None:
    families = dict.fromkeys([*(plan.family for plan in plans_of(arch)), "mma.sync"])
    plans = tuple(plan for family in families for plan in plans_of(arch, family))
    if not EXHAUSTIVE:  # one of each kernel and of each number of rows of a warpgroup
        plans = tuple({(p.warpgroup_rows, p.resident_tiles): p for p in plans}.values())
    for source, name in every_source(arch, plans, COUNTS if EXHAUSTIVE else range(7, 18, 9)):
        assert_clean(source, arch.target, name)


def fp32(bits: Array) -> Array:
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def fused(x: Array, factor: float, addend: float) -> Array:
    """A multiply-add rounded once to fp32: fp64 holds these exactly before."""
    return (x * factor + addend).astype(np.float32).view(np.uint32).astype(np.int64)


def low_byte(quotient: Array, bits: Array, p: int) -> Array:
    return ((bits - quotient * p) & 0xFF).astype(np.uint8).view(np.int8).astype(np.int64)


@pytest.mark.parametrize("p", MODULI)
@pytest.mark.parametrize("digits", [4, 8])
def test_integers_become_residues(rng: np.random.Generator, p: int, digits: int) -> None:
    row, bits = encode_modulus(p, digits), 8 * digits - 2
    values = [0, 1, -1, 2**bits - 1, -(2**bits), 127, -128, p // 2, -p // 2]
    values += rng.integers(-(2**bits), 2**bits, 3000).tolist()
    x, y = (np.array(v, dtype=object) for v in (values, values[::-1]))
    sums = np.full(len(values), row.offset, np.int64)
    for sign in (1, -1):
        found = sums.copy()
        for part, weights in ((x, row.real), (y, tuple(sign * w for w in row.turned))):
            for j, weight in enumerate(weights):
                found += (digit(part, j, digits) * weight).astype(np.int64)
        quotient = fused(fp32(found), row.reciprocal, row.correction)
        got = low_byte(quotient, found, p)
        s = moduli(MAX_MODULI).rows[MODULI.index(p)].root
        assert np.abs(got).max() <= LARGEST_RESIDUE
        assert not ((x + sign * s * y - got) % p).any()


def digit(x: Array, place: int, count: int) -> Array:
    """Signed digit of x to base 256; the last one holds what is left."""
    shifted = x + sum(128 << 8 * j for j in range(count - 1))
    found = shifted >> 8 * place
    return found if place == count - 1 else found % 256 - 128


@pytest.mark.parametrize("p", MODULI)
def test_sums_become_residues(rng: np.random.Generator, p: int) -> None:
    row, most = reduce_modulus(p), 65536 * LARGEST_RESIDUE**2
    assert most < SUM_BIAS
    assert SUM_BIAS + most < 2**32
    sums = np.concatenate([
        [0, 1, -1, most, -most, p // 2, -p // 2], np.arange(-3 * p, 3 * p),
        rng.integers(-most, most, 20000),
    ])  # fmt: skip
    accumulator = sums + SUM_BIAS
    bits = row.offset + sum((accumulator >> 8 * j & 0xFF) * x for j, x in enumerate(row.weights))
    got = low_byte(fused(fp32(bits), row.reciprocal, row.correction), bits, p)
    assert np.abs(got).max() <= LARGEST_RESIDUE
    assert not ((sums - got) % p).any()


@pytest.mark.parametrize("limbs", [3, 4])
@pytest.mark.parametrize("count", COUNTS)
def test_fractions_are_as_close_as_promised(
    rng: np.random.Generator, count: int, limbs: int
) -> None:
    whole, found = moduli(count), fraction_constants(count, limbs)
    widths = (32, 19, 19, 19)[:limbs]
    for _ in range(60):
        x = int(rng.integers(1 << 62)) * int(rng.integers(1 << 62)) % whole.product
        x = (x - whole.product // 2) >> int(rng.integers(0, 60))
        digits = [0] * limbs
        for row, weights in zip(whole.rows, found.real, strict=True):
            residue = (x + row.p // 2) % row.p - row.p // 2
            # Real x: both residues are x, so their sum is twice that.
            digits = [d + 2 * residue * w for d, w in zip(digits, weights, strict=True)]
        assert all(abs(d) < 2**31 for d in digits[1:])
        places = [sum(widths[: i + 1]) for i in range(limbs)]
        fraction = sum(Fraction(d, 1 << place) for d, place in zip(digits, places, strict=True))
        fraction -= round(fraction)
        assert abs(fraction * whole.product - x) <= found.error
    high, low = Fraction(found.high), Fraction(found.low)
    assert abs((high + low) * 2**51 - whole.product) <= Fraction(whole.product) / 2**100


def test_constants_that_leave_their_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for function, what in ((reduce_modulus, "sums"), (lambda p: encode_modulus(p, 8), "residues")):
        with pytest.raises(ValueError, match=f"{what} modulo 257.* leave their range"):
            function(257)  # 16^2 is -1 modulo 257, whose residues go up to 128
    monkeypatch.setattr(constants, "_LIMB_BITS", (32, 20, 20))
    with pytest.raises(ValueError, match="digits of 17 moduli leave 32 bits"):
        fraction_constants.__wrapped__(17, 3)
