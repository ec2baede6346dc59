"""Kernels around cuSOLVER's factorization of a whole matrix: their sources and grids.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.complex_types import REAL
from argand.runtime.launch.arguments import Fields, size_check

COPY_THREADS, COPY_TILE = 256, 32
"""Threads of a block that copies, and rows and columns of its tile."""
UPPER_THREADS, UPPER_ROWS = 256, 64
"""Threads of a block of back substitution, and the rows of x that it solves."""
PRODUCT_THREADS, PRODUCT_TILE, MEASURE_THREADS = 256, 32, 512
"""Threads of a block of A x, rows and columns of its tile, and threads of a block of norms."""
_UPPER_COLUMNS, _PRODUCT_COLUMNS = 4, 16
"""Most columns of x of a block: in back substitution a warp solves each; in A x a thread has a sum
of each, which take 64 registers."""
_BLOCKS = 4
"""Blocks of A x for each multiprocessor; of complex128 they load 64 KiB of A at a time together."""


@dataclass(frozen=True)
class WholeKernel:
    """A kernel of ``cuda/solve``.

    Attributes:
        header: the header in ``cuda/solve``, without its ending.
        name: the name of the kernel.
        function: the function of the header that the kernel calls.
        structure: type of the function's argument.
        fields: fields of that structure, in its order.
        threads: threads of a block.
        blocks: another function of the header, with the same template arguments: the fewest blocks
            a multiprocessor.
    """

    header: str
    name: str
    function: str
    structure: str
    fields: Fields
    threads: int
    blocks: str | None = None

    def source(self, *dtypes: str, columns: int | None = None) -> str:
        """Return the CUDA C++ for complex types and, where blocks take several, columns of x."""
        arguments = [REAL[one] for one in dtypes] + ([] if columns is None else [str(columns)])
        given = f"<{', '.join(arguments)}>"
        call, blocks = f"{self.function}{given}(args);", self.blocks and f"{self.blocks}{given}()"
        return (
            f'#include "solve/{self.header}.cuh"\n{size_check(self.structure, self.fields)}'
            f"{kernel_entry(self.name, self.structure, call, self.threads, blocks)}"
        )


COPY = WholeKernel(
    "system_columns", "copy_columns_kernel", "copy_columns", "CopyArguments",
    (
        ("const void*", "a"), ("const char*", "b"), ("void*", "system"), ("uint32*", "state"),
        ("int64", "n"), ("int64", "columns"), ("int64", "b_row"), ("int64", "b_column"),
        ("int", "state_numbers"), ("int", "by_rows"),
    ),
    COPY_THREADS,
)  # fmt: skip
"""Copies A and b, of the first type, beside each other, of the second."""
UPPER = WholeKernel(
    "back_substitution", "back_substitution_kernel", "solve_upper", "UpperArguments",
    (
        ("const void*", "u"), ("void*", "x"), ("uint32*", "state"), ("int64", "n"),
        ("int64", "columns"),
    ),
    UPPER_THREADS, "upper_blocks",
)  # fmt: skip
"""Substitutes back, in the type of the factors."""
PRODUCT = WholeKernel(
    "residual", "sum_products_kernel", "sum_products", "ResidualArguments",
    (
        ("const void*", "a"), ("const void*", "x"), ("double2*", "partials"), ("int64", "n"),
        ("int64", "columns"), ("int64", "splits"), ("int64", "width"), ("int", "by_rows"),
    ),
    PRODUCT_THREADS,
)  # fmt: skip
"""Computes A x, A of the first type and x of the second."""
MEASURE = WholeKernel(
    "residual", "measure_residual_kernel", "measure_residual", "MeasureArguments",
    (
        ("const double2*", "partials"), ("const void*", "x"), ("const char*", "b"),
        ("const int*", "info"), ("double*", "measures"), ("void*", "result"), ("double*", "error"),
        ("uint32*", "ended"), ("int64", "n"), ("int64", "columns"), ("int64", "splits"),
        ("int64", "b_row"), ("int64", "b_column"),
    ),
    MEASURE_THREADS,
)  # fmt: skip
"""Computes norms of the residual, of b of the first type and of x of the second."""


@dataclass(frozen=True)
class ProductPlan:
    """How A x is divided.

    Attributes:
        columns: columns of x that a block multiplies.
        splits: parts of A's columns, each with blocks of its own.
        width: columns of A in a split.
        blocks: blocks of the grid.
    """

    columns: int
    splits: int
    width: int
    blocks: int


def product_plan(n: int, columns: int, sm_count: int) -> ProductPlan:
    """Return the division of A (n, n) times x (n, columns) among blocks, n at least 1.

    A split has at least two tiles, where A has: what it writes for a column of x is then at most
    1 / 64 of what it reads of A.
    """
    of_block = min(_PRODUCT_COLUMNS, 1 << (columns - 1).bit_length())
    rows = -(-n // PRODUCT_TILE) * -(-columns // of_block)
    splits = min(-(-n // (2 * PRODUCT_TILE)), max(1, _BLOCKS * sm_count // rows))
    width = -(-n // (splits * PRODUCT_TILE)) * PRODUCT_TILE
    splits = -(-n // width)
    return ProductPlan(of_block, splits, width, rows * splits)


def upper_columns(columns: int) -> int:
    """Return the columns of x that a block of back substitution solves."""
    return min(_UPPER_COLUMNS, 1 << (columns - 1).bit_length())


def upper_grid(n: int, columns: int) -> tuple[int, int]:
    """Return the blocks of back substitution, and how many numbers their state has."""
    groups = -(-columns // upper_columns(columns))
    return groups * -(-n // UPPER_ROWS), 1 + groups


def state_numbers(n: int, columns: int) -> int:
    """Return the uint32 numbers of the state: that of `MEASURE`, then those of `UPPER`."""
    return 1 + upper_grid(n, columns)[1]


def copy_blocks(n: int, columns: int) -> int:
    """Return the blocks that copy A (n, n) and b (n, columns)."""
    return -(-n // COPY_TILE) * -(-(n + columns) // COPY_TILE)
