"""Headers of DADA files: what they say is kept, and those that would move samples are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workflow.inputs.one_input import OneInput
from tests.workflow.one_case import error_of, study_of
from tests.workflow.peak_memory import with_peak
from tests.workflow.readers.baseband_stand_in import Stream, dada_case, install
from workflow.files.input_error import InputError
from workflow.inputs.source_attributes import MAX_NAMES, MAX_TEXT, source_attributes
from workflow.preflight.check import check_study
from workflow.readers import READERS
from workflow.readers.dada_header import MAX_BYTES, USUAL_BYTES, fields_of

TEXT = (
    b"HEADER       DADA      # Distributed acquisition\n"
    b"HDR_SIZE     4096\n\n# of the source\n"
    b"OBSERVER     Ada Lovelace # two words\n"
    b"SOURCE\tJ0437-4715\r\nRECEIVER\n# end of header\n"
)
SAID = {
    "HEADER": "DADA", "HDR_SIZE": "4096", "OBSERVER": "Ada Lovelace", "SOURCE": "J0437-4715",
}  # fmt: skip


def written(path: Path, text: bytes, payload: bytes = bytes(range(256))) -> Path:
    path.write_bytes(text.ljust(USUAL_BYTES, b"\0") + payload)
    return path


@pytest.mark.parametrize("text", [TEXT, TEXT.replace(b"# end of header\n", b"")])
def test_values_are_kept_with_all_their_words(tmp_path: Path, text: bytes) -> None:
    assert fields_of(written(tmp_path / "v.dada", text)) == SAID


def test_a_header_of_another_size(tmp_path: Path) -> None:
    long = b"HDR_SIZE 8192\n" + b"# a line of a comment\n" * 300 + b"SOURCE 3C286\n"
    path = tmp_path / "v.dada"
    path.write_bytes(long.ljust(8192, b"\0") + b"TELESCOPE samples\n")
    assert fields_of(path) == {"HDR_SIZE": "8192", "SOURCE": "3C286"}
    path.write_bytes(b"HDR_SIZE 4096\n".ljust(4095, b"#") + b"\nTELESCOPE samples\n")
    assert fields_of(path) == {"HDR_SIZE": "4096"}
    path.write_bytes(b"HDR_SIZE 12 bytes\nX 1\n")
    with pytest.raises(InputError, match="within the 12 bytes of its HDR_SIZE, got 18"):
        fields_of(path)
    path.write_bytes(b"HDR_SIZE 18 bytes\nX 1\n")
    assert fields_of(path) == {"HDR_SIZE": "18 bytes"}
    path.write_bytes(b"")
    assert fields_of(path) == {}


def test_what_follows_the_end_is_no_header(tmp_path: Path) -> None:
    assert fields_of(written(tmp_path / "v.dada", TEXT + b"\xff samples")) == SAID


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT[:-1], "with a newline within its 4096 bytes, or samples are read as text"),
        (b"SOURCE x".ljust(USUAL_BYTES), "must end the line of its byte 0 with a newline"),
        (b"SOURCE x\n" * 455 + b"y", "must end the line of its byte 4095 with a newline"),
        (b"SOURCE x\nDSB 1", "must end the line of its byte 9 with a newline"),
        (b"HDR_SIZE 100\n" + b"A 1234567\n" * 9, "must end the line of its byte 93 with a newl"),
        ("SOURCE é\n".encode(), "must be of ASCII, and the line of its byte 0 is not"),
        (b"\x89HDF\r\n\x1a\n", "must be of ASCII, and the line of its byte 0 is not"),
        (b"HDR_SIZE 1048577\n", "must have a whole number of bytes up to 1048576 as HDR_SIZE, got"),
        (b"HDR_SIZE -1\n", "as HDR_SIZE, got '-1'"),
        (b"HDR_SIZE 0\n", "as HDR_SIZE, got '0'"),
        (b"HDR_SIZE\n", "as HDR_SIZE, got ''"),
        (b"HDR_SIZE " + b"9" * 3000 + b"\n", "as HDR_SIZE, got '999"),
        (b"HDR_SIZE_OF_ALL 8192\n", "at the beginning of a line, got 'HDR_SIZE_OF_ALL 8192', "),
        (b" HDR_SIZE 8192\n", "HDR_SIZE as a word of its own at the beginning of a line, got ' H"),
        (
            b"A 1\n" * 40 + b"HDR_SIZE 100\n",
            "must end within the 100 bytes of its HDR_SIZE, got 173",
        ),
    ],
)
def test_headers_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, said: str
) -> None:
    path = tmp_path / "v.dada"
    given = dada_case(path, monkeypatch, {})
    written(path, text)
    found = error_of(given)
    assert found.startswith(f"input.file: the header of {path} must ")
    assert said in found


LAYOUT = b"NBIT 8\nNDIM 2\nNPOL 2\nNCHAN 3\nTSAMP 0.5\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"NANT 64\n", "must be of one antenna and beam, got NANT 64, and it does not say how"),
        (b"NBEAM 6 # of them\nNANT 1\n", "must be of one antenna and beam, got NBEAM 6, and"),
        (b"NANT 2\nBYTES_PER_SECOND 48000000.0\n", "must be of one antenna and beam, got NANT 2"),
        (b"NANT 2\nBYTES_PER_SECOND 24000000.0\n", None),
        (b"NBIT 16\n", "must have an NBIT of 8, bits of a number as baseband reads, got '16'"),
        (b"NBIT -32\n", "must have an NBIT of 8, bits of a number as baseband reads, got '-32'"),
        (b"NDIM 4\n", "must have an NDIM of 1, real, or 2, complex samples, got '4'"),
        (b"MJD_START unset\n", "must have the day and its fraction as MJD_START, as 59596.25, got"),
        (b"FILE_SIZE 72\n", "must have the bytes of its samples as FILE_SIZE, 144, got 72, by "
         "which 72 of them are no samples; write what is right into the header"),
        (b"FILE_SIZE 144\nMJD_START 59596.25\nNANT 1\n", None),
        (b"FILE_SIZE 10000\n", None),
    ],
)  # fmt: skip
def test_samples_that_baseband_would_take_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, said: str | None
) -> None:
    path = tmp_path / "v.dada"
    given = dada_case(path, monkeypatch, {})
    written(path, LAYOUT + text, bytes(144))
    if b"FILE_SIZE 72" not in text:
        monkeypatch.setattr(Stream, "shape", (12, 2, 3))
    if said is None:
        return check_study(study_of(given))
    assert error_of(given).startswith(f"input.file: the header of {path} {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"UTC_START 2022-01-17-06:17:50\nPICOSECONDS 250000000500\n",
         "2022-01-17T06:17:50.250000000"),
        (b"UTC_START 2022-01-17T06:17:59\nPICOSECONDS 250000000500\nOBS_OFFSET 36000000\n" + LAYOUT,
         "2022-01-17T06:18:00.750000000"),
        (b"UTC_START 2022-01-17-06:17:50.5\nPICOSECONDS 500000000000\n", ""),
        (b"UTC_START 2022-13-17-06:17:50\nPICOSECONDS 500000000000\n", ""),
        (b"UTC_START 2022-01-17-06:17:50\n", ""),
        (b"PICOSECONDS 500000000000\n", ""),
    ],
)  # fmt: skip
def test_picoseconds_are_the_fraction_of_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, said: str
) -> None:
    path = tmp_path / "v.dada"
    dada_case(path, monkeypatch, {})
    written(path, text)
    long_name = READERS["dada"](path).outline("voltages").coordinates["time"].long_name
    assert long_name == f"time since {said or '2018-01-14T14:11:33.000001250'} UTC"


def test_many_long_and_strange_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.dada"
    install(monkeypatch, "dada", lambda *_, **__: Stream())
    source = OneInput(file=path, format="dada", x="voltages")
    many = b"".join(b"KEY%04d %d\n" % (number, number) for number in range(MAX_NAMES + 50))
    path.write_bytes((b"HDR_SIZE 65536\n" + many).ljust(65536, b"\0"))
    assert len(source_attributes(source)["header"]) == MAX_NAMES
    strange = b"HDR_SIZE 65536\nA/B x\n.. up\nHISTORY " + b"h" * (MAX_TEXT + 5) + b"\n"
    path.write_bytes(strange.ljust(65536, b"\0"))
    assert source_attributes(source)["header"] == {
        "HDR_SIZE": "65536", "A_B": "x", "_": "up",
        "HISTORY": "h" * MAX_TEXT + " ... (4101 characters in all)",
    }  # fmt: skip


def test_a_file_of_one_line_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "v.dada"
    with path.open("wb") as file:
        file.write(b"HDR_SIZE %d\nSOURCE " % MAX_BYTES + b"x" * (8 << 20))

    def refused() -> None:
        with pytest.raises(InputError, match="with a newline within its 1048576 bytes"):
            fields_of(path)

    refused()
    _, peak = with_peak(refused)
    assert peak < 8 * MAX_BYTES


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, len(TEXT)))
def test_any_bytes_are_fields_or_an_error(tmp_path_factory: pytest.TempPathFactory,
                                          more: bytes, at: int) -> None:  # fmt: skip
    path = tmp_path_factory.getbasetemp() / "any.dada"
    written(path, TEXT[:at] + more + TEXT[at:])
    try:
        found = fields_of(path)
    except InputError:
        return
    assert all(key and value and value.isascii() for key, value in found.items())
