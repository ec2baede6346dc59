"""Logs of the Linux 802.11n CSI Tool, written here packet by packet; damaged ones are errors."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.readers import ChannelState

SUBCARRIERS = 30
RNG = np.random.default_rng(5300)


def matrices(packets: int, receivers: int = 3, transmitters: int = 2) -> Any:
    """Channel state of integer parts in eight bits, the extremes among them."""
    parts = RNG.integers(-128, 128, (packets, SUBCARRIERS, receivers, transmitters, 2))
    parts[0, 0, 0, 0] = -128, 127
    return (parts[..., 0] + 1j * parts[..., 1]).astype(np.complex64)


def payload(one: Any) -> bytes:
    """The matrices of a packet, bit by bit: three bits before each, lowest bit first."""
    bits: list[int] = []
    for matrix in one:
        bits += [1, 0, 1]
        for value in matrix.ravel():
            for part in (int(value.real), int(value.imag)):
                bits += [part >> place & 1 for place in range(8)]
    bits += [0] * (-len(bits) % 8)
    return bytes(
        sum(bit << place for place, bit in enumerate(bits[start : start + 8]))
        for start in range(0, len(bits), 8)
    )


def packet(one: Any, clock: int = 0, antennas: Sequence[int] = (0, 1, 2), rate: int = 0) -> bytes:
    """A record: its length, its code, its header, its matrices."""
    _, receivers, transmitters = one.shape
    order = sum(antenna << 2 * place for place, antenna in enumerate(antennas))
    body = payload(one)
    header = struct.pack(
        "<IHHBBBBBbBBHH", clock & 0xFFFFFFFF, 1, 0, receivers, transmitters, 30, 31, 32, -85, 35,
        order, len(body), rate,
    )  # fmt: skip
    return record(b"\xbb" + header + body)


def record(content: bytes) -> bytes:
    return len(content).to_bytes(2, "big") + content


def read(path: Path) -> Any:
    reader = ChannelState(path)
    return reader.read("channel", [slice(0, n) for n in reader.outline("channel").data.shape])


def case(path: Path) -> dict[str, Any]:
    source = {"file": str(path), "format": "csi", "samples": "channel"}
    return {"kind": "dft", "axis": "time", "input": source}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.dat"


@pytest.mark.parametrize(("receivers", "transmitters"), [(1, 1), (2, 3), (3, 2), (3, 3)])
def test_packets(path: Path, receivers: int, transmitters: int) -> None:
    exact = matrices(7, receivers, transmitters)
    path.write_bytes(b"".join(packet(one, 1000 * n) for n, one in enumerate(exact)))
    outline = ChannelState(path).outline("channel")
    assert outline.axes == ("time", "frequency", "receiver", "transmitter")
    assert outline.data.shape == exact.shape
    np.testing.assert_array_equal(outline.coordinates["time"].values, np.arange(7) / 1000)
    np.testing.assert_array_equal(read(path), exact)
    part = [slice(2, 5), slice(3, 30), slice(0, 1), slice(0, transmitters)]
    np.testing.assert_array_equal(ChannelState(path).read("channel", part), exact[tuple(part)])
    none = ChannelState(path).read("channel", [slice(3, 3), *part[1:]])
    assert none.shape == (0, 27, 1, transmitters)


# Of 20 MHz every second subcarrier and, next to the carrier and at the upper end, its neighbour.
NARROW = [*range(-28, -1, 2), -1, *range(1, 28, 2), 28]
WIDE = [*range(-58, -1, 4), *range(2, 59, 4)]


@pytest.mark.parametrize(("rate", "places"), [(0x10F, NARROW), (0x90F, WIDE)])
def test_frequencies_are_those_of_the_width(path: Path, rate: int, places: list[int]) -> None:
    path.write_bytes(packet(matrices(1)[0], rate=rate))
    hertz = ChannelState(path).outline("channel").coordinates["frequency"].values
    np.testing.assert_array_equal(hertz, 312_500 * np.array(places))


def test_receivers_stand_in_the_order_of_antennas(path: Path) -> None:
    exact = matrices(2)
    orders = [(1, 2, 0), (0, 2, 1)]
    path.write_bytes(b"".join(map(packet, exact, (0, 1), orders)))
    found = read(path)
    for one, got, order in zip(exact, found, orders, strict=True):
        for chain, antenna in enumerate(order):
            np.testing.assert_array_equal(got[:, antenna], one[:, chain])


def test_packets_of_two_antennas_have_their_numbers(path: Path) -> None:
    """A and C are 1 and 3 of the card; packets of A and B are of another array."""
    one, other = matrices(2, receivers=2)
    path.write_bytes(packet(one, antennas=(2, 0)) + packet(other, antennas=(0, 2)))
    receivers = ChannelState(path).outline("channel").coordinates["receiver"]
    assert receivers.values.tolist() == [1, 3]
    np.testing.assert_array_equal(read(path), [one[:, ::-1], other])
    path.write_bytes(packet(one, antennas=(2, 0)) + packet(other, antennas=(1, 0)))
    said = "packets must have the same receiving antennas, got AC and, in packet 2, AB; each kind"
    assert said in error_of(case(path))


def test_a_clock_that_passes_zero_and_a_packet_that_is_late(path: Path) -> None:
    clock = [2**32 - 5, 2**32 + 10, 2**32 + 7, 2**32 + 20]
    path.write_bytes(b"".join(map(packet, matrices(4), clock)))
    seconds = ChannelState(path).outline("channel").coordinates["time"].values
    np.testing.assert_allclose(seconds, np.array([0, 15, 12, 25]) / 1e6, rtol=1e-15)


def test_equal_steps_in_place_of_subcarriers_with_a_gap(path: Path) -> None:
    """A transform needs equal steps, which the subcarriers of 20 MHz have not."""
    path.write_bytes(b"".join(map(packet, matrices(3), (0, 10, 20))))
    source: dict[str, Any] = {"file": str(path), "format": "csi", "samples": "channel"}
    case = {"kind": "dft", "axis": "frequency", "input": source}
    study = {"device": "cpu", "workloads": {"w": case}}
    with pytest.raises(StudyError, match="frequency must have equal steps, but entry 14 is at"):
        check_study(load_study(study))
    source["coordinates"] = {"frequency": {"start": 0, "step_hz": 6.25e5}}
    loaded = load_study(study)
    check_study(loaded)
    found = loaded.workload("w").stage().coordinates
    np.testing.assert_allclose(found["frequency"].values, 6.25e5 * np.arange(SUBCARRIERS))
    # What is of equal steps in the file stays as the file says it.
    source["coordinates"] = {"time": {"step_s": 1.0}}
    source["select"] = {"samples": {"frequency": "0:14"}}
    with pytest.raises(StudyError, match=r"coordinates\.time: the file says it already"):
        check_study(load_study(study))
    del source["coordinates"]
    check_study(load_study(study))


def test_other_records_are_passed_over(path: Path) -> None:
    exact = matrices(2)
    frame = record(b"\xc1" + bytes(65_534))
    path.write_bytes(frame + packet(exact[0]) + record(b"\x00") + packet(exact[1]) + frame)
    np.testing.assert_array_equal(read(path), exact)


def test_a_study_of_a_log(path: Path) -> None:
    exact = matrices(8)
    path.write_bytes(b"".join(packet(one, 1000 * n) for n, one in enumerate(exact)))
    study = study_of(case(path))
    check_study(study)
    staged = study.workload("w").stage()
    np.testing.assert_array_equal(staged.operands["samples"], np.moveaxis(exact, 0, -1))


GOOD = packet(matrices(1)[0])


def changed(place: int, value: int) -> bytes:
    return GOOD[:place] + bytes([value]) + GOOD[place + 1 :]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no channel state"),
        (b"\x89HDF\r\n\x1a\n" + bytes(2000), "is said to have"),
        (record(b"\xc1" + bytes(30)), "has no channel state"),
        (GOOD + GOOD[:-1], "ends within a record"),
        (GOOD + b"\x01", "ends within a record"),
        (GOOD + b"\x00\x00\xbb" + GOOD, "ends within a record"),
        (b"\xff\xff" + GOOD[2:], "is said to have 65535 bytes"),
        (record(b"\xbb"), "is damaged"),
        (record(b"\xbb" + bytes(20)), "is damaged"),
        (record(GOOD[2:] + b"\x00"), "is damaged"),
        (changed(3 + 8, 0), "is damaged"),
        (changed(3 + 8, 255), "is damaged"),
        (changed(3 + 9, 3), "is damaged"),
        (changed(3 + 17, 255), "is damaged"),
        (packet(matrices(1)[0], antennas=(0, 0, 1)), "names an antenna twice"),
        (packet(matrices(1)[0], antennas=(0, 1, 3)), "names an antenna twice"),
        (GOOD + packet(matrices(1, 2, 2)[0]), "packets must have the same receivers"),
        (GOOD + packet(matrices(1, 3, 1)[0]), "packets must have the same transmitters"),
        (GOOD + packet(matrices(1)[0], rate=0x800), "packets must have the same width"),
    ],
)  # fmt: skip
def test_what_is_damaged_or_no_log(path: Path, content: bytes, why: str) -> None:
    path.write_bytes(content)
    assert error_of(case(path)).startswith("input.file: ")
    assert why in error_of(case(path))


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_are_channel_state_or_an_error(path: Path, seed: int) -> None:
    """Flips anywhere: a packet of other values, or an error; never a crash."""
    rng = np.random.default_rng(seed)
    content = bytearray(b"".join(map(packet, matrices(5), range(5))))
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged[: rng.integers(1, len(damaged) + 1)])
        with contextlib.suppress(InputError):
            assert np.isfinite(read(path)).all()


def test_a_file_that_becomes_shorter(path: Path) -> None:
    path.write_bytes(GOOD + GOOD)
    reader = ChannelState(path)
    reader.outline("channel")
    path.write_bytes(GOOD)
    with pytest.raises(InputError, match="became shorter while it was read"):
        reader.read("channel", [slice(0, 2), slice(0, 30), slice(0, 3), slice(0, 2)])


def test_a_file_that_is_not_there(path: Path) -> None:
    assert "there is no file" in error_of(case(path))


def test_an_array_that_it_has_not(path: Path) -> None:
    path.write_bytes(GOOD)
    given = {"kind": "dft", "axis": "time",
             "input": {"file": str(path), "format": "csi", "samples": "phase"}}  # fmt: skip
    with pytest.raises(StudyError, match="must be one of \\['channel'\\]"):
        check_study(study_of(given))
