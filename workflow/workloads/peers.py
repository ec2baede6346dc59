"""What is measured beside our products: the libraries that a user would take otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from argand import PRECISIONS, Device, Precision
from argand.gemm.operands import Op
from argand.gemm.problem import gemm_problem

from workflow.config.case import Case
from workflow.data import Implementation

Product = Callable[..., Any]
"""A product with the signature of `argand.gemm`, its precision already chosen."""


PeerGroup = Literal["product", "transform", "softmax"]
PEERS: dict[PeerGroup, tuple[str, ...]] = {
    "product": ("numpy", "cublas"),
    "transform": ("scipy", "cufft"),
    "softmax": ("scipy", "cupy", "torch"),
}
"""Every peer by what it computes, on whatever device."""


@dataclass(frozen=True)
class ProductPeer:
    """A library's complex product at the precision it has."""

    name: str
    precision: Precision
    algorithm: str
    multiply: Product


def product_peers(device: Device) -> list[ProductPeer]:
    """NumPy's matmul on the CPU, cuBLAS on a GPU."""
    if device.backend == "cpu":
        return [
            ProductPeer("numpy", PRECISIONS["fp32"], "matmul complex64", numpy_product),
            ProductPeer("numpy", PRECISIONS["fp64"], "matmul complex128", numpy_product),
        ]
    from argand.gemm import cublas as cuda_cublas

    return [
        ProductPeer(
            "cublas", cuda_cublas.cublas_precision(name), cuda_cublas.algorithm(name), _cublas(name)
        )
        for name in ("fp32", "tf32", "fp64")
    ]


def choose(available: Sequence[Implementation], case: Case, own: PeerGroup) -> list[Implementation]:
    """The peers that a case asks for; ``own`` is the group that computes its kind.

    A study's list is for all its workloads, so a peer that only other kinds have is passed over.
    Raises ValueError for a name that no kind has, and for one of this kind that is not installed or
    not for this device.
    """
    wanted = case.baselines or "auto"
    if wanted == "auto":
        return list(available)
    if wanted == "none":
        return []
    names = sorted({peer.name for peer in available})
    elsewhere = {name for group in PEERS.values() for name in group} - set(PEERS[own])
    for name in wanted:
        if name not in names and name not in elsewhere:
            raise ValueError(f"baselines must be one of {names} here, got {name!r}")
    return [peer for peer in available if peer.name in wanted]


def numpy_product(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: str = "N",
    op_b: str = "N",
) -> Any:
    """alpha op(a) op(b) + beta c by `numpy.matmul`, in the operands' type."""
    product = np.matmul(_oriented(a, op_a), _oriented(b, op_b))
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta != 0:
        product += product.dtype.type(beta) * c
    return product


def _oriented(x: Any, op: str) -> Any:
    if op == "N":
        return x
    x = x.swapaxes(-1, -2)
    return x.conj() if op == "C" else x


def _cublas(compute: str) -> Product:
    """cuBLAS's product with the compute type of a precision."""

    def multiply(
        a: Any,
        b: Any,
        c: Any = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        op_a: Op = "N",
        op_b: Op = "N",
    ) -> Any:
        from argand.gemm import cublas as cuda_cublas

        problem = gemm_problem(
            a.shape, b.shape, None if c is None else c.shape,
            alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision=compute,
        )  # fmt: skip
        return cuda_cublas.gemm(problem, a, b, c, None, compute)

    return multiply
