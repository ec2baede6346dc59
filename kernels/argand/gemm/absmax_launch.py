"""Launches of the absmax kernel, for the precisions that scale rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from argand.device import Device
from argand.gemm.absmax_source import (
    ABSMAX_ARGUMENTS,
    ABSMAX_KERNEL,
    ABSMAX_ROWS,
    ABSMAX_SOURCE,
    ABSMAX_THREADS,
    absmax_source,
)
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.launch.kernel import bound_kernel


class AbsmaxLaunch:
    """Finds the bits of the row absmax, of finite components, of one operand or of two.

    Args:
        operands: rows by k, complex64; one with a batch stride of 0 is read once.
        batch: how many products there are.
    """

    def __init__(self, operands: Sequence[Layout], batch: int, device: Device) -> None:
        batches = [batch if x.batch_stride else 1 for x in operands]
        self._rows = [n * x.rows for n, x in zip(batches, operands, strict=True)]
        #: Bytes of what it finds.
        self.nbytes = 4 * sum(self._rows)
        sources = [_source_values(x) for x in operands]
        blocks = [n * x["row_blocks"] for n, x in zip(batches, sources, strict=True)]
        # The kernel takes two operands; no block reads the second of a single one.
        both = (*operands, *operands)[:2]
        values = {"a_blocks": blocks[0]}
        for side, source in zip("ab", (*sources, *sources), strict=False):
            values |= {f"{side}_{name}": number for name, number in source.items()}
        self._kernel = bound_kernel(
            absmax_source(*map(is_k_major, both)), ABSMAX_KERNEL, sum(blocks), ABSMAX_THREADS,
            ABSMAX_ARGUMENTS, device, values,
        )  # fmt: skip

    def __call__(self, addresses: Sequence[int], memory: int) -> list[int]:
        """Write ``nbytes`` of memory, and return the address of each operand's row absmax.

        It is uint32 (rows), batch after batch.
        """
        found = [memory + 4 * n for n in accumulate(self._rows[:-1], initial=0)]
        members: dict[str, int] = {}
        for side, x, absmax in zip("ab", addresses, found, strict=False):
            members |= {f"{side}_x": x, f"{side}_row_absmax": absmax}
        self._kernel(members)
        return found


def _source_values(x: Layout) -> dict[str, int]:
    numbers = (
        x.rows, x.columns, x.row_stride, x.column_stride, x.batch_stride,
        -(-x.rows // ABSMAX_ROWS[is_k_major(x)]),
    )  # fmt: skip
    return dict(zip(ABSMAX_SOURCE, numbers, strict=True))
