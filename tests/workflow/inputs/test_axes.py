"""Axes in any order: named, transposed, missing, paired; and what stands along them."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.fft
from argand import PRECISIONS
from argand.device import cpu
from axis_cases import AXES, SHAPE, beams, write_input

from tests.workflow.one_case import error_of, study_of
from tests.workflow.whole_files import read_staged
from workflow.inputs.axes import Operand, map_axes
from workflow.inputs.selections import Picked
from workflow.preflight.check import check_study
from workflow.steps.staging import stage


def test_axes_without_names_are_the_last_ones() -> None:
    found = map_axes(Operand("x", ("f", "p", "a", "t")), None, (5, 7), "x", "x")
    assert (found.missing, found.shape) == (("f", "p"), (1, 1, 5, 7))
    assert [found.place(axis) for axis in "fpat"] == [None, None, 0, 1]
    lines = Operand("x", ("batch", "row", "time"), free=True, named=True)
    found = map_axes(lines, None, (1, 1, 7), "x", "x")  # one axis alone says something
    assert (found.axes, found.shape, found.missing) == (("row", "time"), (1, 7), ())
    turned = Operand("x", lines.axes, free=True, along=-3)
    assert map_axes(turned, None, (2, 3, 7), "x", "x").shape == (3, 7, 2)
    # Places count in the file, also beside an axis that a number drops.
    dropped = [True, False, True, True]
    for along in (2, -2):
        one = map_axes(replace(turned, along=along), None, (2, 3, 7), "x", "x", dropped)
        assert one.shape == (2, 7, 3)


@pytest.fixture
def file(tmp_path: Path, rng: np.random.Generator) -> Path:
    return write_input(tmp_path, rng)


def workload(case: dict[str, Any]) -> Any:
    return study_of(case).workload("w")


def staged_samples(
    one: Any, file: Path, out: Path, monkeypatch: pytest.MonkeyPatch, memory: int | None
) -> tuple[Any, tuple[str, ...]]:
    """Return samples that are staged, with little ``memory`` in four pieces or more; their axes."""
    found: list[int] = []
    original = Picked.pieces

    def spy(self: Picked, most: int, chunks: Any) -> Any:
        pieces = list(original(self, most, chunks))
        found.append(len(pieces))
        return iter(pieces)

    if memory is not None:
        monkeypatch.setattr(Picked, "pieces", spy)
        monkeypatch.setattr("workflow.inputs.hdf5_operands.machine_memory", lambda: memory)
    stage(one, [file], out / "s.h5", logging.getLogger("test"))
    assert memory is None or sum(found) >= 4
    staged = read_staged(out / "s.h5")
    return staged.operands["samples"], staged.axes["samples"]


ORDERS = list(itertools.permutations(range(4)))


@pytest.mark.parametrize(
    ("order", "memory"),
    [*((order, 4_000) for order in ORDERS), (ORDERS[-1], None),
     *(pytest.param(order, None, marks=pytest.mark.exhaustive) for order in ORDERS[:-1])],
)  # fmt: skip
def test_any_order_is_staged_as_the_operand_has_it(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any, memory: int | None
) -> None:
    """This holds in pieces too, where the whole does not fit into memory."""
    with h5py.File(file, "a") as held:
        volt = held["volt"][...]
        chunks = tuple(min(2, SHAPE[place]) for place in order)
        held.create_dataset("turned", data=volt.transpose(order), chunks=chunks)
    named = [{"frequency": "channel"}.get(AXES[place], AXES[place]) for place in order]
    case = beams(file, samples="turned", axes={"samples": named})
    check_study(study_of(case))
    found, axes = staged_samples(workload(case), file, tmp_path / "out", monkeypatch, memory)
    np.testing.assert_array_equal(found, volt)
    assert axes == AXES


def test_missing_axes_are_named_and_said(file: Path, tmp_path: Path, caplog: Any) -> None:
    axes = {"samples": ["time", "antenna"], "weights": ["antenna", "beam"]}
    with h5py.File(file, "a") as held:
        held["ta"], held["ab"] = held["volt"][0, 0].T, held["weights"][0, 0].T
        volt = held["volt"][0, 0]
    one = workload(beams(file, samples="ta", weights="ab", axes=axes))
    with caplog.at_level(logging.INFO):
        stage(one, [file], tmp_path / "s.h5", logging.getLogger("test"))
    (line,) = caplog.messages
    assert (
        "samples frequency 1 x polarization 1 x antenna 5 x time 7 (from time, antenna; "
        "no frequency, polarization there)"
    ) in line
    np.testing.assert_array_equal(read_staged(tmp_path / "s.h5").operands["samples"][0, 0], volt)


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("memory", [None, 4_000])
def test_an_axis_of_both_parts(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, memory: int | None
) -> None:
    with h5py.File(file, "a") as held:
        volt = held["volt"][...]
        pairs = np.stack([volt.real, volt.imag], axis=place)
        held.create_dataset("iq", data=pairs, chunks=(1,) * 5)
    named = list(AXES)
    named.insert(place, "complex")
    one = workload(beams(file, samples="iq", axes={"samples": named}))
    found, _ = staged_samples(one, file, tmp_path / "out", monkeypatch, memory)
    np.testing.assert_array_equal(found, volt)
    assert found.dtype == np.complex64


@pytest.mark.parametrize("fields", [("r", "i"), ("re", "im"), ("real", "imag"), ("Re", "Im")])
@pytest.mark.parametrize("part", ["f4", ">f8", "i2"])
def test_compounds_by_the_names_of_their_fields(file: Path, fields: Any, part: str) -> None:
    data = np.zeros(6, [(name, part) for name in fields])
    data[fields[0]], data[fields[1]] = np.arange(6), -np.arange(6)
    with h5py.File(file, "a") as held:
        held["x"] = data
    one = workload({"kind": "dft", "input": {"file": str(file), "samples": "x"}})
    np.testing.assert_array_equal(one.stage().operands["samples"][0], np.arange(6) * (1 - 1j))


def test_real_data_have_no_imaginary_part(file: Path) -> None:
    one = workload({"kind": "dft", "input": {"file": str(file), "samples": {"real": "uneven"}}})
    one.check()
    samples = one.stage().operands["samples"]
    np.testing.assert_array_equal(samples, [[0, 1, 2, 4, 5, 6, 7]])
    assert samples.dtype == np.complex128


def test_coordinates_go_to_the_product_cut_as_the_data(file: Path) -> None:
    one = workload(
        beams(
            file,
            select={"samples": [[2, 0], ":", ":", "::2"], "weights": [[2, 0], ":", ":", ":"]},
            coordinates={
                "channel": "/freq_hz",
                "time": {"start": 5.0, "step_s": 0.5},
                "polarization": ["x", "y"],
                "antenna_position": {"dataset": "positions", "axis": "antenna"},
            },
            units={"samples": "V"},
        )
    )
    one.check()
    staged = one.stage()
    product = one.product(staged, np.zeros((2, 2, 4, 4), np.complex64))
    found = product.coordinates
    np.testing.assert_array_equal(found["frequency"].values, [1.02e8, 1e8])
    np.testing.assert_array_equal(found["time"].values, [5, 6, 7, 8])
    assert [found[axis].units for axis in ("frequency", "time")] == ["Hz", "s"]
    assert found["polarization"].values.tolist() == ["x", "y"]
    assert found["antenna_position"].of("antenna_position")[0] == "antenna"
    assert (found["antenna_position"].values.shape, found["antenna_position"].units) == (
        (5, 3),
        "m",
    )
    assert product.units == "V"


def test_a_sample_rate_is_a_time(file: Path) -> None:
    one = workload(beams(file, sample_rate_hz=4.0))
    np.testing.assert_array_equal(one.stage().coordinates["time"].values, np.arange(7) / 4)


class TestTransforms:
    def spectrum(self, file: Path, **more: Any) -> tuple[Any, Any]:
        source = {"file": str(file), "samples": "volt", "axes": list(AXES), **more.pop("more", {})}
        one = workload({"kind": "dft", "input": source, **more})
        one.check()
        staged = one.stage()
        how = one.argand(staged, PRECISIONS["fp64"], cpu())
        return one.product(staged, how.compute(how.prepare(staged.operands))), staged

    @pytest.mark.parametrize("shift", [False, True])
    @pytest.mark.parametrize("axis", [*AXES, 0, -3])
    def test_the_axis_that_is_named(self, file: Path, axis: Any, shift: bool) -> None:
        product, _ = self.spectrum(file, axis=axis, shift=shift)
        place = AXES.index(axis) if isinstance(axis, str) else axis % 4
        with h5py.File(file) as held:
            volt = np.moveaxis(held["volt"][...].astype(complex), place, -1)
        exact = scipy.fft.fft(volt)
        if shift:
            exact = scipy.fft.fftshift(exact, axes=-1)
        scale = np.abs(exact).max()
        assert np.abs(product.data - exact).max() <= 1e-13 * scale
        assert product.axes[:-1] == AXES[:place] + AXES[place + 1 :]

    def test_time_becomes_frequency_in_hz(self, file: Path) -> None:
        more = {"sample_rate_hz": 70.0, "select": {"samples": {"frequency": 0}}}
        product, _ = self.spectrum(file, axis="time", more=more)
        assert product.axes == ("polarization", "antenna", "frequency")
        found = product.coordinates["frequency"]
        np.testing.assert_allclose(found.values, 10 * np.arange(7), rtol=1e-12)
        assert found.units == "Hz"
        product, _ = self.spectrum(file, axis="time", shift=True, more=more)
        found = product.coordinates["frequency"].values
        np.testing.assert_allclose(found, 10 * np.arange(-3, 4), rtol=1e-12)

    def test_frequency_becomes_delay_in_s(self, file: Path) -> None:
        more = {"coordinates": {"frequency": "freq_hz", "time": {"step_s": 2}}}
        product, _ = self.spectrum(file, axis="frequency", more=more)
        assert product.axes == ("polarization", "antenna", "time", "delay")
        delay = product.coordinates["delay"]
        np.testing.assert_allclose(delay.values, np.arange(3) / 3e6, rtol=1e-12)
        assert (delay.units, product.coordinates["time"].units) == ("s", "s")
        assert "frequency" not in product.coordinates

    def test_two_axes_of_one_name_are_told_apart(self, file: Path) -> None:
        product, _ = self.spectrum(file, axis="time")
        assert product.axes == (*AXES[:-1], "time_frequency")

    def test_uneven_steps_are_a_mistake(self, file: Path) -> None:
        case = {
            "kind": "dft",
            "axis": "time",
            "input": {
                "file": str(file),
                "samples": "volt",
                "axes": list(AXES),
                "coordinates": {"time": {"dataset": "uneven", "units": "s"}},
            },
        }
        assert error_of(case).startswith(
            "input.coordinates.time must have equal steps, but entry 3 is at 4, 2 after"
        )
        case["input"]["coordinates"]["time"] = {"values": [3] * 7, "units": "s"}
        assert error_of(case).startswith(
            "input.coordinates.time: its 7 entries are all at 3; give equal steps"
        )

    def test_nobody_named_it(self, file: Path) -> None:
        case = {"kind": "dft", "input": {"file": str(file), "samples": "volt"}}
        assert error_of(case) == (
            "input.samples has 4 axes of shape (3, 2, 5, 7), and nothing says which of them is "
            "transformed; add `axis: -1` for the last one to the workload"
        )
        case["input"]["axes"] = list(AXES)
        assert "add `axis:` and its name to the workload" in error_of(case)
        case["input"]["select"] = {"samples": [0, 0, 0, ":"]}
        workload(case).check()


def test_softmax_over_a_named_axis(file: Path, rng: np.random.Generator) -> None:
    with h5py.File(file, "a") as held:
        held["x"] = rng.standard_normal((4, 6, 3))
        x = held["x"][...]
    source = {"file": str(file), "x": "x", "axes": ["time", "class", "cell"]}
    one = workload({"kind": "softmax", "axis": "class", "input": source})
    staged = one.stage()
    assert staged.axes["x"] == ("time", "cell", "class")
    np.testing.assert_array_equal(staged.operands["x"], np.moveaxis(x, 1, -1))
    assert one.split_axes(staged.axes) == ("time", "cell")
