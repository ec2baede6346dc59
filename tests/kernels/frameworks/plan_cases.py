"""Plans of tensors, the calls that they stand for, and their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand import DftPlan, GemmPlan, SoftmaxPlan, dft, gemm, softmax

from tests.kernels.frameworks.tensors import drawn

PLANS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "gemm": (lambda a, b: GemmPlan(a, b, op_b="T", precision="3xtf32"),
             lambda a, b: gemm(a, b, op_b="T", precision="3xtf32"), ((5, 64, 48), (32, 48))),
    "long": (lambda a, b: GemmPlan(a, b, precision="tf32"),
             lambda a, b: gemm(a, b, precision="tf32"), ((64, 9000), (9000, 64))),
    "by cuBLAS": (lambda a, b: GemmPlan(a, b, precision="fp32"),
                  lambda a, b: gemm(a, b, precision="fp32"), ((64, 48), (48, 32))),
    "dft": (lambda x: DftPlan(x, norm="ortho"), lambda x: dft(x, norm="ortho"), ((6, 1000),)),
    "columns": (lambda x: DftPlan(x, 0), lambda x: dft(x, 0), ((100, 6),)),
    "softmax": (lambda x: SoftmaxPlan(x, power=True), lambda x: softmax(x, power=True),
                ((9, 130),)),
}  # fmt: skip
"""A plan, its call and the shapes of its operands."""


def planned_case(name: str, device: str) -> tuple[Any, Any, Any]:
    """Return a plan of tensors, its call and how to draw other tensors."""
    plan, call, shapes = PLANS[name]

    def arrays(seed: int) -> list[Any]:
        return [drawn(*shape, device=device, seed=seed + i) for i, shape in enumerate(shapes)]

    return plan(*arrays(0)), call, arrays
