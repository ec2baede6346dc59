"""The addresses that a call of a product gives its launches, by name."""

from __future__ import annotations

from enum import IntEnum


class BaseAddress(IntEnum):
    """Indices of the addresses that a call of a product gives its launches."""

    ROWS = 0
    COLUMNS = 1
    C = 2
    OUT = 3
    MEMORY = 4
    ZEROS = 5
    X_DESCALE = 6
    Y_DESCALE = 7
    HOST = 8
