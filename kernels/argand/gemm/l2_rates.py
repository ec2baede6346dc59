"""Rates of an H200's L2, which the models of both families share. Needs no GPU and no CuPy."""

from __future__ import annotations

TOGETHER_BYTES, SLICED_BYTES, APART_BYTES = 10e12, 8.7e12, 7e12
"""Bytes a second that L2 gives all multiprocessors together: of tiles that are at the same k, whose
loads of the same lines it serves at once; of tiles at different k, of which those of a slice alone
share lines (split-K slices, slices of a cluster and tiles of stream-K alike); and of operands whose
lines are not multiples of its sectors, 32 bytes."""
