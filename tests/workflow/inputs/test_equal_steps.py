"""Coordinates of equal steps: a start and a step, however many entries there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put

from tests.workflow.peak_memory import with_peak
from workflow.config.coordinate import RegularCoordinate
from workflow.data import Coordinate
from workflow.files.input_error import InputError
from workflow.inputs.equal_steps import (
    given_coordinate,
    step_of,
    step_of_rounded,
    usual_step,
    whole_axis,
)
from workflow.preflight.loading import load_study
from workflow.study import Study

LONG = 1 << 28


def study_of(case: dict[str, Any]) -> Study:
    return load_study({"device": "cpu", "workloads": {"w": {**case, "precisions": ["fp32"]}}})


def test_two_entries_have_a_step_and_one_has_none() -> None:
    assert step_of(Coordinate(np.array([3.0, 5.5])), "input.coordinates.time") == 2.5
    with pytest.raises(InputError, match="has one entry, so its step is unknown"):
        step_of(Coordinate(np.array([3.0])), "input.coordinates.time")


def test_steps_without_an_inverse() -> None:
    """Frequencies of such a step would be infinite."""
    tiny = Coordinate(1e-320 * np.arange(7), "s")
    with pytest.raises(InputError, match=r"^x must be at steps whose inverse is a number, got 9"):
        step_of(tiny, "x")


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        ({"kind": "dft", "axis": "time"}, {"sample_rate_hz": 1e6}),
        ({"kind": "dft", "axis": "time"}, {"coordinates": {"time": {"start": 5, "step_s": 1e-6}}}),
        (
            {"kind": "channelise", "axis": "time", "channels": 64},
            {"sample_rate_hz": 1e6, "select": {"samples": {"time": "1:-2:3"}}},
        ),
        (
            {"kind": "dft", "axis": "time", "power": True, "length": 4096},
            {"coordinates": {"time": {"step": 2, "units": "us"}}},
        ),
    ],
)
def test_a_check_takes_no_memory_for_each_sample(
    tmp_path: Path, case: dict[str, Any], steps: dict[str, Any]
) -> None:
    path = tmp_path / "long.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1, LONG), np.int8)  # of which nothing is written
    source = {"file": str(path), "samples": {"int4x2": "/x"}, "axes": ["antenna", "time"]}
    one = study_of({**case, "input": {**source, **steps}}).workload("w")
    one.check()  # imports
    _, peak = with_peak(one.check)
    outline, more = with_peak(one.outline)
    assert outline.operands["samples"].size > LONG // 4
    assert max(peak, more) < 1 << 22


@pytest.mark.parametrize("more", [{}, {"inverse": True}, {"shift": True}])
def test_a_check_takes_no_memory_for_each_frequency(more: dict[str, Any]) -> None:
    one = study_of({"kind": "dft", "length": 1 << 26, **more}).workload("w")
    outline = one.outline()
    one.product_outline(outline)  # imports
    product, peak = with_peak(lambda: one.product_outline(outline))
    assert product.coordinates[product.axes[-1]].values.shape == (1 << 26,)
    assert peak < 1 << 20


def test_a_step_is_kept_beside_values_that_cannot_hold_it(tmp_path: Path) -> None:
    """Seconds since 1970 have 0.24 us between neighbours in fp64; samples are 5 ns apart."""
    rng, path = np.random.default_rng(2), tmp_path / "x.h5"
    put(path, x=rng.standard_normal((3, 64, 2)).view(complex)[..., 0])
    time = {"start": 1764338400, "step": 5e-9, "units": "seconds since 1970-01-01"}
    source = {
        "file": str(path), "samples": "/x", "axes": ["antenna", "time"],
        "select": {"samples": {"time": "0:64:2"}}, "coordinates": {"time": time},
    }  # fmt: skip
    one = study_of({"kind": "dft", "axis": "time", "input": source}).workload("w")
    one.check()
    staged = one.stage().held()
    product = one.product(staged, staged.operands["samples"])
    np.testing.assert_allclose(
        product.coordinates["frequency"].values, np.arange(32) / (32 * 1e-8), rtol=1e-12
    )
    found = staged.coordinates["time"]
    np.testing.assert_allclose(found.values, 1e-8 * np.arange(32), rtol=1e-12)
    assert found.long_name == "time since 2025-11-28T14:00:00.000000000"


@pytest.mark.parametrize(
    ("kind", "off", "is_even"),
    [("f4", 0, True), ("f4", 3, False), ("f8", 0, True), ("f8", 3, False)],
)
def test_steps_are_equal_but_for_rounding_to_the_stored_type(
    tmp_path: Path, kind: str, off: int, is_even: bool
) -> None:
    """Milliseconds from 98 s on, where numbers of fp32 are 7.6 us apart; one is ``off`` so many."""
    times = (98 + 1e-3 * np.arange(500)).astype(kind)
    times[77] += off * np.spacing(np.float32(98))
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.ones((2, 500), complex)
        file["time"] = times
        file["time"].attrs["units"] = "s"
        file["x"].dims[1].attach_scale(file["time"])
    source = {"file": str(path), "samples": "/x", "axes": ["antenna", "time"]}
    one = study_of({"kind": "dft", "axis": "time", "input": source}).workload("w")
    if not is_even:
        with pytest.raises(ValueError, match=r"must have equal steps, but entry 77 is at 98\.077"):
            one.check()
        return
    staged = one.stage().held()
    np.testing.assert_array_equal(staged.coordinates["time"].values, times)
    found = one.product(staged, staged.operands["samples"]).coordinates["frequency"].values
    np.testing.assert_allclose(found, np.arange(500) / 0.5, rtol=7.7e-6 / 0.499)


@pytest.mark.parametrize("step", [5e-7, 1e-6, 1e-4, -1e-4])
@pytest.mark.parametrize("start", [1.7e9, 1764338400.123456])
def test_times_since_1970_are_equal_steps_but_for_rounding(start: float, step: float) -> None:
    """Numbers of fp64 are 0.24 us apart there; one entry that is off by more is refused."""
    apart = np.spacing(start)
    values = start + step * np.arange(4096)
    found = step_of(Coordinate(values, "s"), "input.coordinates.time")
    assert abs(found - step) <= apart / 4095
    values[77] += 3 * apart
    with pytest.raises(InputError, match="must have equal steps"):
        step_of(Coordinate(values, "s"), "input.coordinates.time")


@pytest.mark.parametrize(
    ("step", "entries"),
    [(3e-7, 4096), (1e-6, 200)],  # less than two numbers apart; 0.24 us are 0.1 % of the span
)
def test_times_since_1970_whose_step_is_unknown(step: float, entries: int) -> None:
    values = 1.7e9 + step * np.arange(entries)
    with pytest.raises(InputError, match="too coarse for the step"):
        step_of(Coordinate(values, "s"), "input.coordinates.time")


def test_integers_are_not_rounded() -> None:
    """Steps of 2 and 3 in turn, where numbers of fp64 are 1 apart too."""
    values = (1 << 52) + 7 * np.arange(5000) // 3
    assert step_of(Coordinate(values.astype(float), "ns"), "input.coordinates.time") > 2
    with pytest.raises(InputError, match="must have equal steps"):
        step_of(Coordinate(values, "ns"), "input.coordinates.time")


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 2.0],  # as they stand
        [1e9, 1e9 + 128, 1e9 + 192],  # numbers are 64 apart
        [1e9, 1e9 + 1024, 1e9 + 1984],  # 64 are 3 % of the span
        [1.0, 1.0, 1.0],
    ],
)
def test_steps_of_which_rounding_leaves_too_little(values: list[float]) -> None:
    assert step_of_rounded(np.array(values), np.dtype("f4")) is None


@pytest.mark.parametrize("steps", [{"start": 1e308, "step_s": 1e308}, {"step_s": 1e307}])
def test_values_beyond_any_number_are_refused(tmp_path: Path, steps: dict[str, float]) -> None:
    path = put(tmp_path / "x.h5", x=np.ones(64, complex))
    source = {"file": str(path), "samples": "/x", "coordinates": {"time": steps}, "axes": ["time"]}
    with pytest.raises(ValueError, match=r"coordinates\.time: its values must be finite numbers"):
        study_of({"kind": "dft", "input": source}).workload("w").check()


def test_an_axis_without_entries_has_no_values() -> None:
    """The check of the operand's shape says then what is wrong with it."""
    steps = RegularCoordinate(step_s=2.0)
    found = given_coordinate("time", steps, 0, whole_axis(0), check=False)
    assert found.values.shape == (0,)
    assert (found.units, found.step) == ("s", 2.0)


