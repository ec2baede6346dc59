"""The kernel that reduces the results of split-K slices."""

from __future__ import annotations

from argand.device import Device
from argand.runtime.arguments import Address, Arguments, BaseAddress, arguments_dtype, size_check
from argand.runtime.kernel import BoundKernel
from argand.runtime.kernel_entry import kernel_entry
from argand.runtime.layout import Layout
from argand.runtime.loading import PendingKernel

_THREADS, _MOST_GROUPS = 256, 8
REDUCE_KERNEL = "gemm_reduce_split_k"
# ReduceArguments of gemm/splitk_reduce.cuh.
_ARGUMENTS = (
    ("const float2*", "partials"), ("const float2*", "c"), ("float2*", "out"),
    *(("uint32", name) for name in ("split_k_slices", "batch", "m", "n", "pitch")),
    *(("int64", name) for name in (
        "c_stride_m", "c_stride_n", "c_stride_batch",
        "out_stride_m", "out_stride_n", "out_stride_batch",
    )),
    *(("float", name) for name in ("alpha_re", "alpha_im", "beta_re", "beta_im")),
    ("uint32", "groups"),
)  # fmt: skip
_DTYPE = arguments_dtype(_ARGUMENTS)


def reduce_source() -> str:
    """Return the CUDA C++ of the kernel."""
    return (
        '#include "gemm/splitk_reduce.cuh"\n'
        f"{size_check('ReduceArguments', _ARGUMENTS)}"
        + kernel_entry(REDUCE_KERNEL, "ReduceArguments", "reduce_split_k(args);", _THREADS)
    )


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
        while 2 * groups <= min(split_k_slices, _MOST_GROUPS):
            groups *= 2
        blocks = -(-batch * out.rows * out.columns * groups // _THREADS)
        kernel = PendingKernel(reduce_source(), device.target, REDUCE_KERNEL)
        values = {
            "partials": 0, "c": 0, "out": 0,
            "split_k_slices": split_k_slices, "batch": batch, "m": out.rows, "n": out.columns,
            "pitch": pitch,
            "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
            "c_stride_batch": c.batch_stride,
            "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
            "out_stride_batch": out.batch_stride,
            "alpha_re": alpha.real, "alpha_im": alpha.imag,
            "beta_re": beta.real, "beta_im": beta.imag, "groups": groups,
        }  # fmt: skip
        #: The launch.
        self.kernel = BoundKernel(kernel, blocks, _THREADS, Arguments(_DTYPE, values))

    def addresses(self, slices: Address) -> dict[str, Address]:
        """Return the addresses in the kernel's arguments; ``slices`` is by slice, batch, row."""
        return {"partials": slices, "c": Address(BaseAddress.C), "out": Address(BaseAddress.OUT)}
