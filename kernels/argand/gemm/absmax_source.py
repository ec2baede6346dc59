"""The absmax kernel before a product that scales rows: blocks, source.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.runtime.compile.cpp import literal
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

ABSMAX_KERNEL = "gemm_absmax"
ABSMAX_THREADS = 256
ABSMAX_ROWS = {True: 8, False: 32}
"""Rows that a block reads, by whether k is contiguous: a warp then takes a row, its lanes along k;
else lanes are rows."""

# AbsmaxArguments of gemm/absmax_kernel.cuh.
ABSMAX_SOURCE = (
    "rows", "k", "row_stride", "k_stride", "batch_stride", "row_blocks",
)  # fmt: skip
ABSMAX_ARGUMENTS: tuple[tuple[str, str], ...] = (
    *(
        field
        for side in "ab"
        for field in (
            ("const float2*", f"{side}_x"), ("uint32*", f"{side}_row_absmax"),
            *(("int64", f"{side}_{name}") for name in ABSMAX_SOURCE),
        )
    ),
    ("int64", "a_blocks"),
)  # fmt: skip


def absmax_source(a_k_major: bool, b_k_major: bool) -> str:
    """Return the CUDA C++ of the kernel that finds each row's absmax."""
    calls = [f"find_row_absmax<{literal(fast)}>" for fast in (a_k_major, b_k_major)]
    call = (
        f"if (blockIdx.x < args.a_blocks) {calls[0]}(args.a, blockIdx.x);\n"
        f"    else {calls[1]}(args.b, blockIdx.x - args.a_blocks);"
    )
    return (
        '#include "gemm/absmax_kernel.cuh"\n'
        f"{size_check('AbsmaxArguments', ABSMAX_ARGUMENTS)}"
        + kernel_entry(ABSMAX_KERNEL, "AbsmaxArguments", call, ABSMAX_THREADS)
    )
