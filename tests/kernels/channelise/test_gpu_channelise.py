"""Filter banks on a GPU: every spectrum of every way to compute, with the result poisoned first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, ChanneliseProblem, channelise, launched, pairs
from argand.channelise.plan import plan_channelise
from argand.channelise.sm90_plan import specialized
from argand.device import gpu

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.channelise.banks import Bank, bank
from workflow.accuracy.channelise_accuracy import assess_channelise, channelise_reference

pytestmark = pytest.mark.gpu
BANKS = {
    "1024 channels": bank(1024, 8, 70, spare=5),
    "1024 channels, int8": bank(1024, 8, 41, kind="int8 pairs", leading=(3,), seed=1),
    "1024 channels, int16": bank(1024, 8, 19, kind="int16 pairs", seed=2),
    "1024 real channels": bank(1024, 8, 50, kind="float32", leading=(2,), spare=3, seed=3),
    "1024 real channels, int8": bank(1024, 8, 33, kind="int8", seed=4),
    "oversampled": bank(1024, 8, 75, oversampling="4/3", seed=5),
    "oversampled int8": bank(1024, 8, 75, oversampling="8/7", kind="int8 pairs", seed=6),
    "many phases": bank(64, 6, 200, oversampling="32/27", leading=(2,), seed=7),
    "twice": bank(256, 4, 100, oversampling=2, kind="complex128", seed=8),
    "real, oversampled": bank(64, 4, 90, oversampling="4/3", kind="float32", seed=9),
    "4096 channels": bank(4096, 8, 9, seed=10),
    "2048 channels": bank(2048, 8, 21, seed=11),
    "512 channels": bank(512, 8, 77, leading=(2, 2), seed=12),
    "64 channels": bank(64, 8, 300, leading=(5,), seed=13),
    "16 channels": bank(16, 4, 500, seed=14),
    "2 channels": bank(2, 3, 99, seed=15),
    "8 channels": bank(8, 5, 999, leading=(3,), spare=3, seed=36),
    "8 real channels": bank(8, 9, 700, kind="int8", leading=(2,), spare=5, seed=37),
    "11 channels, int8": bank(11, 12, 300, kind="int8 pairs", seed=38),
    "9 channels, oversampled": bank(9, 70, 431, oversampling="9/7", leading=(3,), seed=39),
    "14 real channels, oversampled": bank(14, 6, 400, oversampling="7/4", kind="int16", seed=40),
    "5 real channels": bank(5, 2, 260, kind="float32", leading=(2,), spare=1, seed=41),
    "12 channels": bank(12, 5, 99, oversampling="4/3", seed=16),
    "1000 channels": bank(1000, 8, 30, oversampling="5/4", seed=17),
    "1536 channels": bank(1536, 16, 13, seed=18),
    "130 channels": bank(130, 6, 50, seed=19),
    "one tap": bank(1024, 1, 50, seed=20),
    "32 taps": bank(32, 32, 70, seed=21),
    "24 taps, real": bank(64, 24, 60, kind="int8", seed=29),
    "32 taps, oversampled": bank(48, 32, 60, oversampling="4/3", seed=34),
    "a prime, oversampled": bank(74, 5, 61, oversampling=2, kind="int16 pairs", seed=35),
    "184 real channels, oversampled": bank(
        184, 5, 61, oversampling="8/7", kind="float32", leading=(2,), seed=42
    ),
    "1288 channels, oversampled": bank(1288, 3, 9, oversampling="4/3", kind="int8 pairs", seed=43),
    "one spectrum": bank(1024, 8, 1, seed=22),
    "8192 real channels": bank(8192, 4, 7, kind="float32", seed=23),
    "a prime": bank(37, 3, 60, leading=(2,), seed=24),
    "too long": bank(8192, 2, 7, kind="int8 pairs", seed=25),
    "many taps": bank(64, 40, 30, seed=26),
    "odd and real": bank(15, 4, 40, kind="float64", seed=27),
    "odd hop and real": bank(12, 4, 50, oversampling="4/3", kind="float32", seed=28),
}
OTHERS = (
    "a prime", "a prime, oversampled", "184 real channels, oversampled",
    "1288 channels, oversampled", "too long", "many taps",
)  # fmt: skip
"""Banks that the kernel does not take."""


def one_chunk(count: int, apart: int, plan: Any, resident: int) -> tuple[int, int]:
    """Stand in for `chunks_of`, so that a block has all spectra of a row."""
    return 1, -(-count // plan.batch)


def problem_of(one: Bank, precision: str) -> ChanneliseProblem:
    x = one.samples
    return ChanneliseProblem(
        x.shape[:-1], x.shape[-1], one.channels, one.taps, one.oversampling,
        x.dtype.kind == "f", PRECISIONS[precision],
    )  # fmt: skip


def channelised(cp: Any, one: Bank, precision: str) -> Any:
    """The spectra in memory that held NaN, on the host; the samples are as they were."""
    out = cp.full(one.spectra.shape, np.nan, PRECISIONS[precision].output)
    given = one.operand(cp)
    assert channelise(given, **one.options, precision=precision, out=out) is out
    np.testing.assert_array_equal((given.array if one.pairs else given).get(), one.given)
    return out.get()


@pytest.mark.parametrize("precision", ["fp32", "fp64", "3xfp16", "bf16"])
@pytest.mark.parametrize("name", BANKS)
def test_every_spectrum_is_the_direct_sum_within_the_bound(
    cp: Any, name: str, precision: str
) -> None:
    from argand.channelise.gpu import algorithm

    one = BANKS[name]
    words, ran = algorithm(problem_of(one, precision), gpu(0))
    assert (ran == "kernel") == (name not in OTHERS and precision != "fp64"), words
    assert one.excess(channelised(cp, one, precision), precision, "cuda", ran) <= 1


@pytest.mark.parametrize("precision", ["fp32", "fp64", "3xfp16"])
@pytest.mark.parametrize("name", BANKS)
def test_conjugates_are_those_of_a_copy_and_take_no_memory(
    cp: Any, name: str, precision: str
) -> None:
    from argand.channelise.gpu import algorithm

    one = BANKS[name]
    conjugates = replace(one, conjugate=True)
    found = channelised(cp, conjugates, precision)
    _, ran = algorithm(problem_of(one, precision), gpu(0))
    assert conjugates.excess(found, precision, "cuda", ran) <= 1
    if one.given.dtype.kind == "c" and one.taps > 1:  # of one tap fused operations may differ
        copied = replace(one, given=one.given.conj())
        np.testing.assert_array_equal(found, channelised(cp, copied, precision))
    given, out = one.operand(cp), cp.empty(found.shape, found.dtype)
    call = partial(channelise, given, precision=precision, out=out)
    plain, conjugate = (
        most_allocated(cp, partial(call, **same.options)) for same in (one, conjugates)
    )
    assert plain == conjugate


@pytest.mark.parametrize("name", ["1024 channels", "oversampled", "1024 real channels", "twice"])
def test_every_plan_computes_the_same(cp: Any, name: str) -> None:
    from argand.channelise.gpu import PLAN_OVERRIDE

    one = BANKS[name]
    plan = plan_channelise(problem_of(one, "fp32"), gpu(0).require_arch())
    assert plan is not None
    truth = channelised(cp, one, "fp32")
    for other in (
        replace(plan, batch=1, blocks=1), replace(plan, batch=3),
        replace(plan, threads=64, blocks=1),
        replace(plan, radices=(1, 32, plan.points // 32), blocks=1, batch=4),
    ):  # fmt: skip
        with PLAN_OVERRIDE.use(other), launched() as names:
            found = channelised(cp, one, "fp32")
        assert any(name.startswith("channelise_") for name in names)
        assert one.excess(found, "fp32", "cuda", "kernel") <= 1
    with PLAN_OVERRIDE.use(None), launched() as names:
        found = channelised(cp, one, "fp32")
    assert any("filter" in name for name in names)
    assert np.abs(found - truth).max() <= 1e-5 * np.abs(truth).max()


@pytest.mark.parametrize("kind", ["complex64", "int8 pairs", "int16 pairs"])
@pytest.mark.parametrize(
    ("channels", "taps", "changes"),
    [
        (1024, 8, {}), (1024, 8, {"depth": 2}), (1024, 8, {"transform_groups": 1, "slots": 2}),
        (1024, 5, {}), (1024, 1, {}), (512, 8, {}),
        (512, 16, {}), (256, 16, {}), (1024, 3, {"batch": 1, "depth": 3}),
        (512, 4, {"transform_groups": 1, "slots": 2}),
    ],
)  # fmt: skip
def test_specialised_warps_turn_their_ring_many_times(
    cp: Any, channels: int, taps: int, changes: dict[str, int], kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from argand.channelise import gpu as on_gpus

    one = bank(channels, taps, 173, kind=kind, leading=(2,), seed=31)
    device = gpu(0)
    plan = plan_channelise(problem_of(one, "fp32"), device.require_arch())
    assert plan is not None
    found = specialized(plan, "float32", device.require_arch())
    if found is None:
        pytest.skip("specialised warps are Hopper's")
    monkeypatch.setattr(on_gpus, "chunks_of", one_chunk)
    unit_bytes = {"complex64": 8, "int8 pairs": 2, "int16 pairs": 4}[kind]
    found = replace(found, unit_bytes=unit_bytes, **changes)
    with on_gpus.PLAN_OVERRIDE.use(found), launched() as names:
        spectra = channelised(cp, one, "fp32")
    assert all(name.startswith("sm90_channelise") for name in names)
    assert one.excess(spectra, "fp32", "cuda", "kernel") <= 1


@pytest.mark.parametrize("kind", ["complex64", "int8 pairs"])
@pytest.mark.parametrize(
    ("channels", "taps", "spectra", "changes"),
    [
        (2048, 8, 301, {}), (2048, 4, 130, {}), (3072, 8, 150, {}), (4096, 8, 200, {}),
        (4096, 8, 3, {}), (4096, 5, 90, {}), (2048, 8, 90, {"transform_groups": 1, "slots": 2}),
        (1536, 8, 130, {}), (2560, 7, 90, {}), (3584, 8, 90, {}), (2048, 16, 90, {}),
        (4096, 7, 90, {}),
        (4096, 8, 90, {"batch": 2, "transform_groups": 1, "slots": 2}),
    ],
)  # fmt: skip
def test_clusters_share_the_columns_of_long_banks(
    cp: Any, channels: int, taps: int, spectra: int, changes: dict[str, int], kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from argand.channelise import gpu as on_gpus

    one = bank(channels, taps, spectra, kind=kind, leading=(2,), seed=33)
    arch = gpu(0).require_arch()
    plan = plan_channelise(problem_of(one, "fp32"), arch)
    assert plan is not None
    found = specialized(plan, "float32", arch)
    if found is None:
        pytest.skip("clusters are Hopper's")
    assert found.cluster > 1
    monkeypatch.setattr(on_gpus, "chunks_of", one_chunk)
    found = replace(found, unit_bytes={"complex64": 8, "int8 pairs": 2}[kind], **changes)
    options = one.options | {"precision": "fp32"}
    with on_gpus.PLAN_OVERRIDE.use(found):
        given = channelise(one.operand(cp), **options).get()
    truth = channelise_reference(one.samples, one.coefficients, channels, one.oversampling)
    assessed = assess_channelise(truth, given, PRECISIONS["fp32"], backend="cuda", ran="kernel")
    assert assessed.verified, assessed.reason


@pytest.mark.parametrize("waves", [1, 3, 40])
def test_chunks_of_any_length_make_the_whole(
    cp: Any, waves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.channelise import gpu as on_gpus

    monkeypatch.setattr(on_gpus, "WAVES", waves)
    one = bank(64, 4, 5000, leading=(3,), seed=30)
    assert one.excess(channelised(cp, one, "fp32"), "fp32", "cuda", "kernel") <= 1


@pytest.mark.parametrize("name", ["1024 channels", "1024 real channels", "a prime", "8 channels"])
def test_what_is_not_finite_is_in_its_spectra_alone(cp: Any, name: str) -> None:
    one = BANKS[name]
    one = replace(one, given=one.given.copy())
    place = one.channels * (one.taps + 2) + 7
    one.given[..., place] = np.nan
    found = np.isfinite(channelise(cp.asarray(one.given), **one.options).get())
    bad = np.zeros(found.shape[-2], bool)
    bad[3 : one.taps + 3] = True
    assert not found[..., bad, :].any()
    assert found[..., ~bad, :].all()


def test_layouts_are_read_as_they_are(cp: Any) -> None:
    one = BANKS["64 channels"]
    truth = channelised(cp, one, "fp32")
    x = cp.asarray(one.given)
    wide = cp.zeros((x.shape[1], 2, 5), np.complex64)
    wide[:, 1] = x.T
    for same in (wide[:, 1].T, x.astype(np.complex128), x[:, ::-1].copy()[:, ::-1]):
        found = channelise(same, **one.options, precision="fp32")
        np.testing.assert_array_equal(found.get(), truth)
    eight = BANKS["1024 channels, int8"]
    shifted = cp.zeros(eight.given.size + 1, np.int8)[1:]  # on an odd address
    shifted[...] = cp.asarray(eight.given).ravel()
    found = channelise(pairs(shifted.reshape(eight.given.shape)), **eight.options).get()
    np.testing.assert_array_equal(found, channelised(cp, eight, "fp32"))


def test_coefficients_may_be_on_the_device_and_wrong_ones_are_refused(cp: Any) -> None:
    one = BANKS["64 channels"]
    options = one.options | {"window": cp.asarray(one.coefficients)}
    x = one.operand(cp)
    np.testing.assert_array_equal(channelise(x, **options).get(), channelised(cp, one, "fp32"))
    with pytest.raises(ValueError, match="512 coefficients"):
        channelise(x, **options | {"window": cp.ones(3)})
    with pytest.raises(TypeError, match="must both be"):
        channelise(x, **options, out=np.zeros(one.spectra.shape, "c8"))
    flat = cp.zeros(64 * 8, np.complex64)
    with pytest.raises(ValueError, match="out must not overlap x"):
        channelise(flat, 64, 1, out=flat.reshape(8, 64))
    assert channelise(cp.zeros((2, 100), "c8"), 64, 8).shape == (2, 0, 64)
