"""Calls on a GPU within a workspace limit: what they take, and that results are those of others."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import (
    DftPlan,
    GemmPlan,
    Pairs,
    WorkspaceError,
    apply_gate,
    dft,
    gemm,
    herk,
    launched,
    pack,
    pairs,
    to_pairs,
    workspace_limit,
)

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.gemm.product_cases import check, normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

LIMIT = 2 << 20
PIECE = 512
"""Memory is given in multiples of it."""
SHAPE = (1100, 1500, 700)


def panels(names: list[str]) -> int:
    """Return the panels of the one product that was made, by its name in records."""
    (name,) = names
    found = re.match(r"(\d+) panels, ", name)
    return int(found[1]) if found else 1


def takes_at_most(cp: Any, limit: int, call: Callable[[], object], blocks: int = 4) -> list[str]:
    """Hold a call to a limit; return its names in records."""
    with workspace_limit(limit), launched() as names:
        call()
        assert most_allocated(cp, call) <= limit + blocks * PIECE
    return names


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "fp16", "3xfp16", "bf16"])
@pytest.mark.parametrize(("op_a", "op_b"), [("N", "N"), ("C", "T")])
def test_products_in_panels(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    m, n, k = SHAPE
    a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
    how: dict[str, Any] = {"precision": precision, "kernels": "wgmma", "alpha": 1 - 2j, "beta": 0.5}
    left = a if op_a == "N" else np.ascontiguousarray(a.conj().T)
    right = b if op_b == "N" else np.ascontiguousarray(b.T)
    with workspace_limit(LIMIT):
        check(cp, left, right, c, op_a=op_a, op_b=op_b, **how)
    on_gpu = cp.asarray(left), cp.asarray(right), cp.asarray(c)
    out = cp.empty((m, n), cp.complex64)
    names = takes_at_most(
        cp, LIMIT, lambda: gemm(*on_gpu, op_a=op_a, op_b=op_b, out=out, **how)
    )  # fmt: skip
    assert panels(names) > 1
    alone = most_allocated(cp, lambda: gemm(*on_gpu, op_a=op_a, op_b=op_b, out=out, **how))
    assert alone > LIMIT


def test_batches_are_cut_first(cp: Any, rng: np.random.Generator) -> None:
    a, b = normal(rng, 40, 130, 96), normal(rng, 40, 96, 110)
    with workspace_limit(1 << 20):
        check(cp, a, b, precision="3xtf32", kernels="wgmma")
        check(cp, a[:1], b, precision="tf32", kernels="wgmma")
    left, right = cp.asarray(a), cp.asarray(b)
    out = cp.empty((40, 130, 110), cp.complex64)
    names = takes_at_most(
        cp, 1 << 20,
        lambda: gemm(left, right, precision="3xtf32", kernels="wgmma", out=out),
    )  # fmt: skip
    assert 1 < panels(names) < 40


def test_without_workspace(cp: Any, rng: np.random.Generator) -> None:
    """mma.sync reads operands in place."""
    a, b = cp.asarray(normal(rng, 300, 200)), cp.asarray(normal(rng, 200, 260))
    out = cp.empty((300, 260), cp.complex64)
    with workspace_limit(0):
        check(cp, a.get(), b.get(), precision="3xtf32")
    takes_at_most(cp, 0, lambda: gemm(a, b, precision="3xtf32", out=out), blocks=0)


def test_accumulators_beside_an_addend(cp: Any, rng: np.random.Generator) -> None:
    """They spill to workspace as large as the result."""
    m, n, k = 500, 600, 20_000
    a, b, c = (cp.asarray(normal(rng, *shape)) for shape in ((m, k), (k, n), (m, n)))
    out = cp.empty_like(c)
    call = lambda: gemm(a, b, c, beta=1, precision="3xtf32", out=out)  # noqa: E731
    takes_at_most(cp, 4 << 20, call)
    with workspace_limit(4 << 20):
        found = call().get()
    expected = a.get().astype(complex) @ b.get() + c.get()
    assert np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected)


def test_packed_operands_pairs_and_squares(cp: Any, rng: np.random.Generator) -> None:
    """A packed operand is not cut; panels of pairs, and of results of 4 bytes."""
    m, n, k = SHAPE
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    weights, left, right = pack(a, "fp16"), to_pairs(a, "fp16"), to_pairs(b, "fp16")
    for call, item in (
        (lambda: gemm(weights, b, precision="fp16"), 8),
        (lambda: gemm(left, right, precision="fp16", output="complex-half"), 4),
        (lambda: gemm(a, b, precision="3xfp16", output="power", kernels="wgmma"), 4),
    ):
        expected = call()
        with workspace_limit(LIMIT), launched() as names:
            found = call()
            assert most_allocated(cp, call) <= LIMIT + item * m * n + 4 * PIECE
        assert panels(names) > 1
        if isinstance(found, Pairs):
            found, expected = found.to_complex64(), expected.to_complex64()
        assert float(abs(found - expected).max()) <= 2e-3 * float(abs(expected).max())


def test_the_limit_of_a_call_that_was_made_before(cp: Any, rng: np.random.Generator) -> None:
    """Calls are kept by the limit, and a plan keeps what it was made with."""
    m, n, k = SHAPE
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    how: dict[str, Any] = {"precision": "3xtf32", "kernels": "wgmma"}
    counts = []
    for limit in (None, LIMIT, None, LIMIT):
        with workspace_limit(limit), launched() as names:
            gemm(a, b, **how)
        counts.append(panels(names))
    assert counts == [1, counts[1], 1, counts[1]]
    assert counts[1] > 1
    with workspace_limit(LIMIT):
        plan = GemmPlan(a, b, **how)
        expected = gemm(a, b, **how)
    assert plan._on_gpu.nbytes <= LIMIT
    out = cp.empty_like(expected)
    assert most_allocated(cp, lambda: plan(a, b, out=out)) == 0
    assert bool((out == expected).all())
    assert "panels" in plan.describe()


def test_a_limit_that_another_thread_changes_within_a_call(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that was planned without the limit is not kept as one within it."""
    m, n, k = 1100, 1500, 704
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    out = cp.empty((m, n), cp.complex64)
    call = partial(gemm, a, b, precision="3xtf32", kernels="wgmma", out=out)
    module = importlib.import_module("argand.gemm.gpu")
    prepare = module.prepare

    def late(*given: Any) -> Any:
        with workspace_limit(None):
            return prepare(*given)

    with workspace_limit(LIMIT), launched() as names:
        with monkeypatch.context() as patch:
            patch.setattr(module, "prepare", late)
            call()
        assert panels(names) == 1
        assert most_allocated(cp, call) <= LIMIT + 4 * PIECE


