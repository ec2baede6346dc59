"""Transforms by cuFFT: graphs of them, captures of programs, and its kernels of a length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, DftPlan, dft
from argand.dft import tuned
from argand.dft.library_choice import LibraryKernels

from tests.normal import normal
from workflow.accuracy.transform_bounds import plan_bound

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize(("rows", "length"), [(1, 7), (3, 683), (2, 1 << 18)])
def test_inverses_are_multiplied_by_the_factor_of_their_norm(
    cp: Any, rng: Any, rows: int, length: int, precision: str
) -> None:
    """Counts that fill blocks and that do not, beside an array that is not the result's."""
    x = cp.asarray(normal(rng, rows, length)).astype("c8" if precision == "fp32" else "c16")
    sums = cp.fft.ifft(x, norm="forward")
    memory = cp.full(rows * length + 1, 7, x.dtype)
    out = memory[:-1].reshape(rows, length)
    for norm, factor in (("backward", 1 / length), ("ortho", length**-0.5), ("forward", 1.0)):
        expected = sums * sums.real.dtype.type(factor)
        for _ in range(3):
            out.fill(7)
            dft(x, inverse=True, norm=norm, precision=precision, out=out)
            assert bool((out == expected).all())
    assert memory[-1] == 7


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "fp64", "3xfp16"])
def test_one_number_is_its_own_transform(
    cp: Any, rng: np.random.Generator, precision: str, inverse: bool
) -> None:
    """By repeated calls, a plan and a graph; in place, and through gaps on either side."""
    given = normal(rng, 4, 6, 1).astype("c16" if precision == "fp64" else "c8")
    given[0, 0] = complex(np.nan, -0.0)
    options = {"inverse": inverse, "norm": "ortho", "precision": precision}
    x, stream = cp.asarray(given), cp.cuda.Stream(non_blocking=True)
    out, memory = cp.empty_like(x), cp.full((4, 12, 1), 7, x.dtype)
    for _ in range(3):
        cp.testing.assert_array_equal(dft(x, **options), given)
        assert dft(x, **options, out=x) is x
        cp.testing.assert_array_equal(x, given)
        dft(x, **options, out=memory[:, ::2])
        cp.testing.assert_array_equal(memory[:, ::2], given)
        cp.testing.assert_array_equal(dft(memory[:, ::2], **options), given)
        assert bool((memory[:, 1::2] == 7).all())
    plan = DftPlan(x, **options)
    cp.testing.assert_array_equal(plan(x, out=out), given)
    assert "kernels: copy" in plan.describe()
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        dft(x, **options, out=out)
        graph = stream.end_capture()
        out.fill(7)
        graph.launch(stream=stream)
        cp.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("length", [48, 1 << 18])
def test_graphs_read_and_write_the_arrays_of_their_call(cp: Any, rng: Any, length: int) -> None:
    """More arrays than graphs are kept for, each of them several times."""
    given = [cp.asarray(normal(rng, 2, length)) for _ in range(10)]
    plan = DftPlan(given[0], precision="fp32")
    expected = [cp.fft.fft(x) for x in given]
    outs = [cp.empty_like(x) for x in given]
    for first in (0, 3, 0):
        for _ in range(3):
            for x, out, result in zip(given[first:], outs, expected[first:], strict=False):
                out.fill(7)
                plan(x, out=out)
                assert bool((out == result).all())


@pytest.mark.parametrize("length", [48, 1 << 18])
def test_a_program_may_capture_a_transform_that_has_a_graph(cp: Any, rng: Any, length: int) -> None:
    x, y = (cp.asarray(normal(rng, 2, length)) for _ in range(2))
    out, stream = cp.empty_like(x), cp.cuda.Stream(non_blocking=True)
    expected = dft(y, precision="fp32", inverse=True)
    cp.cuda.Device().synchronize()
    with stream:
        for _ in range(3):
            dft(x, precision="fp32", inverse=True, out=out)
        stream.begin_capture()
        dft(x, precision="fp32", inverse=True, out=out)
        graph = stream.end_capture()
        x[...] = y
        out.fill(7)
        graph.launch(stream=stream)
        assert bool((out == expected).all())


def test_a_call_that_cannot_be_captured_is_made_by_itself(cp: Any) -> None:
    from argand.runtime.launch.captured_graph import CapturedCalls

    def refuse(address: int) -> None:
        raise RuntimeError(f"nobody captures {address}")

    calls = CapturedCalls(refuse)
    assert [calls.launch((7,), 0) for _ in range(3)] == [False] * 3
    assert cp.arange(4).sum() == 6


SEVERAL = LibraryKernels(several=True)
ONE = LibraryKernels(several=False, numbers=29, blocks=4)


@pytest.mark.parametrize("length", [520, 1000, 1740, 4180, 12_000])
def test_kernels_are_those_that_a_call_launches(cp: Any, length: int) -> None:
    """Only several kernels need a workspace. A thread of a single one holds whole numbers, and a
    multiprocessor at most 32 blocks."""
    from argand.dft import cufft_kernels
    from argand.dft.cufft_plans import plan_of

    rows = (1 << 16) // length
    found = cufft_kernels.kernels_of(length, rows, 0)
    plan = plan_of(cp.cuda.cufft.CUFFT_C2C, length, rows, 0)
    assert found is not None
    assert found.several == (plan.workspace_bytes > 0)
    assert found.several or length % found.numbers == 0
    assert 1 <= found.blocks <= 32


@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_several_kernels_give_a_length_to_ours(
    cp: Any, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    from argand.dft.gpu import plan_of

    x = cp.zeros((5, 2900), "complex64")
    for kernels in (ONE, SEVERAL):
        monkeypatch.setattr(tuned, "library_kernels", lambda *_, found=kernels: found)
        assert (plan_of(x, precision=precision).plan is None) == (kernels is ONE)


@pytest.mark.parametrize("length", [870, 4060])
def test_cufft_is_asked_within_a_capture(cp: Any, length: int) -> None:
    """The call makes a plan, and the question captures another stream."""
    from argand.dft.gpu import plan_of

    x = cp.random.default_rng(length).standard_normal((40, 2 * length), dtype="f4").view("c8")
    out = cp.zeros_like(x)
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        dft(x, precision="tf32", out=out)
        graph = stream.end_capture()
        graph.launch()
        stream.synchronize()
    exact = np.fft.fft(x.get().astype("complex128"))
    bound = plan_bound(plan_of(x, precision="tf32").plan, PRECISIONS["tf32"], length)
    assert np.linalg.norm(out.get() - exact) < bound * np.linalg.norm(exact)
