"""Gradients of calls on torch's tensors, against differences, and in torch's convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from argand import apply_gate, dft, gemm, logsumexp, softmax
from argand.softmax.api import FUNCTIONS

from tests.kernels.frameworks.tensors import drawn_double as drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def check(call: Callable[..., Any], *given: Any, twice: bool = True) -> None:
    for x in given:
        x.requires_grad_()
    assert torch.autograd.gradcheck(call, given)
    assert not twice or torch.autograd.gradgradcheck(call, given)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ops", ["NN", "NT", "NC", "TN", "TT", "TC", "CN", "CT", "CC"])
def test_products(ops: str, device: str) -> None:
    op_a, op_b = ops
    a = drawn(2, *((3, 4) if op_a == "N" else (4, 3)), device=device)
    b = drawn(*((4, 2) if op_b == "N" else (2, 4)), device=device)  # broadcast over the batch
    c = drawn(2, 3, 2, device=device)
    check(lambda a, b, c: gemm(a, b, c, alpha=1.5 + 0.5j, beta=0.3 - 2j, op_a=op_a, op_b=op_b),
          a, b, c)  # fmt: skip


def test_products_of_real_numbers_have_real_gradients() -> None:
    check(gemm, drawn(3, 4, dtype=torch.float64), drawn(4, 2))
    check(lambda a: gemm(a.conj(), a, op_b="C"), drawn(3, 4))


def test_squared_magnitudes() -> None:
    check(lambda a, b: gemm(a, b, alpha=1 - 2j, op_b="C", output="power"), drawn(3, 4), drawn(2, 4))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("axis", "n", "inverse", "norm"), [
    (0, None, False, "backward"), (1, 3, True, "backward"), (-1, 7, False, "ortho"),
    (1, 5, True, "forward"), (0, 2, False, "forward"), (-1, None, True, "ortho"),
])  # fmt: skip
def test_transforms(axis: int, n: int | None, inverse: bool, norm: str, device: str) -> None:
    def call(x: Any) -> Any:
        return dft(x, axis, n=n, inverse=inverse, norm=norm)

    check(call, drawn(2, 4, 5, device=device))
    check(call, drawn(2, 4, 5, device=device, dtype=torch.float64), twice=False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("call", FUNCTIONS.values())
def test_softmax_and_its_like(call: Callable[..., Any], device: str) -> None:
    real = drawn(3, 4, device=device, dtype=torch.float64)
    check(lambda x: call(x, 0, scale=1.7), real)
    check(lambda x: call(x), real)
    check(lambda x: call(x, power=True, scale=0.6), drawn(3, 4, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_gates(device: str) -> None:
    def call(state: Any, matrix: Any) -> Any:
        return apply_gate(state.clone(), matrix, [2, 0], controls=[3])

    check(call, drawn(16, device=device), drawn(4, 4, device=device))
    state = drawn(16, device=device)
    check(lambda matrix: call(state, matrix), drawn(4, 4, device=device), twice=False)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_those_of_torchs_own_calls(device: str) -> None:
    """At single precision, where differences say little."""
    a, b = (drawn(16, 16, device=device, dtype=torch.complex64, seed=i) for i in range(2))
    a.requires_grad_()
    for ours, theirs in ((gemm(a, b), a @ b), (dft(a), torch.fft.fft(a))):
        found, expected = (torch.autograd.grad(y.abs().sum(), a)[0] for y in (ours, theirs))
        error = torch.linalg.vector_norm(found - expected)
        assert error <= 1e-5 * torch.linalg.vector_norm(expected)


def test_a_state_that_is_a_leaf_is_not_changed_in_place() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable"):
        apply_gate(drawn(4).requires_grad_(), torch.eye(2, dtype=torch.complex128), [0])


@pytest.mark.parametrize("device", DEVICES)
def test_a_factor_that_is_a_tensor(device: str) -> None:
    """Its number is read at each call; it has no gradient."""
    a, b = drawn(3, 4, device=device), drawn(4, 5, device=device)
    alpha = torch.ones(())
    for factor in (1, 2, 3):
        alpha.fill_(factor)
        for _ in range(3):
            assert bool((gemm(a, b, alpha=alpha) == gemm(a, b, alpha=factor)).all())
    with pytest.raises(TypeError, match="alpha requires a gradient, which this call does not com"):
        gemm(a, b, alpha=alpha.requires_grad_())


def test_what_no_gradient_reads_may_be_written_to() -> None:
    """Its memory is not kept either."""
    a, b, c = (drawn(4, 4, seed=seed).requires_grad_() for seed in range(3))
    real = drawn(4, 4, dtype=torch.float64).requires_grad_()
    calls: list[tuple[Callable[..., Any], list[Any], tuple[int, ...]]] = [
        (gemm, [a, b], (2,)),
        (lambda x, y: gemm(x, y.detach()), [a, b], (0, 2)),
        (lambda x, y, z: gemm(x, y, z, beta=1), [a, b, c], (2, 3)),
        (lambda x, y: gemm(x, y, output="power"), [a, b], (2,)),
        (lambda x: dft(x, n=3), [a], (0, 1)),
        (logsumexp, [real], (1,)),
        (softmax, [real], (0,)),
        (lambda x: apply_gate(x.flatten(), drawn(2, 2), [0]), [a], (0, 1)),
    ]
    for call, given, written in calls:
        found = []
        for places in (), written:
            arrays = [y.clone() for y in given]
            arrays.append(call(*arrays))
            size = arrays[-1].real.sum()
            with torch.no_grad():
                for place in places:
                    arrays[place].mul_(2)
            found.append(torch.autograd.grad(size, given[0])[0])
        torch.testing.assert_close(*found)
