"""The Hopper kernels, each tile, storage and role, on small and ragged shapes (an sm_90 GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm, pack, pairs, to_pairs
from argand.gemm_choice import GemmChoice, GemmSizes, OperandTraits, candidates
from argand.wgmma_plan import TARGET, divide

from tests.kernels.test_gpu_gemm import (
    OPS,
    POWERS,
    SHAPES,
    TENSOR,
    assert_contained,
    assert_within,
    check,
    long_operands,
    magnitude,
    nonfinite,
    normal,
    of_any_scale,
    relative_error,
    repeats_bit_for_bit,
    stored,
    summation,
)
from workflow.accuracy.bounds import rounded_once

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
HALF = [name for name in TENSOR if PRECISIONS[name].operand.bytes == 2]
SINGLE_HALF = [name for name in HALF if PRECISIONS[name].terms == 1]


@pytest.fixture(autouse=True)
def _hopper(cp: Any) -> None:
    from argand.device import gpu

    if gpu(cp.cuda.Device().id).target != TARGET:
        pytest.skip(f"the wgmma family needs {TARGET}")


def choices(cp: Any, precision: str, sizes: GemmSizes, **traits: Any) -> Iterator[GemmChoice]:
    """Every way of the wgmma family, once per tile, storage, role and number of parts."""
    from argand.device import gpu

    arch = gpu(cp.cuda.Device().id).require_arch()
    a, b = OperandTraits(**traits), OperandTraits(**({"k_fast": False} | traits))
    for choice in candidates(PRECISIONS[precision], arch, sizes, a, b):
        if choice.plan is not None:
            yield choice


def forced(choice: GemmChoice) -> Any:
    from argand.cuda_launch import forced

    return forced.to(choice)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    "shape", [(1, 130, 70, 66), (2, 68, 200, 40)], ids="x".join(["{0}"]).format
)
def test_every_plan(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    batch, m, n, k = shape
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    for choice in choices(cp, precision, GemmSizes(batch, m, n, k)):
        with forced(choice):
            check(cp, a, b, precision=precision)


def first_choices(cp: Any, precision: str, sizes: GemmSizes, **traits: Any) -> list[GemmChoice]:
    """The largest tile of each storage and role, Y packed before and on the way."""
    seen: dict[Any, GemmChoice] = {}
    for choice in choices(cp, precision, sizes, **traits):
        assert choice.plan is not None
        way = (choice.plan.storage, choice.plan.packs, choice.swapped, choice.parts)
        seen.setdefault(way, choice)
    return list(seen.values())


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", SHAPES, ids="x".join(["{0[0]}", "{0[1]}", "{0[2]}"]).format)
def test_shapes(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    """Odd pitches are packed, even ones are read where they lie."""
    m, n, k = shape
    a, b = normal(rng, m, k), normal(rng, k, n)
    for choice in first_choices(cp, precision, GemmSizes(1, m, n, k)):
        with forced(choice):
            check(cp, a, b, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 38, 50), normal(rng, 50, 44), normal(rng, 38, 44)
    sizes = GemmSizes(1, 38, 44, 50)
    for choice in first_choices(cp, precision, sizes):
        with forced(choice):
            check(
                cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b,
                precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j,
            )  # fmt: skip


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    ("left", "right"), [((5,), (5,)), ((1,), (4,)), ((3, 1), (1, 2)), ((2, 3), ()), ((), (2, 2))]
)
def test_batches(
    cp: Any, rng: np.random.Generator, precision: str, left: tuple[int, ...],
    right: tuple[int, ...],
) -> None:  # fmt: skip
    a, b = normal(rng, *left, 20, 34), normal(rng, *right, 34, 22)
    batch = int(np.prod(np.broadcast_shapes(left, right)))
    for choice in first_choices(cp, precision, GemmSizes(batch, 20, 22, 34)):
        with forced(choice):
            check(cp, a, b, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
def test_k_in_parts(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b, c = normal(rng, 20, 5000), normal(rng, 5000, 36), normal(rng, 20, 36)
    cut = [x for x in choices(cp, precision, GemmSizes(1, 20, 36, 5000)) if x.parts > 1]
    assert {choice.parts for choice in cut} == {2, 4, 8}
    for choice in cut:
        with forced(choice):
            check(cp, a, b, c, precision=precision, alpha=1j, beta=0.5, op_a="N")


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", [(1, 70, 200, 3000), (3, 600, 500, 700), (1, 900, 1100, 513)])
def test_tiles_that_are_split_along_k(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """Few tiles, all of them split; and many, of which the last are."""
    from argand.device import gpu

    batch, m, n, k = shape
    cores = gpu(cp.cuda.Device().id).cores
    a, b, c = normal(rng, batch, m, k), normal(rng, batch, k, n), normal(rng, batch, m, n)
    split = 0
    for choice in choices(cp, precision, GemmSizes(batch, m, n, k)):
        plan = choice.plan
        assert plan is not None
        rows, columns = (n, m) if choice.swapped else (m, n)
        tiles = batch * -(-rows // plan.block_m) * -(-columns // plan.block_n)
        if choice.parts > 1 or not divide(tiles, cores, -(-k // plan.depth), plan.depth).split:
            continue
        split += 1
        with forced(choice):
            check(cp, a, b, c, precision=precision, alpha=1j, beta=0.5)
            left, right = cp.asarray(a), cp.asarray(b)
            assert repeats_bit_for_bit(partial(gemm, left, right, precision=precision))
    assert split


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
@pytest.mark.parametrize("k", [16000, 40000])
def test_lines_that_are_scaled_in_one_launch_and_in_two(
    cp: Any, rng: np.random.Generator, precision: str, k: int
) -> None:
    """A strip of the longer one has more blocks than run at once."""
    a, b = normal(rng, 70, k), normal(rng, k, 66)
    for choice in first_choices(cp, precision, GemmSizes(1, 70, 66, k)):
        with forced(choice):
            check(cp, a, b, precision=precision)
            check(cp, 1e-6 * a, 1e6 * b, precision=precision)


def test_a_tensor_map_that_was_moved_is_that_of_the_new_place(cp: Any) -> None:
    from ctypes import string_at

    from argand.cuda_tensor_map import tensor_map

    first, second = (cp.empty((64, 64), cp.complex64) for _ in range(2))
    form = (8, (64, 64, 1), (512, 64 * 512), (16, 64, 1), 128)
    moved, fresh = (tensor_map(x.data.ptr, *form) for x in (first, second))
    assert string_at(moved.place, 128) != string_at(fresh.place, 128)
    moved.move(second.data.ptr)
    assert string_at(moved.place, 128) == string_at(fresh.place, 128)


@pytest.mark.parametrize("precision", TENSOR)
def test_operands_may_lie_elsewhere_in_every_call(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    places = [(normal(rng, 130, 70), normal(rng, 70, 66)) for _ in range(3)]
    for choice in first_choices(cp, precision, GemmSizes(1, 130, 66, 70)):
        with forced(choice):
            for a, b in (*places, *places):
                check(cp, a, b, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
def test_c_is_not_read_where_beta_is_zero(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.asarray(normal(rng, 20, 30)), cp.asarray(normal(rng, 30, 40))
    c = cp.full((20, 40), np.nan, np.complex64)
    for choice in first_choices(cp, precision, GemmSizes(1, 20, 40, 30)):
        with forced(choice):
            assert bool(cp.isfinite(gemm(a, b, c, precision=precision)).all())


@pytest.mark.parametrize("precision", TENSOR)
def test_nonfinite_stays_in_its_row_and_column(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = nonfinite(rng)
    for choice in first_choices(cp, precision, GemmSizes(1, 70, 70, 64)):
        with forced(choice):
            assert_contained(gemm(cp.asarray(a), cp.asarray(b), precision=precision).get())


@pytest.mark.parametrize("precision", TENSOR)
def test_same_choice_same_bits(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = cp.asarray(normal(rng, 500, 700)), cp.asarray(normal(rng, 700, 300))
    for choice in first_choices(cp, precision, GemmSizes(1, 500, 300, 700)):
        with forced(choice):
            assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))


@pytest.mark.parametrize("precision", [x for x in TENSOR if PRECISIONS[x].terms > 1])
def test_promoted_error_does_not_grow_with_k(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Unpromoted, the truncating tensor core is off by 6e-5 at k = 4096."""
    for a, b in long_operands(rng):
        for choice in first_choices(cp, precision, GemmSizes(1, 128, 128, len(b))):
            with forced(choice):
                found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            assert relative_error(found, a, b) < 1e-6


@pytest.mark.parametrize("precision", [x for x in TENSOR if PRECISIONS[x].scaled])
@pytest.mark.parametrize("power", POWERS)
def test_scaled_precisions_take_any_scale(
    cp: Any, rng: np.random.Generator, precision: str, power: tuple[int, int]
) -> None:
    scaled = of_any_scale(rng, power)
    model = gemm(*scaled, precision=precision)
    size = magnitude(scaled[0].astype(complex), scaled[1].astype(complex), None)
    for choice in first_choices(cp, precision, GemmSizes(1, 40, 30, 64)):
        with forced(choice):
            found = gemm(*(cp.asarray(x) for x in scaled), precision=precision).get()
        # A result in fp32's subnormal range may be flushed.
        assert_within(found, model, summation(64, precision) * size + 2.0**-126)


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
        with forced(choice):
            found = gemm(left, right, op_a=op, precision=precision, output=output)
        values = found.to_complex64() if half_output else found
        assert_within(values.get(), exact, allowed)


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
    found = gemm(left, right, precision=precision, **ops)
    size = magnitude(a.astype(complex), b.astype(complex), None)
    assert_within(found.get(), plain.get(), 2 * summation(66, precision) * size)
