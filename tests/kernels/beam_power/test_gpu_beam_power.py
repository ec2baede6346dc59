"""Beam power on a GPU: every power of every precision, with the result poisoned first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, beam_power, launched
from argand.beam_power.few_beams_plan import FewBeamsPlan
from argand.beam_power.plan import choose_plan
from argand.beam_power.sm90_plan import PROMOTED_ANTENNAS, WgmmaBeamPowerPlan
from argand.runtime.plan import WGMMA_TARGET

from tests.kernels.beam_power.beams import EXACT_CASES, Beams, beams
from tests.kernels.beam_power.gpu_beams import CASES

pytestmark = pytest.mark.gpu


def moved(cp: Any, x: Any) -> Any:
    return Pairs(cp.asarray(x.array), x.format) if isinstance(x, Pairs) else cp.asarray(x)


def detected(cp: Any, one: Beams, precision: str) -> Any:
    """The power in memory that held NaN, on the host."""
    problem = one.problem(precision)
    out = cp.full(problem.shape, np.nan, problem.dtype)
    w, x = moved(cp, one.weights), moved(cp, one.samples)
    assert beam_power(w, x, precision=precision, out=out, **one.options) is out
    return out.get()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", CASES)
def test_power_is_the_direct_sum_within_the_bound(cp: Any, name: str, precision: str) -> None:
    one = CASES[name]
    found, bound = detected(cp, one, precision), one.allowed(precision, "cuda")
    off = np.abs(found - one.power())
    assert np.all(off <= bound), (np.nanmax(off / bound), np.isnan(off).sum())


@pytest.mark.parametrize("precision", ["3xtf32", "3xfp16", "fp16", "bf16"])
def test_our_kernel_computes_it(cp: Any, precision: str) -> None:
    for name in ("a tile", "int8", "odd int8"):
        with launched() as names:
            detected(cp, CASES[name], precision)
        own = precision in ("fp16", "bf16") and "int8" in name
        assert any("beam_power" in one and ("int8" in one) == own for one in names), names


@pytest.mark.parametrize(
    ("parts", "warps", "lane_times"), [(1, 2, 2), (2, 2, 2), (4, 1, 4), (8, 1, 1), (1, 5, 2)]
)
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *((name, precision) for precision in ("fp32", "3xtf32", "3xfp16", "bf16") for name in (
            "one of each", "odd", "few of odd lines", "few of long bins", "a bin of parts",
            "stokes of shared weights", "few stokes of many antennas",
        )),
        ("odd fp16 pairs", "fp16"), ("bf16 stokes", "bf16"), ("few int8 stokes", "bf16"),
        ("odd int8", "fp16"),
    ],
)  # fmt: skip
def test_few_beams_are_those_of_fp32(
    cp: Any, name: str, precision: str, parts: int, warps: int, lane_times: int
) -> None:
    """At any precision, and by any number of parts of the antennas and length of tiles."""
    from argand.beam_power.gpu import PLAN_OVERRIDE, form_of

    one = CASES[name]
    problem = one.problem(precision)
    _, samples = form_of(PRECISIONS[precision], one.samples)
    width = problem.beams + problem.beams % 2
    plan = FewBeamsPlan(width, parts, 2, 1, samples, problem.polarizations, warps, lane_times)
    with PLAN_OVERRIDE.use(plan), launched() as names:
        found = detected(cp, one, precision)
    assert any("beam_power_fp32" in kernel and samples in kernel for kernel in names), names
    assert np.all(np.abs(found - one.power()) <= one.allowed("fp32", "cuda"))


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "fp16", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_of_every_card_computes_it(cp: Any, name: str, precision: str) -> None:
    """By mma.sync, also where the card at hand has wgmma."""
    from argand.beam_power.gpu import PLAN_OVERRIDE, form_of
    from argand.device import gpu

    one = CASES[name]
    row, samples = form_of(PRECISIONS[precision], one.samples)
    problem = one.problem(precision)
    arch = gpu(0).require_arch()
    plan = choose_plan(row, samples, problem.polarizations, 1, problem.beams, True, arch)
    with PLAN_OVERRIDE.use(plan), launched() as names:
        found = detected(cp, one, precision)
    assert any("sm80" in kernel for kernel in names)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


@pytest.mark.parametrize(
    ("beams_of_block", "warpgroups", "blocks"), [(64, 1, 2), (64, 2, 1), (128, 1, 1), (128, 2, 1)]
)
def test_every_plan_of_wgmma_computes_the_same(
    cp: Any, beams_of_block: int, warpgroups: int, blocks: int
) -> None:
    from argand.beam_power.gpu import PLAN_OVERRIDE, form_of
    from argand.device import gpu

    if gpu(0).target != WGMMA_TARGET:
        pytest.skip("wgmma is Hopper's")
    for name in ("a tile", "long bins", "odd", "int8", "odd int8", "odd fp16 pairs", "no sums"):
        one = CASES[name]
        for precision in ("fp16", "bf16"):
            _, samples = form_of(PRECISIONS[precision], one.samples)
            plan = WgmmaBeamPowerPlan(samples, 1, beams_of_block, warpgroups, blocks, 3)
            with PLAN_OVERRIDE.use(plan), launched() as names:
                found = detected(cp, one, precision)
            assert any("sm90" in kernel for kernel in names)
            assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda")), name


@pytest.mark.parametrize(
    ("beams_of_block", "warpgroups", "blocks"), [(64, 1, 1), (64, 2, 1), (32, 1, 2), (32, 2, 1)]
)
def test_every_plan_of_two_terms_computes_the_same(
    cp: Any, beams_of_block: int, warpgroups: int, blocks: int
) -> None:
    from argand.beam_power.gpu import PLAN_OVERRIDE
    from argand.device import gpu

    if gpu(0).target != WGMMA_TARGET:
        pytest.skip("wgmma is Hopper's")
    for name in ("a tile", "long bins", "odd", "no sums", "promoted", "promoted once"):
        one = CASES[name]
        promoted = one.problem("3xtf32").antennas > PROMOTED_ANTENNAS
        plan = WgmmaBeamPowerPlan(
            "complex64", 1, beams_of_block, warpgroups, blocks, 2, promoted=promoted
        )
        with PLAN_OVERRIDE.use(plan), launched() as names:
            found = detected(cp, one, "3xtf32")
        assert any("sm90" in kernel for kernel in names)
        assert np.all(np.abs(found - one.power()) <= one.allowed("3xtf32", "cuda")), name


@pytest.mark.parametrize(
    ("precision", "beams_of_block"), [("3xtf32", 64), ("tf32", 64), ("tf32", 128), ("fp16", 128)]
)
def test_weights_that_come_in_turn_make_the_same(
    cp: Any, precision: str, beams_of_block: int
) -> None:
    from argand.beam_power.gpu import PLAN_OVERRIDE, form_of
    from argand.device import gpu

    if gpu(0).target != WGMMA_TARGET:
        pytest.skip("wgmma is Hopper's")
    names = ["a tile", "shared weights", "odd", "many antennas", "promoted", "long bins"]
    stokes = ["stokes of many antennas", "stokes of shared weights", "int8 stokes", "bf16 stokes"]
    for name in [*names, *stokes, "odd int8", "odd fp16 pairs"]:
        one = CASES[name]
        row, samples = form_of(PRECISIONS[precision], one.samples)
        problem = one.problem(precision)
        promoted = row.terms > 1 and problem.antennas > PROMOTED_ANTENNAS
        beams_of = min(beams_of_block, 128 // row.terms // problem.polarizations)
        plan = WgmmaBeamPowerPlan(
            samples, 1, beams_of, 2, 1, 3, polarizations=problem.polarizations,
            promoted=promoted, weight_stages=2,
        )  # fmt: skip
        with PLAN_OVERRIDE.use(plan), launched() as kernels:
            found = detected(cp, one, precision)
        assert any("_r2_" in kernel for kernel in kernels)
        assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda")), name


@pytest.mark.parametrize("name", EXACT_CASES)
def test_beams_of_integers_are_exact(cp: Any, name: str) -> None:
    """Only squares and their sums are rounded."""
    from argand.device import gpu

    one = EXACT_CASES[name]
    with launched() as names:
        found = detected(cp, one, "exact")
    ours = gpu(0).target == WGMMA_TARGET and one.detect == "power"
    assert any("exact_int8" in kernel for kernel in names) == ours, names
    np.testing.assert_allclose(found, one.power(), rtol=2.0**-24 * (2 * one.integrate + 4))


@pytest.mark.parametrize("beams_of", [2, 130])
def test_the_smallest_integers_are_exact(cp: Any, beams_of: int) -> None:
    """-128 has no negative of 8 bits."""
    w, x = (
        Pairs(cp.full(shape, -128, np.int8), "int8") for shape in ((beams_of, 512, 2), (512, 70, 2))
    )
    found = beam_power(w, x, precision="exact").get()
    np.testing.assert_array_equal(found, np.full((beams_of, 70), 2.0**48))


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_stokes_are_computed_by_wgmma(cp: Any, precision: str) -> None:
    from argand.beam_power.gpu import PLAN_OVERRIDE, form_of
    from argand.device import gpu

    if gpu(0).target != WGMMA_TARGET:
        pytest.skip("wgmma is Hopper's")
    for name in (name for name in CASES if "stokes" in name and "many" not in name):
        one = CASES[name]
        _, samples = form_of(PRECISIONS[precision], one.samples)
        plan = WgmmaBeamPowerPlan(samples, 1, 64, 2, 1, 3, polarizations=2)
        with PLAN_OVERRIDE.use(plan), launched() as names:
            found = detected(cp, one, precision)
        assert any("sm90" in kernel and "_p2_" in kernel for kernel in names), names
        assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda")), name


def test_rounding_is_that_of_the_cpu(cp: Any) -> None:
    """Both round alike, so they differ by less than they err."""
    for case in ("a tile", "int8"):
        one = CASES[case]
        truth = one.power()
        for name in ("tf32", "fp16", "bf16"):
            found = detected(cp, one, name)
            model = beam_power(one.weights, one.samples, precision=name, **one.options)
            assert np.abs(found - model).mean() < np.abs(model - truth).mean() / 2


@pytest.mark.parametrize("precision", ["fp32", "3xtf32", "fp16", "bf16"])
def test_what_is_not_finite_stays_in_its_bin(cp: Any, precision: str) -> None:
    one = beams(3, 5, 350, 80, leading=(2,))
    one.samples[1, 2, 90] = one.samples[0, 0, 330] = np.nan
    expected = np.ones((2, 3, 4), bool)
    expected[1, :, 1] = False
    np.testing.assert_array_equal(np.isfinite(detected(cp, one, precision)), expected)


@pytest.mark.parametrize("precision", ["fp32", "3xtf32", "bf16"])
def test_layouts_are_read_as_they_are(cp: Any, precision: str) -> None:
    one = beams(20, 30, 200, 8, leading=(2,), seed=20)
    truth = detected(cp, one, precision)
    w, x = cp.asarray(one.weights), cp.asarray(one.samples)
    turned = cp.ascontiguousarray(x.transpose(2, 1, 0)).transpose(2, 1, 0)
    wide = cp.full((2, 30, 203), cp.nan, x.dtype)
    wide[..., 1:201] = x
    rows = cp.repeat(x, 2, axis=1)
    strided = cp.full((20, 4, 25), np.nan, np.float32)
    for same in (turned, wide[..., 1:201], rows[:, ::2], x[::-1][::-1]):
        found = beam_power(w, same, precision=precision, **one.options)
        np.testing.assert_array_equal(found.get(), truth)
    out = strided.transpose(1, 0, 2)[::2]
    assert beam_power(w, x, precision=precision, out=out, **one.options) is out
    np.testing.assert_array_equal(out.get(), truth)
    assert bool(cp.isnan(strided[:, 1::2]).all())


def test_pairs_at_odd_addresses_are_read(cp: Any) -> None:
    one = CASES["odd int8"]
    truth = detected(cp, one, "fp16")
    parts = one.samples.array
    held = cp.zeros(parts.size + 1, np.int8)
    odd = held[1:].reshape(parts.shape)
    odd[...] = cp.asarray(parts)
    w = cp.asarray(one.weights)
    found = beam_power(w, Pairs(odd, "int8"), precision="fp16", **one.options)
    np.testing.assert_array_equal(found.get(), truth)


def test_exact_weights_at_odd_addresses_are_read(cp: Any, rng: np.random.Generator) -> None:
    parts = rng.integers(-128, 128, (20, 30, 2), np.int8)
    samples = Pairs(cp.asarray(rng.integers(-128, 128, (30, 64, 2), np.int8)), "int8")
    held = cp.zeros(parts.size + 1, np.int8)
    odd = held[1:].reshape(parts.shape)
    odd[...] = cp.asarray(parts)
    assert odd.data.ptr % 2
    options: dict[str, Any] = {"precision": "exact", "integrate": 8}
    expected = beam_power(Pairs(cp.asarray(parts), "int8"), samples, **options)
    found = beam_power(Pairs(odd, "int8"), samples, **options)
    np.testing.assert_array_equal(found.get(), expected.get())


def test_devices_are_not_mixed(cp: Any) -> None:
    w, x = np.ones((2, 3)), np.ones((3, 4))
    with pytest.raises(TypeError, match="must all be NumPy arrays or all be CuPy arrays"):
        beam_power(cp.asarray(w), x)
    assert beam_power(cp.ones((0, 3)), cp.ones((3, 4))).shape == (0, 4)
    np.testing.assert_array_equal(beam_power(cp.ones((2, 0)), cp.ones((0, 4))).get(), 0)
