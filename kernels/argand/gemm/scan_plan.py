"""The absmax scan before a product that scales rows: blocks, source.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.runtime.arguments import size_check
from argand.runtime.kernel_entry import kernel_entry

SCAN_KERNEL = "gemm_scan"
SCAN_THREADS = 256
SCAN_ROWS = {True: 8, False: 32}
"""Rows that a block scans, by whether k is contiguous: a warp then takes a row, its lanes along k;
else lanes are rows."""

# ScanArguments of gemm/absmax_scan.cuh.
SCAN_SOURCE = (
    "rows", "k", "row_stride", "k_stride", "batch_stride", "row_blocks",
)  # fmt: skip
SCAN_ARGUMENTS: tuple[tuple[str, str], ...] = (
    *(
        field
        for side in "ab"
        for field in (
            ("const float2*", f"{side}_x"), ("uint32*", f"{side}_row_absmax"),
            *(("int64", f"{side}_{name}") for name in SCAN_SOURCE),
        )
    ),
    ("int64", "a_blocks"),
)  # fmt: skip


def scan_source(a_k_major: bool, b_k_major: bool) -> str:
    """Return the CUDA C++ of the kernel that finds each row's absmax."""
    scans = [f"find_row_absmax<{str(fast).lower()}>" for fast in (a_k_major, b_k_major)]
    call = (
        f"if (blockIdx.x < args.a_blocks) {scans[0]}(args.a, blockIdx.x);\n"
        f"    else {scans[1]}(args.b, blockIdx.x - args.a_blocks);"
    )
    return (
        '#include "gemm/absmax_scan.cuh"\n'
        f"{size_check('ScanArguments', SCAN_ARGUMENTS)}"
        + kernel_entry(SCAN_KERNEL, "ScanArguments", call, SCAN_THREADS)
    )
