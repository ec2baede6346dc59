"""Launches of the kernel that reduces the results of split-K slices."""

from __future__ import annotations

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.linear_combination import linear_combination
from argand.gemm.sm90.splitk_source import (
    REDUCE_ARGUMENTS,
    REDUCE_KERNEL,
    REDUCE_THREADS,
    reduce_source,
)
from argand.runtime.calls.layout import Layout
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.kernel import bound_kernel

_MAX_GROUPS = 8
"""Most threads that share a result, each of which adds some of its slices."""


class ReduceLaunch:
    """Computes out (batch, m, n) = alpha (sum over slices) + beta C for results of one layout.

    Rows of slices are ``pitch`` complex64 apart.
    """

    def __init__(
        self,
        split_k_slices: int,
        batch: int,
        pitch: int,
        c: Layout,
        out: Layout,
        alpha: complex,
        beta: complex,
        device: Device,
    ) -> None:
        groups = 1
        while 2 * groups <= min(split_k_slices, _MAX_GROUPS):
            groups *= 2
        blocks = -(-batch * out.rows * out.columns * groups // REDUCE_THREADS)
        values = {
            "split_k_slices": split_k_slices, "batch": batch, "m": out.rows, "n": out.columns,
            "pitch": pitch,
            "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
            "c_stride_batch": c.batch_stride,
            "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
            "out_stride_batch": out.batch_stride,
            **linear_combination(alpha, beta), "groups": groups,
        }  # fmt: skip
        #: The launch.
        self.kernel = bound_kernel(
            reduce_source(), REDUCE_KERNEL, blocks, REDUCE_THREADS, REDUCE_ARGUMENTS, device, values
        )

    def addresses(self, slices: Address) -> dict[str, Address]:
        """Return the addresses in the kernel's arguments; ``slices`` is by slice, batch, row."""
        return {"partials": slices, "c": Address(BaseAddress.C), "out": Address(BaseAddress.OUT)}
