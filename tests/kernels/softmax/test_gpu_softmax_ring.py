"""Rings of a GPU softmax: rows that wait in shared memory, shared by blocks from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Precision, SoftmaxProblem, log_softmax, logsumexp, softmax
from argand.device import Device
from argand.rounding import round_operand
from argand.runtime.compile.compiler import compile_all
from argand.runtime.plan import is_legal
from argand.softmax.candidates import SoftmaxCandidate, ring
from argand.softmax.formats import Operation
from argand.softmax.legality import check_softmax_plan
from argand.softmax.plan import RowPlan, SoftmaxForm, vector_for
from argand.softmax.source import softmax_source
from scipy import special

from tests.kernels.softmax.softmax_cases import (
    HALF_ULP,
    SMALLEST,
    Array,
    approximate_errors,
    assert_logs,
    assert_logsumexp,
    half_ulps,
    numbers,
    stored,
)

pytestmark = pytest.mark.gpu

PAIRS = [
    ("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32"), ("fp32", "fp16")
]  # fmt: skip
EXACT = ("fp64", "fp32")
SHAPES = [(1, 5000), (7, 4999), (400, 4999), (7, 70_001)]
PLANS: list[tuple[SoftmaxCandidate, dict[str, int]]] = [
    (SoftmaxCandidate(256, 1), {}),
    (SoftmaxCandidate(128, 2), {"load_stages": 2}),
    (SoftmaxCandidate(256, 5, epilogue_stages=2), {"load_stages": 4}),
    (SoftmaxCandidate(128, 7, epilogue_stages=2), {"load_stages": 3, "blocks": 2}),
    (SoftmaxCandidate(128, 33, epilogue_stages=4), {"load_stages": 4}),
    (SoftmaxCandidate(64, 132, epilogue_stages=3), {"load_stages": 7}),
    (SoftmaxCandidate(128, 12, epilogue_stages=6), {"load_stages": 2}),
    (SoftmaxCandidate(256, 9, write_threads=64, epilogue_stages=2), {"load_stages": 3}),
]
"""Candidates, and further arguments of `ring`."""


@pytest.fixture(autouse=True)
def _hopper(gpu: Device) -> None:
    if gpu.require_arch().sm < 90 or gpu.sm_count < 132:
        pytest.skip("rings of this size need an H100 or an H200")


def nasty(rng: np.random.Generator, rows: int, columns: int, kind: str) -> Array:
    x = 4 * rng.standard_normal((rows, columns)).astype(np.float32)
    if rows > 6:
        x[1, 1], x[2], x[3, -1] = np.nan, -np.inf, np.inf
        x[4] *= 1e4 if kind == "fp32" else 50
        x[5, ::2] = -np.inf
    return stored(x, kind)


def plans(
    operation: Operation,
    kind: str,
    output: str,
    columns: int,
    gpu: Device,
    precision: Precision = PRECISIONS["fp32"],
) -> list[tuple[SoftmaxForm, RowPlan]]:
    vector = vector_for(kind, kind if operation == "logsumexp" else output)
    form = SoftmaxForm(operation, kind, output, precision, vector, columns % vector != 0)
    arch = gpu.require_arch()
    found = []
    for candidate, options in PLANS:
        plan = ring(form, arch, candidate, columns, **options)
        if is_legal(check_softmax_plan, plan, form, arch):
            found.append((form, plan))
    assert len(found) > 1
    compile_all((softmax_source(form, plan), arch.target) for form, plan in found)
    return found


@pytest.mark.parametrize(("kind", "output"), PAIRS)
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_softmax(
    cp: Any, rng: np.random.Generator, gpu: Device, kind: str, output: str, rows: int, columns: int
) -> None:
    """Twice each: what one kernel leaves behind is what the next one finds."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    x = nasty(rng, rows, columns, kind)
    given = {"format": "bf16" if kind == "bf16" else None, "output": output}
    with np.errstate(invalid="ignore"):
        exact = special.softmax(numbers(x, kind), axis=-1)
    for form, plan in plans("softmax", kind, output, columns, gpu):
        with PLAN_OVERRIDE.use((plan, form.vector)):
            found = [softmax(cp.asarray(x), **given).get() for _ in range(2)]
            if kind == output:
                mine = cp.asarray(x)
                found.append(softmax(mine, out=mine, **given).get())
        for one in found[1:]:
            np.testing.assert_array_equal(one.view(np.uint8), found[0].view(np.uint8))
        result = numbers(found[0], output)
        np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
        held = half_ulps(result, exact, output)
        assert np.nanmax(held) <= (4 if output == "fp32" else 1.05), plan


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_power(cp: Any, rng: np.random.Generator, gpu: Device, rows: int, columns: int) -> None:
    """Twice each; a row of infinities and NaN is NaN."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    z = rng.standard_normal((rows, columns, 2), dtype=np.float32).view(np.complex64)[..., 0]
    if rows > 6:
        z[1, 1], z[3, -1] = np.nan, np.inf
    power = np.abs(z.astype(np.complex128)) ** 2
    with np.errstate(invalid="ignore"):
        exact = special.softmax(0.7 * power, axis=-1)
    finite = np.isfinite(exact).all(axis=-1)
    # Two roundings of the power and one of the scale move the exponent.
    allowed = (4 + 3 * 0.7 * power[finite].max()) * 2.0**-23
    for form, plan in plans("softmax", "complex64", "fp32", columns, gpu):
        with PLAN_OVERRIDE.use((plan, form.vector)):
            found = [softmax(cp.asarray(z), power=True, scale=0.7).get() for _ in range(2)]
        np.testing.assert_array_equal(found[0], found[1])
        assert np.isnan(found[0][~finite]).all()
        np.testing.assert_allclose(
            found[0][finite], exact[finite], rtol=allowed, atol=2.0**-126, err_msg=str(plan)
        )


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name not in EXACT])
@pytest.mark.parametrize("operation", ["softmax", "log_softmax"])
def test_rounded_values(
    cp: Any, rng: np.random.Generator, gpu: Device, operation: Operation, precision: str
) -> None:
    from argand.softmax.gpu import PLAN_OVERRIDE

    rows, columns = 7, 70_001
    x = 4 * rng.standard_normal((rows, columns)).astype(np.float32)
    problem = SoftmaxProblem(x.shape, operation, PRECISIONS[precision], "fp32", "fp32")
    held = round_operand(x, problem.rounding).astype(np.float64)
    exact = getattr(special, operation)(held, axis=-1)
    call = {"softmax": softmax, "log_softmax": log_softmax}[operation]
    for form, plan in plans(operation, "fp32", "fp32", columns, gpu, problem.rounding):
        with PLAN_OVERRIDE.use((plan, form.vector)):
            found = call(cp.asarray(x), precision=precision).get()
        error = np.abs(found - exact)
        if operation == "log_softmax":  # the maximum's difference and the sum's logarithm
            assert (error <= 2.0**-22 * np.abs(exact) + 2.0**-21).all(), plan
        elif form.approximate:
            of_terms, of_sum = approximate_errors(held)
            allowed = of_terms + of_sum + 2.0**-24  # and of the quotient
            assert (error <= allowed * exact + 2.0**-149).all(), plan
        else:  # two ulp
            assert (error <= 2.0**-22 * exact + 2.0**-149).all(), plan


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_logarithms(cp: Any, rng: np.random.Generator, gpu: Device, kind: str) -> None:
    from argand.softmax.gpu import PLAN_OVERRIDE

    rows, columns = 150, 4999
    x = nasty(rng, rows, columns, kind)
    for form, plan in plans("log_softmax", kind, kind, columns, gpu)[::2]:
        with PLAN_OVERRIDE.use((plan, form.vector)):
            found = numbers(log_softmax(cp.asarray(x), output=kind).get(), kind)
        assert_logs(found, numbers(x, kind), kind)
    for form, plan in plans("logsumexp", kind, kind, columns, gpu)[::2]:
        with PLAN_OVERRIDE.use((plan, form.vector)):
            found = numbers(logsumexp(cp.asarray(x), output=kind).get(), kind)
        assert_logsumexp(found, numbers(x, kind), kind)


@pytest.mark.parametrize("first", range(5))
def test_rows_that_begin_anywhere(
    cp: Any, rng: np.random.Generator, gpu: Device, first: int
) -> None:
    """Nothing beside the rows is written, and what is beside them does not matter."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    columns = 4999
    whole = rng.standard_normal((6, columns + 13)).astype(np.float32)
    exact = special.softmax(whole[:, first : first + columns].astype(float), axis=-1)
    form = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, unaligned_rows=True)
    for blocks in (1, 5):
        plan = ring(form, gpu.require_arch(), SoftmaxCandidate(128, blocks), columns)
        with PLAN_OVERRIDE.use((plan, 4)):
            for place in (first, first + 4):
                out = cp.full((6, columns + 13), np.nan, cp.float32)
                x = cp.asarray(whole)[:, first : first + columns]
                softmax(x, out=out[:, place : place + columns])
                np.testing.assert_allclose(
                    out[:, place : place + columns].get(), exact, rtol=2.0**-22
                )
                assert cp.isnan(out[:, :place]).all()
                assert cp.isnan(out[:, place + columns :]).all()
            mine = cp.asarray(whole)
            view = mine[::-1, first : first + columns]
            softmax(view, out=view)
            np.testing.assert_allclose(view[::-1].get(), exact, rtol=2.0**-22)
            np.testing.assert_array_equal(mine[:, :first].get(), whole[:, :first])
            after = np.s_[:, first + columns :]
            np.testing.assert_array_equal(mine[after].get(), whole[after])


