"""Single Hermitian products of long k on the CPU, by the herk of the BLAS in NumPy's wheels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand.herk import cpu_gather
from argand.herk.problem import herk_problem
from argand.precision import get_precision
from argand.runtime.cpu.numpy_blas import lapack_address

from tests.kernels.herk.herk_cases import assert_hermitian, oriented
from tests.normal import normal


@pytest.mark.skipif(lapack_address("zherk") is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", ["N", "C"])
@pytest.mark.parametrize("shape", [(2, 64), (1, 13, 70), (40, 300)])
def test_products_by_numpys_herk(shape: tuple[int, ...], op: Any, dtype: str) -> None:
    """Operands of any order, also those that are only read; a row may not be finite."""
    numbers = oriented(normal(np.random.default_rng(1), *shape), op).astype(dtype)
    problem = herk_problem(
        numbers.shape, op=op, precision=get_precision("fp32" if dtype == "complex64" else "fp64"),
        dtype=dtype,
    )  # fmt: skip
    run, n, k = cpu_gather._gathered_by_numpy(problem), problem.n, problem.k
    read_only = numbers.copy()
    read_only.flags.writeable = False
    out = np.empty(problem.shape, dtype)
    for a in (numbers, read_only, np.asfortranarray(numbers)):
        for found in (run(a), run(a, None, out)):
            rows = a if op == "N" else np.conjugate(a).swapaxes(-1, -2)
            full = np.einsum("...ik,...jk->...ij", rows, rows.conj())
            assert_hermitian(found)
            assert found.shape == problem.shape
            assert np.abs(found - full).max() <= 8 * k * np.finfo(dtype).eps * np.abs(full).max()
    first = run(numbers).copy()
    bad = numbers.copy()
    bad[(*(0 for _ in shape),)] = np.nan
    lost = run(bad)
    assert not np.diagonal(lost, axis1=-2, axis2=-1).imag.any()
    assert np.isfinite(lost).sum() == (n - 1) ** 2
    np.testing.assert_array_equal(run(numbers), first)
