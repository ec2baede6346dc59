"""cuFFT's kernels of a length, and the choice that they make (a GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, dft
from argand.dft import tuned
from argand.dft.library_choice import LibraryKernels

from workflow.accuracy.transform_bounds import plan_bound

pytestmark = pytest.mark.gpu
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
