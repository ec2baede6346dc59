"""Slabs of a GPU softmax: every element of rows of any width, from any address, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, log_softmax, logsumexp, softmax
from argand.device import Device
from argand.multiprocessor import CLUSTER_SM
from argand.softmax.candidates import slab
from argand.softmax.formats import REAL_KINDS, Operation
from argand.softmax.plan import SoftmaxForm
from argand.softmax.slabs import slab_threads
from scipy import special

from tests.kernels.softmax.softmax_cases import (
    HALF_ULP,
    SMALLEST,
    assert_logs,
    assert_logsumexp,
    numbers,
    stored,
)

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]

ROWS = 67
SHORT = tuple(range(1, 71))
ODD = (71, 95, 127, 129, 221, 255, 257, 301, 493, 511, 513, 777, 1001, 1023, 1025, 1300, 1946, 1999)
LONG = (2049, 3003, 4798, 4901, 5869, 8191, 9001)
HALVES = ("fp16", "bf16")
ALLOWED = {"fp64": 64, "fp32": 4, "fp16": 1.05, "bf16": 1.05}
"""Half ulps of the result: fp32 is right to two ulp, what is rounded from it once to half and a
little; fp64 has two exponentials, a division, and sums of up to 32 terms of a thread and of five
steps between them."""


@pytest.fixture
def by_slabs(gpu: Device) -> Callable[..., Any]:
    """A context in which every softmax of rows of a width and of a kind takes slabs."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    def use(columns: int, kind: str, output: str, operation: Operation = "softmax") -> Any:
        precision = PRECISIONS["fp64" if output == "fp64" else "fp32"]
        form = SoftmaxForm(operation, kind, output, precision, 1, unaligned_rows=True, gapless=True)
        bulk = gpu.require_arch().sm >= CLUSTER_SM
        plan = slab(form, slab_threads(form, columns), columns, stages=2, bulk=bulk)
        return PLAN_OVERRIDE.use((plan, form.vector))

    return use


