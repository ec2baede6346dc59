"""The choice among plans of Hermitian products whose times on an H200 were recorded.

``recorded_triangles.csv`` has all square tiles of both families at 11 drawn shapes of 17 to 64
rows, at tf32 and fp16; at tf32 those by mma.sync are times in rows of calls. The models of
`argand.gemm` are fitted to them. Of shapes of 70 to 123 rows, and of 12 of 421 to 1531 rows and
short k at 3xfp16, it has times of near candidates in rows of calls, of which those of kernels in
tf32 are at tf32 and 3xtf32. Of six large shapes at tf32 it has those of the same tile, packed
beforehand and while it is multiplied.

``recorded_few_rows.csv`` has times of tiles by mma.sync, of one warp and of several, and of numbers
of slices, near the fastest of 40 shapes of 9 to 44 rows and 67 to 15881 samples.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.heuristics import cut_tiles, estimated_microseconds, plan_mma

from tests.kernels.gemm.sm80.mma_plans import mma_plan

RECORD = Path(__file__).with_name("recorded_triangles.csv")
SM_COUNT = 132
Times = dict[str, dict[str, float]]


def recorded() -> dict[str, Times]:
    """Microseconds of each plan, by shape (batch x rows x k) and precision."""
    found: dict[str, Times] = defaultdict(lambda: defaultdict(dict))
    with RECORD.open() as file:
        for row in csv.DictReader(file):
            found[row["shape"]][row["precision"]][row["choice"]] = float(row["time_us"])
    return found


def in_tf32(precision: str) -> str:
    """The precision of kernels of tf32 that may compute one of 16 bits."""
    return "tf32" if precision == "bf16" else precision.replace("fp16", "tf32")


def chosen(shape: str, precision: str) -> tuple[str, str]:
    """The plan that a call takes, as recorded, and the precision of its kernels."""
    batch, n, k = map(int, shape.split("x"))
    row, arch, odd = PRECISIONS[precision], arch_for(90), k % 2 == 1
    rows, columns = (
        OperandTraits(
            copyable=not odd, odd_pitch=odd, odd_batches=odd and n % 2 == 1, conjugated=conjugated
        )
        for conjugated in (False, True)
    )
    sizes = GemmSizes(batch, n, n, k, triangle=True)
    choice = choose(Question(row, sizes, rows, columns), arch, SM_COUNT)
    own = in_tf32(precision) if choice.in_tf32 else precision
    if choice.wgmma is not None:
        return choice.name.removesuffix(", in tf32"), own
    tile = mma_plan(
        PRECISIONS[own], arch, batch=batch, m=n, n=n, k=k, sm_count=SM_COUNT, b_k_major=True,
        vector=2 - odd, triangle=True,
    )  # fmt: skip
    return f"mma.sync {tile.block_m}x{tile.block_n}x{tile.block_k}", own


UNRECORDED = {("168x33x6000", "mma.sync 48x48x48"), ("88x598x36", "mma.sync 32x32x32")}
"""The only choices of which the record has no time; `recorded_few_rows.csv` has those near the
first, and the second is of faster kernels than were recorded."""


def test_the_choice_is_hardly_slower_than_the_fastest() -> None:
    for shape, by_precision in recorded().items():
        for precision in by_precision.keys() - {"3xtf32"}:
            name, own = chosen(shape, precision)
            times = by_precision[own].items()
            time = next((us for one, us in times if one.startswith(name)), None)
            if time is None:  # tiles of one warp came later
                assert (shape, name.split(" 3 stages")[0]) in UNRECORDED
                continue
            fastest = min(
                us
                for one in {precision, in_tf32(precision)} & by_precision.keys()
                for us in by_precision[one].values()
            )
            most = 1.1 if precision == "3xfp16" else 1.2
            assert time < most * fastest, (shape, precision, name)


def test_fused_packing_is_chosen_where_it_is_faster() -> None:
    shapes = 0
    for shape, by_precision in recorded().items():
        times = by_precision.get("tf32", {})
        if not any(name.endswith("fused packing") for name in times):
            continue
        shapes += 1
        name, _ = chosen(shape, "tf32")
        assert times[name] < 1.01 * min(times.values()), (shape, name)
    assert shapes == 6


def test_mirrored_rows_in_the_middle_of_a_sector_take_tiles_of_64() -> None:
    """Rows are stored in pieces: 126 us in place of 144 and of 149 on an H200, at tf32."""
    for shape in ("19x1279x70", "16x1401x94"):
        for precision in ("tf32", "fp16"):
            name, own = chosen(shape, precision)
            assert (name.startswith("wgmma 64x64x32 5 stages planar"), own) == (True, "tf32"), name


def test_the_tile_of_few_rows_loses_little_to_the_fastest() -> None:
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    with RECORD.with_name("recorded_few_rows.csv").open() as file:
        for line in csv.DictReader(file):
            case = line["shape"], line["op"], line["precision"]
            found[case][line["plan"].removeprefix("mma.sync ")] = float(line["time_us"])
    regrets = []
    for (shape, op, precision), times in found.items():
        batch, n, k = map(int, shape.split("x"))
        row, arch, k_major = PRECISIONS[in_tf32(precision)], arch_for(90), op == "N"
        traits = OperandTraits(copyable=(k if k_major else n) % 2 == 0, k_major=k_major)
        sizes = GemmSizes(batch, n, n, k, triangle=True)
        question = Question(row, sizes, traits, traits)
        estimates = {}
        for tile in cut_tiles(row, arch, sizes, SM_COUNT):
            if tile.block_m == tile.block_n:
                plan = plan_mma(question, arch, SM_COUNT, tile)
                name = plan.name.replace(", lower triangle", "")
                estimates[name] = estimated_microseconds(plan, row, SM_COUNT, sizes)
        assert set(times) <= set(estimates)
        taken = min(times, key=estimates.__getitem__)
        regrets.append(times[taken] / min(times.values()))
    assert len(regrets) == 78
    assert np.mean(regrets) < 1.03
    assert np.quantile(regrets, 0.9) < 1.1
    assert max(regrets) < 1.35
