"""The workspace limit through torch, JAX, plans and circuits: memory within it, and the same bits.

Results lie where NaN lay before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import (
    GemmPlan,
    PreparedCircuit,
    apply_gate,
    contract,
    gemm,
    herk,
    launched,
    pack,
    plan_circuit,
    workspace_limit,
)

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.gates.gate_cases import random_state, random_unitary
from tests.kernels.gemm.product_cases import normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]

LIMIT = 3 << 20
PIECES = 8 * 512
"""Memory is given in multiples of 512 bytes."""
SHAPE = (1100, 700, 900)
PRODUCTS = ("3xfp16", "7xint8")


def operands(rng: np.random.Generator) -> tuple[Any, Any]:
    m, n, k = SHAPE
    return normal(rng, m, k), normal(rng, k, n)


def pool_growth(cp: Any, call: Callable[[], object]) -> int:
    """Return by how much CuPy's pool grows in a call, on whatever thread, the second time."""
    pool = cp.get_default_memory_pool()
    call()
    cp.cuda.Device().synchronize()
    pool.free_all_blocks()
    before = pool.total_bytes()
    call()
    cp.cuda.Device().synchronize()
    return int(pool.total_bytes() - before)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found.view("u4"), expected.view("u4"))


@pytest.mark.parametrize("precision", PRODUCTS)
def test_operators_of_torch_and_compiled_code(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    torch = pytest.importorskip("torch")
    import_module("argand.torch_ops")
    a, b = operands(rng)
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    out = torch.full((SHAPE[0], SHAPE[1]), torch.nan, dtype=torch.complex64, device="cuda")
    product = lambda x, y: gemm(x, y, precision=precision)  # noqa: E731
    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    for limit in (None, LIMIT, None, LIMIT):
        with workspace_limit(limit):
            expected = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            calls = (
                lambda: product(x, y), lambda: compiled(x, y),
                lambda: gemm(x, y, precision=precision, out=out),
                lambda: torch.ops.argand.gemm(x, y, precision=precision),
            )  # fmt: skip
            for call in calls:
                out.fill_(torch.nan)
                torch.full_like(out, torch.nan)  # where a new result lies
                found = call()
                same(found.cpu().numpy(), expected)
                del found
                if limit is not None:
                    assert pool_growth(cp, call) <= limit + PIECES


@pytest.mark.parametrize("precision", PRODUCTS)
def test_programs_of_jax(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """XLA makes the calls of a program, maybe on threads of its own, when the limit is another."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX is installed without CUDA")
    a, b = operands(rng)
    x, y = jax.numpy.asarray(a), jax.numpy.asarray(b)
    program = jax.jit(lambda x, y: gemm(x, y, precision=precision))
    call = lambda: jax.block_until_ready(program(x, y))  # noqa: E731
    for limit in (None, LIMIT, None, LIMIT):
        with workspace_limit(limit):
            expected = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            same(np.asarray(call()), expected)
            if limit is not None:
                assert pool_growth(cp, call) <= limit + PIECES


def test_plans_of_tensors(cp: Any, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    x, y = (torch.from_numpy(array).cuda() for array in operands(rng))
    for precision in PRODUCTS:
        with workspace_limit(LIMIT):
            plan: Any = GemmPlan(x, y, precision=precision)
            expected = gemm(x, y, precision=precision)
        assert plan._on_gpu.nbytes <= LIMIT
        out = torch.full_like(expected, torch.nan)
        plan(x, y, out=out)
        assert torch.equal(out, expected)
        assert pool_growth(cp, partial(plan, x, y, out=out)) == 0


@pytest.mark.parametrize("precision", PRODUCTS)
def test_contractions(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = (cp.asarray(normal(rng, 3, 500, 600)) for _ in "ab")
    out = cp.full((500, 3, 500), cp.nan, cp.complex64)
    call = lambda: contract("bik,bjk->ibj", a, b, precision=precision, out=out)  # noqa: E731
    call()
    free = out.get()
    with workspace_limit(LIMIT):
        out.fill(cp.nan)
        assert most_allocated(cp, call) <= LIMIT + PIECES
    if precision == "7xint8":
        same(out.get(), free)
    assert np.linalg.norm(out.get() - free) <= 1e-5 * np.linalg.norm(free)


EXACT: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "a batch": ((5, 300, 500), (5, 500, 400), {}),
    "one that shares an operand": ((300, 500), (5, 500, 400), {}),
    "with a proof": ((900, 700), (700, 800), {"check": True}),
    "a batch with a proof": ((3, 300, 500), (3, 500, 400), {"check": True}),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_products_in_blocks(cp: Any, rng: np.random.Generator, name: str) -> None:
    shape_a, shape_b, how = EXACT[name]
    a, b = cp.asarray(normal(rng, *shape_a)), cp.asarray(normal(rng, *shape_b))
    expected = gemm(a, b, precision="7xint8").get()
    out = cp.full(expected.shape, cp.nan, expected.dtype)
    call = lambda: gemm(a, b, precision="7xint8", out=out, **how)  # noqa: E731
    for limit in (2 << 20, LIMIT):
        with workspace_limit(limit):
            out.fill(cp.nan)
            assert most_allocated(cp, call) <= limit + PIECES
        same(out.get(), expected)


def test_exact_products_of_packed_operands(cp: Any, rng: np.random.Generator) -> None:
    a, b = cp.asarray(normal(rng, 3, 300, 500)), cp.asarray(normal(rng, 3, 500, 400))
    expected = gemm(a, b, precision="7xint8").get()
    packed = pack(a, "7xint8"), pack(b, "7xint8", side="b")
    out = cp.full(expected.shape, cp.nan, expected.dtype)
    for x, y in ((packed[0], b), (a, packed[1]), packed):
        call = partial(gemm, x, y, precision="7xint8", out=out)
        with workspace_limit(LIMIT):
            out.fill(cp.nan)
            assert most_allocated(cp, call) <= LIMIT + PIECES
        same(out.get(), expected)


def test_packed_batches_in_panels(cp: Any, rng: np.random.Generator) -> None:
    """B has every second column of an array, so TMA cannot read it in place and panels pack it."""
    a, b = cp.asarray(normal(rng, 3, 300, 500)), cp.asarray(normal(rng, 3, 500, 1800))[..., ::2]
    weights = pack(a, "3xfp16")
    out = cp.full((3, 300, 900), cp.nan, cp.complex64)
    call = lambda: gemm(  # noqa: E731
        weights, b, precision="3xfp16", kernels="wgmma", out=out
    )
    call()
    free = out.get()
    with workspace_limit(LIMIT), launched() as names:
        out.fill(cp.nan)
        assert most_allocated(cp, call) <= LIMIT + PIECES
    assert all("panels" in name for name in names)
    assert np.linalg.norm(out.get() - free) <= 1e-5 * np.linalg.norm(free)


@pytest.mark.parametrize("targets", [range(8), range(3, 11), range(9, 17)], ids=str)
@pytest.mark.parametrize("kind", ["unitary", "permutation", "diagonal"])
@pytest.mark.parametrize("precision", ["3xfp16", "fp64"])
def test_wide_gates(
    cp: Any, rng: np.random.Generator, kind: str, targets: range, precision: str
) -> None:
    """In blocks of a state of 17 qubits."""
    matrix = random_unitary(rng, 8)
    if kind == "permutation":
        matrix = np.eye(256)[rng.permutation(256)]
    elif kind == "diagonal":
        matrix = np.diag(np.exp(1j * rng.uniform(0, 6, 256)))
    state = cp.asarray(random_state(rng, 17)).astype("c16" if precision == "fp64" else "c8")
    expected = state.copy()
    apply_gate(expected, matrix, targets, precision=precision)
    limit = (3 if precision == "fp64" else 6) << 20
    found = state.copy()
    with workspace_limit(limit):
        apply_gate(found, matrix, targets, precision=precision)
        call = lambda: apply_gate(state, matrix, targets, precision=precision)  # noqa: E731
        assert most_allocated(cp, call) <= limit + PIECES
    assert float(cp.linalg.norm(found - expected)) <= 1e-5


def test_circuits_that_are_prepared(cp: Any, rng: np.random.Generator) -> None:
    """Passes of narrow gates take no workspace, a wide one what is allowed at each call."""
    wide, state = random_unitary(rng, 8), cp.asarray(random_state(rng, 16)).astype("c8")
    gates = [(random_unitary(rng, 2), (q, q + 5)) for q in range(8)] + [(wide, range(2, 10))]
    circuit = PreparedCircuit(plan_circuit(16, gates, precision="3xfp16"), state)
    expected, found = state.copy(), state.copy()
    circuit(expected)
    limit = 5 << 20
    with workspace_limit(limit):
        circuit(found)
        assert most_allocated(cp, lambda: circuit(state)) <= limit + PIECES
    assert float(cp.linalg.norm(found - expected)) <= 1e-5


def test_hermitian_products(cp: Any, rng: np.random.Generator) -> None:
    a = cp.asarray(normal(rng, 900, 640))
    out = cp.full((900, 900), cp.nan, cp.complex64)
    call = lambda: herk(a, precision="3xtf32", out=out)  # noqa: E731
    with workspace_limit(LIMIT):
        assert most_allocated(cp, call) <= LIMIT + PIECES
    expected = a.astype("c16") @ a.conj().T
    assert float(cp.linalg.norm(out - expected) / cp.linalg.norm(expected)) <= 1e-5
