"""The kernels of beam power, without a GPU: they compile without spills, and their blocks fit."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.beam_power.int8_plan import (
    Int8BeamPowerPlan,
    check_int8_plan,
    choose_int8_plan,
    int8_kernel_name,
    int8_pack_name,
    int8_pack_source,
    int8_power_source,
)
from argand.beam_power.plan import (
    LARGEST_GROUP,
    SAMPLE_BYTES,
    SAMPLES,
    BeamPowerPlan,
    Samples,
    beam_power_source,
    check_plan,
    choose_plan,
    kernel_name,
    pack_name,
    pack_source,
    time_tiles,
)
from argand.beam_power.sm90_plan import (
    WgmmaBeamPowerPlan,
    check_wgmma_plan,
    choose_wgmma_plan,
    wgmma_kernel_name,
    wgmma_pack_name,
    wgmma_pack_source,
    wgmma_power_source,
)
from argand.device import ARCHITECTURES, Arch, arch_for
from argand.runtime.plan import WGMMA_TARGET, PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean

HOPPER = arch_for(90)
KINDS: tuple[tuple[str, Samples], ...] = (
    ("tf32", "complex64"), ("3xtf32", "complex64"), ("bf16", "complex64"), ("fp16", "half"),
    ("fp16", "int8"), ("bf16", "half"), ("bf16", "int8"),
)  # fmt: skip
"""Precisions at which the kernel computes, and samples that it reads at them."""
SHORT = ((1, True, 16, 64), (2, False, 1, 64))
"""Polarizations, alignment, groups and beams of the short run."""
FORMS = (
    tuple(itertools.product((1, 2), (True, False), (1, 2, 4, 8, 16, 32), (16, 32, 64, 128)))
    if EXHAUSTIVE
    else SHORT
)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["tf32", "3xtf32", "fp16", "bf16"])
def test_packing_compiles(arch: Arch, name: str) -> None:
    row = PRECISIONS[name]
    assert_clean(pack_source(row), arch.target, pack_name(row))


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_kernels_compile(
    arch: Arch, kind: tuple[str, Samples], form: tuple[int, bool, int, int]
) -> None:
    name, samples = kind
    polarizations, aligned, group, beams = form
    row = PRECISIONS[name]
    group = min(group, LARGEST_GROUP[samples])
    plan = choose_plan(row, samples, polarizations, group, beams, aligned, arch)
    check_plan(plan, row, arch)
    assert_clean(beam_power_source(plan, row), arch.target, kernel_name(plan, row))


@pytest.mark.parametrize("beams", [64, 128])
@pytest.mark.parametrize("group", (1, 2, 4, 8, 16) if EXHAUSTIVE else (1, 16))
@pytest.mark.parametrize(("name", "samples"), [kind for kind in KINDS if kind[0] != "3xtf32"])
def test_kernels_by_wgmma_compile(name: str, samples: Samples, group: int, beams: int) -> None:
    own = (1, 128) if KINDS.index((name, samples)) % 2 else (16, 64)
    if ((group, beams) != own or (name, samples) == ("bf16", "half")) and not EXHAUSTIVE:
        return  # every other kind has the other size; halves are those of fp16, but for scales
    row = PRECISIONS[name]
    plan = choose_wgmma_plan(row, samples, group, beams, 64, group != 2, HOPPER)
    assert plan is not None
    assert plan.beams == beams
    assert_clean(wgmma_power_source(plan, row), HOPPER.target, wgmma_kernel_name(plan, row))
    assert_clean(wgmma_pack_source(plan, row), HOPPER.target, wgmma_pack_name(plan, row))


@pytest.mark.parametrize("group", (1, 2, 4, 8, 16) if EXHAUSTIVE else (16,))
@pytest.mark.parametrize(("name", "samples"), [kind for kind in KINDS if kind[0] != "3xtf32"])
def test_stokes_kernels_by_wgmma_compile(name: str, samples: Samples, group: int) -> None:
    plan = choose_wgmma_plan(PRECISIONS[name], samples, group, 100, 64, True, HOPPER, 2)
    assert plan is not None
    assert (plan.beams, plan.polarizations, plan.weight_stages) == (64, 2, 0)
    if not EXHAUSTIVE:
        return  # weights in turn take the most registers
    source = wgmma_power_source(plan, PRECISIONS[name])
    assert_clean(source, WGMMA_TARGET, wgmma_kernel_name(plan, PRECISIONS[name]))


@pytest.mark.parametrize(
    ("beams", "antennas", "polarizations", "expected"),
    [
        (64, 128, 1, (64, True, 0)), (64, 64, 1, (64, False, 0)), (1000, 256, 1, (64, True, 2)),
        (20, 64, 1, (32, False, 0)), (64, 64, 2, (32, False, 0)), (64, 100, 2, (32, True, 0)),
        (33, 5000, 1, (64, True, 2)), (46, 440, 2, (32, True, 2)),
    ],
)  # fmt: skip
def test_kernels_of_two_terms_by_wgmma_compile(
    beams: int, antennas: int, polarizations: int, expected: tuple[int, bool, int]
) -> None:
    row = PRECISIONS["3xtf32"]
    plan = choose_wgmma_plan(row, "complex64", 16, beams, antennas, True, HOPPER, polarizations)
    assert plan is not None
    assert (plan.beams, plan.promoted, plan.weight_stages) == expected
    if EXHAUSTIVE or expected[1:] == (True, 0):  # promoted, of the most registers
        assert_clean(wgmma_power_source(plan, row), HOPPER.target, wgmma_kernel_name(plan, row))
        assert_clean(wgmma_pack_source(plan, row), HOPPER.target, wgmma_pack_name(plan, row))
    assert choose_wgmma_plan(row, "complex64", 16, 32, 600, True, HOPPER) is None


@pytest.mark.parametrize(
    ("changed", "name", "said"),
    [
        ({"beams": 48}, "fp16", "beams must be 32, 64 or 128"),
        ({"polarizations": 2, "beams": 128, "blocks": 1}, "fp16", "polarizations must be at most"),
        ({"samples": "complex64", "beams": 128, "blocks": 2}, "3xtf32", "must be at most 64"),
        ({"promoted": True}, "fp16", "sums of two terms are promoted above 64"),
        ({"group": 32}, "fp16", "group must be a power of two up to 16"),
        ({"blocks": 8}, "fp16", "too many registers"),
        ({"samples": "complex64"}, "3xtf32", "the registers of 384 threads"),
        ({}, "tf32", "tf32 has no operands of int8"),
    ],
)
def test_other_plans_of_wgmma_are_refused(changed: dict[str, Any], name: str, said: str) -> None:
    plan = replace(WgmmaBeamPowerPlan("int8", 16), **changed)
    with pytest.raises(PlanError, match=said):
        check_wgmma_plan(plan, PRECISIONS[name], 64, HOPPER)
    with pytest.raises(PlanError, match="wgmma needs sm_90a, got sm_80"):
        check_wgmma_plan(WgmmaBeamPowerPlan("int8", 16), PRECISIONS["fp16"], 64, ARCHITECTURES[0])


@pytest.mark.parametrize(
    ("beams", "antennas", "expected"),
    [(1000, 256, (128, 2, 1)), (64, 64, (64, 1, 3)), (64, 500, (64, 1, 2)), (200, 900, (64, 2, 1))],
)
def test_the_kernel_of_int8_compiles(
    beams: int, antennas: int, expected: tuple[int, int, int]
) -> None:
    plan = choose_int8_plan(16, beams, antennas, True, HOPPER)
    assert plan is not None
    assert (plan.beams, plan.warpgroups, plan.blocks) == expected
    if EXHAUSTIVE or beams == 1000:  # of the most registers
        assert_clean(int8_power_source(plan), WGMMA_TARGET, int8_kernel_name(plan))
        assert_clean(int8_pack_source(plan), WGMMA_TARGET, int8_pack_name(plan))


@pytest.mark.parametrize(
    ("changed", "antennas", "said"),
    [
        ({"beams": 32}, 64, "beams must be 64 or 128"), ({"group": 32}, 64, "up to 16"),
        ({"blocks": 4}, 64, "too many registers"), ({}, 4000, "bytes of shared memory"),
        ({}, 65536, "up to 65535 antennas"),
    ],
)  # fmt: skip
def test_other_plans_of_int8_are_refused(changed: dict[str, int], antennas: int, said: str) -> None:
    plan = replace(Int8BeamPowerPlan(16), **changed)
    with pytest.raises(PlanError, match=said):
        check_int8_plan(plan, antennas, HOPPER)
    with pytest.raises(PlanError, match="wgmma of int8 needs sm_90a, got sm_80"):
        check_int8_plan(Int8BeamPowerPlan(16), 64, ARCHITECTURES[0])


@pytest.mark.parametrize("group", (1, 2, 16) if EXHAUSTIVE else (16,))
@pytest.mark.parametrize(("name", "samples"), KINDS)
def test_weights_of_two_polarizations_come_in_turn(name: str, samples: Samples, group: int) -> None:
    row = PRECISIONS[name]
    plan = choose_wgmma_plan(row, samples, group, 46, 2000, True, HOPPER, 2)
    assert plan is not None
    assert (plan.beams, plan.weight_stages) == (64 // row.terms, 2)
    if EXHAUSTIVE or (name, samples) == ("fp16", "half"):  # with scales, and the most registers
        assert_clean(wgmma_power_source(plan, row), WGMMA_TARGET, wgmma_kernel_name(plan, row))


@pytest.mark.parametrize(("name", "samples"), [("3xtf32", "complex64"), ("fp16", "int8")])
def test_weights_that_come_in_turn_compile(name: str, samples: Samples) -> None:
    row, wide = PRECISIONS[name], PRECISIONS[name].terms > 1
    plan = WgmmaBeamPowerPlan(
        samples, 16, 64 if wide else 128, 2, 1, promoted=wide, weight_stages=4
    )
    check_wgmma_plan(plan, row, 1 << 16, HOPPER)
    if EXHAUSTIVE or wide:
        assert_clean(wgmma_power_source(plan, row), WGMMA_TARGET, wgmma_kernel_name(plan, row))
    with pytest.raises(PlanError, match="in turn to two warpgroups"):
        check_wgmma_plan(replace(plan, warpgroups=1), row, 1 << 16, HOPPER)


@pytest.mark.parametrize(("name", "samples"), KINDS)
def test_plans_fit_every_architecture(name: str, samples: Samples) -> None:
    for arch in ARCHITECTURES:
        for group in (1, LARGEST_GROUP[samples]):
            for beams in (1, 40, 1000):
                for polarizations in (1, 2):
                    plan = choose_plan(
                        PRECISIONS[name], samples, polarizations, group, beams, True, arch
                    )
                    check_plan(plan, PRECISIONS[name], arch)


@pytest.mark.parametrize(
    ("changed", "name", "said"),
    [
        ({"samples": "complex64"}, "fp16", "samples of complex64 are not scaled"),
        ({}, "tf32", "tf32 has no operands of int8"),
        ({"group": 3}, "fp16", "group must be a power of two up to 32"),
        ({"warp_rows": 4}, "fp16", "leave rows of 128 bytes"),
        ({"row_tiles": 3}, "fp16", "row_tiles must be 1 or 2"),
        ({"warps": 16}, "fp16", "warps 4 or 8"),
        ({"stages": 40}, "fp16", "bytes of shared memory"),
        ({}, "fp32", "tensor cores have no operands of fp32"),
    ],
)
def test_other_plans_are_refused(changed: dict[str, int], name: str, said: str) -> None:
    plan = replace(BeamPowerPlan("int8", 1, 16, 4, 2, 2, 3), **changed)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=said):
        check_plan(plan, PRECISIONS[name], ARCHITECTURES[0])


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("times", [32, 64, 128])
def test_tiles_hold_whole_bins_or_slices(samples: Samples, times: int) -> None:
    for integrate in (*range(1, 200), 1000, 4096):
        tiles = time_tiles(times, integrate, samples, LARGEST_GROUP[samples])
        if tiles.slices == 1:
            assert 1 <= tiles.bins * integrate <= times
            assert integrate % tiles.group == 0
            step = tiles.bins * integrate
        else:
            assert tiles.slice <= times
            assert (tiles.slices - 1) * tiles.slice < integrate <= tiles.slices * tiles.slice
            assert tiles.slice * SAMPLE_BYTES[samples] % 16 == 0
            step = integrate
        assert tiles.aligned == (step * SAMPLE_BYTES[samples] % 16 == 0)
