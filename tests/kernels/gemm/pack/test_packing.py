"""Packed operands on the CPU: the bits of the unpacked product, snapshots, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, Packed, devices, gemm, pack, pairs
from argand.operand_format import ROUNDINGS

from tests.kernels.precisions import SCALED
from tests.normal import normal

Array = npt.NDArray[Any]
OPS = ("N", "T", "C")


def strided(x: Array) -> Array:
    wide = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), x.dtype)
    wide[..., ::2, ::3] = x
    return wide[..., ::2, ::3]


def pitched(x: Array) -> Array:
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    wide[..., 1:-2] = x
    return wide[..., 1:-2]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rows": lambda x: x,
    "columns": lambda x: np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2),
    "pitched": pitched,
    "pitched columns": lambda x: np.swapaxes(pitched(np.swapaxes(x, -1, -2)), -1, -2),
    "strided": strided,
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1],
    "double": lambda x: x.astype(complex),
}


def check(a: Array, b: Array, precision: str, op_a: str = "N", op_b: str = "N", **how: Any) -> None:
    """Packed on the left, on the right and on both sides, bit for bit."""
    expected = gemm(a, b, precision=precision, op_a=op_a, op_b=op_b, **how)
    left = pack(a, precision, side="a", op=op_a, rounding=how.get("rounding"))
    right = pack(b, precision, side="b", op=op_b, rounding=how.get("rounding"))
    assert expected.shape[-2:] == (left.shape[-2], right.shape[-1])
    assert left.shape[-1] == right.shape[-2]
    for x, y, kept in ((left, b, {"op_b": op_b}), (a, right, {"op_a": op_a}), (left, right, {})):
        found = gemm(x, y, precision=precision, **kept, **how)
        np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops(precision: str, op_a: str, op_b: str) -> None:
    rng = np.random.default_rng(1)
    a = normal(rng, *((33, 70) if op_a == "N" else (70, 33)))
    b = normal(rng, *((70, 41) if op_b == "N" else (41, 70)))
    check(a, b, precision, op_a, op_b, alpha=0.5j)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("m_n_k", [(1, 1, 1), (1, 90, 333), (90, 1, 333), (1, 1, 500), (40, 30, 1)])
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_layouts_of_vectors(
    precision: str, m_n_k: tuple[int, int, int], layout_a: str, layout_b: str
) -> None:
    """BLAS sums vectors in an order that depends on how they lie."""
    rng = np.random.default_rng(2)
    m, n, k = m_n_k
    check(LAYOUTS[layout_a](normal(rng, m, k)), LAYOUTS[layout_b](normal(rng, k, n)), precision)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(precision: str, layout: str) -> None:
    rng = np.random.default_rng(3)
    a, b = LAYOUTS[layout](normal(rng, 2, 37, 200)), LAYOUTS[layout](normal(rng, 200, 53))
    check(a, b, precision)
    check(a, b, precision, op_a="N", op_b="N", alpha=-2)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("left", "right"), [((3,), ()), ((), (2,)), ((2, 1), (3,)), ((0,), ()), ((4,), (1,))]
)
def test_batches(precision: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    a, b = normal(rng, *left, 9, 12), normal(rng, *right, 12, 7)
    assert pack(a, precision).shape == a.shape
    check(a, b, precision)
    check(np.broadcast_to(a[..., :1, :], a.shape), b, precision)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_roundings(precision: str, rounding: str) -> None:
    rng = np.random.default_rng(5)
    check(normal(rng, 20, 30), normal(rng, 30, 10), precision, rounding=rounding)


@pytest.mark.parametrize("scale", [1e-30, 1e-5, 1e30])
def test_scales_are_undone(scale: float) -> None:
    rng = np.random.default_rng(6)
    a, b = normal(rng, 20, 30) * np.float32(scale), normal(rng, 30, 10) * np.float32(1e-8)
    for precision in SCALED:
        check(a, b, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_beta_out_and_c(precision: str) -> None:
    rng = np.random.default_rng(7)
    dtype = PRECISIONS[precision].output
    a, b, c = (normal(rng, 8, 8).astype(dtype) for _ in range(3))
    expected = gemm(a, b, c, beta=2j, precision=precision)
    assert gemm(pack(a, precision), b, c, beta=2j, precision=precision, out=c) is c
    np.testing.assert_array_equal(c, expected)
    right = pack(b, precision, side="b")
    expected = gemm(a, b, precision=precision)
    np.testing.assert_array_equal(gemm(a, right, precision=precision, out=b), expected)
    np.testing.assert_array_equal(gemm(a, right, precision=precision, out=a), expected)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op", OPS)
def test_what_is_packed_is_what_the_array_held(precision: str, op: str) -> None:
    rng = np.random.default_rng(8)
    a, b = normal(rng, 16, 16).astype(PRECISIONS[precision].output), normal(rng, 16, 16)
    expected = gemm(a, b, op_a=op, precision=precision)
    packed = pack(a, precision, op=op)
    a[...] = 0
    np.testing.assert_array_equal(gemm(packed, b, precision=precision), expected)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_pairs_and_structured_arrays(precision: str) -> None:
    rng = np.random.default_rng(9)
    parts, b = rng.integers(-9, 9, (6, 8, 2)).astype(np.int8), normal(rng, 8, 5)
    stored = parts.view([("r", "i1"), ("i", "i1")])[..., 0]
    expected = gemm(pairs(parts), b, precision=precision)
    for x in (pairs(parts), stored, pairs(parts.astype(np.float32))):
        np.testing.assert_array_equal(gemm(pack(x, precision), b, precision=precision), expected)


def test_complex_half_of_packed_operands() -> None:
    rng = np.random.default_rng(10)
    a, b = normal(rng, 6, 8), normal(rng, 8, 5)
    expected = gemm(a, b, precision="fp16", output="complex-half").array
    found = gemm(pack(a, "fp16"), b, precision="fp16", output="complex-half").array
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_it_says(precision: str) -> None:
    x = np.ones((2, 5, 7), np.complex64)
    row = PRECISIONS[precision]
    packed = pack(x, precision, side="b", op="T")
    assert isinstance(packed, Packed)
    assert (packed.shape, packed.ndim, packed.side) == ((2, 7, 5), 3, "b")
    assert packed.precision == row
    assert packed.device == devices()[0]
    numbers = row.terms * x.size * np.dtype(row.output).itemsize
    assert packed.nbytes == numbers + (2 * 5 * 4 if row.scaled else 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: gemm(y, x, precision="tf32"), "a was packed for side b"),
        (lambda x, y: gemm(x, x, precision="tf32"), "b was packed for side a; it must be of sid"),
        (lambda x, y: gemm(x, y, precision="fp32"), "packed at tf32 and the product is at fp32"),
        (lambda x, y: gemm(x, y, precision="fp16"), "a was packed at tf32 and the product is at f"),
        (
            lambda x, y: gemm(x, y, precision="tf32", rounding="toward_zero"),
            r"a was packed with rounding \['half_ulp_truncate'\] .* has \['toward_zero'\]",
        ),
        (lambda x, y: gemm(x, y, op_a="T", precision="tf32"), "op_a of a packed operand must be"),
        (lambda x, y: gemm(x, y, op_b="C", precision="tf32"), "op_b of a packed operand .*got 'C'"),
        (lambda x, y: gemm(x, np.ones((4, 4)), precision="tf32"), "inner dimensions differ"),
        (lambda x, y: gemm(x, y, x, beta=1, precision="tf32"), "c must be an array or Pairs"),
    ],
)
def test_mistakes(call: Callable[[Packed, Packed], Any], message: str) -> None:
    left, right = pack(np.ones((3, 5)), "tf32"), pack(np.ones((5, 3)), "tf32", side="b")
    with pytest.raises(ValueError, match=message):
        call(left, right)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"precision": "fp7"}, "precision must be one of"),
        ({"precision": "tf32", "side": "c"}, r"side must be one of \['a', 'b'\], got 'c'"),
        ({"precision": "tf32", "op": "H"}, r"op must be one of \['N', 'T', 'C'\], got 'H'"),
        ({"precision": "fp16", "rounding": "toward_zero"}, "rounding for fp16 must be"),
        (
            {"precision": "tf32", "x": np.ones(3)},
            r"x must have at least 2 axes, .* vector is x\[:, None\]",
        ),
        ({"precision": "tf32", "x": pack(np.eye(2), "tf32")}, "x is packed already"),
    ],
)
def test_mistakes_in_packing(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack(**({"x": np.eye(2)} | how))


def test_packed_on_the_cpu_does_not_meet_an_array_on_a_gpu() -> None:
    class OnGpu:
        """As much of a CuPy array as says where it lives."""

        __module__ = "cupy"
        __cuda_array_interface__ = None
        shape, dtype, ndim, size = (2, 0), np.dtype(np.complex64), 2, 0

    with pytest.raises(TypeError, match="must all be on the CPU"):
        gemm(pack(np.eye(2), "tf32"), OnGpu(), precision="tf32")
