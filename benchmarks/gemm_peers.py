"""The libraries that are measured beside our products, where they are installed."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.gemm import gemm_problem

from benchmarks.measuring import Candidate

PEERS = ("numpy", "cublas", "torch", "triton")


def available(device: Device) -> list[Candidate]:
    """NumPy on the CPU; cuBLAS, PyTorch and Triton on a GPU, as far as they are installed."""
    if device.backend == "cpu":
        return [_numpy("fp64"), _numpy("fp32")]
    found = [_cublas(name) for name in ("fp64", "fp32", "tf32")]
    if find_spec("torch"):
        found += [_torch("fp32"), _torch("tf32")]
        if find_spec("triton"):
            from benchmarks.triton_planar import candidates

            found += candidates()
    return found


def _numpy(precision: str) -> Candidate:
    dtype = PRECISIONS[precision].output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(np.array(x, dtype) for x in (a, b))

    return Candidate(
        "numpy", PRECISIONS[precision], f"matmul {dtype}", prepare, np.matmul, np.asarray
    )


def _cublas(precision: str) -> Candidate:
    """cuBLAS by its own compute type, into a place that was filled with NaN."""
    import cupy
    from argand import cuda_cublas

    dtype = PRECISIONS[precision].output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        left, right = (cupy.array(x, dtype=dtype) for x in (a, b))
        return left, right, cupy.full((*a.shape[:-1], b.shape[-1]), np.nan, dtype)

    def compute(a: Any, b: Any, out: Any) -> Any:
        problem = gemm_problem(a.shape, b.shape, precision=precision)
        return cuda_cublas.gemm(problem, a, b, None, out, precision)

    return Candidate(
        "cublas", cuda_cublas.cublas_precision(precision), cuda_cublas.algorithm(precision),
        prepare, compute, cupy.asnumpy,
    )  # fmt: skip


def _torch(precision: str) -> Candidate:
    import torch
    from argand import cuda_cublas

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(torch.from_numpy(x).cuda() for x in (a, b))

    return Candidate(
        "torch", cuda_cublas.cublas_precision(precision),
        f"matmul complex64, allow_tf32={precision == 'tf32'}", prepare,
        partial(_torch_product, precision == "tf32"), lambda x: x.cpu().numpy(),
    )  # fmt: skip


def _torch_product(allow_tf32: bool, a: Any, b: Any) -> Any:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = allow_tf32
    return a @ b
