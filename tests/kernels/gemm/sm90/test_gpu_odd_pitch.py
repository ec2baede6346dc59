"""Row operands whose lines are an odd number of complex64 apart, read in place (an sm_90 GPU).

TMA reads their even and their odd lines by a map each. What lies between the lines of a view is
NaN here: none of it may come into a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm, launched
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm90.scheduler import divide, min_saved_k

from tests.kernels.gemm.product_cases import (
    OPS,
    check,
    magnitude,
    normal,
    repeats_bit_for_bit,
    stored,
    summation,
)
from tests.kernels.gemm.sm90.wgmma_cases import overridden

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
IN_PLACE = ("tf32", "3xtf32", "bf16")


def odd_view(cp: Any, x: Any, pitch: int) -> Any:
    """x on the GPU, its rows ``pitch`` apart, with NaN between them."""
    memory = cp.full((*x.shape[:-1], pitch), complex(np.nan, np.nan), cp.complex64)
    memory[..., : x.shape[-1]] = cp.asarray(x)
    return memory[..., : x.shape[-1]]


def odd_choices(cp: Any, precision: str, a: Any, b: Any) -> list[GemmChoice]:
    """The candidates that read one of these operands in place by its even and odd lines."""
    from argand.device import gpu

    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    batch, m, n, k = int(np.prod(shape)), a.shape[-2], b.shape[-1], a.shape[-1]
    from argand.gemm.product_form import OperandForm
    from argand.runtime.calls.layout import batched

    traits = [OperandForm(x.layout, batched=x.batch_stride != 0).traits
              for x in (batched(a, shape), batched(b, shape).transposed)]  # fmt: skip
    card = gpu(cp.cuda.Device().id)
    found = candidates(
        Question(PRECISIONS[precision], GemmSizes(batch, m, n, k), *traits),
        card.require_arch(),
        card.sm_count,
    )
    return [x for x in found if x.wgmma is not None and x.wgmma.odd_pitch]


def check_each_tile(
    cp: Any, choices: Iterable[GemmChoice], a: Any, b: Any, c: Any, **how: Any
) -> None:
    """Check the first choice of each height of a tile and side, with alpha and beta."""
    first: dict[tuple[bool, int], GemmChoice] = {}
    for choice in choices:
        first.setdefault((choice.swapped, choice.wgmma.block_m if choice.wgmma else 0), choice)
    assert len(first) == 4
    for choice in first.values():
        with overridden(choice):
            check(cp, a, b, c, alpha=0.5 - 2j, beta=-1.25 + 0.75j, **how)


def assert_right(cp: Any, a: Any, b: Any, precision: str, **how: Any) -> None:
    """Compare every element with fp64; the result is NaN before."""
    left, right = a.get(), b.get()
    exact = gemm(left, right, precision="fp64", **how)
    out = cp.full(exact.shape, complex(np.nan, np.nan), cp.complex64)
    gemm(a, b, precision=precision, out=out, **how)
    row, size = PRECISIONS[precision], magnitude(left, right, None, **how)
    slack = summation(a.shape[-1], precision) + 2 * row.u + row.u**2 + row.dropped
    error = np.abs(out.get() - exact)
    assert (error <= np.sqrt(2) * slack * size).all(), np.nanmax(error / size)


@pytest.mark.parametrize("precision", IN_PLACE)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 130, 70, 67), (1, 67, 200, 40), (2, 68, 201, 41), (3, 90, 65, 80), (5, 131, 67, 81),
        (1, 3, 33, 1031),
    ],
    ids=str,
)  # fmt: skip
def test_every_candidate(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """A k-major and B n-major, each with NaN between its lines."""
    batch, m, n, k = shape
    a = odd_view(cp, normal(rng, batch, m, k), k + 2 - k % 2 + 1)
    b = odd_view(cp, normal(rng, batch, k, n), n + 4 - n % 2 + 1)
    a, b = (x[0] for x in (a, b)) if batch == 1 else (a, b)
    every = odd_choices(cp, precision, a, b)
    assert {x.swapped for x in every} == {False, True}
    # Products are an odd distance apart where there are as many lines as that.
    odd = {x.swapped for x in every if x.wgmma is not None and x.wgmma.odd_batches}
    assert odd == ({x for x, lines in ((False, m), (True, k)) if lines % 2} if batch > 1 else set())
    for choice in every:
        with overridden(choice), launched() as names:
            assert_right(cp, a, b, precision)
        assert "wgmma" in names[0]
        assert ("B in place" if choice.swapped else "A in place") in names[0]


@pytest.mark.parametrize("precision", IN_PLACE)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 69, 51), normal(rng, 51, 45), normal(rng, 69, 45)
    choices = odd_choices(cp, precision, cp.asarray(a), cp.asarray(b))
    ops = {"op_a": op_a, "op_b": op_b}
    check_each_tile(cp, choices, stored(a, op_a), stored(b, op_b), c, precision=precision, **ops)


@pytest.mark.parametrize("precision", IN_PLACE)
@pytest.mark.parametrize(
    "shape", [(71, 33, 9001), (33, 71, 9001), (301, 39, 3001), (1541, 1501, 309)], ids=str
)
def test_a_long_k_and_many_tiles(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    """Stream-K, split-K, spilled accumulators, and blocks of several tiles."""
    from argand.device import gpu

    m, n, k = shape
    sm_count = gpu(cp.cuda.Device().id).sm_count
    a, b, c = (cp.asarray(normal(rng, *s)) for s in ((m, k), (k, n), (m, n)))
    slack = 2 * summation(k, precision) * cp.asarray(magnitude(a.get(), b.get(), None))
    kinds = set()
    for choice in odd_choices(cp, precision, a, b):
        plan = choice.wgmma
        assert plan is not None
        rows, columns = (n, m) if choice.swapped else (m, n)
        tiles = -(-rows // plan.block_m) * -(-columns // plan.block_n)
        saved_k = min_saved_k(plan, PRECISIONS[precision])
        divided = divide(tiles, sm_count, -(-k // plan.block_k), plan.block_k, saved_k=saved_k)
        kind = (choice.swapped, choice.split_k_slices > 1, divided.stream_k_tiles > 0)
        kinds.add(kind)
        with overridden(choice):
            assert_right(cp, a, b, precision)
            assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))
            found = gemm(a, b, c, precision=precision, alpha=1j, beta=0.5)
            plain = gemm(a, b, precision=precision)
            error = abs(found - (1j * plain + 0.5 * c))
            # Tiles that share columns are not those of a sum with C, so k may be cut elsewhere.
            assert bool((error <= 1e-6 * (abs(plain) + abs(c)) + slack).all())
    assert {swapped for swapped, _, _ in kinds} == {False, True}


def test_a_plan_that_shifts_no_odd_line_is_wrong(cp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second map begins one element early; without that every odd row is off."""
    from argand.gemm.sm90.maps import WgmmaMaps

    rng = np.random.default_rng(3)
    a, b = (cp.asarray(normal(rng, *s)) for s in ((71, 35), (35, 69)))
    choice = odd_choices(cp, "tf32", a, b)[0]
    with overridden(choice):
        right = gemm(a, b, precision="tf32")
        whole = WgmmaMaps.addresses

        def unshifted(*given: Any) -> Any:
            x, y, odd = whole(*given)
            return x, y, odd._replace(offset=odd.offset + 16)

        monkeypatch.setattr(WgmmaMaps, "addresses", unshifted)
        from tests.kernels.runtime.launch.graph_cases import forget_calls

        forget_calls()
        wrong = gemm(a, b, precision="tf32")
    forget_calls()
    assert bool((wrong[::2] == right[::2]).all())
    assert not bool((wrong[1::2] == right[1::2]).any())


