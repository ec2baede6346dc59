"""Contractions against numpy.einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import contract, pairs
from argand.contract.axes import axes_of, best_orders, merged
from argand.contract.subscripts import parse

from tests.kernels.contract.contractions import SUBSCRIPTS, operands
from tests.normal import wide_normal


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_contractions(rng: np.random.Generator, subscripts: str) -> None:
    a, b = operands(rng, subscripts)
    plain = np.einsum(subscripts, a, b)
    close(contract(subscripts, a, b), plain)
    found = contract(subscripts, a, b, conj_a=True, scale=2.5j, bias=1.5 - 2j, conj=True)
    close(found, np.conj(2.5j * np.einsum(subscripts, a.conj(), b) + 1.5 - 2j))
    scale, bias = (
        np.arange(1.0, 1 + plain.size).reshape(plain.shape),
        wide_normal(rng, *plain.shape),
    )
    out = np.full(plain.shape, np.nan + 0j)
    assert contract(subscripts, a, b, scale=scale, bias=bias, conj=True, out=out) is out
    close(out, np.conj(scale * plain + bias))
    powers = np.full(plain.shape, np.nan)
    assert contract(subscripts, a, b, scale=2, bias=bias, power=True, out=powers) is powers
    close(powers, abs(2 * plain + bias) ** 2)
    gaps = np.full([2 * n for n in plain.shape], np.nan + 0j)[
        (..., *[slice(None, None, 2)] * plain.ndim)
    ]
    for out in (np.full(plain.shape[::-1], np.nan + 0j).T, gaps):
        contract(subscripts, a, b, bias=bias, conj_b=True, out=out)
        close(out, np.einsum(subscripts, a, b.conj()) + bias)


VIEWS = [
    "bij,bjk->bik", "bji,bjk->bki", "xyj,jk->xyk", "xyuv,uvk->xyk", "xyuv,kuv->kxy", "uvx,yuv->yx",
]  # fmt: skip


@pytest.mark.parametrize("subscripts", VIEWS)
def test_axes_that_merge_in_memory_are_not_copied(
    rng: np.random.Generator, subscripts: str
) -> None:
    found = parse(subscripts)
    a, b = (wide_normal(rng, *range(2, 2 + len(labels))) for labels in (found.a, found.b))
    rows, columns, sums = best_orders(found, axes_of(a, found.a), axes_of(b, found.b), None)
    assert np.shares_memory(a, merged(a, found.a, (rows, sums), found.batch))
    assert np.shares_memory(b, merged(b, found.b, (sums, columns), found.batch))


def test_the_precision_is_that_of_the_product(rng: np.random.Generator) -> None:
    a, b = operands(rng, "abc,cd->dab")
    assert contract("abc,cd->dab", a, b, precision="fp16").dtype == np.complex64
    assert contract("abc,cd->dab", a, b, tolerance=1e-12).dtype == np.complex128
    assert contract("abc,cd->dab", a, b, power=True, dtype="float32").dtype == np.float32
    single = np.empty((5, 2, 3), np.complex64)
    contract("abc,cd->dab", a, b, dtype="complex64", out=single)
    wide = contract("abc,cd->dab", a, b)
    np.testing.assert_array_equal(single, wide.astype(np.complex64))  # which is rounded last
    rough = contract("abc,cd->dab", a, b, precision="bf16") - np.einsum("abc,cd->dab", a, b)
    assert 1e-4 < abs(rough).max() < 1e-1


@pytest.mark.parametrize(("subscripts", "message"), [
    ("ij", "letters of two operands"), ("ij,jk,kl->il", "letters of two operands"),
    ("i...,...k->ik", "letters of two operands"), ("ij,jk->iik", "once and in an operand"),
    ("ij,jk->iz", "once and in an operand"), ("ijk,jk->ik", "a must have the axes 'ijk'"),
    ("ij,ik->jk", "axis 'i' must be of one size, got 2 and, in b, 3"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(subscripts: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        contract(subscripts, np.ones((2, 3), complex), np.ones((3, 2), complex))


def test_other_arguments_that_do_not_fit() -> None:
    x = np.ones((2, 2), complex)
    with pytest.raises(ValueError, match=r"out must have shape \(2, 2\), got \(3, 2\)"):
        contract("ij,jk->ik", x, x, out=np.ones((3, 2), complex))
    for name in ("scale", "bias"):
        for given in (np.ones((3, 2, 2)), np.ones((2, 3)), np.ones((0, 2))):
            with pytest.raises(ValueError, match=rf"{name} must broadcast to the result's shape"):
                contract("ij,jk->ik", x, x, **{name: given})
    with pytest.raises(ValueError, match="out must have type complex128, got int64"):
        contract("ij,jk->ik", x, x, scale=x, out=np.ones((2, 2), np.int64))
    shared = np.lib.stride_tricks.as_strided(np.zeros(1), (2, 2), (0, 0))
    with pytest.raises(ValueError, match="out must have memory for each of its numbers"):
        contract("ij,jk->ik", x, x, power=True, out=shared)
    with pytest.raises(TypeError, match="b must be an array, got Pairs of int8"):
        contract("ij,jk->ik", x, pairs(np.ones((2, 2, 2), np.int8)))


@pytest.mark.parametrize(("name", "expected"), [("scale", 1e39), ("bias", 1 + 1e39)])
def test_a_number_beyond_the_type_of_the_result(name: str, expected: float) -> None:
    x, given = np.eye(2, dtype=np.complex64), {name: 1e39}
    with pytest.raises(ValueError, match=f"{name} must be within the range of fp32"):
        contract("ij,jk->ik", x, x, **given)
    assert contract("ij,jk->ik", x, x, **given, precision="fp64")[0, 0] == expected


def test_an_infinite_bias_makes_no_nan() -> None:
    x = np.eye(2, dtype=complex)
    found = contract("ij,jk->ik", x, x, bias=[np.inf, -np.inf])
    np.testing.assert_array_equal(found, np.broadcast_to([np.inf, -np.inf], (2, 2)))


def test_axes_of_one_operand_are_summed_in_the_type_of_the_product() -> None:
    """Sums of 16 bits overflow, and those of fp32 have not the digits of an fp64 product."""
    half = np.full((2, 4), 6e4, np.float16)
    np.testing.assert_array_equal(contract("ij,k->ik", half, half[0]), np.full((2, 4), 1.44e10))
    small = np.array([[1, 2.0**-30]], np.float32)
    for options in ({"precision": "fp64"}, {"out": np.empty((1, 1), complex)}):
        found = contract("ij,k->ik", small, np.ones(1, np.float32), **options)
        np.testing.assert_array_equal(found, [[1 + 2.0**-30]])
    np.testing.assert_array_equal(contract("ij,k->ik", small, np.ones(1)), [[1 + 2.0**-30]])
    many = contract("ij,k->ik", np.full((1, 600), 127, np.int8), np.ones(1, np.float32))
    assert many.dtype == np.complex64  # as without the sum
    assert many == 127 * 600
    for large in (np.full((1, 4), 2**62), np.full((1, 4), 2**63, np.uint64)):  # wrap in 64 bits
        assert contract("ij,k->ik", large, np.ones(1, np.float32)) == 4 * float(large[0, 0])


def test_a_number_as_bias_leaves_the_type_of_the_data() -> None:
    x = np.eye(2, dtype=np.complex64)
    for bias in (1, 0.5j, np.float64(1)):
        assert contract("ij,jk->ik", x, x, bias=bias).dtype == np.complex64
        assert contract("ij,jk->ik", x, x, scale=x[0], bias=bias).dtype == np.complex64
    assert contract("ij,jk->ik", x, x, bias=np.ones(2)).dtype == np.complex128
    assert contract("ij,jk->ik", x, x, bias=0.1, precision="fp64")[0, 1] == 0.1


@pytest.mark.parametrize("name", ["scale", "bias"])
def test_an_array_counts_among_the_data(name: str) -> None:
    """Small integers leave the result narrow; fp64 makes the product one of fp64, too."""
    x = np.array([[1, 2.0**-30]], np.complex64)
    for dtype in ("bool", "int8", "uint16", "float16", "float32"):
        for shape in ((), (1,), (1, 1)):
            more = {name: np.ones(shape, dtype)}
            assert contract("ij,kj->ik", x, x, **more).dtype == np.complex64
            assert contract("ij,kl->ik", x, x, **more).dtype == np.complex64
    for dtype in ("int32", "float64", "complex128"):
        more = {name: np.ones(1, dtype)}
        found = contract("ij,kj->ik", x, np.ones_like(x), **more)
        assert found - (name == "bias") == 1 + 2.0**-30


@pytest.mark.parametrize("conj", [False, True])
def test_a_wider_result_or_bias_makes_the_product_one_of_fp64(conj: bool) -> None:
    """Whether the kernel writes the result and adds the bias, or steps after it."""
    x, scale = np.array([[1, 2.0**-30]], np.complex64), np.ones(1, np.complex64)
    expected = 1 + 2.0**-30
    apart = np.empty((4, 3, 2), complex)[::3, :1, ::2]  # its axes do not merge
    for out in (np.empty((1, 1), complex), apart[0], np.empty((1, 1))):
        power = out.dtype == float
        options: dict[str, Any] = {"out": out, "power": power, "conj": conj}
        for more in ({}, {"scale": scale}):
            found = contract("ij,kj->ik", x, np.ones_like(x), **options, **more)
            assert found == expected ** (1 + power)
    y = np.broadcast_to(x, (2, 3, 1, 2))
    out = np.empty((2, 4, 1, 6), complex)[:, :3, :, ::2]
    assert (contract("abij,jk->abik", y, np.ones((2, 3), np.complex64), out=out) == expected).all()
    for more in ({}, {"scale": scale}):
        assert contract("ij,kj->ik", x, np.ones_like(x), bias=np.zeros(1), **more) == expected


def test_what_numpy_reads_is_an_array() -> None:
    x = np.arange(4.0).reshape(2, 2)
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(x)
    structured = np.zeros((2, 2), [("r", np.float32), ("i", np.float32)])
    structured["r"] = x
    for given in (matrix, memoryview(x), structured):  # type: ignore[arg-type]
        np.testing.assert_array_equal(contract("ii,jk->jk", given, x), 3 * x)
        np.testing.assert_array_equal(contract("ij,k->ik", given, x[1]), np.outer([1, 5], x[1]))
    with pytest.raises(TypeError, match="a must be numbers, got object"):
        contract("ii,jk->jk", x.astype(object), x)