def test_a_captured_product(cp: Any, rng: np.random.Generator) -> None:
    m, n, k = SHAPE
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    out = cp.zeros((m, n), cp.complex64)
    with workspace_limit(LIMIT):
        expected = gemm(a, b, precision="tf32", kernels="wgmma")
        stream = cp.cuda.Stream(non_blocking=True)
        stream.wait_event(cp.cuda.get_current_stream().record())
        with stream:
            stream.begin_capture()
            gemm(a, b, precision="tf32", kernels="wgmma", out=out)
            graph = stream.end_capture()
            graph.launch(stream)
        stream.synchronize()
    assert bool((out == expected).all())


def test_calls_of_torch(cp: Any, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    m, n, k = SHAPE
    a, b = (torch.from_numpy(normal(rng, *x)).cuda() for x in ((m, k), (k, n)))
    a.requires_grad_()
    with workspace_limit(LIMIT), launched() as names:
        for _ in range(3):
            gemm(a, b, precision="3xtf32", kernels="wgmma").abs().sum().backward()
    # The product of the gradient, which torch makes on a thread of its own, is in panels too.
    assert len(names) > 1
    assert all(panels([name]) > 1 for name in names)
    again = a.grad / 3
    a.grad = None
    gemm(a, b, precision="3xtf32", kernels="wgmma").abs().sum().backward()
    assert float((again - a.grad).norm() / a.grad.norm()) < 1e-5


def test_exact_products(cp: Any, rng: np.random.Generator) -> None:
    m, n, k = SHAPE
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    out = cp.empty((m, n), cp.complex64)
    expected = gemm(a, b, precision="7xint8")
    for limit in (16 << 20, 4 << 20, 2 << 20):
        out.fill(cp.nan)
        takes_at_most(cp, limit, lambda: gemm(a, b, precision="7xint8", out=out))
        assert bool((out == expected).all())
    with workspace_limit(1 << 20), pytest.raises(WorkspaceError, match="smallest pieces") as error:
        gemm(a, b, precision="7xint8", out=out)
    out.fill(cp.nan)
    takes_at_most(cp, error.value.needed, lambda: gemm(a, b, precision="7xint8", out=out))
    assert bool((out == expected).all())


@pytest.mark.parametrize(
    ("rows", "length", "precision"),
    [(96, 10_007, "3xfp16"), (24, 1 << 17, "3xfp16"), (300, 4099, "fp64"), (100, 12_345, "fp32")],
)
def test_transforms(
    cp: Any, rng: np.random.Generator, rows: int, length: int, precision: str
) -> None:
    x = cp.asarray(normal(rng, rows, length)).astype("c16" if precision == "fp64" else "c8")
    out = cp.empty_like(x)
    expected = dft(x, precision=precision)
    whole = most_allocated(cp, lambda: dft(x, precision=precision, out=out))
    limit = max(whole // 3, 16 * 4 * length)
    out.fill(cp.nan)
    takes_at_most(cp, limit, lambda: dft(x, precision=precision, out=out), blocks=8)
    assert float(abs(out - expected).max() / abs(expected).max()) < 1e-5
    with workspace_limit(limit):
        plan: Any = DftPlan(x, precision=precision)
    assert plan._on_gpu.nbytes <= limit + 8 * PIECE
    assert bool((plan(x, out=cp.full_like(x, cp.nan)) == out).all())
    if whole:
        with workspace_limit(1000), pytest.raises(WorkspaceError, match="a transform of"):
            dft(x, precision=precision, out=out)


def test_what_is_refused(cp: Any, rng: np.random.Generator) -> None:
    a, b = cp.asarray(normal(rng, 64, 64)), cp.asarray(normal(rng, 64, 64))
    small = pairs(cp.asarray(rng.integers(-9, 9, (200, 300, 2)).astype(np.int8)))
    state = cp.zeros(1 << 12, cp.complex64)
    wide = np.linalg.qr(normal(rng, 256, 256).astype(complex))[0]
    for call, needed in (
        (lambda: gemm(a, b, precision="fp32"), "cuBLAS, .*, needs 16384 bytes"),
        (lambda: gemm(to_pairs(a, "fp16"), to_pairs(b, "fp16"), precision="fp16"), "64x64x64"),
        (lambda: herk(small, precision="exact"), "herk of complex int8|exact product"),
        (lambda: herk(a, precision="tf32", form="triangle"), "form='triangle'"),
        (lambda: apply_gate(state, wide, range(2, 10)), "a gate of 8 qubits"),
    ):
        with workspace_limit(100), pytest.raises(WorkspaceError, match=needed) as error:
            call()
        with workspace_limit(error.value.needed):
            call()
