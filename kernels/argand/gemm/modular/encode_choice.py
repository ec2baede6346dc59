"""The choice of how the lines of an operand of an exact product are read when they are encoded."""

from __future__ import annotations

from argand.device import Arch
from argand.gemm.modular.encode_plan import (
    FEW_THREADS,
    MANY_THREADS,
    WARPS,
    EncodePlan,
    clustered,
    clustered_bytes,
    encode_threads,
    whole_line_bytes,
)
from argand.multiprocessor import WARP
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.plan import WGMMA_TARGET

_ALIGNMENT = 16
"""Bytes at whose multiples lines begin that bulk copies read whole."""
_CLUSTERED_ITEM = 8
"""Bytes of the numbers whose lines a cluster encodes: complex64."""


def choose_encode_plan(
    dtype: str, x: Layout, k_blocks: int, arch: Arch, *, wide: bool, proved: bool, in_parts: bool
) -> EncodePlan:
    """Return the plan for an operand.

    Args:
        dtype: the complex type of the operand.
        x: its layout, lines by k.
        k_blocks: blocks of a line.
        arch: the architecture of the device.
        wide: whether its integers have 64 bits.
        proved: whether the product is proved.
        in_parts: whether lines are encoded in parts of k, so that no CTA holds a whole one.
    """
    if in_parts:
        return EncodePlan("along k" if is_k_major(x) else "across lines")
    if not is_k_major(x):
        # 128 bytes hold 8 lines of complex128: exchanging their norms takes longer than reading
        # twice what L2 holds.
        cluster = clustered(k_blocks) if x.item == _CLUSTERED_ITEM else None
        if cluster is None or arch.target != WGMMA_TARGET or x.aligned < x.item:
            return EncodePlan("across lines")
        nbytes = clustered_bytes(x.item, cluster[1])
        return EncodePlan("clustered lines", cluster=cluster, shared_bytes=nbytes)
    strides = (x.row_stride * x.item, x.batch_stride * x.item)
    aligned = x.aligned >= _ALIGNMENT and not any(stride % _ALIGNMENT for stride in strides)
    held = None
    if x.column_stride == 1 and aligned and x.row_stride >= 0:
        most = encode_threads(dtype, "whole lines", wide=wide, proved=proved)
        held = _whole_lines(x.item, k_blocks, arch, most)
    return held or EncodePlan("along k")


def _whole_lines(item: int, k_blocks: int, arch: Arch, most: int) -> EncodePlan | None:
    """Return the plan whose CTAs hold whole lines; None where shared memory holds none.

    A warp takes a block of a line at a time, so short lines have fewer warps and more CTAs. Several
    CTAs of one line are faster than one CTA of two, which waits at its barriers, but more CTAs of
    64 registers per thread are only where each holds two. ``most`` are a multiprocessor's threads.
    """
    short = WARP * min(WARPS, k_blocks)
    for resident in range(most // short, 0, -1):
        many = resident * short > FEW_THREADS
        for buffers in (2,) if many else (2, 1):
            nbytes = whole_line_bytes(item, k_blocks, buffers)
            if resident <= arch.resident_blocks(nbytes):
                every = MANY_THREADS if many else FEW_THREADS
                threads = every // resident // WARP * WARP
                return EncodePlan("whole lines", threads, resident, buffers, shared_bytes=nbytes)
    return None
