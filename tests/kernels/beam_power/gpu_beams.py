"""Beams of the GPU's tests, apart: where these are left out, no worker draws them."""

from __future__ import annotations

from tests.kernels.beam_power.beams import beams

CASES = {
    "one of each": beams(1, 1, 1),
    "a tile": beams(64, 64, 4096, 16, leading=(3,), seed=1),
    "odd": beams(5, 37, 211, 7, leading=(2, 3), seed=2),
    "shared weights": beams(70, 20, 1003, 24, leading=(4,), shared=True, seed=3),
    "no sums": beams(33, 40, 333, 1, seed=4),
    "a long bin": beams(17, 100, 1900, 1900, seed=5, kind="complex128"),
    "a bin of parts": beams(3, 5, 18000, 9000, seed=19),
    "long bins": beams(130, 9, 1000, 333, leading=(2,), seed=6),
    "many antennas": beams(40, 300, 500, 20, seed=7),
    "few of many antennas": beams(3, 366, 330, 8, leading=(2,), seed=23),
    "few of odd lines": beams(3, 222, 727, 2, leading=(2,), seed=24),
    "few of long bins": beams(8, 61, 1000, 127, leading=(3,), shared=True, seed=25),
    "promoted": beams(70, 90, 450, 9, seed=20),
    "promoted once": beams(33, 65, 450, 9, seed=21),
    "stokes": beams(20, 33, 1300, 8, detect="stokes", leading=(3,), seed=8),
    "stokes of shared weights": beams(4, 5, 640, 3, detect="stokes", shared=True, seed=9),
    "few stokes of many antennas": beams(2, 246, 3319, 18, detect="stokes", leading=(2,), seed=26),
    "long stokes": beams(65, 70, 450, 150, detect="stokes", seed=10),
    "stokes of many antennas": beams(40, 300, 450, 6, detect="stokes", leading=(2,), seed=22),
    "int8": beams(64, 64, 4096, 16, leading=(3,), taken="int8", seed=11),
    "odd int8": beams(6, 41, 967, 5, leading=(2,), taken="int8", seed=12),
    "int8 stokes": beams(37, 100, 501, 12, detect="stokes", taken="int8", seed=13),
    "few int8 stokes": beams(5, 70, 701, 137, detect="stokes", leading=(2,), taken="int8", seed=27),
    "long int8": beams(100, 65, 3000, 1500, taken="int8", seed=14),
    "fp16 pairs": beams(64, 64, 640, 32, leading=(2,), taken="fp16", seed=15),
    "odd fp16 pairs": beams(7, 30, 643, 4, taken="fp16", seed=16),
    "bf16 pairs": beams(70, 130, 1024, 2, taken="bf16", seed=17),
    "bf16 stokes": beams(7, 30, 100, 2, detect="stokes", taken="bf16", seed=18),
}
