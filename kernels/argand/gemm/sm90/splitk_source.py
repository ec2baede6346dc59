"""The source of the kernel that reduces the results of split-K slices.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.gemm.linear_combination import LINEAR_COMBINATION
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

REDUCE_THREADS = 256
REDUCE_KERNEL = "gemm_reduce_split_k"
# ReduceArguments of gemm/splitk_reduce.cuh.
REDUCE_ARGUMENTS = (
    ("const float2*", "partials"), ("const float2*", "c"), ("float2*", "out"),
    *(("uint32", name) for name in ("split_k_slices", "batch", "m", "n", "pitch")),
    *(("int64", name) for name in (
        "c_stride_m", "c_stride_n", "c_stride_batch",
        "out_stride_m", "out_stride_n", "out_stride_batch",
    )),
    *LINEAR_COMBINATION,
    ("uint32", "groups"),
)  # fmt: skip


def reduce_source() -> str:
    """Return the CUDA C++ of the kernel."""
    return (
        '#include "gemm/splitk_reduce.cuh"\n'
        f"{size_check('ReduceArguments', REDUCE_ARGUMENTS)}"
        + kernel_entry(REDUCE_KERNEL, "ReduceArguments", "reduce_split_k(args);", REDUCE_THREADS)
    )
