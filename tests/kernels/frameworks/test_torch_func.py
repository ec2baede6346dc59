"""Transforms of torch.func and forward mode, of calls and operators, against torch's own calls."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from argand import apply_gate, dft, gemm, log_softmax, logsumexp, softmax

from tests.kernels.frameworks.tensors import drawn_double as drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
import_module("argand.torch_ops")
func = torch.func
# torch compiles its rules of forward mode by what it calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def size(x: Any) -> Any:
    return (x.abs() + x.abs() ** 3).sum()


def gate_of(state: Any, matrix: Any) -> Any:
    return apply_gate(state.clone(), matrix, [1])


def gate_of_torch(state: Any, matrix: Any) -> Any:
    return torch.einsum("ij,ajb->aib", matrix, state.reshape(2, 2, 2)).reshape(8)


ops = torch.ops.argand
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (lambda a, b: gemm(a, b, alpha=2j, op_b="C"), lambda a, b: 2j * a @ b.mH,
                ((3, 4), (3, 4))),
    "operator": (ops.gemm, torch.matmul, ((3, 3), (3, 3))),
    "transform": (lambda x, y: dft(x, 0) * y, lambda x, y: torch.fft.fft(x, dim=0) * y,
                  ((3, 4), (3, 4))),
    "softmax": (lambda x, y: softmax(x, power=True) * y,
                lambda x, y: torch.softmax(x.abs().square(), -1) * y, ((3, 4), (3, 4))),
    "log_softmax": (lambda x, y: log_softmax(x.real) * y,
                    lambda x, y: torch.log_softmax(x.real, -1) * y, ((3, 4), (3, 4))),
    "logsumexp": (lambda x, y: logsumexp(x.real, 0) * y,
                  lambda x, y: torch.logsumexp(x.real, 0) * y, ((3, 4), (4,))),
    "gate": (gate_of, gate_of_torch, ((8,), (2, 2))),
}  # fmt: skip
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "gradient": lambda f, x: func.grad(lambda *x: size(f(*x)), (0, 1))(*x),
    "product with the Jacobian, transposed": lambda f, x: func.vjp(f, *x)[1](f(*x)),
    "product with the Jacobian": lambda f, x: func.jvp(f, x, tuple(2 * t + 1 for t in x)),
    "linearized": lambda f, x: func.linearize(f, *x)[1](*(2 * t + 1 for t in x)),
    "in the first alone": lambda f, x: func.jvp(lambda y: f(y, *x[1:]), x[:1], x[:1]),
    "gradient of a gradient": lambda f, x: func.grad(
        lambda y: size(func.grad(lambda z: size(f(z, *x[1:])))(y)))(x[0]),
    "tangent of a gradient": lambda f, x: func.jvp(
        func.grad(lambda *y: size(f(*y))), x, tuple(3 * t for t in x)),
    "tangent of a tangent": lambda f, x: func.jvp(
        lambda y: func.jvp(lambda z: f(z, *x[1:]), (y,), x[:1])[1], x[:1], x[:1]),
    "gradients of many": lambda f, x: func.vmap(func.grad(lambda *y: size(f(*y))))(
        *(torch.stack([t, 2 * t]) for t in x)),
    "gradient over many": lambda f, x: func.grad(lambda *y: size(func.vmap(f, (0, None))(*y)))(
        torch.stack([x[0], 2 * x[0]]), *x[1:]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # of torch's linearize
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_transformed_as_torchs_own(name: str, transform: str, device: str) -> None:
    ours, theirs, shapes = CALLS[name]
    given = tuple(drawn(*shape, device=device) for shape in shapes)
    found, expected = (TRANSFORMS[transform](call, given) for call in (ours, theirs))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_dual_tensors(name: str, device: str) -> None:
    """Calls whose form the call cache keeps from plain tensors are among them."""
    ours, theirs, shapes = CALLS[name]
    given = tuple(drawn(*shape, device=device) for shape in shapes)
    for _ in range(3):
        ours(*given)
    dual = torch.autograd.forward_ad
    with dual.dual_level():
        both = tuple(dual.make_dual(x, 3 * x - 1) for x in given)
        found, expected = (dual.unpack_dual(call(*both)) for call in (ours, theirs))
        torch.testing.assert_close(tuple(found), tuple(expected))
        assert dual.unpack_dual(ours(*given)).tangent is None


def test_forward_mode_of_calls_without_a_gradient_is_refused() -> None:
    from argand import herk

    dual = torch.autograd.forward_ad
    with dual.dual_level(), pytest.raises(TypeError, match="requires a gradient"):
        herk(dual.make_dual(drawn(3, 4), drawn(3, 4)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("many", range(3))
def test_a_batch_of_one_operand_of_a_sum(many: int, device: str) -> None:
    """C has all leading axes of a product: it takes them, or gives them to A."""
    given = [drawn(3, 4, device=device), drawn(4, 5, device=device), drawn(3, 5, device=device)]
    given[many] = torch.stack([given[many], 2j * given[many]])
    axes = tuple(0 if at == many else None for at in range(3))
    calls = (lambda a, b, c: gemm(a, b, c, alpha=2, beta=1j), lambda a, b, c: 2 * a @ b + 1j * c)
    found, expected = (func.vmap(call, axes)(*given) for call in calls)
    torch.testing.assert_close(found, expected)
    slopes = (func.grad(lambda *x, call=call: size(call(*x)), (0, 1, 2)) for call in calls)
    found, expected = (func.vmap(slope, axes)(*given) for slope in slopes)
    torch.testing.assert_close(found, expected)


def test_an_example_of_too_few_axes_is_not_computed_along_the_batch() -> None:
    x = drawn(4, 3)
    for call in (softmax, log_softmax, logsumexp, dft):
        with pytest.raises(ValueError, match="axis must be one of x's 0 axes, got -1"):
            func.vmap(call)(x[:, 0].abs())
        with pytest.raises(ValueError, match="axis must be one of x's 1 axes, got -2"):
            func.vmap(lambda y, call=call: call(y, -2))(x.abs())
    for name, call in (("a", lambda y: gemm(y, x.mT)), ("b", lambda y: gemm(x, y))):
        with pytest.raises(
            ValueError, match=rf"{name} must have at least 2 axes, got shape \(3,\)"
        ):
            func.vmap(call)(x)
