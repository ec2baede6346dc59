"""Arrays of JAX go in and come out, also under jit, vmap and grad."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import WrongProductError, apply_gate, dft, gemm, herk, log_softmax, logsumexp, softmax

from tests.flipped_residue import flip_residue

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)], autouse=True)
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    """JAX's default device, with types of 64 bits."""
    name = str(request.param)
    try:
        device = jax.devices(name)[0]
    except RuntimeError:
        pytest.skip("JAX is installed without CUDA")
    with jax.default_device(device), jax.enable_x64(True):
        yield name


def drawn(*shape: int, seed: int = 3, dtype: Any = np.complex128) -> Any:
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.standard_normal((*shape, 2)).view(np.complex128)[..., 0].astype(dtype))


def close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    assert isinstance(found, jax.Array)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert jnp.linalg.norm(found - expected) <= rtol * jnp.linalg.norm(expected)


def transform(x: Any) -> Any:
    return jnp.fft.fft(x, 6, 0)


PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "gemm": (gemm, jnp.matmul, 2),
    "scaled": (lambda a, b: gemm(a, b, alpha=2j, op_a="C", op_b="T"),
               lambda a, b: 2j * (a.conj().swapaxes(-1, -2) @ b.swapaxes(-1, -2)), 2),
    "power": (lambda a, b: gemm(a, b, op_b="C", output="power"),
              lambda a, b: jnp.abs(a @ b.mT.conj()) ** 2, 2),
    "dft": (lambda x: dft(x, 0, n=6), transform, 1),
    "inverse": (lambda x: dft(x, inverse=True, norm="ortho"),
                lambda x: jnp.fft.ifft(x, norm="ortho"), 1),
    "softmax": (lambda x: softmax(x.real, 0), lambda x: jax.nn.softmax(x.real, 0), 1),
    "log_softmax": (lambda x: log_softmax(x, power=True),
                    lambda x: jax.nn.log_softmax((x * x.conj()).real), 1),
    "logsumexp": (lambda x: logsumexp(x.real, 0, scale=2.0),
                  lambda x: jax.nn.logsumexp(2 * x.real, 0), 1),
}  # fmt: skip
"""Ours, JAX's own, and how many square matrices they take."""


@pytest.mark.parametrize("name", PAIRS)
def test_calls_and_their_transformations(name: str) -> None:
    ours, theirs, count = PAIRS[name]
    given = [drawn(5, 5, seed=seed) for seed in range(count)]
    close(ours(*given), theirs(*given))
    close(jax.jit(ours)(*given), theirs(*given))
    many = [drawn(3, 5, 5, seed=9), *given[1:]]
    axes = (0, *(None for _ in given[1:]))
    close(jax.vmap(ours, axes)(*many), jax.vmap(theirs, axes)(*many))

    def loss(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: (jnp.abs(call(*x)) ** 2 * jnp.arange(1, 6)).sum()

    for place in range(count):
        found, expected = (jax.grad(loss(call), place) for call in (ours, theirs))
        close(found(*given), expected(*given))
        close(jax.jit(jax.vmap(found, axes))(*many), jax.vmap(expected, axes)(*many))


OPS: dict[str, Callable[[Any], Any]] = {
    "N": lambda x: x, "T": lambda x: x.mT, "C": lambda x: x.mT.conj(),
}  # fmt: skip
LINEAR: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    **{
        f"product {a}{b}": (
            lambda x, y, z, a=a, b=b: gemm(x, y, z, alpha=2 - 1j, beta=3j, op_a=a, op_b=b),
            lambda x, y, z, a=a, b=b: (2 - 1j) * OPS[a](x) @ OPS[b](y) + 3j * z,
            ((3, 5) if a == "N" else (5, 3), (5, 4) if b == "N" else (4, 5), (3, 4)),
        )
        for a, b in ("NN", "TC", "CN", "NT", "CC")
    },
    "transform": (lambda x: dft(x, 0, n=7), lambda x: jnp.fft.fft(x, 7, 0), ((5, 3),)),
    "inverse": (lambda x: dft(x, inverse=True), jnp.fft.ifft, ((3, 5),)),
    "gate": (
        lambda state, matrix: apply_gate(state, matrix, [1]),
        lambda state, matrix: jnp.einsum("ij,ajb->aib", matrix, state.reshape(2, 2, 2)).reshape(8),
        ((8,), (2, 2)),
    ),
}  # fmt: skip
"""Ours, what JAX differentiates itself, and shapes of the operands."""


