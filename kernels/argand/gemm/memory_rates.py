"""Rates and sizes of an H200's L2 and its memory's latency, for the models of both families.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

SAME_K_BYTES = 10e12
"""Bytes a second that L2 gives all multiprocessors together: of tiles that are at the same k, whose
loads of the same lines it serves at once."""
DIFFERENT_K_BYTES = 8.7e12
"""The same for tiles at different k, where only tiles of one slice share lines: split-K slices,
slices of a cluster and tiles of stream-K alike."""
UNALIGNED_BYTES = 7e12
"""The same of operands whose lines are not multiples of its sectors, 32 bytes."""
CACHE_BYTES = 50e6
"""Bytes of L2: of an operand that tiles at different k read, this much is read from memory once."""
KEPT_BYTES = CACHE_BYTES / 4
"""Bytes of a complex64 operand that L2 may hold from before, beside those of other calls."""
LATENCY = 1.3e-6
"""Seconds from memory to a stage. All stages but the one that is multiplied are under way."""
