"""The Hopper kernels on operands of every range and format (an sm_90 GPU)."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm, launched, pack, pairs, to_pairs
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits, Question

from tests.kernels.gemm.product_cases import (
    FP32_CLASS,
    OPS,
    POWERS,
    assert_contained,
    assert_within,
    long_operands,
    magnitude,
    nonfinite,
    normal,
    of_any_scale,
    promoted_error,
    relative_error,
    repeats_bit_for_bit,
    stored,
    summation,
)
from tests.kernels.gemm.sm90.wgmma_cases import choices, first_choices, overridden
from tests.kernels.precisions import SINGLE_HALF, SPLIT, TENSOR
from workflow.accuracy import bounds
from workflow.accuracy.bounds import rounded_once

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
Array = npt.NDArray[Any]


@pytest.mark.parametrize("precision", TENSOR)
def test_c_is_not_read_where_beta_is_zero(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.asarray(normal(rng, 20, 30)), cp.asarray(normal(rng, 30, 40))
    c = cp.full((20, 40), np.nan, np.complex64)
    for choice in first_choices(cp, precision, GemmSizes(1, 20, 40, 30)):
        with overridden(choice):
            assert bool(cp.isfinite(gemm(a, b, c, precision=precision)).all())


@pytest.mark.parametrize("precision", TENSOR)
def test_nonfinite_stays_in_its_row_and_column(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = nonfinite(rng)
    for choice in first_choices(cp, precision, GemmSizes(1, 70, 70, 64)):
        with overridden(choice):
            assert_contained(gemm(cp.asarray(a), cp.asarray(b), precision=precision).get())


@pytest.mark.parametrize("precision", TENSOR)
def test_same_choice_same_bits(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = cp.asarray(normal(rng, 500, 700)), cp.asarray(normal(rng, 700, 300))
    for choice in first_choices(cp, precision, GemmSizes(1, 500, 300, 700)):
        with overridden(choice):
            assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))


@pytest.mark.parametrize("precision", SPLIT)
def test_promoted_error_does_not_grow_with_k(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Unpromoted, the truncating tensor core is off by 6e-5 at k = 4096."""
    for a, b in long_operands(rng):
        for choice in first_choices(cp, precision, GemmSizes(1, 128, 128, len(b))):
            assert choice.wgmma is not None
            with overridden(choice):
                found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            limit = promoted_error(len(b), choice.wgmma, PRECISIONS[precision])
            assert relative_error(found, a, b) < limit < FP32_CLASS


@pytest.mark.parametrize("precision", SPLIT)
@pytest.mark.parametrize("shape", [(130, 70, 4500), (1540, 1500, 1700), (990, 4600, 1300)], ids=str)
def test_accumulators_that_spill(
    cp: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    shape: tuple[int, int, int],
) -> None:
    """Accumulators of whole tiles in one wave or two, of partial tiles and of split-K slices.

    They spill to a result of any layout, or beside a C that the result replaces.
    """
    monkeypatch.setattr(sys.modules["argand.gemm.sm90.plan"], "SPILL_INTERVAL", 16)
    m, n, k = shape
    a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
    left, right = cp.asarray(a), cp.asarray(b)
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    size = magnitude(a, b, None)
    allowed = bounds.product_bound(PRECISIONS[precision], k, "cuda") * size
    for choice in first_choices(cp, precision, GemmSizes(1, m, n, k)):
        with overridden(choice):
            product = partial(gemm, left, right, precision=precision)
            assert_within(product().get(), exact, allowed)
            assert repeats_bit_for_bit(product)
            for out in (cp.full((n, m), cp.nan, cp.complex64).T,
                        cp.full((m, 2 * n), cp.nan, cp.complex64)[:, ::2]):  # fmt: skip
                gemm(left, right, precision=precision, out=out)
                assert_within(out.get(), exact, allowed)
            out = cp.asarray(c)
            gemm(left, right, out, beta=2 - 1j, precision=precision, out=out)
            addend = (2 - 1j) * c.astype(np.complex128)
            roundings = bounds.ADDEND_ROUNDINGS * 2.0**-23 * np.abs(addend)
            assert_within(out.get(), exact + addend, allowed + roundings)


@pytest.mark.parametrize("columns", [40, 56, 72, 88, 104, 120])
def test_accumulators_spill_by_eight_columns(
    cp: Any, rng: np.random.Generator, columns: int
) -> None:
    """Where more do not divide a tile: to a result in rows, to one in columns, and at its edges."""
    m, n, k = 200, 250, 3200
    a, b = normal(rng, m, k), normal(rng, k, n)
    left, right = cp.asarray(a), cp.asarray(b)
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    allowed = bounds.product_bound(PRECISIONS["3xfp16"], k, "cuda") * magnitude(a, b, None)
    seen = set()
    for choice in choices(cp, "3xfp16", GemmSizes(1, m, n, k)):
        plan = choice.wgmma
        assert plan is not None
        spills = plan.spills_accumulators(PRECISIONS["3xfp16"], k)
        if plan.block_n != columns or choice.split_k_slices > 1 or not spills:
            continue
        seen.add(choice.swapped)
        with overridden(choice):
            for out in (None, cp.full((n, m), cp.nan, cp.complex64).T):
                found = gemm(left, right, precision="3xfp16", out=out)
                assert_within(found.get(), exact, allowed)
    assert seen == {False, True}


