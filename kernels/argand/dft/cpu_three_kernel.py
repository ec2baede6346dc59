"""Convolutions on the CPU, in fp32: the model of ``cuda/dft/three_kernel.cuh``.

It has the same radices and tables, but no fused multiply-adds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from argand.dft.cpu_butterfly import along, forward_stages, inverse_stages
from argand.dft.three_kernel import ThreeKernelPlan, three_kernel_tables
from argand.rounding import Array

if TYPE_CHECKING:
    from argand.dft.problem import DftProblem

_BLOCK_VALUES = 1 << 21
"""Complex values worked on at a time: one transform of the largest plan."""


def three_kernel_dft(problem: DftProblem, x: Array, plan: ThreeKernelPlan) -> Array:
    """Return the transforms of the rows of x, (rows, N) of complex64, by a plan's convolution."""
    out = np.empty_like(x, order="C")
    tables = _tables(plan, problem.inverse)
    step = max(1, _BLOCK_VALUES // plan.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(x), step):
            found = _rows(x[start : start + step], plan, tables)
            out[start : start + step] = found * np.float32(problem.factor) * tables["chirp"]
    return out


@lru_cache(maxsize=4)
def _tables(plan: ThreeKernelPlan, inverse: bool) -> dict[str, Array]:
    """Return a plan's tables by name, with the axes of the lines and columns they belong to."""
    (a, b), line = plan.columns, plan.line.size
    tables = three_kernel_tables(plan, inverse=inverse)
    inner, bases, by_line, _ = np.split(tables["twiddles"], np.cumsum([a * b, a * line, b * line]))
    spectrum = tables["spectrum"].swapaxes(-1, -2).reshape(a * b, line)
    return {
        "chirp": tables["chirp"], "spectrum": spectrum, "inner": inner.reshape(a, b, 1),
        "twiddles": bases.reshape(a, 1, line) * by_line.reshape(1, b, line),
    }  # fmt: skip


def _rows(x: Array, plan: ThreeKernelPlan, tables: dict[str, Array]) -> Array:
    rows, (a, b), line = len(x), plan.columns, plan.line.size
    work = np.zeros((rows, plan.size), np.complex64)
    work[:, : plan.length] = x * tables["chirp"]
    work = along(work.reshape(rows, a, b, line), 1) * tables["inner"]
    work = along(work, 2) * tables["twiddles"]
    found = forward_stages(work.reshape(rows * a * b, line), plan.radices)
    found = found.reshape(rows, a * b, line) * tables["spectrum"]
    found = inverse_stages(np.conj(found).reshape(rows * a * b, line), plan.radices)
    work = along(found.reshape(rows, a, b, line) * tables["twiddles"], 2) * tables["inner"]
    return np.conj(along(work, 1).reshape(rows, plan.size)[:, : plan.length])
