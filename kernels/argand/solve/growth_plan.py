"""The kernel that sums squares of a matrix, of its factor U and of x: its source and its grid.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.runtime.arguments import size_check
from argand.runtime.complex_types import REAL
from argand.runtime.kernel_entry import kernel_entry

GROWTH_KERNEL = "growth_of_factors_kernel"
GROWTH_THREADS = 256
_BLOCKS = 4
"""Blocks of a multiprocessor: with four numbers of each thread on their way, 32 KiB."""
_NUMBERS = 4
"""Numbers of A that a thread has at least, where there are so many."""
# GrowthArguments of solve/growth.cuh.
GROWTH_ARGUMENTS = (
    ("const void*", "a"), ("const double*", "lu"), ("const double*", "x"), ("const int*", "info"),
    ("double*", "sums"), ("int64", "n"), ("int64", "reals_of_a"), ("int64", "reals_of_x"),
)  # fmt: skip


def growth_source(dtype: str) -> str:
    """Return the CUDA C++ of the kernel for an A of a complex type."""
    return (
        '#include "solve/growth.cuh"\n'
        f"{size_check('GrowthArguments', GROWTH_ARGUMENTS)}"
        + kernel_entry(
            GROWTH_KERNEL, "GrowthArguments", f"sum_squares<{REAL[dtype]}>(args);", GROWTH_THREADS
        )
    )


def growth_blocks(n: int, sm_count: int) -> int:
    """Return the blocks that sum a matrix (n, n) up."""
    return min(_BLOCKS * sm_count, -(-2 * n * n // (GROWTH_THREADS * _NUMBERS)))
