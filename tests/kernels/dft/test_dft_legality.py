"""Plans of transforms that cannot run, of every kind, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import HOPPER, arch_for
from argand.dft.butterfly import ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.hankel import HankelPlan
from argand.dft.legality import check_dft_plan
from argand.dft.mixed_radix import MixedRadixPlan
from argand.dft.plan import Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.runtime.plan import PlanError

TWO_FACTOR = TwoFactorPlan(32, 32, 2, 1, 7, 2, True)
HANKEL = HankelPlan(251, row_copies=2, warpgroups=1, groups=3, buffers=6, wide_copies=True)
CHIRP = ButterflyPlan(100, False, (16, 16), 1, 4)
LONG_CHIRP = ButterflyPlan(4093, False, (32, 16, 16), 8, 1)
POWERS = ButterflyPlan(1009, True, (16, 9, 7), 2, 8)
MIXED = MixedRadixPlan((14, 20), 3, 2)
SINGLE = SingleCtaPlan(32, 16)
CLUSTER = ClusterPlan((16, 16, 16, 16), 4, 16, 1)
TWO_PASS = TwoPassPlan(16_432, (8, 13), (2, 79), (16, 16), (7, 3))
THREE_KERNEL = ThreeKernelPlan(20_011, (16, 16), (10, 16), 16, 8, 1, 8)


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        (TWO_FACTOR, {"warps": 1}, "must hold all"),
        (TWO_FACTOR, {"n1": 1}, "n1 must be at least 2, got 1"),
        (TWO_FACTOR, {"n1": 121}, "factors must be at most 120"),
        (TWO_FACTOR, {"groups": 0}, "groups must be at least 1, got 0"),
        (TWO_FACTOR, {"groups": 16}, "at most 15, got 16"),
        (TWO_FACTOR, {"groups": 9}, "registers beside them are more than"),
        (TWO_FACTOR, {"buffers": 9, "groups": 6}, "than the 232448 that a block has on sm_90a"),
        (TWO_FACTOR, {"n2": 31, "n1": 31}, "need an even length, got 961"),
        (HANKEL, {"length": 293, "buffers": 5}, "no registers for a k-tile's high-order terms"),
        (HANKEL, {"length": 255}, "need an odd prime, got 255"),
        (HANKEL, {"row_copies": 3}, r"row_copies must be one of \[1, 2\], got 3"),
        (HANKEL, {"buffers": 2}, "3 groups need as many buffers"),
        (HANKEL, {"buffers": 5, "wide_copies": False}, "or more and wide copies, got 5 in all"),
        (HANKEL, {"length": 1021, "row_copies": 1}, "at most 256 columns, got 512"),
        (HANKEL, {"groups": 4, "buffers": 8}, "registers beside them"),
        (HANKEL, {"buffers": 12}, "more than the 232448"),
        (HANKEL, {"groups": 1, "buffers": 1, "length": 1009}, "256 data registers per thread"),
        (CHIRP, {"radices": (200,)}, r"radices must be 2 to 4 numbers from 2 to 64, got \(200,\)"),
        (CHIRP, {"radices": (16, 8)}, "must be at least 199"),
        (CHIRP, {"radices": (32, 32), "warps": 16, "groups": 2}, "beside them are more than"),
        (LONG_CHIRP, {"groups": 4}, "registers beside them are more than"),
        (POWERS, {"radices": (16, 9, 8)}, "has not 1152 numbers"),
        (POWERS, {"length": 1001}, "of a prime 1001"),
        (POWERS, {"groups": 16}, "at most 15, got 16"),
        (MIXED, {"radices": (280,)}, "radices must be 2 to 4 numbers"),
        (MIXED, {"radices": (7, 41)}, "from 2 to 40, got .7, 41."),
        (MIXED, {"transforms": 0}, "transforms must be at least 1"),
        (MIXED, {"warps": 33}, "a block has at most 1024 threads"),
        (MIXED, {"radices": (36, 37), "warps": 20}, "registers beside them"),
        (MIXED, {"transforms": 120}, "than the 232448 that a block"),
        (SINGLE, {"last_radix": 12}, r"powers of two, got \(32, 12\)"),
        (SINGLE, {"radix": 64}, r"at most 32, a multiple of the last one, .* got \(64, 16\)"),
        (SINGLE, {"last_radix": 32}, "beside them are more than"),
        (CLUSTER, {"cluster_size": 3}, "must be a power of two from 2 to 8, got 3"),
        (CLUSTER, {"cluster_size": 16}, "must be a power of two from 2 to 8, got 16"),
        (CLUSTER, {"radices": (16, 16, 16, 12)}, "powers of two"),
        (CLUSTER, {"warps": 1}, "whole butterflies"),
        (CLUSTER, {"warps": 64}, "at most 1024 threads, got 2048"),
        (CLUSTER, {"blocks_per_sm": 2}, "registers beside them are more than"),
        (CLUSTER, {"cluster_size": 2}, "registers beside them are more than"),
        (TWO_PASS, {"length": 16_431}, "are not 16431"),
        (TWO_PASS, {"columns": (104, 1)}, "got .104, 1."),
        (TWO_PASS, {"lines": (79, 2)}, "a first radix is at most"),
        (TWO_PASS, {"length": 104 * 262, "lines": (2, 131)}, "or a prime up to 127, got .2, 131."),
        (TWO_PASS, {"widths": (16, 24)}, "tiles of .16, 32. columns"),
        (TWO_PASS, {"block_warps": (0, 2)}, "whole warps are needed"),
        (TWO_PASS, {"block_warps": (32, 2)}, "registers beside them"),
        (TWO_PASS, {"length": 104 * 79 * 32, "lines": (32, 79)}, "than the 232448 that a block"),
        (THREE_KERNEL, {"length": 20_481}, "must be at least 40961"),
        (THREE_KERNEL, {"columns": (1, 16)}, "from 2 to 64, got .1, 16."),
        (THREE_KERNEL, {"radices": (160,)}, "radices must be two of columns and 2 to 4 of lines"),
        (THREE_KERNEL, {"width": 24}, "whole tiles and threads of 24"),
        (THREE_KERNEL, {"radices": (32, 32, 32)}, "lines of at most 16384 numbers"),
        (THREE_KERNEL, {"columns": (64, 64), "width": 16}, "than the 232448 that a block"),
        (THREE_KERNEL, {"tile_warps": 32}, "registers beside them"),
        (THREE_KERNEL, {"groups": 16, "warps": 2}, "at most 15, got 16"),
    ],
)  # fmt: skip
def test_an_illegal_plan_says_why(plan: Plan, change: dict[str, Any], message: str) -> None:
    row, arch = PRECISIONS["3xfp16"], arch_for(HOPPER)
    check_dft_plan(plan, row, arch)
    with pytest.raises(PlanError, match=message):
        check_dft_plan(replace(plan, **change), row, arch)