def placed(cp: Any, flat: Array, first: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Rows that begin ``first`` elements into an array of NaN, and that array."""
    size = int(np.prod(shape))
    whole = np.full(first + size + 9, _nan(flat.dtype), flat.dtype)
    whole[first : first + size] = flat.reshape(-1)
    device = cp.asarray(whole)
    return device[first : first + size].reshape(shape), device


def _nan(dtype: Any) -> Any:
    return 0xFFFF if dtype == np.uint16 else np.nan


def held_softmax(
    cp: Any,
    by_slabs: Callable[..., Any],
    x: Array,
    kind: str,
    output: str,
    first: tuple[int, int] = (0, 0),
    **given: Any,
) -> None:
    """The softmax of x, between arrays of NaN, within its bound at every element."""
    exact = special.softmax(numbers(x, kind), axis=-1)
    empty = np.full(x.shape, _nan(np.dtype(REAL_KINDS[output])), REAL_KINDS[output])
    read, _ = placed(cp, x, first[0], x.shape)
    out, whole = placed(cp, empty, first[1], x.shape)
    given |= {"format": "bf16" if kind == "bf16" else None, "output": output}
    with by_slabs(x.shape[-1], kind, output):
        assert softmax(read, out=out, **given) is out
    found = numbers(out.get(), output)
    smallest = max(SMALLEST[output], SMALLEST[given.get("precision", "fp32")])
    held = np.abs(found - exact) / (exact * HALF_ULP[output] + smallest)
    assert held.max() <= ALLOWED[output]
    outside = numbers(whole.get(), output)
    assert np.isnan(outside[: first[1]]).all()
    assert np.isnan(outside[first[1] + x.size :]).all()


@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("columns", SHORT + ODD + LONG)
def test_every_width(
    cp: Any, by_slabs: Callable[..., Any], rng: np.random.Generator, kind: str, columns: int
) -> None:
    x = stored(4 * rng.standard_normal((ROWS, columns)).astype(np.float32), kind)
    held_softmax(cp, by_slabs, x, kind, kind)


@pytest.mark.parametrize(
    ("kind", "output"), [*product(["fp32", *HALVES], repeat=2), ("fp64", "fp64"), ("fp64", "fp32")]
)
@pytest.mark.parametrize("columns", [19, 221, 1001])
def test_every_kind_from_every_address(
    cp: Any,
    by_slabs: Callable[..., Any],
    rng: np.random.Generator,
    kind: str,
    output: str,
    columns: int,
) -> None:
    x = stored(4 * rng.standard_normal((ROWS, columns)).astype(np.float32), kind)
    for first in [(0, 0), (1, 1), (3, 2), (0, 5), (7, 0)]:
        held_softmax(
            cp, by_slabs, x, kind, output, first, precision="fp64" if output == "fp64" else "fp32"
        )


@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("columns", [5, 26, 55, 301, 493, 1999, 4901])
def test_logarithms(
    cp: Any, by_slabs: Callable[..., Any], rng: np.random.Generator, kind: str, columns: int
) -> None:
    x = stored(4 * rng.standard_normal((ROWS, columns)).astype(np.float32), kind)
    for first in (0, 3):
        read, _ = placed(cp, x, first, x.shape)
        given = {"format": "bf16" if kind == "bf16" else None, "output": kind}
        with by_slabs(columns, kind, kind, "log_softmax"):
            logs = numbers(log_softmax(read, **given).get(), kind)
        assert_logs(logs, numbers(x, kind), kind)
        with by_slabs(columns, kind, kind, "logsumexp"):
            total = numbers(logsumexp(read, **given).get(), kind)
        assert_logsumexp(total, numbers(x, kind), kind)


@pytest.mark.parametrize("columns", [3, 17, 55, 129, 511, 1001])
def test_power(
    cp: Any, by_slabs: Callable[..., Any], rng: np.random.Generator, columns: int
) -> None:
    z = rng.standard_normal((ROWS, columns)) + 1j * rng.standard_normal((ROWS, columns))
    z = z.astype(np.complex64)
    power = np.abs(z.astype(np.complex128)) ** 2
    for first in (0, 1):
        read, _ = placed(cp, z, first, z.shape)
        with by_slabs(columns, "complex64", "fp32"):
            found = softmax(read, power=True, scale=0.7).get()
        # Two roundings of the power and one of the scale move the exponent.
        allowed = (4 + 3 * 0.7 * power.max()) * 2.0**-23
        exact = special.softmax(0.7 * power, axis=-1)
        np.testing.assert_allclose(found, exact, rtol=allowed, atol=2.0**-126)


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize(
    ("kind", "threads", "columns", "rows"),
    [
        ("fp32", 1, 26, 500_001), ("fp32", 2, 55, 300_001), ("fp16", 32, 493, 50_001),
        ("fp16", 8, 101, 200_001), ("bf16", 96, 3001, 5_003), ("fp32", 64, 1001, 12_001),
    ],
)  # fmt: skip
def test_stages_are_used_again(
    cp: Any, gpu: Device, kind: str, threads: int, columns: int, rows: int, stages: int, bulk: bool
) -> None:
    """More slabs than the card has stages, each element against fp64 on the GPU."""
    if bulk and gpu.require_arch().sm < 90:
        pytest.skip("bulk copies need TMA")
    from argand.softmax.gpu import PLAN_OVERRIDE

    x = 4 * cp.random.default_rng(3).standard_normal((rows, columns), dtype=cp.float32)
    if kind == "bf16":
        x = (x.view(cp.uint32) >> 16).astype(cp.uint16)
    x = x.astype(REAL_KINDS[kind], copy=False)
    out = cp.full(x.shape, _nan(x.dtype), x.dtype)
    form = SoftmaxForm(
        "softmax", kind, kind, PRECISIONS["fp32"], 1, unaligned_rows=True, gapless=True
    )
    with PLAN_OVERRIDE.use((slab(form, threads, columns, stages=stages, bulk=bulk), form.vector)):
        softmax(x, out=out, output=kind, format="bf16" if kind == "bf16" else None)
    if kind == "bf16":
        x, out = ((y.astype(cp.uint32) << 16).view(cp.float32) for y in (x, out))
    worst = 0.0
    for start in range(0, rows, 1 << 14):
        given = x[start : start + (1 << 14)].astype(cp.float64)
        exact = cp.exp(given - given.max(axis=-1, keepdims=True))
        exact /= exact.sum(axis=-1, keepdims=True)
        found = out[start : start + (1 << 14)].astype(cp.float64)
        held = cp.abs(found - exact) / (exact * HALF_ULP[kind] + SMALLEST[kind])
        worst = max(worst, float(held.max()))
    assert worst <= ALLOWED[kind]


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("columns", [33, 301, 1001])
def test_in_place_from_every_address(
    cp: Any, by_slabs: Callable[..., Any], rng: np.random.Generator, kind: str, columns: int
) -> None:
    x = stored(4 * rng.standard_normal((2003, columns)).astype(np.float32), kind)
    for first in (0, 1, 5):
        read, whole = placed(cp, x, first, x.shape)
        with by_slabs(columns, kind, kind):
            apart = softmax(read, output=kind).get()
            assert softmax(read, output=kind, out=read) is read
        np.testing.assert_array_equal(read.get(), apart)
        assert np.isnan(whole[:first].get()).all()
        assert np.isnan(whole[first + x.size :].get()).all()


@pytest.mark.parametrize("columns", [2, 30, 55, 493, 1001, 4901])
def test_rows_without_a_maximum(cp: Any, by_slabs: Callable[..., Any], columns: int) -> None:
    inf, nan = np.inf, np.nan
    x = np.zeros((9, columns), np.float32)
    x[1, 0], x[2] = -inf, -inf
    x[3, 1], x[4, -1] = inf, nan
    x[5], x[6, :-1] = 3e4, -inf
    x[6, -1] = -2e4
    x[7] = 1e30
    x[8, ::2] = -1e30
    with np.errstate(invalid="ignore"):
        exact = special.softmax(x.astype(np.float64), axis=-1)
    for precision in ("fp32", "3xfp16"):
        with by_slabs(columns, "fp32", "fp32"):
            found = softmax(cp.asarray(x), precision=precision).get()
        np.testing.assert_allclose(found, exact, rtol=2.0**-20, atol=1e-45)


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("columns", [300, 493, 4096, 50_001])
def test_precisions_that_hold_the_data_do_not_round_it(
    cp: Any, rng: np.random.Generator, kind: str, columns: int
) -> None:
    x = cp.asarray(stored(4 * rng.standard_normal((5, columns)).astype(np.float32), kind))
    given = {"format": "bf16" if kind == "bf16" else None, "output": kind}
    expected = softmax(x, precision="fp32", **given).get()
    for precision in {"tf32", "3xtf32", "3xfp16", "fp16", kind}:
        np.testing.assert_array_equal(softmax(x, precision=precision, **given).get(), expected)