@pytest.mark.parametrize("precision", IN_PLACE)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_odd_batches_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    """Products an odd number of elements apart, by every epilogue."""
    batch, m, n, k = 3, 69, 45, 51
    a, b, c = (normal(rng, batch, *x) for x in ((m, k), (k, n), (m, n)))
    choices = odd_choices(cp, precision, cp.asarray(a), cp.asarray(b))
    assert all(choice.wgmma is not None and choice.wgmma.odd_batches for choice in choices)
    ops = {"op_a": op_a, "op_b": op_b}
    check_each_tile(cp, choices, stored(a, op_a), stored(b, op_b), c, precision=precision, **ops)


def test_one_operand_of_odd_batches_beside_a_shared_one(cp: Any, rng: np.random.Generator) -> None:
    """Packing cannot exchange the k of planes that all products share: X is packed too."""
    a, b = (cp.asarray(normal(rng, *x)) for x in ((51, 69), (3, 51, 45)))
    assert not any(x.swapped for x in odd_choices(cp, "tf32", a.T, b))
    assert_right(cp, a.T, b, "tf32")


@pytest.mark.parametrize("precision", IN_PLACE)
def test_odd_batches_in_clusters(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """A block of a cluster computes one product, whose maps its producer selects."""
    a, b = odd_view(cp, normal(rng, 3, 67, 331), 333), odd_view(cp, normal(rng, 3, 331, 33), 35)
    first: dict[tuple[bool, int], GemmChoice] = {}
    for choice in odd_choices(cp, precision, a, b):
        if choice.wgmma is not None and choice.wgmma.cluster > 1:
            assert choice.wgmma.odd_batches
            first.setdefault((choice.swapped, choice.wgmma.cluster), choice)
    assert {swapped for swapped, _ in first} == {False, True}
    for choice in first.values():
        with overridden(choice), launched() as names:
            assert_right(cp, a, b, precision)
        assert any("a cluster of" in name for name in names)
