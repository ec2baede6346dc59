"""Kernels before and after the power of an image: checks of operands, and the sum of splits.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

CHECK_KERNEL, SUM_KERNEL = "image_check_kernel", "image_sum_kernel"
CHECK_THREADS, SUM_THREADS = 256, 256
_PART_ROWS, _SUM_DIRECTIONS = 32, 32
# CheckArguments of cuda/image/check_kernel.cuh and SumArguments of cuda/image/sum_kernel.cuh.
CHECK_ARGUMENTS = (
    ("const float2*", "covariances"), ("uint32*", "largest"), ("const double*", "directions"),
    ("double*", "unit_vectors"), ("uint32*", "suspect"), ("double", "longest_square"),
    ("double", "hermitian"), ("int", "matrices"), ("int", "parts"), ("int", "antennas"),
    ("int", "direction_count"), ("int", "columns"),
)  # fmt: skip
SUM_ARGUMENTS = (
    ("const float*", "parts"), ("float*", "power"), ("int64", "count"), ("int", "splits"),
)  # fmt: skip


def check_parts(antennas: int) -> int:
    """Return the blocks that share a matrix, of 32 rows each."""
    return -(-antennas // _PART_ROWS)


def check_blocks(matrices: int, antennas: int, directions: int) -> int:
    """Return the grid of the checks: the parts of matrices, then a block for 256 directions."""
    return matrices * check_parts(antennas) + -(-directions // CHECK_THREADS)


def sum_blocks(count: int) -> int:
    """Return the grid that adds ``count`` sums."""
    return -(-count // _SUM_DIRECTIONS)


def check_source() -> str:
    """Return the CUDA C++ of the kernel that checks covariances and directions."""
    return (
        '#include "image/check_kernel.cuh"\n'
        f"{size_check('CheckArguments', CHECK_ARGUMENTS)}"
        + kernel_entry(CHECK_KERNEL, "CheckArguments", "check_operands(args);", CHECK_THREADS)
    )


def sum_source() -> str:
    """Return the CUDA C++ of the kernel that adds splits of the channels."""
    return (
        '#include "image/sum_kernel.cuh"\n'
        f"{size_check('SumArguments', SUM_ARGUMENTS)}"
        + kernel_entry(SUM_KERNEL, "SumArguments", "sum_splits(args);", SUM_THREADS)
    )
