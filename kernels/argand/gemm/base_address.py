"""The addresses that a call of a product gives its launches, by name."""

from __future__ import annotations

from enum import IntEnum


class BaseAddress(IntEnum):
    """Indices of the addresses that a call of a product gives its launches.

    ROWS and COLUMNS are of the row operand and of the column operand, of exact products of A and B;
    C and OUT of C and of the result; WORKSPACE of the call's own memory; COUNTERS of memory that
    kernels find zero and leave zero; X_DESCALE and Y_DESCALE of the factors that descale a product
    of packed operands; HOST of the host memory to which a proof writes what it finds.
    """

    ROWS = 0
    COLUMNS = 1
    C = 2
    OUT = 3
    WORKSPACE = 4
    COUNTERS = 5
    X_DESCALE = 6
    Y_DESCALE = 7
    HOST = 8
