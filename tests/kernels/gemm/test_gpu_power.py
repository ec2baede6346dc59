"""Squared magnitudes by the epilogue of products on sm_90, and in a pass where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, GemmPlan, gemm, launched
from argand.gemm.question import GemmSizes

from tests.kernels.gemm.product_cases import normal
from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.precisions import TENSOR

pytestmark = pytest.mark.gpu

FORMS: dict[str, dict[str, Any]] = {
    "plain": {}, "combined": {"alpha": 2 - 1j, "beta": 0.5j}, "conjugated": {"op_a": "C"},
}  # fmt: skip


def held(
    cp: Any, found: Any, a: Any, b: Any, precision: str, alpha: complex = 1, addend: Any = 0
) -> None:
    """Assert that each element is |z|^2 within what errors of z and two roundings allow.

    Operands are rounded within u, and each of k additions truncates within 2^-22 of all terms.
    """
    row, k = PRECISIONS[precision], a.shape[-1]
    step = 2.0**-50 if precision == "fp64" else 2.0**-22
    wide, other = a.astype("complex128"), b.astype("complex128")
    z = alpha * cp.matmul(wide, other) + addend
    terms = abs(alpha) * cp.matmul(abs(wide), abs(other)) + abs(addend)
    error = (4 * row.u + (k + 4) * step) * terms
    bound = 2 * abs(z) * error + error**2 + 4 * step * abs(z) ** 2
    assert bool((abs(found - abs(z) ** 2) <= bound).all())


@pytest.mark.usefixtures("wgmma")
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_plan_squares_its_results(
    cp: Any, rng: np.random.Generator, precision: str, form: str
) -> None:
    """Rows begin at vectors and within them; columns, and accumulators that are spilled."""
    how = {"precision": precision, "kernels": "wgmma", **FORMS[form]}
    for m, n, k in ((136, 130, 72), (65, 67, 1500)):
        a, b, c = (cp.asarray(normal(rng, *shape)) for shape in ((m, k), (k, n), (m, n)))
        given = cp.ascontiguousarray(a.conj().T) if "op_a" in how else a
        addend = how.get("beta", 0) * c
        for choice in first_choices(cp, precision, GemmSizes(1, m, n, k, power=True)):
            wide = cp.full((m + 1, n + 3), -7, cp.float32)
            for out in (cp.empty((m, n), cp.float32), cp.empty((n, m), cp.float32).T,
                        wide[:-1, :n], wide[1:, 3:]):  # fmt: skip
                out.fill(cp.nan)
                with overridden(choice):
                    assert gemm(given, b, c, output="power", out=out, **how) is out
                held(cp, out, a, b, precision, how.get("alpha", 1), addend)
            assert bool((wide[0, n:] == -7).all())


@pytest.mark.parametrize("precision", ["fp64", "fp32", *TENSOR])
def test_any_product_is_squared(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """In batches, twice by the call cache, of empty sums, on every card."""
    kind = "complex128" if precision == "fp64" else "complex64"
    a, b = (cp.asarray(normal(rng, *x)).astype(kind) for x in ((3, 40, 50), (50, 33)))
    for _ in range(3):
        found = gemm(a, b, precision=precision, output="power")
        assert found.dtype == a.real.dtype
        held(cp, found, a, b, precision)
    empty = gemm(a[..., :0], b[:0], precision=precision, output="power")
    assert empty.shape == (3, 40, 33)
    assert not empty.any()


@pytest.mark.usefixtures("wgmma")
def test_one_kernel_does_it(cp: Any, rng: np.random.Generator) -> None:
    a, b = (cp.asarray(normal(rng, 512, 512)) for _ in range(2))
    with launched() as names:
        gemm(a, b, precision="tf32", output="power", kernels="wgmma")
    assert len(names) == 1
    assert "wgmma" in names[0]


def test_plans_without_wgmma_are_refused(cp: Any, rng: np.random.Generator) -> None:
    """The squares would be of a second pass, and a plan holds the product alone."""
    a, b = (cp.asarray(normal(rng, 40, 40)) for _ in range(2))
    for precision in ("fp32", "tf32"):
        with pytest.raises(ValueError, match=r"needs kernels='wgmma', .* got kernels=None"):
            GemmPlan(a, b, precision=precision, output="power")


@pytest.mark.usefixtures("wgmma")
def test_plans_square(cp: Any, rng: np.random.Generator) -> None:
    a, b = (cp.asarray(normal(rng, 40, 40)) for _ in range(2))
    plan = GemmPlan(a, b, precision="tf32", output="power", kernels="wgmma")
    for _ in range(2):
        held(cp, plan(a, b), a, b, "tf32")
