"""Mistakes with axes and coordinates: reported before anything runs, with what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from axis_cases import AXES, beams, write_input

from tests.normal import normal
from tests.workflow.one_case import error_of
from tests.workflow.streamed_runs import workload_of


@pytest.fixture
def file(tmp_path: Path, rng: np.random.Generator) -> Path:
    return write_input(tmp_path, rng)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"axes": {"samples": ["time", "antenna"]}}, "input.axes.samples: /volt has 4 axes of shape"),
    (
        {"axes": {"samples": ["frequency", "polarisation", "antenna", "time"]}},
        "input.axes.samples: must be of ['frequency', 'polarization', 'antenna', 'time'] and "
        "'complex', got 'polarisation'; did you mean 'polarization'?",
    ),
    (
        {"axes": {"samples": ["channel", "frequency", "antenna", "time"]}},
        "input.axes.samples: must name each axis once, got",
    ),
    (
        {"axes": {"samples": ["time", "time", "antenna", "x"]}},
        "input.axes.samples: must name each axis once",
    ),
    ({"axes": {"sample": ["time"]}}, "input.axes.sample must be one of ['weights', 'samples']"),
    ({"axes": ["time"]}, "input.axes must be a mapping with any of ['weights', 'samples']"),
    ({"axes": {"samples": ["a/b", "b", "c", "d"]}}, "input.axes.samples: a name must begin with"),
    ({"axes": {"samples": ["entry", "b", "c", "d"]}}, "input.axes.samples: a name must begin with"),
    (
        {"axes": {"samples": ["complex", "frequency", "antenna", "time"]}},
        "input.axes.samples: the axis 'complex' holds real and imaginary part and must have length",
    ),
    (
        {"axes": {"samples": ["frequency", "complex", "antenna", "time"]}},
        "input.samples: /volt must be real, one of",
    ),
    ({"select": {"samples": {"time": 0}}}, "input.select.samples: /volt has axes without names"),
    (
        {"axes": {"samples": list(AXES)}, "select": {"samples": {"tme": 0}}},
        "input.select.samples: /volt has the axes ['frequency', 'polarization', 'antenna', 'time']"
        ", got 'tme'; did you mean 'time'?",
    ),
    (
        {"select": {"samples": [":", 1, ":", ":"]}},
        "input.select.samples: /volt has 4 axes that nothing names, and a number drops one between "
        "others; what is left may be ['frequency', 'antenna', 'time'] or ['polarization', "
        "'antenna', 'time']: name all 4 in input.axes.samples",
    ),
    (
        {"select": {"samples": [1, ":", ":", ":"]}},
        "input.select.samples: takes one entry of freque",
    ),
    (
        {"select": {"samples": {"polarization": [1]}}, "axes": {"samples": list(AXES)}},
        "input.select.samples: takes one entry of polarization, and weights have 2, whose "
        "beams would all be of the same samples; take one of weights too",
    ),
    (
        {"samples": "six", "weights": "six"},
        "input.weights: /six is read as ['polarization', 'beam', 'antenna'] where input.axes says "
        "nothing, and its 6 polarizations may be entries of another axis, such as channels; name "
        "its axes in input.axes.weights",
    ),
    (
        {"samples": "two"},
        "input.samples: /two is read as ['polarization', 'antenna', 'time'] where input.axes says "
        "nothing, and its 2 polarizations may be entries of another axis, such as channels; name",
    ),
    ({"coordinates": {"frequency": "/none"}}, "input.coordinates.frequency: "),
    (
        {"coordinates": {"channel": {"step_hz": 2}, "frequency": {"step_hz": 1}}},
        "input.coordinates.frequency: input.coordinates.channel is of the same axis; give one of",
    ),
    (
        {"coordinates": {"frequency": "/short"}},
        "input.coordinates.frequency: /short must have 3 va",
    ),
    (
        {"coordinates": {"frequency": "/text"}},
        "input.coordinates.frequency: /text must hold number",
    ),
    ({"coordinates": {"frequency": "/nameless"}}, "input.coordinates.frequency has no unit; give"),
    (
        {"coordinates": {"frequency": {"dataset": "/nameless", "units": "m"}}},
        "input.coordinates.frequency must be in one of ['Hz', 'kHz', 'MHz', 'GHz', 'THz', 'mHz', "
        "'1/min', '1/h', '1/d'], got 'm'",
    ),
    (
        {"coordinates": {"time": {"start": 0, "step": 1, "units": "MHz"}}},
        "input.coordinates.time must be in one of ['s', 'ms', 'us', 'ns', 'min', 'h', 'd'], got",
    ),
    (
        {"coordinates": {"east": {"values": [1, 2, 3, 4, 5], "units": "s", "axis": "antenna"}}},
        "input.coordinates.east must be in one of ['m', 'km', 'cm', 'mm'], got 's'",
    ),
    (
        {"coordinates": {"delay": "/freq_hz"}},
        "input.coordinates.delay: must be of an axis of the operands, ['frequency', "
        "'polarization', 'beam', 'antenna', 'time'], got 'delay'; {dataset: /freq_hz, axis: NAME} "
        "stands along the one of that name",
    ),
    (
        {"coordinates": {"tiem": "/freq_hz"}},
        "input.coordinates.tiem: must be of an axis of the operands, ['frequency', "
        "'polarization', 'beam', 'antenna', 'time'], got 'tiem'; did you mean 'time'?",
    ),
    ({"coordinates": {"time": {"start": 1}}}, "input.coordinates.time"),
    ({"coordinates": {"time": {"step_s": 0}}}, "input.coordinates.time"),
    ({"coordinates": {"time": {"step_s": 1, "units": "s"}}}, "input.coordinates.time"),
    (
        {"coordinates": {"time": {"step_s": 1, "stop": 2}}},
        "input.coordinates.time.stop: unknown ke",
    ),
    ({"coordinates": {"polarization": ["x"]}}, "input.coordinates.polarization must have 2 values"),
    (
        {"coordinates": {"time": {"dataset": "/positions", "axis": "antenna", "units": "s"}}},
        "input.coordinates.time: 'time' is an axis of its own",
    ),
    (
        {"sample_rate_hz": 0},
        "input.sample_rate_hz: must be at least 1e-09 and at most 1e+21, got 0",
    ),
    (
        {"sample_rate_hz": 1, "coordinates": {"time": {"step_s": 1}}},
        "input.sample_rate_hz: input.coordinates.time says it already",
    ),
    (
        {"coordinates": {"frequency": "/freq_hz"}, "select": {"samples": ["::-1", ":", ":", ":"]}},
        "input.select.samples",
    ),
    (
        {
            "coordinates": {"frequency": "/freq_hz"},
            "select": {"samples": [[0, 1, 2], ":", ":", ":"], "weights": [[2, 1, 0], *":::"]},
        },
        "input.coordinates.frequency: input.select takes different parts of frequency",
    ),
]


@pytest.mark.parametrize(("more", "message"), MISTAKES, ids=lambda value: str(value)[:60])
def test_mistakes_are_said_before_anything_runs(
    file: Path, more: dict[str, Any], message: str
) -> None:
    assert error_of(beams(file, **more)).startswith(message)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"axis": "tme"}, "axis: must be of ['frequency', 'polarization', 'antenna', 'time'], got"),
        ({"axis": 4}, "axis: must be within -4 to 3, got 4"),
        ({"axis": -3}, "axis: -3 is the place of an axis that a number in input.select drops"),
        ({"axis": True}, "axis: must be a whole number or text"),
    ],
)
def test_axes_that_are_not_there(file: Path, more: dict[str, Any], message: str) -> None:
    source = {"file": str(file), "samples": "volt", "axes": list(AXES)}
    source["select"] = {"samples": {"polarization": 0}} if more["axis"] == -3 else {}
    assert error_of({"kind": "dft", "input": source, **more}).startswith(message)


def test_polarizations_of_a_filter_bank_by_their_place(file: Path) -> None:
    source = {"file": str(file), "samples": "six"}
    case = {"kind": "channelise", "channels": 2, "taps": 1, "axis": -1, "input": source}
    assert "is read as ['polarization', 'antenna', 'time'] where input.axes" in error_of(case)


def test_an_axis_of_the_name_of_the_answer(file: Path) -> None:
    source = {"file": str(file), "samples": "volt", "axes": ["spectrum", "b", "c", "d"]}
    case = {"kind": "dft", "axis": "d", "input": source}
    assert "product.name must differ from its axes, got 'spectrum'" in error_of(case)


def test_an_axis_of_drawn_data_is_a_mistake() -> None:
    assert error_of({"kind": "dft", "length": 8, "axis": 0}).startswith(
        "axis may be given beside an"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_coordinates_that_are_not_finite(file: Path, value: float) -> None:
    with h5py.File(file, "a") as held:
        held["freq_hz"][1] = value
    line = error_of(beams(file, coordinates={"frequency": "/freq_hz"}))
    assert line == (
        "input.coordinates.frequency: its values must be finite numbers, entry 1 of what is "
        f"selected is {value}; take others by input.select"
    )


def test_a_coordinate_in_another_file_is_not_opened(file: Path, tmp_path: Path) -> None:
    with h5py.File(file, "a") as held:
        held["linked"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/f")
    line = error_of(beams(file, coordinates={"frequency": "/linked"}))
    assert "is a link to" in line
    assert "input.external: true" in line


def test_axes_that_matlab_wrote_must_be_named(tmp_path: Path, rng: np.random.Generator) -> None:
    """The axes of its arrays lie in the file in reverse."""
    channel = normal(rng, 4, 8, 3, 2)  # time, frequency, receiver, transmitter
    path = tmp_path / "csi.mat"
    with h5py.File(path, "w", userblock_size=512) as held:
        pairs = np.stack([channel.T.real, channel.T.imag], axis=-1)
        held["csi"] = pairs.view([("real", "f4"), ("imag", "f4")])[..., 0]
        held["csi"].attrs["MATLAB_class"] = np.bytes_("single")
    case: dict[str, Any] = {
        "kind": "mimo",
        "symbols": 3,
        "input": {"file": str(path), "channel": "csi"},
    }
    assert error_of(case) == (
        "input.channel: /csi was written by MATLAB, so its axes lie in the file in reverse; say "
        "which they are: input.axes.channel: ['transmitter', 'receiver', 'frequency', 'time'], "
        "or others"
    )
    axes = ["transmitter", "receiver", "frequency", "time"]
    one = workload_of(case | {"input": case["input"] | {"axes": {"channel": axes}}}, "fp32")
    np.testing.assert_array_equal(one.stage().operands["channel"], channel)