def test_streams_do_not_wait_for_each_other(cp: Any, rng: np.random.Generator, gpu: Device) -> None:
    """Blocks of two rings that each need the whole card must not hold half of it each."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    columns = 1 << 18
    x = cp.asarray(rng.standard_normal((40, columns)).astype(np.float32))
    expected = softmax(x)
    form = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, unaligned_rows=False)
    plan = ring(form, gpu.require_arch(), SoftmaxCandidate(256, gpu.sm_count), columns)
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    cp.cuda.Device().synchronize()
    found = []
    with PLAN_OVERRIDE.use((plan, 4)):
        for index in range(40):
            with streams[index % 4]:
                found.append(softmax(x))
    cp.cuda.Device().synchronize()
    for one in found:
        assert bool(cp.allclose(one, expected, rtol=2.0**-21, atol=0))


@pytest.mark.parametrize(
    ("kind", "columns"),
    [("fp32", 43_012), ("fp16", 90_008), ("bf16", 90_008), ("complex64", 40_002)],
)
@pytest.mark.parametrize("first", [0, 3])
def test_rows_that_begin_within_lines(
    cp: Any, rng: np.random.Generator, kind: str, columns: int, first: int
) -> None:
    """Rows of whole accesses, whose slices begin on lines; from the first or another row on."""
    power = kind == "complex64"
    x = 4 * rng.standard_normal((150, columns * (1 + power)), dtype=np.float32)
    x[7, 11] = np.nan
    x = x.view(np.complex64) if power else stored(x, kind)
    output = "fp32" if power else kind
    given = {"format": "bf16" if kind == "bf16" else None, "power": power, "output": output}
    found = numbers(softmax(cp.asarray(x)[first:], **given).get(), output)
    logits = np.abs(x.astype(np.complex128)) ** 2 if power else numbers(x, kind)
    exact = special.softmax(logits[first:], axis=-1)
    assert np.isnan(found[7 - first]).all()
    # Two roundings of a power move the exponent.
    moved = 2 * 2.0**-23 * np.nanmax(logits) if power else 0.0
    allowed = exact * ((4 if output == "fp32" else 1.05) * HALF_ULP[output] + moved)
    others = np.arange(len(found)) != 7 - first
    assert np.isfinite(found[others]).all()
    assert (np.abs(found - exact)[others] <= (allowed + SMALLEST[output])[others]).all()
