"""Kernels that compose and apply the row exchanges of a panel: their sources and sizes.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.device import Arch
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.complex_types import ITEM
from argand.runtime.launch.arguments import size_check

ORDER_KERNEL = "order_of_exchanges_kernel"
MOVE_KERNEL = "move_rows_kernel"
ORDER_THREADS, MOVE_THREADS = 1024, 512
_ELEMENTS = {"complex64": "ulonglong1", "complex128": "ulonglong2"}
_MOVED_BYTES = 72 << 10
"""Bytes of a block that moves rows: three of them share a multiprocessor of Hopper, so one reads
while another writes."""
_SEGMENT = 128
"""Largest bytes of a row that a block moves: a line of L2."""
# OrderArguments and MoveArguments of solve/exchanges.cuh.
ORDER_ARGUMENTS = (
    ("const int*", "pivots"), ("int*", "scratch"), ("int64*", "order"), ("Move*", "moves"),
    ("int", "columns"), ("int", "rows"),
)  # fmt: skip
MOVE_ARGUMENTS = (
    ("const Move*", "moves"), ("void*", "rows"), ("int64", "pitch"), ("int", "count"),
    ("int", "first"), ("int", "last"), ("int", "columns"), ("int", "width_bits"),
)  # fmt: skip


def order_source() -> str:
    """Return the CUDA C++ of the kernel that composes exchanges."""
    return (
        '#include "solve/exchanges.cuh"\n'
        f"{size_check('OrderArguments', ORDER_ARGUMENTS)}"
        + kernel_entry(ORDER_KERNEL, "OrderArguments", "order_of_exchanges(args);", ORDER_THREADS)
    )


def move_source(dtype: str) -> str:
    """Return the CUDA C++ of the kernel that moves rows of a complex type."""
    return (
        '#include "solve/exchanges.cuh"\n'
        f"{size_check('MoveArguments', MOVE_ARGUMENTS)}"
        + kernel_entry(
            MOVE_KERNEL, "MoveArguments", f"move_rows<{_ELEMENTS[dtype]}>(args);", MOVE_THREADS
        )
    )


def order_bytes(rows: int, columns: int, arch: Arch) -> tuple[int, bool]:
    """Return the shared memory of the order's block, and whether its rows fit there."""
    every = 4 * (rows + columns)
    return (every, True) if every <= arch.shared_bytes else (4 * columns, False)


def moved_columns(moves: int, dtype: str, arch: Arch) -> int:
    """Return how many columns a block moves, a power of two; 0 where not one fits.

    ``moves`` are rows that a block holds in shared memory.
    """
    item = ITEM[dtype]
    for limit in (_MOVED_BYTES, arch.shared_bytes):
        columns = min(_SEGMENT, limit // moves) // item
        if columns:
            return 1 << (columns.bit_length() - 1)
    return 0
