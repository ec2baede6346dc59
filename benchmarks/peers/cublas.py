"""A peer: cuBLAS's product, with the compute type of each precision said in the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision
from argand.gemm.operands import Op
from argand.gemm.problem import gemm_problem

from benchmarks.peers._peer import Candidate, Peer

_PRECISIONS = ("fp64", "fp32", "tf32")


def multiply(
    precision: str, a: Any, b: Any, c: Any = None, *,
    alpha: complex = 1, beta: complex = 0, op_a: Op = "N", op_b: Op = "N",
) -> Any:  # fmt: skip
    """Return alpha op(a) op(b) + beta c of CuPy arrays."""
    from argand.gemm import cublas

    problem = gemm_problem(
        a.shape, b.shape, None if c is None else c.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision=precision,
    )  # fmt: skip
    return cublas.gemm(problem, a, b, c, None, precision)


def rounding(precision: str) -> Precision:
    """Return how cuBLAS rounds operands at a precision."""
    from argand.gemm import cublas

    return cublas.cublas_precision(precision)


def _algorithm(precision: str) -> str:
    from argand.gemm import cublas

    return cublas.algorithm(precision)


def _prepared() -> list[Candidate]:
    return [_candidate(name) for name in _PRECISIONS]


def _candidate(precision: str) -> Candidate:
    """Return cuBLAS as a candidate that only launches, into a place filled with NaN."""
    dtype = PRECISIONS[precision].output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        import cupy
        from argand.gemm import cublas

        left, right = (cupy.array(x, dtype=dtype) for x in (a, b))
        out = cupy.full((*a.shape[:-1], b.shape[-1]), np.nan, dtype)
        problem = gemm_problem(a.shape, b.shape, precision=precision)
        return cublas.bound(problem, left, right, out, precision), (left, right), out

    def compute(product: Callable[[], None], _operands: Any, out: Any) -> Any:
        product()
        return out

    return Candidate(
        "cublas", rounding(precision), _algorithm(precision), prepare, compute,
        input=dtype, output=dtype,
    )  # fmt: skip


def _version() -> str:
    import cupy

    handle = cupy.cuda.device.get_cublas_handle()
    return f"cuBLAS {cupy.cuda.cublas.getVersion(handle)}"


PEER = Peer(
    name="cublas", operation="gemm", backends=("cuda",), precisions=_PRECISIONS,
    algorithm=_algorithm, modules=("cupy",), compute=multiply, prepared=_prepared,
    precision=rounding, version=_version,
)  # fmt: skip
