"""Three-kernel convolutions without a GPU: tables used as the kernels use them, legality."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.dft.plan import kernel_names
from argand.dft.three_kernel import KERNELS, ThreeKernelPlan, three_kernel_tables

from tests.kernels.dft.test_dft_butterfly import back, there

ROW = PRECISIONS["3xfp16"]
PLAN = ThreeKernelPlan(20_011, (16, 16), (10, 16), 16, 8, 1, 8)
Array = npt.NDArray[np.complex128]


def passed(plan: ThreeKernelPlan, x: Array, *, inverse: bool) -> Array:
    """A transform by the plan's tables, kernel by kernel, in fp64."""
    (a, b), line = plan.columns, plan.line.size
    tables = three_kernel_tables(plan, inverse=inverse)
    words = tables["twiddles"].astype(complex)
    inner, bases, steps, rest = np.split(words, np.cumsum([a * b, a * line, b * line]))
    turns = bases.reshape(a, 1, line) * steps.reshape(1, b, line)
    inner = inner.reshape(a, b, 1)
    work = np.zeros(plan.size, complex)
    work[: plan.length] = x * tables["chirp"]
    work = np.fft.fft(work.reshape(a, b, line), axis=0) * inner
    work = (np.fft.fft(work, axis=1) * turns).reshape(a * b, line)
    assert rest.size == sum(
        (radix - 1) * prod(plan.radices[i + 1 :]) for i, radix in enumerate(plan.radices[:-1])
    )
    for one, spectrum in zip(work, tables["spectrum"], strict=True):
        found = there(one, plan.radices) * spectrum.T.ravel()
        one[...] = back(np.conj(found), plan.radices)
    work = np.fft.fft(work.reshape(a, b, line) * turns, axis=1) * inner
    return np.conj(np.fft.fft(work, axis=0).ravel()[: plan.length]) * tables["chirp"]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        ThreeKernelPlan(1018, (4, 8), (8, 8), 16, 2, 1, 8),
        ThreeKernelPlan(777, (8, 4), (4, 3, 8), 8, 1, 1, 1),
    ],
    ids=str,
)  # fmt: skip
def test_tables_make_a_transform(
    rng: np.random.Generator, plan: ThreeKernelPlan, inverse: bool
) -> None:
    x = rng.standard_normal(plan.length) + 1j * rng.standard_normal(plan.length)
    exact = plan.length * np.fft.ifft(x) if inverse else np.fft.fft(x)
    found = passed(plan, x, inverse=inverse)
    assert np.linalg.norm(found - exact) < 1e-6 * np.linalg.norm(exact)
    assert all(
        table.flags.c_contiguous for table in three_kernel_tables(plan, inverse=inverse).values()
    )


def test_grids_cover_every_line_and_column() -> None:
    assert [PLAN.grid_blocks(which, 3) for which in KERNELS] == [30, 96, 30]
    assert PLAN.kernel_shared_bytes("forward_columns", ROW) == 256 * 16 * 8
    assert len(set(kernel_names(PLAN, ROW))) == 3