def test_the_usual_step_of_times_in_whole_seconds() -> None:
    """It was 0, and with it the length of integrations."""
    times = Coordinate(np.floor(np.arange(80) / 8), "s")
    np.testing.assert_allclose(usual_step(times), 9 / 79)


def test_times_of_too_few_digits_are_no_times(tmp_path: Path) -> None:
    """Seconds since 1970 in fp32 are 128 apart: integrations of them had a length of 0."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = np.ones((3, 8), np.complex64)
        file["t"] = (1.7e9 + np.arange(8)).astype("f4")
        file["t"].attrs["units"] = np.bytes_("s since 1970-01-01")
    source = {
        "file": str(tmp_path / "v.h5"), "voltages": "v", "axes": ["antenna", "time"],
        "coordinates": {"time": "t"},
    }  # fmt: skip
    one = study_of({"kind": "correlate", "input": source}).workload("w")
    said = "its 8 entries are all at 1700000000, where the file's numbers are 128 apart; give equal"
    with pytest.raises(InputError, match=rf"^input\.coordinates\.time: {said}"):
        one.check()
    source["select"] = {"voltages": {"time": "0:1"}}
    study_of({"kind": "correlate", "input": source}).workload("w").check()


def test_a_study_may_say_that_channels_have_one_frequency(tmp_path: Path) -> None:
    """Two receivers of one band have it, which are steered as two channels."""
    put(tmp_path / "v.h5", v=np.ones((2, 3, 8), np.complex64), f=[1e9, 1e9])
    given: dict[str, Any] = {"values": [1e9, 1e9], "units": "Hz"}
    source = {
        "file": str(tmp_path / "v.h5"), "voltages": "v", "axes": ["frequency", "antenna", "time"],
        "coordinates": {"frequency": given},
    }  # fmt: skip
    study_of({"kind": "correlate", "input": source}).workload("w").check()
    given |= {"dataset": "f"}
    del given["values"]
    with pytest.raises(InputError, match=r"all at 1000000000; .* meant to be the same$"):
        study_of({"kind": "correlate", "input": source}).workload("w").check()


def test_the_usual_step_of_coarse_numbers() -> None:
    """Julian dates are 4e-5 s apart, so that no single step of milliseconds is known to 2 %."""
    seconds = 1e-3 * np.arange(1000) + np.where(np.arange(1000) < 500, 0, 60)
    days = Coordinate(2461000.5 + seconds / 86400, "d")
    # There are 998 steps in two stretches, whose ends are rounded to half the distance of dates.
    np.testing.assert_allclose(86400 * usual_step(days), 1e-3, rtol=4 * 4e-5 / 2 / (998 * 1e-3))