@pytest.mark.parametrize("name", LINEAR)
def test_conjugates_are_where_jax_has_them(name: str) -> None:
    """Complex cotangents of complex results, of lazy conjugates, of real operands."""
    ours, theirs, shapes = LINEAR[name]
    given = [drawn(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    real = [x if x.ndim == 1 else x.real for x in given]  # a state is complex
    for operands in (given, [x.conj() for x in given], real):
        results, backs = zip(*(jax.vjp(call, *operands) for call in (ours, theirs)), strict=True)
        close(*results)
        cotangent = drawn(*results[0].shape, seed=11)
        for found, expected in zip(*(back(cotangent) for back in backs), strict=True):
            close(found, expected)

    def outer(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: (call(*(value.conj() for value in x)).conj() ** 2).sum()

    def of_gradient(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: jnp.abs(jax.grad(outer(call), holomorphic=True)(*x)).sum()

    close(*(jax.grad(outer(call), holomorphic=True)(*given) for call in (ours, theirs)))
    close(*(jax.grad(of_gradient(call))(*given) for call in (ours, theirs)))


def test_a_gradient_of_a_far_shorter_transform_takes_few_operations() -> None:
    """Zeros double its length again and again: 250 operands of one operation compile slowly."""
    x = drawn(500)
    ours, theirs = (
        jax.grad(lambda x, call=call: jnp.abs(call(x)).sum())
        for call in (lambda x: dft(x, n=2), lambda x: jnp.fft.fft(x, 2))
    )
    close(ours(x), theirs(x))
    joins = [x for x in jax.make_jaxpr(ours)(x).eqns if x.primitive.name == "concatenate"]
    assert 1 <= sum(len(one.invars) for one in joins) <= 2 * 8


def test_batched_operands_of_other_ranks() -> None:
    a, b = drawn(2, 3, 4), drawn(7, 4, 5)
    found = jax.vmap(lambda b: gemm(a, b))(b)
    close(found, jax.vmap(lambda b: a @ b)(b))
    close(jax.grad(lambda b: gemm(a, b).real.sum())(b[0]),
          jax.grad(lambda b: (a @ b).real.sum())(b[0]))  # fmt: skip


@pytest.mark.parametrize("many", range(3))
def test_a_batch_of_one_operand_of_a_sum(many: int) -> None:
    """C has all leading axes of a product: it takes them, or gives them to A."""
    given = [drawn(3, 4), drawn(4, 5), drawn(3, 5)]
    given[many] = jnp.stack([given[many], 2j * given[many]])
    axes = tuple(0 if at == many else None for at in range(3))

    def ours(a: Any, b: Any, c: Any) -> Any:
        return gemm(a, b, c, alpha=2, beta=1j)

    def theirs(a: Any, b: Any, c: Any) -> Any:
        return 2 * a @ b + 1j * c

    close(jax.vmap(ours, axes)(*given), jax.vmap(theirs, axes)(*given))
    slopes = (jax.grad(lambda *x, call=call: (abs(call(*x)) ** 3).sum(), (0, 1, 2))
              for call in (ours, theirs))  # fmt: skip
    for pair in zip(*(jax.jit(jax.vmap(slope, axes))(*given) for slope in slopes), strict=True):
        close(*pair)


@pytest.mark.parametrize("shape", [(2, 3, 2, 5), (2, 5), (1, 2, 5)], ids=str)
def test_a_c_of_other_axes_is_refused(shape: tuple[int, ...]) -> None:
    """As with NumPy: axes before those of the product belong to vmap alone."""
    given = drawn(3, 2, 4), drawn(3, 4, 5), drawn(*shape)
    call = partial(gemm, beta=1)
    for front_end in (call, jax.jit(call)):
        with pytest.raises(ValueError, match=r"^c must have shape \(3, 2, 5\), got"):
            front_end(*given)


def test_gates_return_the_new_state() -> None:
    state, matrix = drawn(16), drawn(4, 4, seed=4)

    def expected(state: Any, matrix: Any) -> Any:
        turned = state.reshape(2, 2, 2, 2)[1]  # control 3; then qubits 2, 1, 0
        moved = jnp.einsum("acij,ibj->abc", matrix.reshape(2, 2, 2, 2), turned)
        return state.at[8:].set(moved.reshape(8))

    def ours(state: Any, matrix: Any) -> Any:
        return apply_gate(state, matrix, [0, 2], controls=[3])

    close(jax.jit(ours)(state, matrix), expected(state, matrix))
    close(state, drawn(16))
    close(jax.vmap(ours, (0, None))(state[None], matrix)[0], expected(state, matrix))
    for place in range(2):
        close(*(jax.grad(lambda *x, call=call: jnp.abs(call(*x)).sum(), place)(state, matrix)
                for call in (ours, expected)))  # fmt: skip


def test_types_of_the_caller() -> None:
    x = drawn(8, 8, dtype=np.complex64)
    for found in (gemm(x, x), dft(x)):
        assert found.dtype == jnp.complex64
    for name in ("bfloat16", "float16", "float32", "float64"):
        assert softmax(x.real.astype(name)).dtype == name
    expected = jax.nn.softmax(x.real.astype(jnp.bfloat16).astype(jnp.float32))
    close(softmax(x.real.astype(jnp.bfloat16), output="fp32"), expected, 1e-6)
    whole = (4 * x.real).astype(jnp.int32)
    close(gemm(whole, whole), (whole @ whole).astype(jnp.complex128))
    for narrow in (whole.astype(jnp.int16), whole.astype(jnp.int8), whole > 0):
        assert gemm(narrow, narrow).dtype == gemm(np.asarray(narrow), np.asarray(narrow)).dtype


def test_what_jax_cannot_do_is_refused() -> None:
    x = drawn(4, 4)
    with pytest.raises(TypeError, match="herk cannot be traced by JAX"):
        jax.jit(herk)(x)
    with pytest.raises(TypeError, match="cannot be written"):
        gemm(x, x, out=x)
    with pytest.raises(ValueError, match="inner dimensions differ"):
        gemm(x, x[:3])
    with pytest.raises(TypeError, match="JAX has no type for a result of complex-half"):
        gemm(x, x, precision="fp16", output="complex-half")
    with jax.enable_x64(False), pytest.raises(ValueError, match="needs jax"):
        gemm(x, x, precision="fp64")


def test_a_wrong_product_is_seen_in_a_program(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if platform == "gpu":
        pytest.skip("the fault is planted in the product on the CPU")
    x = drawn(4, 4)
    program = jax.jit(lambda x: gemm(x, x, tolerance=1e-9, check=True))
    close(program(x), x @ x, 1e-9)
    flip_residue(monkeypatch, 1, 2)
    with pytest.raises(Exception, match=r"WrongProductError: 1 of 4 rows .* row 1"):
        jax.block_until_ready(program(x))
    with pytest.raises(WrongProductError, match=r"1 of 4 rows .* row 1"):
        gemm(x, x, tolerance=1e-9, check=True)


def test_a_call_outside_of_jit_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each form: its program is JAX's to keep. A gradient's own calls are such too."""
    from argand.frameworks import jax_arrays

    traced: list[tuple[int, ...]] = []
    trace = jax_arrays._traced

    def noted(call: Any, values: Any, **named: Any) -> Any:
        traced.append(values[0].shape)
        return trace(call, values, **named)

    monkeypatch.setattr(jax_arrays, "_traced", noted)
    jax_arrays._compiled.cache_clear()
    for rows in (7, 7, 9, 7, 9):
        x, y = drawn(rows, 11), drawn(11, 5)
        close(gemm(x, y, alpha=2), 2 * (x @ y))
    assert traced == [(7, 11), (9, 11)]
    gradient = jax.grad(lambda x, y: abs(gemm(x, y, alpha=3)).sum(), (0, 1))
    gradient(x, y)
    traced.clear()
    gradient(x, y)
    assert traced == []


def test_threads_of_xla_are_kept(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python makes no state of a thread again for each call from it."""
    from argand.frameworks import xla_calls

    class Local(threading.local):
        def __init__(self) -> None:
            made.append(threading.get_ident())

        number = 0

    made: list[int] = []
    local, called = Local(), xla_calls._called

    def counted(*given: Any) -> None:
        local.number += 1
        called(*given)

    monkeypatch.setattr(xla_calls, "_called", counted)
    x = drawn(8, 8)
    f = jax.jit(lambda x: gemm(gemm(x, x), gemm(x @ x, x)) @ x)  # branches: on several threads
    for _ in range(20):
        close(f(x), jnp.linalg.matrix_power(x, 6))
    assert len(made) == len(set(made))
