"""The operands that torch tests its own products with, through `argand.gemm`."""

from __future__ import annotations

import warnings
from itertools import chain
from typing import Any

import pytest

torch = pytest.importorskip("torch")
try:
    with warnings.catch_warnings(action="ignore"):  # of what torch's own tests are made with
        from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:  # a package that torch's tests need and its wheel does not bring
    pytest.skip(f"torch's own samples cannot be imported: {missing}", allow_module_level=True)

import argand  # noqa: E402

OPERATIONS = ("matmul", "mm", "bmm", "__rmatmul__")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_samples(name: str, dtype: str, device: str) -> None:
    """Those of two matrices or batches of them; vectors are torch.matmul's alone."""
    compared = 0
    samples = (
        one.sample_inputs(device, getattr(torch, dtype), requires_grad=False)
        for one in op_db
        if one.name == name
    )
    for sample in chain.from_iterable(samples):
        a, b = sample.input, sample.args[0]
        if name == "__rmatmul__":
            a, b = b, a
        if min(a.ndim, b.ndim) < 2:
            continue
        _compare(a, b, dtype)
        compared += 1
    assert compared > 0


def _compare(a: Any, b: Any, dtype: str) -> None:
    """Within the bound of sums in any order: (k + 2) u |a| |b|, twice for the two results."""
    expected, found = torch.matmul(a, b), argand.gemm(a, b)
    assert (found.shape, found.dtype, found.device) == (
        expected.shape, expected.dtype, expected.device
    )  # fmt: skip
    unit = torch.finfo(getattr(torch, dtype)).eps
    bound = 4 * (a.shape[-1] + 2) * unit * torch.matmul(a.abs(), b.abs())
    assert bool(((found - expected).abs() <= bound).all())
