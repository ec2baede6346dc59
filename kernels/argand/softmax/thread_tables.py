"""Tables of the threads that share a row in registers, by its length, as measured on an H200.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

_Entry = tuple[int, int, int, bool]
_NARROW: tuple[_Entry, ...] = (
    (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 32, 1, False),
    (1024, 64, 1, False), (2048, 64, 1, False),
)  # fmt: skip
THREADS: dict[int, tuple[_Entry, ...]] = {
    8: (
        *((limit // 2, threads, cluster, False) for limit, threads, cluster, _ in _NARROW),
        (8192, 256, 1, False), (16384, 512, 1, False), (26624, 256, 4, False),
        (32768, 384, 4, False), (65536, 256, 8, False), (131072, 512, 8, False),
        (262144, 512, 16, False),
    ),
    4: (
        *_NARROW, (16384, 256, 1, False), (32768, 512, 1, False),
        (53248, 256, 4, False), (65536, 512, 2, True), (65536, 384, 4, False),
        (131072, 256, 8, True), (262144, 512, 8, True), (524288, 512, 16, True),
    ),
    2: (
        (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 16, 1, False),
        (1024, 64, 1, False), (2048, 128, 1, False), (4096, 256, 1, False), (8192, 512, 1, False),
        (32768, 256, 1, False), (65536, 512, 1, False), (81920, 512, 2, False),
        (131072, 512, 2, True), (262144, 512, 4, True), (524288, 512, 8, True),
        (1048576, 512, 16, True),
    ),
}  # fmt: skip
"""Entries by bytes of a value: (largest columns, threads, blocks that share a row, staged).

The next entry of the same columns is taken where one is not legal. They were measured on an H200
by ``benchmarks/softmax/plans.py``; the entries of fp64 follow those of fp32."""
NARROW_FP32: dict[bool, tuple[tuple[int, int], ...]] = {
    True: ((22, 4), (28, 0), (56, 8), (160, 16), (512, 32)),
    False: ((56, 0), (160, 8), (240, 16), (256, 32), (280, 16), (512, 32)),
}
"""Entries of more than 16 fp32 elements, by whether exponentials are approximate: (largest columns,
threads), 0 threads where slabs are no slower. Approximate exponentials take few instructions, so
lanes that read 16 to 64 neighbouring bytes matter more than full registers; exact ones take
many for a row of any length, so few lanes share one."""
NARROW_FP32_SUMS: tuple[tuple[int, int], ...] = ((22, 4), (28, 0), (160, 8), (512, 32))
"""Such entries of ``logsumexp``, which writes no rows, so that instructions bound it."""
NARROW_HALVES: tuple[tuple[int, int], ...] = ((24, 2), (72, 4), (184, 8), (200, 16))
"""Such entries of rows of 16 bits that end within a sector and have approximate exponentials, with
16-bit results."""
