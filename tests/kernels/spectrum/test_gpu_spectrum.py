"""Spectral estimates on a GPU: every bin of every way to compute, with the result poisoned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, launched, pairs, spectrum
from argand.device import gpu
from argand.spectrum.plan import plan_spectrum

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.spectrum.signals import SIGNALS, Signal, drawn

pytestmark = pytest.mark.gpu
MORE = {
    "1024": drawn(1024, 70, spare=5, seed=1),
    "1024, groups of 3": drawn(1024, 70, average=3, leading=(2,), seed=2),
    "1024, groups of 37": drawn(1024, 120, average=37, leading=(3,), seed=3),
    "1024, whole": drawn(1024, 3000, average="all", seed=4),
    "1024, little overlap": drawn(1024, 900, average="all", overlap=1, seed=5),
    "1024, much overlap": drawn(1024, 900, average=100, overlap=1023, seed=6),
    "real 1024": drawn(1024, 50, kind="float32", leading=(2,), seed=7),
    "real 1024, whole": drawn(1024, 2000, average="all", kind="float32", leading=(3,), seed=8),
    "real 1024, odd hop": drawn(1024, 300, average=30, overlap=511, kind="float32", seed=9),
    "real 1024, odd rows": drawn(1024, 30, kind="float32", leading=(3,), spare=1, seed=10),
    "real 512, both sides": drawn(512, 90, average=4, kind="float32", onesided=False, seed=11),
    "real 512, both sides, whole": drawn(
        512, 900, average="all", kind="float32", onesided=False, seed=12
    ),
    "int8 1024": drawn(1024, 99, average=20, kind="int8 pairs", leading=(2,), seed=13),
    "real int8, odd": drawn(256, 99, average=20, overlap=101, kind="int8", leading=(2,), seed=14),
    "real int16": drawn(256, 99, average=2, kind="int16", seed=15),
    "4096": drawn(4096, 40, average=40, seed=16),
    "real 8192": drawn(8192, 33, average=11, kind="float32", seed=17),
    "2048": drawn(2048, 64, average="all", leading=(2, 2), seed=18),
    "256": drawn(256, 9000, average=1000, seed=19),
    "64": drawn(64, 9000, average=10, leading=(2,), seed=20),
    "2": drawn(2, 999, average="all", seed=21),
    "130": drawn(130, 500, average=100, seed=22),
    "1000": drawn(1000, 300, average="all", tone=1e3, seed=23),
    "400 real": drawn(400, 99, average=3, kind="float32", seed=24),
    "a prime, whole": drawn(1009, 200, average="all", seed=25),
    "few bins, whole": drawn(11, 70000, average="all", kind="float32", leading=(2,), seed=28),
    "long": drawn(16384, 21, average=7, seed=26),
    "long and real": drawn(20000, 9, average="all", kind="float32", seed=27),
}  # fmt: skip
EVERY = SIGNALS | MORE
OTHERS = (
    "a sample", "a real sample", "a prime", "odd and real", "odd, real, both sides",
    "a prime, whole", "long", "long and real", "few bins, whole", "real int16, less lines",
    "a prime of conjugates",
)  # fmt: skip
"""Signals that the kernel does not take."""


def estimated(cp: Any, one: Signal, precision: str) -> Any:
    """The means in memory that held NaN, on the host; the samples are as they were."""
    out = cp.full(one.power.shape, np.nan, PRECISIONS[precision].real_output)
    given = one.operand(cp)
    found = spectrum(given, one.length, **one.options, precision=precision, out=out)
    assert found is out
    np.testing.assert_array_equal((given.array if one.pairs else given).get(), one.given)
    return out.get()


def verify(one: Signal, found: Any, precision: str, ran: str) -> None:
    accuracy = one.assessed(found, precision, "cuda", ran)
    assert accuracy.verdict in ("verified", "unproven"), accuracy.reason
    assert accuracy.verified or ran != "kernel"


@pytest.mark.parametrize("precision", ["fp32", "fp64", "3xfp16", "bf16"])
@pytest.mark.parametrize("name", EVERY)
def test_every_bin_is_scipys_within_the_bound(cp: Any, name: str, precision: str) -> None:
    from argand.spectrum.gpu import algorithm

    one = EVERY[name]
    words, ran = algorithm(one.problem(precision), gpu(0))
    assert (ran == "kernel") == (name not in OTHERS and precision != "fp64"), words
    verify(one, estimated(cp, one, precision), precision, ran)


@pytest.mark.parametrize("name", ["1024", "1024, whole", "64", "less means", "int8 1024"])
def test_conjugates_take_no_memory(cp: Any, name: str) -> None:
    one = EVERY[name]
    conjugates = replace(one, options=one.options | {"conjugate": True})
    verify(conjugates, estimated(cp, conjugates, "fp32"), "fp32", "kernel")
    given, out = one.operand(cp), cp.empty(one.power.shape, np.float32)
    call = partial(spectrum, given, one.length, **one.options, out=out)
    plain, conjugate = (most_allocated(cp, partial(call, conjugate=same)) for same in (False, True))
    assert plain == conjugate


@pytest.mark.parametrize("name", ["1024, groups of 3", "1024, whole", "real 1024, whole"])
def test_every_plan_computes_the_same(cp: Any, name: str) -> None:
    from argand.spectrum.gpu import PLAN_OVERRIDE

    one = EVERY[name]
    plan = plan_spectrum(one.problem("fp32"), gpu(0).require_arch())
    assert plan is not None
    first = plan.transforms
    average = plan.summed or 1
    for changes in (
        {"batch": average, "blocks": 1}, {"threads": 64, "blocks": 1},
        {"radices": (1, 32, first.points // 32), "blocks": 1},
    ):  # fmt: skip
        other = replace(plan, transforms=replace(first, **changes))
        with PLAN_OVERRIDE.use(other), launched() as names:
            found = estimated(cp, one, "fp32")
        assert any(name.startswith("spectrum_fp32") for name in names)
        verify(one, found, "fp32", "kernel")
    with PLAN_OVERRIDE.use(None), launched() as names:
        found = estimated(cp, one, "fp32")
    assert any("window" in name for name in names)
    verify(one, found, "fp32", "kernel")


@pytest.mark.parametrize("waves", [1, 3, 40])
def test_chunks_of_any_length_make_the_whole(
    cp: Any, waves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.channelise import gpu as filter_banks

    monkeypatch.setattr(filter_banks, "WAVES", waves)
    for average in (2, "all"):
        one = drawn(16, 5000, leading=(3,), average=average, seed=30)
        verify(one, estimated(cp, one, "fp32"), "fp32", "kernel")


@pytest.mark.parametrize("average", [1, 3, "all"])
def test_slabs_of_any_size_make_the_whole(
    cp: Any, average: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.spectrum import gpu_unfused

    one = drawn(37, 50, leading=(2,), average=average, seed=31)
    for segments in (1, 4, 1000):
        monkeypatch.setattr(gpu_unfused, "WORKSPACE_BYTES", 16 * 37 * segments)
        verify(one, estimated(cp, one, "fp64"), "fp64", "kernel")


def test_results_are_the_same_every_time(cp: Any) -> None:
    for name in ("1024, whole", "a prime, whole"):
        one = EVERY[name]
        first = estimated(cp, one, "fp32")
        for _ in range(5):
            np.testing.assert_array_equal(estimated(cp, one, "fp32"), first)


@pytest.mark.parametrize("name", ["1024, groups of 3", "real 1024", "a prime"])
def test_what_is_not_finite_is_in_its_groups_alone(cp: Any, name: str) -> None:
    one = EVERY[name]
    one = replace(one, given=one.given.copy())
    problem = one.problem("fp32")
    segment = 2 * problem.average
    one.given[..., segment * problem.hop + problem.overlap + 1] = np.nan
    found = np.isfinite(spectrum(cp.asarray(one.given), one.length, **one.options).get())
    bad = np.isnan(one.power).any(axis=-1)
    assert bad.any()
    np.testing.assert_array_equal(found, ~np.broadcast_to(bad[..., None], found.shape))


def test_layouts_are_read_as_they_are(cp: Any) -> None:
    one = EVERY["64"]
    truth = estimated(cp, one, "fp32")
    x = cp.asarray(one.given)
    wide = cp.zeros((x.shape[1], 2, 5), np.complex64)
    wide[:, 1, 2:4] = x.T
    for same in (wide[:, 1, 2:4].T, x.astype(np.complex128), x[:, ::-1].copy()[:, ::-1]):
        found = spectrum(same, 64, average=10, precision="fp32").get()
        np.testing.assert_array_equal(found, truth)
    eight = EVERY["int8 1024"]
    shifted = cp.zeros(eight.given.size + 1, np.int8)[1:]  # on an odd address
    shifted[...] = cp.asarray(eight.given).ravel()
    found = spectrum(pairs(shifted.reshape(eight.given.shape)), 1024, average=20).get()
    np.testing.assert_array_equal(found, estimated(cp, eight, "fp32"))


def test_windows_may_be_on_the_device_and_wrong_ones_are_refused(cp: Any) -> None:
    one = EVERY["64"]
    x = one.operand(cp)
    found = spectrum(x, 64, average=10, window=cp.asarray(one.window))
    np.testing.assert_array_equal(found.get(), estimated(cp, one, "fp32"))
    with pytest.raises(ValueError, match="64 coefficients"):
        spectrum(x, 64, window=cp.ones(3))
    with pytest.raises(TypeError, match="must both be"):
        spectrum(x, 64, average=10, out=np.zeros(one.power.shape, "f4"))
    flat = cp.zeros(64 * 8, np.float32)
    with pytest.raises(ValueError, match="out must not overlap x"):
        spectrum(flat, 64, overlap=0, out=flat[: 8 * 33].reshape(8, 33))
    assert spectrum(cp.zeros((2, 60), "c8"), 64).shape == (2, 0, 64)
