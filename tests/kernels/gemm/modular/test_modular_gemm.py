"""`argand.gemm` at the precisions of exact integers, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import DeviceError, gemm, pack, pairs
from argand.gemm.modular import cpu, proof
from argand.gemm.modular.moduli import MODULAR_PRECISIONS, fewest_moduli, moduli
from argand.gemm.modular.proof import PRIME, WrongProductError, _times, check
from argand.gemm.modular.residues import integers

from tests.flipped_residue import flip_residue
from tests.normal import normal, wide_normal

TYPES = (np.complex64, np.complex128)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", ["6xint8", "16xint8"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op_a", ["N", "T", "C"])
@pytest.mark.parametrize("op_b", ["N", "T", "C"])
@pytest.mark.parametrize("batch", [(), (2,), (3, 1)])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (2 - 1j, 0), (-1j, 0.5j)])
def test_operations_batches_and_scalars(
    rng: np.random.Generator, precision: str, dtype: Any, op_a: Any, op_b: Any,
    batch: tuple[int, ...], alpha: complex, beta: complex,
) -> None:  # fmt: skip
    a = normal(rng, *batch, *((5, 40) if op_a == "N" else (40, 5)), dtype=dtype)
    b = normal(rng, *((40, 6) if op_b == "N" else (6, 40)), dtype=dtype)
    # What beta = 0 leaves unread may hold anything.
    c = normal(rng, *batch, 5, 6, dtype=dtype) if beta else np.full((*batch, 5, 6), np.nan, dtype)
    got = gemm(a, b, c, alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision=precision)
    assert got.dtype == dtype
    left, right = (
        {"N": x, "T": np.swapaxes(x, -1, -2), "C": np.swapaxes(x, -1, -2).conj()}[op].astype(
            complex
        )
        for x, op in ((a, op_a), (b, op_b))
    )
    expected = alpha * (left @ right) + (beta * c if beta else 0)
    limit = {"6xint8": 2e-5, "16xint8": 1e-15}[precision] + 4 * np.finfo(dtype).eps
    assert np.abs(got - expected).max() <= limit * 40 * 3
    # The same bits for operands in any layout.
    again = gemm(np.asfortranarray(a), b[::1], c, alpha=alpha, beta=beta, op_a=op_a, op_b=op_b,
                 precision=precision)  # fmt: skip
    np.testing.assert_array_equal(again, got)


def test_the_type_is_that_of_the_operands(rng: np.random.Generator) -> None:
    single, double = normal(rng, 4, 4, dtype=np.complex64), wide_normal(rng, 4, 4)
    assert gemm(single, single, precision="7xint8").dtype == np.complex64
    assert gemm(single, double, precision="7xint8").dtype == np.complex128
    assert gemm(single.real, single.real, precision="7xint8").dtype == np.complex64


def test_integers_in_pairs_are_multiplied_exactly(rng: np.random.Generator) -> None:
    x, y = (rng.integers(-128, 128, (*shape, 2)).astype(np.int8) for shape in ((9, 500), (500, 8)))
    got = gemm(pairs(x), pairs(y), precision="6xint8")
    a, b = (z[..., 0] + 1j * z[..., 1].astype(float) for z in (x, y))
    np.testing.assert_array_equal(got, (a @ b).astype(np.complex64))


def test_a_tolerance_takes_the_fewest_moduli_that_prove_it(rng: np.random.Generator) -> None:
    a, b = wide_normal(rng, 6, 300), wide_normal(rng, 300, 7)
    count = fewest_moduli(300, 1e-12, 2.0**-53)
    by_name = gemm(a, b, precision=f"{count}xint8")
    np.testing.assert_array_equal(gemm(a, b, tolerance=1e-12), by_name)
    a, b = a.astype(np.complex64), b.astype(np.complex64)
    assert gemm(a, b, tolerance=1e-6).dtype == np.complex64
    refused = (
        "no precision proves a tolerance of 1e-09 at k = 300.* of complex128 operands errs less"
    )
    with pytest.raises(ValueError, match=refused):
        gemm(a, b, tolerance=1e-9)


def test_out_may_be_an_operand(rng: np.random.Generator) -> None:
    a, b = wide_normal(rng, 5, 5), wide_normal(rng, 5, 5)
    expected = gemm(a, b, precision="15xint8")
    assert gemm(a, b, precision="15xint8", out=a) is a
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "5xint8"}, r"precision must be one of .*'17xint8'\], got '5xint8'"),
        ({"precision": "7xint8", "rounding": "nearest_even"}, "takes no rounding and no output"),
        (
            {"precision": "7xint8", "kernels": "cublas"},
            r"one of \['wgmma', 'mma.sync'\], got 'cubl",
        ),
        ({"precision": "fp32", "tolerance": 1e-5}, "give a precision or a tolerance"),
        ({"tolerance": 0.0}, "tolerance must be above 0"),
        ({"tolerance": float("nan")}, "tolerance must be above 0"),
        ({"precision": "7xint8", "out": np.empty((3, 3))}, "out must have shape"),
        ({"precision": "7xint8", "beta": 1}, "so c must be given"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gemm(np.ones((3, 3), complex), np.ones((3, 3), complex), **options)


@pytest.mark.parametrize("dtype", TYPES)
def test_packed_operands_give_the_same_bits(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: Any
) -> None:
    a, b = normal(rng, 3, 1, 9, 40, dtype=dtype), normal(rng, 5, 40, 7, dtype=dtype)
    expected = gemm(a, b, precision="9xint8")
    monkeypatch.setattr(cpu, "_COLUMNS", 27)  # panels of three columns
    turned = b.swapaxes(-1, -2).conj()
    left, right = pack(a, "9xint8"), pack(turned, "9xint8", side="b", op="C")
    for x, y in ((left, b), (a, right), (left, right)):
        np.testing.assert_array_equal(gemm(x, y, precision="9xint8", check=True), expected)
    a[:] = 0  # what was packed stays
    np.testing.assert_array_equal(gemm(left, right, precision="9xint8"), expected)
    assert left.nbytes > 16 * a.size


def test_packed_integers_and_empty_operands(rng: np.random.Generator) -> None:
    x = rng.integers(-128, 128, (9, 50, 2)).astype(np.int8)
    b = normal(rng, 50, 4, dtype=np.complex64)
    expected = gemm(pairs(x), b, precision="6xint8")
    np.testing.assert_array_equal(gemm(pack(pairs(x), "6xint8"), b, precision="6xint8"), expected)
    empty = pack(np.empty((3, 0), np.complex64), "6xint8")
    assert not gemm(empty, b[:0], precision="6xint8").any()


def test_operands_packed_for_another_call_are_refused(rng: np.random.Generator) -> None:
    x = wide_normal(rng, 3, 3)
    with pytest.raises(ValueError, match="a was packed at fp32 and the product is at 7xint8"):
        gemm(pack(x, "fp32"), x, precision="7xint8")
    with pytest.raises(ValueError, match="a was packed at 7xint8 and the product is at 8xint8"):
        gemm(pack(x, "7xint8"), x, precision="8xint8")
    with pytest.raises(ValueError, match="a was packed at 7xint8 and the product is at fp32"):
        gemm(pack(x, "7xint8"), x, precision="fp32")
    with pytest.raises(ValueError, match="b was packed for side a"):
        gemm(x, pack(x, "7xint8"), precision="7xint8")
    with pytest.raises(ValueError, match="a was packed as complex64 and the product is complex128"):
        gemm(pack(x.astype(np.complex64), "7xint8"), x, precision="7xint8")
    with pytest.raises(ValueError, match="precision 7xint8 takes no rounding"):
        pack(x, "7xint8", rounding="nearest_even")
    with pytest.raises(ValueError, match="c must be an array or Pairs, got a packed operand"):
        gemm(x, x, pack(x, "7xint8"), beta=1, precision="7xint8")


@pytest.mark.parametrize("precision", ["6xint8", "7xint8", "16xint8", "17xint8"])
def test_a_right_product_is_proved(rng: np.random.Generator, precision: str) -> None:
    a, b = wide_normal(rng, 2, 9, 300), wide_normal(rng, 300, 40)
    a[0, 3] *= 1e200
    got = gemm(a, b, precision=precision, check=True)
    np.testing.assert_array_equal(got, gemm(a, b, precision=precision))


@pytest.mark.parametrize("modulus", [0, 5])
def test_the_last_bit_of_one_residue_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, modulus: int
) -> None:
    flip_residue(monkeypatch, 4, 7, product=2 * modulus)
    a, b = wide_normal(rng, 9, 30), wide_normal(rng, 30, 11)
    with pytest.raises(WrongProductError, match=r"1 of 9 rows .*row 4: memory or arithmetic"):
        gemm(a, b, precision="7xint8", check=True)


@pytest.mark.parametrize("part", [0, 1])
def test_a_number_of_either_part_is_proved(rng: np.random.Generator, part: int) -> None:
    a, b = (integers(wide_normal(rng, lines, 30), moduli(9)) for lines in (9, 11))
    ar, ai, br, bi = (x.astype(object) for x in (a.real, a.imag, b.real.T, b.imag.T))
    whole = ar @ br - ai @ bi, ar @ bi + ai @ br
    parts = [(x % PRIME).astype(np.int64) for x in whole]
    check(a, b, *parts)
    parts[part][4, 7] += 1
    with pytest.raises(WrongProductError, match=r"1 of 9 rows .*row 4:"):
        check(a, b, *parts)


def test_long_lines_of_the_largest_numbers_are_summed_without_overflow() -> None:
    k = 1 << 18
    found = _times(np.full((1, k), PRIME - 1), np.full(k, PRIME - 1))
    assert found.tolist() == [k]  # (-1) (-1) of each


def test_each_proof_draws_numbers_of_its_own(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[int]] = []

    def seen(matrix: Any, x: Any) -> Any:
        drawn.append(x.tolist())
        return _times(matrix, x)

    monkeypatch.setattr(proof, "_times", seen)
    a, b = wide_normal(rng, 3, 5), wide_normal(rng, 5, 4)
    for _ in range(2):
        gemm(a, b, precision="7xint8", check=True)
    assert drawn[0] != drawn[len(drawn) // 2]


def test_a_check_is_for_exact_products() -> None:
    with pytest.raises(ValueError, match="check is for exact products"):
        gemm(np.ones((3, 3)), np.ones((3, 3)), precision="fp32", check=True)


def test_the_modulus_of_the_proof_is_prime() -> None:
    assert all(PRIME % divisor for divisor in range(2, 1 << 16))


def test_every_number_of_moduli_has_a_name() -> None:
    assert list(MODULAR_PRECISIONS) == [f"{count}xint8" for count in range(6, 18)]


def test_kernels_are_a_gpus() -> None:
    with pytest.raises(DeviceError, match="kernels are a GPU's"):
        gemm(
            np.ones((3, 3), complex), np.ones((3, 3), complex), precision="7xint8", kernels="wgmma"
        )
