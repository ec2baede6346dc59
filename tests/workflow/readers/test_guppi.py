"""GUPPI recordings: how samples lie, what headers say, and what headers must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.one_case import error_of, study_of
from tests.workflow.peak_memory import with_peak
from tests.workflow.readers.guppi_file import HEADER, SAMPLES, cards, case, parts, voltages, write
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.readers import READERS, reader_of


def read(path: Path, **more: Any) -> Any:
    """The samples of a recording, all of them, and their coordinates."""
    given = case(path, **more)
    study = study_of(given)
    check_study(study)
    reader = reader_of(study.workload("w").case.input, "samples")
    found = reader.outline("voltages")
    return reader.read("voltages", [slice(0, n) for n in found.data.shape]), found


@pytest.mark.parametrize(
    ("npol", "polarizations", "more"),
    [
        (1, 1, {}), (2, 1, {}), (4, 2, {}), ("4", 2, {"NBITS": "8", "OVERLAP": "0"}),
        (2, 2, {"PIPERBLK": 8}), (1, 1, {"PIPERBLK": 8}), (4, 2, {"DIRECTIO": 1}),
        (2, 2, {"DIRECTIO": 1}), (2, 2, {"NANTS": 1}),
    ],
)  # fmt: skip
def test_polarizations_of_any_recorder(
    tmp_path: Path, npol: object, polarizations: int, more: dict[str, Any]
) -> None:
    """Some count real numbers of a sample as NPOL, 2 of one polarization, others polarizations."""
    data = parts(3, shape=(4, SAMPLES, polarizations))
    write(tmp_path / "v.raw", data, NPOL=npol, **more)
    found, outline = read(tmp_path / "v.raw")
    np.testing.assert_array_equal(found, voltages(data))
    assert outline.axes == ("time", "polarization", "frequency")
    there = outline.coordinates
    np.testing.assert_allclose(there["frequency"].values, [1.4215e9, 1.4205e9, 1.4195e9, 1.4185e9])
    np.testing.assert_allclose(there["time"].values, np.arange(96) * 1e-6)
    assert there["time"].long_name == "time since 2018-01-14T14:11:33.000000000 UTC"
    assert ("polarization" in there) == (polarizations == 2)


@pytest.mark.parametrize("padded", [True, False])
def test_samples_are_padded_as_headers_are(tmp_path: Path, padded: bool) -> None:
    """Recorders that write through O_DIRECT may pad blocks to a multiple of 512 bytes."""
    data = parts(3, shape=(4, 24, 2))
    write(tmp_path / "v.raw", data, DIRECTIO=1, padded=padded)
    found, _ = read(tmp_path / "v.raw")
    np.testing.assert_array_equal(found, voltages(data))
    whole = (tmp_path / "v.raw").read_bytes()
    (tmp_path / "v.raw").write_bytes(whole[: -128 if padded else -1])
    if padded:  # the last padding is not there
        found, _ = read(tmp_path / "v.raw")
        np.testing.assert_array_equal(found, voltages(data))
    else:
        assert "block 2 of" in error_of(case(tmp_path / "v.raw"))


def test_antennas_are_an_axis(tmp_path: Path) -> None:
    """OBSNCHAN counts the channels of all antennas: they became channels of wrong frequencies."""
    data = parts(2, shape=(3 * 4, SAMPLES, 2))
    write(tmp_path / "v.raw", data, OBSNCHAN=12, NANTS=3, NPOL=2, PIPERBLK=12)
    found, outline = read(tmp_path / "v.raw")
    assert outline.axes == ("time", "antenna", "polarization", "frequency")
    expected = voltages(data).reshape(64, 2, 3, 4).swapaxes(1, 2)
    np.testing.assert_array_equal(found, expected)
    there = outline.coordinates["frequency"].values
    np.testing.assert_allclose(there, [1.4215e9, 1.4205e9, 1.4195e9, 1.4185e9])
    box = (slice(20, 50), slice(1, 3), slice(1, 2), slice(2, 4))
    part = READERS["guppi"](tmp_path / "v.raw").read("voltages", box)
    np.testing.assert_array_equal(part, expected[box])


@pytest.mark.parametrize("tbin", [1e-6, 0.5e-6])
def test_one_channel_is_complex_by_its_sample_time(tmp_path: Path, tbin: float) -> None:
    data = parts(2, shape=(1, SAMPLES, 1))
    npol = 2 if tbin == 1e-6 else 1
    shaped = data if npol == 2 else data.reshape(2, 1, 2 * SAMPLES, 1, 1)
    write(tmp_path / "v.raw", shaped, OBSNCHAN=1, OBSBW=1.0, TBIN=tbin, NPOL=npol, PKTSIZE=None)
    found, outline = read(tmp_path / "v.raw", axes=["time", "polarization", "frequency"])
    expected = voltages(data)[:, 0, 0] if npol == 2 else shaped.reshape(-1)
    np.testing.assert_array_equal(found[:, 0, 0], expected)
    assert found.dtype == (np.complex64 if npol == 2 else np.float32)
    said = outline.coordinates["frequency"].long_name
    edge = ", whose lower edge is frequency 0 of the samples"
    assert said == "centre of the channel" + (edge if npol == 1 else "")


def test_bits_order_and_overlap(tmp_path: Path) -> None:
    """16 bits, samples before channels (SIMPLE), and samples that two blocks have."""
    data = parts(3)
    write(tmp_path / "a.raw", (data.astype("<i2") * 200), NBITS=16, PKTSIZE=256)
    np.testing.assert_array_equal(read(tmp_path / "a.raw")[0], 200 * voltages(data))
    write(tmp_path / "b.raw", data.swapaxes(1, 2), PKTFMT="SIMPLE")
    np.testing.assert_array_equal(read(tmp_path / "b.raw")[0], voltages(data))
    whole = np.moveaxis(data, 1, 0).reshape(4, 96, 2, 2)  # channel, time
    blocks = np.stack([whole[:, start : start + 32] for start in (0, 24, 48)])
    path = tmp_path / "c.raw"
    for number, block in enumerate(blocks):
        write(tmp_path / "one", block[None], OVERLAP=8, PKTIDX=3 * number, PKTSIZE=128)
        with path.open("ab") as file:
            file.write((tmp_path / "one").read_bytes())
    found = read(path)[0]
    np.testing.assert_array_equal(found, voltages(data)[:80])
    for start in range(78):
        part = READERS["guppi"](path).read(
            "voltages", [slice(start, start + 3), slice(2), slice(4)]
        )
        np.testing.assert_array_equal(part, found[start : start + 3])
    empty = READERS["guppi"](path).read("voltages", [slice(9, 9), slice(2), slice(4)])
    assert empty.shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("header", "since"),
    [
        ({"STT_OFFS": 0.25}, " since 2018-01-14T14:11:33.250000000 UTC"),
        ({"PKTIDX": 160, "TBIN": 0.5}, " since 2018-01-14T14:22:13.000000000 UTC"),
        ({"PKTIDX": 16, "TBIN": 0.1, "PIPERBLK": 32}, " since 2018-01-14T14:11:34.600000000 UTC"),
        ({"PKTIDX": 48, "PKTSTART": 32, "TBIN": 0.5, "PIPERBLK": 16}, " since "
         "2018-01-14T14:11:49.000000000 UTC"),
        ({"PKTIDX": 32, "TBIN": 0.5, "PIPERBLK": 32, "SYNCTIME": 1764338400}, " since "
         "2025-11-28T14:00:16.000000000 UTC"),
        ({"STT_IMJD": None}, ""), ({"PKTIDX": 9, "PKTSIZE": None}, ""),
    ],
)  # fmt: skip
def test_since_when_times_count(tmp_path: Path, header: dict[str, Any], since: str) -> None:
    """A block of 32 samples is 4 packets of 128 bytes, and PKTIDX the packets before it."""
    write(tmp_path / "v.raw", parts(1), **header)
    found = READERS["guppi"](tmp_path / "v.raw").outline("voltages").coordinates["time"]
    assert found.long_name == f"time{since}"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"BLOCSIZE": None}, "block 0 of PATH lacks BLOCSIZE"),
        ({"PKTIDX": None}, "block 0 of PATH lacks PKTIDX"),
        ({"OBSNCHAN": None}, "block 0 of PATH lacks OBSNCHAN"),
        ({"TBIN": None}, "the header of PATH lacks TBIN"),
        ({"TBIN": 0}, "the header of PATH must have a TBIN above 0 s, got 0"),
        ({"TBIN": 1e-320}, "PATH must tell of 1e-09 to 1e+21 samples a second, got inf"),
        ({"TBIN": 1e300}, "PATH must tell of 1e-09 to 1e+21 samples a second, got 1e-300"),
        ({"TBIN": "nan"}, "the header of PATH must have a finite number as TBIN, got 'nan'"),
        ({"NBITS": 4}, "block 0 of PATH must have samples of 8 or 16 bits (NBITS), got 4"),
        ({"NPOL": 3}, "block 0 of PATH must have an NPOL of 1, 2 or 4, got 3"),
        ({"OBSNCHAN": 0}, "must have a whole number from 1 on as OBSNCHAN, got '0'"),
        ({"OBSNCHAN": 1.5}, "must have a whole number from 1 on as OBSNCHAN, got '1.5'"),
        ({"OBSNCHAN": 1e18}, "numbers in a sample, and may of 1048576 (OBSNCHAN, NPOL)"),
        ({"OBSNCHAN": 1e300}, "must have a whole number from 1 on as OBSNCHAN, got '1e+300'"),
        ({"NANTS": 3}, "as many channels for each of NANTS 3 antennas, got OBSNCHAN 4 of all"),
        ({"BLOCSIZE": 500}, "must have a BLOCSIZE of whole samples of 16 bytes, more than the 0 "),
        ({"BLOCSIZE": -512}, "must have a whole number from 1 on as BLOCSIZE, got '-512'"),
        ({"BLOCSIZE": 10**18}, "block 0 of PATH is cut: it has 2304 of 1000000000000000000 bytes"),
        ({"OVERLAP": 32}, "more than the 32 of OVERLAP, got 512"),
        ({"PKTIDX": 1 << 70}, "must have a whole number from 0 on as PKTIDX, got '1180591620717"),
        ({"STT_IMJD": 10**9}, "the header of PATH tells of a first sample"),
        ({"STT_SMJD": "x"}, "must have a finite number as STT_SMJD, got 'x'"),
        ({"OBSFREQ": "1e999"}, "its header's OBSFREQ and OBSBW must be the finite middle and "),
    ],
)  # fmt: skip
def test_headers_that_cannot_be(tmp_path: Path, header: dict[str, Any], said: str) -> None:
    path = tmp_path / "v.raw"
    write(path, parts(2), **header)
    assert said.replace("PATH", str(path)) in error_of(case(path))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has no whole block of samples"),
        (b"\x89HDF\r\n\x1a\n" + bytes(600), "has no header of text at its byte 0"),
        (b"SIMPLE  =" + b" " * 3000, "has no header of cards of 80 bytes that ends with END"),
        (b"A" * 3000, "has no header of cards of 80 bytes that ends with END"),
        (cards(HEADER)[:-81], "has no header of cards of 80 bytes that ends with END"),
        ((b"A       = " + b" " * 70) * 9999, "has no header of cards of 80 bytes that ends with"),
    ],
)
def test_what_is_no_recording(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "v.raw"
    path.write_bytes(data)
    assert said in error_of(case(path))


def test_a_study_that_exchanges_time_and_frequency(tmp_path: Path) -> None:
    write(tmp_path / "v.raw", parts(1))
    given = case(tmp_path / "v.raw", axes=["frequency", "polarization", "time"])
    assert error_of(given) == (
        f"input.axes.samples: voltages of {tmp_path / 'v.raw'} names its axes ['time', "
        "'polarization', 'frequency'], and the study ['frequency', 'polarization', 'time']; "
        "correct the study"
    )
    check_study(study_of(case(tmp_path / "v.raw", axes=["time", "polarization", "channel"])))


def test_any_byte_that_is_damaged_is_read_or_an_input_error(tmp_path: Path) -> None:
    path, rng = tmp_path / "v.raw", np.random.default_rng(5)
    write(path, parts(2))
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    seen = set()
    for _ in range(400):
        data = whole.copy()
        data[rng.integers(0, 2000, 3)] ^= rng.integers(0, 256, 3, np.uint8)
        end = len(data) if rng.random() < 0.5 else int(rng.integers(1, len(data)))
        path.write_bytes(data[:end].tobytes())
        reader = READERS["guppi"](path)
        reader.checked = True
        try:
            found = reader.outline("voltages")
            assert found.data.size <= 2 * whole.size
            reader.read("voltages", [slice(0, n) for n in found.data.shape])
            seen.add("read")
        except InputError as error:
            seen.add("named" if str(path) in str(error) else str(error))
    assert seen == {"read", "named"}


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "v.raw"
    write(path, parts(2))
    reader = READERS["guppi"](path)
    whole = [slice(0, n) for n in reader.outline("voltages").data.shape]
    write(path, parts(3))
    with pytest.raises(InputError, match="was changed by another program while it was read"):
        reader.read("voltages", whole)


def test_a_check_takes_no_memory_for_each_sample(tmp_path: Path) -> None:
    path, size = tmp_path / "v.raw", 1 << 30
    with path.open("wb") as file:
        header = {**HEADER, "BLOCSIZE": size, "PKTIDX": 0}
        file.write(cards(header))
        file.truncate(file.tell() + size)  # of which nothing is written
    one = study_of(case(path)).workload("w")
    one.check()  # imports
    _, peak = with_peak(one.check)
    outline, more = with_peak(one.outline)
    assert outline.coordinates["time"].step == 1e-6
    assert max(peak, more) < 1 << 20


def test_wrong_frequencies_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "v.raw"
    write(path, parts(1), OBSFREQ=0, OBSBW=0)
    said = "its header's OBSFREQ and OBSBW must be the finite middle and width of the band in MHz, "
    assert f"{said}got 0 and 0; or give input.coordinates.frequency" in error_of(case(path))
    write(path, parts(1))
    steps = {"start": 1.6e9, "step_hz": -1e6}
    said = "the file says it already, 1421500000 to 1418500000 Hz; leave it out, or where the file"
    assert said in error_of(case(path, coordinates={"frequency": steps}))
    for sign, falls in ((-1, ", of samples whose frequencies fall"), (1, "")):
        steps["step_hz"] = sign * 1e6
        given = case(path, coordinates={"frequency": {**steps, "replace": True}})
        found = study_of(given).workload("w").stage().coordinates["frequency"]
        np.testing.assert_array_equal(found.values, 1.6e9 + sign * 1e6 * np.arange(4))
        assert (found.units, found.long_name) == ("Hz", f"centre of the channel{falls}")


@pytest.mark.parametrize(("bits", "level"), [(8, 128), (16, 32768), (8, 127.5)])
def test_offset_binary(tmp_path: Path, bits: int, level: float) -> None:
    """Unsigned samples are offset binary: 0 V is the middle number, not the lowest."""
    data = parts(2).astype(f"<i{bits // 8}") * (bits**2 // 64)
    write(tmp_path / "v.raw", (data.astype(int) + (1 << bits - 1)).astype(f"<u{bits // 8}"),
          NBITS=bits)  # fmt: skip
    found = read(tmp_path / "v.raw", zero_level=level)[0]
    off = (1 << bits - 1) - level
    np.testing.assert_array_equal(found, voltages(data) + off * (1 + 1j))
