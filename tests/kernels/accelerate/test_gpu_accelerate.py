"""Products of torch and CuPy on a GPU that argand takes over."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import accelerate, launched

from tests.normal import wide_normal

pytestmark = pytest.mark.gpu


def test_large_products_of_cupy_are_made_by_argand(cp: Any, rng: np.random.Generator) -> None:
    a = cp.asarray(wide_normal(rng, 1024, 1024), "complex64")
    expected = a.astype("complex128") @ a.astype("complex128")
    for options, error in (({}, 1e-6), ({"tolerance": 1e-6}, 1e-6), ({"precision": "fp16"}, 2e-3)):
        with accelerate(report=False, **options) as done:
            for _ in range(2):
                found = cp.matmul(a, a)
        assert cp.linalg.norm(found - expected) <= error * cp.linalg.norm(expected)
        (row,) = done.forms
        assert row.calls == 2
        if row.by_argand:
            assert row.argand_seconds is not None
            assert row.library_seconds is not None
            assert row.argand_seconds < row.library_seconds
    with accelerate(report=False) as done:
        assert cp.matmul(a.real, a.real).dtype == "float32"
    assert done.forms == []


def test_products_of_torch(gpu: Any, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a = torch.tensor(wide_normal(rng, 1024, 1024), device="cuda")
    single = a.to(torch.complex64)
    vectors, real = single[0], single.real
    calls = [
        lambda x: x @ x, lambda x: torch.matmul(x, x.mH), lambda x: x.mm(x),
        lambda x: torch.bmm(x[None], x[None])[0],
    ]  # fmt: skip
    with accelerate(report=False, precision="3xtf32") as done:
        for call in calls:
            expected = call(a)
            found = call(single)
            error = torch.linalg.vector_norm(found - expected)
            assert error <= 1e-6 * torch.linalg.vector_norm(expected)
        vectors @ single
        real @ real
    assert [row.calls for row in done.forms] == [2, 2, 1, 1, 1, 1], "mm is @ of one form"
    assert {row.by_argand for row in done.forms if "complex128" in row.form} == {False}
    with accelerate(report=False, precision="3xtf32") as again:  # measured again
        single @ single
        with launched() as kernels:
            single @ single
    assert bool(kernels) == again.forms[0].by_argand


def test_traced_products_are_left_alone(gpu: Any, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    make_fx = import_module("torch.fx.experimental.proxy_tensor").make_fx
    a = torch.tensor(wide_normal(rng, 2, 16, 16), device="cuda")
    with accelerate(report=False) as done:
        mapped = torch.func.vmap(lambda x: x @ x)(a)
        recorded = make_fx(lambda x: x @ x)(a)
    torch.testing.assert_close(mapped, a @ a)
    torch.testing.assert_close(recorded(2 * a), 4 * (a @ a))
    assert done.forms == []
