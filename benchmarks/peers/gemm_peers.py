"""The libraries that are measured beside our products, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.gemm.problem import gemm_problem

from benchmarks.harness.measuring import Candidate, absent

PEERS = ("numpy", "cublas", "cublaslt-planar", "torch", "torch-real", "triton")


def available(device: Device) -> list[Candidate]:
    """NumPy on the CPU; on a GPU all others, those that are not installed with the reason."""
    if device.backend == "cpu":
        return [_numpy("fp64"), _numpy("fp32")]
    from benchmarks.peers import cublaslt_planar

    cublas = [_cublas(name) for name in ("fp64", "fp32", "tf32")]
    return [*cublas, *cublaslt_planar.candidates(), *_torch_peers(), *_triton_peers()]


def _numpy(precision: str) -> Candidate:
    dtype = PRECISIONS[precision].output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(np.array(x, dtype) for x in (a, b))

    return Candidate(
        "numpy", PRECISIONS[precision], f"matmul {dtype}", prepare, np.matmul, np.asarray,
        input=dtype, output=dtype,
    )  # fmt: skip


def _cublas(precision: str) -> Candidate:
    """cuBLAS by its own compute type, into a place that was filled with NaN."""
    import cupy
    from argand.gemm import cublas as cuda_cublas

    dtype = PRECISIONS[precision].output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        left, right = (cupy.array(x, dtype=dtype) for x in (a, b))
        out = cupy.full((*a.shape[:-1], b.shape[-1]), np.nan, dtype)
        problem = gemm_problem(a.shape, b.shape, precision=precision)
        return cuda_cublas.bound(problem, left, right, out, precision), (left, right), out

    def compute(product: Callable[[], None], _operands: Any, out: Any) -> Any:
        product()
        return out

    return Candidate(
        "cublas", cuda_cublas.cublas_precision(precision), cuda_cublas.algorithm(precision),
        prepare, compute, cupy.asarray, input=dtype, output=dtype,
    )  # fmt: skip


def _torch_peers() -> list[Candidate]:
    return [
        _torch("torch", "fp32", "matmul complex64, allow_tf32=False", _complex_product(False)),
        _torch("torch", "tf32", "matmul complex64, allow_tf32=True", _complex_product(True)),
        _torch("torch-real", "tf32", "one product M x 2K by 2K x 2N, B converted", _real_product),
    ]


def _torch(name: str, precision: str, algorithm: str, compute: Callable[..., Any]) -> Candidate:
    import cupy
    from argand.gemm import cublas as cuda_cublas

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        import torch

        return tuple(torch.from_dlpack(x).clone() for x in (a, b))

    # It multiplies by cuBLAS, which decides how operands are rounded.
    found = Candidate(
        name, cuda_cublas.cublas_precision(precision), algorithm, prepare, compute,
        cupy.from_dlpack,
    )  # fmt: skip
    return found if find_spec("torch") else absent(found, "PyTorch is not installed")


def _complex_product(allow_tf32: bool) -> Callable[..., Any]:
    def compute(a: Any, b: Any) -> Any:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        return a @ b

    return compute


def _real_product(a: Any, b: Any) -> Any:
    """Complex A B as one real product at tf32, the conversion of B in the time.

    Interleaved A is already a real (m, 2 k) matrix of columns ar, ai, and C a real (m, 2 n); B
    becomes (2 k, 2 n) with a row br, bi and a row -bi, br for each of its rows.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    *batch, k, n = b.shape
    parts = torch.view_as_real(b)
    wide = torch.empty((*batch, k, 2, n, 2), dtype=parts.dtype, device=parts.device)
    wide[..., 0, :, :] = parts
    torch.neg(parts[..., 1], out=wide[..., 1, :, 0])
    wide[..., 1, :, 1] = parts[..., 0]
    product = torch.view_as_real(a).flatten(-2) @ wide.view(*batch, 2 * k, 2 * n)
    return torch.view_as_complex(product.unflatten(-1, (n, 2)))


def _triton_peers() -> list[Candidate]:
    """Triton's own products; where it is not installed, one row says so for each of them."""
    missing = [name for name in ("torch", "triton") if not find_spec(name)]
    if not missing:
        from benchmarks.peers._triton_planar import candidates

        return candidates()
    reason = f"{' and '.join(missing)} not installed"
    nothing = Candidate(
        "triton", PRECISIONS["tf32"], "planar 4M", lambda *_: (), lambda *_: None, np.asarray,
        input="planar",
    )  # fmt: skip
    return [absent(nothing, reason)]