@pytest.mark.parametrize("precision", [x for x in TENSOR if PRECISIONS[x].scaled])
@pytest.mark.parametrize("power", POWERS)
def test_scaled_precisions_take_any_scale(
    cp: Any, rng: np.random.Generator, precision: str, power: tuple[int, int]
) -> None:
    scaled = of_any_scale(rng, power)
    model = gemm(*scaled, precision=precision)
    size = magnitude(scaled[0].astype(complex), scaled[1].astype(complex), None)
    for choice in first_choices(cp, precision, GemmSizes(1, 40, 30, 64)):
        with overridden(choice):
            found = gemm(*(cp.asarray(x) for x in scaled), precision=precision).get()
        # A result in fp32's subnormal range may be flushed.
        assert_within(found, model, summation(64, precision) * size + 2.0**-126)


def test_each_stage_of_a_row_in_place_has_a_scale_of_its_own(
    cp: Any, rng: np.random.Generator
) -> None:
    """The largest of a row meet zeros, so results rest on what is 2^-120 of them."""
    from argand.device import gpu

    row, card = PRECISIONS["3xfp16"], gpu(cp.cuda.Device().id)
    a, b = normal(rng, 150, 160), normal(rng, 160, 90)
    a[:, :64] *= np.float32(2.0**-60)
    a[:, 64:] *= np.float32(2.0**60)
    b[64:] = 0
    traits = OperandTraits(), OperandTraits(k_major=False)
    sizes = GemmSizes(1, 150, 90, 160)
    every = candidates(Question(row, sizes, *traits), card.require_arch(), card.sm_count)
    in_place = [x for x in every if x.wgmma and x.wgmma.storage == "fp32" and not x.swapped]
    assert len(in_place) > 3
    for choice in in_place:
        with overridden(choice):
            found = gemm(cp.asarray(a), cp.asarray(b), precision="3xfp16").get()
        model = a[:, :64].astype(complex) @ b[:64]
        size = magnitude(a[:, :64].astype(complex), b[:64].astype(complex), None)
        assert_within(found, model, (summation(64, "3xfp16") + 4 * row.u) * size)


@pytest.mark.parametrize("precision", SINGLE_HALF)
@pytest.mark.parametrize("half_output", [False, True])
@pytest.mark.parametrize("op", OPS)
def test_complex_half(
    cp: Any, rng: np.random.Generator, precision: str, half_output: bool, op: str
) -> None:
    m, n, k = 136, 72, 96
    a, b = (to_pairs(normal(rng, *shape), precision) for shape in ((m, k), (k, n)))
    wide = [x.to_complex64() for x in (a, b)]
    left = pairs(cp.asarray(to_pairs(stored(wide[0], op), precision).array), precision)
    right = pairs(cp.asarray(b.array), precision)
    output = "complex-half" if half_output else "complex64"
    exact = wide[0].astype(np.complex128) @ wide[1].astype(np.complex128)
    size = np.abs(wide[0]) @ np.abs(wide[1])
    allowed = summation(k, precision) * size
    if half_output:
        allowed = rounded_once(PRECISIONS[precision].operand, allowed, np.abs(exact))
    sizes = GemmSizes(1, m, n, k, half_output)
    for choice in first_choices(cp, precision, sizes, half=True):
        with overridden(choice):
            found = gemm(left, right, op_a=op, precision=precision, output=output)
        values = found.to_complex64() if half_output else found
        assert_within(values.get(), exact, allowed)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("side", ["a", "b", "both"])
@pytest.mark.parametrize("op", OPS)
def test_packed_operands(
    cp: Any, rng: np.random.Generator, precision: str, side: str, op: str
) -> None:
    a, b = normal(rng, 3, 70, 66), normal(rng, 66, 90)
    left, right = cp.asarray(stored(a, op)), cp.asarray(stored(b, op))
    plain = gemm(left, right, op_a=op, op_b=op, precision=precision)
    ops = {"op_a": op, "op_b": op}
    if side in ("a", "both"):
        left = pack(left, precision, side="a", op=op)
        ops["op_a"] = "N"
    if side in ("b", "both"):
        right = pack(right, precision, side="b", op=op)
        ops["op_b"] = "N"
    found = gemm(left, right, precision=precision, kernels="wgmma", **ops)
    size = magnitude(a.astype(complex), b.astype(complex), None)
    assert_within(found.get(), plain.get(), 2 * summation(66, precision) * size)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_packed_operand_in_every_role(
    cp: Any, rng: np.random.Generator, precision: str, side: str
) -> None:
    """The column operand, and the row operand beside one that is packed in the call."""
    from argand.device import gpu

    row, card = PRECISIONS[precision], gpu(cp.cuda.Device().id)
    a, b = normal(rng, 3, 70, 66), normal(rng, 66, 90)
    size = magnitude(a.astype(complex), b.astype(complex), None)
    model = gemm(a, b, precision=precision)
    left, right = cp.asarray(a), cp.asarray(b)
    traits = {"a": OperandTraits(), "b": OperandTraits(k_major=False)}
    traits[side] = OperandTraits(packed=True)
    if side == "a":
        left = pack(left, precision, side="a")
    else:
        right = pack(right, precision, side="b")
    by_role: dict[Any, GemmChoice] = {}
    for choice in candidates(
        Question(row, GemmSizes(3, 70, 90, 66), traits["a"], traits["b"]),
        card.require_arch(),
        card.sm_count,
    ):
        assert choice.wgmma is not None
        by_role.setdefault((choice.swapped, choice.wgmma.storage), choice)
    assert {swapped for swapped, _ in by_role} == {False, True}
    for choice in by_role.values():
        with overridden(choice), launched() as names:
            found = gemm(left, right, precision=precision)
        assert f"{side.upper()} packed before" in names[0]
        assert_within(found.get(), model, summation(66, precision) * size)
