"""Tensors that calls write to: torch's autograd hears of it, and they have memory of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import (
    DftPlan,
    Gate,
    GemmPlan,
    PreparedCircuit,
    SoftmaxPlan,
    apply_gate,
    dft,
    gemm,
    plan_circuit,
    run_circuit,
    softmax,
)

from tests.kernels.frameworks.tensors import drawn

torch = pytest.importorskip("torch", reason="torch is not installed")
GATE = Gate(np.array([[0, 1j], [1, 0]]), (1,))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def x(request: pytest.FixtureRequest) -> Any:
    if request.param == "cuda":
        request.getfixturevalue("gpu")
    return drawn(8, 8, device=str(request.param))


def reals(x: Any) -> Any:
    """Return the memory of the first half of a complex tensor (8, 8) as real numbers (8, 8)."""
    return torch.view_as_real(x).view(128)[:64].view(8, 8)


PLANS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gemm": (lambda x: GemmPlan(x, x), lambda plan, x, out: plan(x, x, out=out)),
    "dft": (lambda x: DftPlan(x), lambda plan, x, out: plan(x, out=out)),
    "softmax": (
        lambda x: SoftmaxPlan(x.abs()),
        lambda plan, x, out: plan(x.abs(), out=reals(out)),
    ),
    "circuit": (
        lambda x: PreparedCircuit(plan_circuit(6, [GATE]), x.reshape(64).clone()),
        lambda prepared, x, out: prepared(out.view(64)),
    ),
}  # fmt: skip
CALLS: dict[str, Callable[..., Any]] = {
    "gemm": lambda x, out: gemm(x, x, out=out),
    "dft": lambda x, out: dft(x, out=out),
    "softmax": lambda x, out: softmax(x.abs(), out=reals(out)),
    "gate": lambda x, out: apply_gate(out.view(64), GATE.matrix, GATE.targets),
    "circuit": lambda x, out: run_circuit(out.view(64), [GATE]),
}
"""Calls that write to a complex tensor (8, 8), or to a part of it; and plans, made for one."""


def assert_noted(write: Callable[[Any, Any], Any], x: Any) -> None:
    """Also where the call was made before, so that only its addresses are passed."""
    for _ in range(3):
        weights, factor = x.clone().requires_grad_(), x.clone()
        product = (weights * factor).abs().sum()
        for _ in range(3):
            write(x, factor)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()


@pytest.mark.parametrize("name", CALLS)
def test_a_gradient_that_needs_what_a_call_overwrote_is_refused(x: Any, name: str) -> None:
    assert_noted(CALLS[name], x)


@pytest.mark.parametrize("name", PLANS)
def test_a_gradient_that_needs_what_a_plan_overwrote_is_refused(x: Any, name: str) -> None:
    made, write = PLANS[name]
    assert_noted(partial(write, made(x)), x)


def test_tensors_of_inference_mode_may_be_written(x: Any) -> None:
    with torch.inference_mode():
        out, plan = torch.empty_like(x), GemmPlan(x, x)
        for _ in range(3):
            assert gemm(x, x, out=out) is out
            assert plan(x, x, out=out) is out


def test_a_tensor_whose_numbers_share_memory_is_refused(x: Any) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"out must have memory for each .* strides \(0, 1\)"):
            gemm(x, x, out=x[:1].clone().expand(8, 8))
    assert gemm(x[:1], x, out=torch.empty_like(x)[:1].expand(1, 8)).shape == (1, 8)
