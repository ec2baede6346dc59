"""Triton's kernel of the peer `triton_softmax`."""

from __future__ import annotations

from functools import partial
from typing import Any

import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from benchmarks.peers._peer import CannotRunError, seconds_to_choose_by

_MAX_COLUMNS = 65536
"""More do not fit in the registers of a block."""


@triton.jit  # type: ignore[untyped-decorator]
def _rows(out, x, columns, block: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, 0))
    share = (e / tl.sum(e, 0)).to(out.dtype.element_ty)
    tl.store(out + row * columns + at, share, mask=inside)


def softmax(x: Any, out: Any, warps: int) -> None:
    """Compute softmax over the last axis of torch tensors (rows, columns), contiguous."""
    rows, columns = x.shape
    _rows[(rows,)](out, x, columns, triton.next_power_of_2(columns), num_warps=warps)


def best_warps(x: Any, out: Any) -> int:
    """Return the fastest number of warps for these tensors.

    Raises CannotRunError for long rows, and where the card has no room for one.
    """
    if x.shape[1] > _MAX_COLUMNS:
        raise CannotRunError(f"a row must fit in a block: up to {_MAX_COLUMNS} columns")
    usual = int(max(1, min(32, triton.next_power_of_2(x.shape[1]) // 1024)))
    offered = sorted({usual, min(32, 2 * usual)})
    try:
        return min(offered, key=lambda n: seconds_to_choose_by(partial(softmax, x, out, n)))
    except OutOfResources as error:
        raise CannotRunError(str(error)) from None
