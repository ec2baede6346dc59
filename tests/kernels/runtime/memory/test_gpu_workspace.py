"""The memory that a product takes besides its operands, at the sizes of the benchmark (a GPU)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm, launched, pack, pairs, to_pairs
from argand.gemm.choice import GemmChoice
from argand.gemm.pack.plan import pitch_of
from argand.gemm.pairs import PAIR_FORMATS
from argand.gemm.problem import gemm_problem
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.workspace import MAX_WORKSPACE, SLICES_WORKSPACE
from argand.precision import HALF_FORMATS

from benchmarks.gemm.shapes import SUITES, Shape
from benchmarks.harness.device_memory import most_allocated
from tests.kernels.gemm.product_cases import check, normal
from tests.kernels.precisions import SINGLE_HALF, TENSOR
from tests.kernels.runtime.launch.graph_cases import forget_calls

pytestmark = pytest.mark.gpu


@pytest.mark.pairwise
@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", SUITES["gemm"], ids=str)
def test_at_most_twice_the_operands(cp: Any, precision: str, shape: Shape, beta: int) -> None:
    """Where beta is not 0 C is one of them: accumulators of a long k may spill beside it."""
    from argand.gemm.prepare import prepare
    from argand.gemm.product_form import OperandForm, ProductForm
    from argand.runtime.calls.layout import Layout

    m, n, k = shape.m, shape.n, shape.k
    batched = shape.batch > 1
    problem = gemm_problem(
        (*shape.leading, m, k), (*shape.leading, k, n), (*shape.leading, m, n), beta=beta,
        precision=PRECISIONS[precision],
    )  # fmt: skip
    out = Layout(m, n, n, 1, m * n, 8, 32)
    form = ProductForm(
        problem,
        OperandForm(Layout(m, k, k, 1, m * k * batched, 8, 32), batched=batched),
        OperandForm(Layout(n, k, 1, n, n * k * batched, 8, 32), batched=batched),
        out if beta else None,
        out,
    )
    launch = prepare(form)
    operands = 8 * shape.batch * (k * (m + n) + beta * m * n)
    assert launch.nbytes <= 2 * operands


@pytest.mark.parametrize("shape", [(2300, 1000, 2000), (1000, 2300, 2100)], ids=str)
def test_partial_tiles_over_planes_give_the_same_bits(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int]
) -> None:
    """More tiles than multiprocessors, whose last ones are split: in two launches or in one."""
    from argand.gemm import choice_workspace
    from argand.gemm import prepare as cuda_prepare

    m, n, k = shape
    a, b = (
        cp.asarray(rng.standard_normal((*x, 2), np.float32)).view(cp.complex64)[..., 0]
        for x in ((m, k), (k, n))
    )
    plan = WgmmaPlan(2, 128, 16, 3, storage="planar")
    launches = []
    results = []
    prepare = cuda_prepare.prepare

    def watched(*arguments: Any) -> Any:
        launches.append(prepare(*arguments))
        return launches[-1]

    monkeypatch.setattr(import_module("argand.gemm.gpu"), "prepare", watched)
    for most in (MAX_WORKSPACE, 100):
        monkeypatch.setattr(choice_workspace, "MAX_WORKSPACE", most)
        for swapped in (False, True):
            forget_calls()
            with cuda_prepare.PLAN_OVERRIDE.use(GemmChoice(plan, swapped)):
                results.append(gemm(a, b, precision="3xtf32"))
    over = [len(launch._wgmma._multiply.kernels) for launch in launches]
    assert over == [2, 2, 1, 1]
    first, *others = (x.view(cp.uint32) for x in results)
    assert bool((first == others[1]).all())
    assert bool((others[0] == others[2]).all())


@pytest.mark.usefixtures("wgmma")
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("format", ["complex64", *PAIR_FORMATS])
def test_what_a_call_of_pairs_takes(
    cp: Any, rng: np.random.Generator, precision: str, format: str
) -> None:
    """A copy as kernels read it where they do not read the pairs, and twice that, counted."""
    m, n, k = 600, 700, 1024
    operands = []
    for shape in ((m, k), (k, n)):
        integers = rng.integers(-100, 100, (*shape, 2)).astype(np.int8)
        if format == "complex64":
            operands.append(cp.asarray(integers.astype(np.float32).view(np.complex64)[..., 0]))
        elif format in HALF_FORMATS:
            wide = integers.astype(np.float32).view(np.complex64)[..., 0]
            operands.append(to_pairs(cp.asarray(wide), format))
        else:
            operands.append(pairs(cp.asarray(integers.astype(PAIR_FORMATS[format]))))
    a, b = operands
    out = cp.empty((m, n), cp.complex64)
    most = most_allocated(cp, lambda: gemm(a, b, precision=precision, out=out))
    single_half = precision in SINGLE_HALF
    native = format in ("complex64", "fp32") or (single_half and format == precision)
    read = 4 if single_half and format in (precision, "int8") else 8
    copied = 0 if native else read * k * (m + n)
    assert most <= copied + 2 * read * k * (m + n) + 8 * 512  # memory is given in pieces
    assert copied == 0 or most >= copied


@pytest.mark.usefixtures("wgmma")
def test_slices_beside_planes_that_fill_the_workspace(cp: Any, rng: np.random.Generator) -> None:
    """Two terms of operands that TMA cannot read in place, of a long k and few tiles."""
    m, n, k = 301, 121, 4099
    a, b = normal(rng, m, k), normal(rng, k, n)
    with launched() as names:
        check(cp, a, b, precision="3xtf32")
    assert "split-K slices" in names[0]
    left, right = cp.asarray(a), cp.asarray(b)
    out = cp.empty((m, n), cp.complex64)
    most = most_allocated(cp, lambda: gemm(left, right, precision="3xtf32", out=out))
    allowed = MAX_WORKSPACE + SLICES_WORKSPACE
    assert most <= allowed * 8 * pitch_of(k) * (m + n) + 8 * 512


@pytest.mark.parametrize("precision", SINGLE_HALF)
@pytest.mark.parametrize("side", ["a", "b"])
def test_int8_has_the_bits_of_complex64(
    cp: Any, rng: np.random.Generator, precision: str, side: str
) -> None:
    """Every number of the format, both ways to the kernel, also packed and where it lies apart."""
    every = np.arange(-128, 128, dtype=np.int8)
    a = pairs(cp.asarray(rng.permuted(np.tile(every, (66, 2)), axis=1).reshape(66, 256, 2)))
    b = pairs(cp.asarray(rng.choice(every, (256, 2, 70, 2)))[:, 1])
    wide = a.to_complex64(), b.to_complex64()
    expected = wide[0].get().astype(np.complex128) @ wide[1].get().astype(np.complex128)
    assert abs(expected.view(float)).max() < 2**24  # then sums are exact, whatever their order
    for _ in range(2):
        np.testing.assert_array_equal(gemm(a, b, precision=precision).get(), expected)
    packed = pack(a if side == "a" else b, precision, side=side)
    left, right = (packed, b) if side == "a" else (a, packed)
    np.testing.assert_array_equal(gemm(left, right, precision=precision).get(), expected)
