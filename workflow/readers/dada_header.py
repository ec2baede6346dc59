"""Headers of DADA files: lines of a key, a value and a comment within the first bytes of a file.

baseband has the sizes and times of samples from them. The rest is read here, because baseband keeps
the first word of a value alone. It also reads a last line that is not ended on into the samples,
takes the size of a header from any line that begins with the letters of `HDR_SIZE`, and has samples
begin after a header that is longer than it says; each moves their beginning. A line of any length
it reads into memory. Such headers are refused here before baseband reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np

from workflow.files.input_error import InputError

USUAL_BYTES = 4096
"""Bytes of a header that does not say its size (`HDR_SIZE`)."""
MAX_BYTES = 1 << 20
"""Bytes of a header that is read."""
_SIZE = "HDR_SIZE"
_UTC = re.compile(r"(\d{4}-\d\d-\d\d)[-T](\d\d:\d\d:\d\d)")
_NUMBER = re.compile(r"\d{1,20}(\.\d{0,40})?")
_WORD = 4
"""Bytes of the words that baseband reads."""
_MAX_SECONDS = 86_400 * 365 * 100
"""Seconds that an observation may last; others are none."""


def fields_of(path: Path) -> dict[str, str]:
    """Return the values of a header's keys as they stand there, without comments.

    Raises InputError where the file cannot be read, where a line is not of ASCII or not ended
    within the header, where it is not certain what size the header says, and where that is above
    `MAX_BYTES`.
    """
    try:
        with path.open("rb") as file:
            return _fields_in(file, path)
    except OSError as error:
        raise InputError(f"input.file: {path} cannot be read ({error})") from error


def _fields_in(file: BinaryIO, path: Path) -> dict[str, str]:
    fields: dict[str, str] = {}
    size, begin = USUAL_BYTES, 0
    while begin < size:
        line = file.readline(size - begin)
        if line[:1] in (b"", b"\0"):
            break
        text = line.partition(b"\0")[0]
        if not text.isascii():
            raise _wrong(path, f"must be of ASCII, and the line of its byte {begin} is not")
        if not text.endswith(b"\n"):
            raise _wrong(
                path,
                f"must end the line of its byte {begin} with a newline within its {size} bytes, "
                "or samples are read as text",
            )
        said = text.decode("ascii")
        if said.startswith("#") and "end of header" in said:
            break
        key, value = (*said.partition("#")[0].strip().split(maxsplit=1), "", "")[:2]
        begin += len(line)
        if said.startswith(_SIZE) != (key == _SIZE):
            raise _wrong(
                path,
                f"must have {_SIZE} as a word of its own at the beginning of a line, got "
                f"{said.rstrip()!r:.60}, which baseband reads otherwise",
            )
        if key == _SIZE and (size := _bytes_of(path, value)) < begin:
            raise _wrong(path, f"must end within the {size} bytes of its {_SIZE}, got {begin}")
        if value:
            fields[key] = value
    return fields


def _bytes_of(path: Path, said: str) -> int:
    """Return the bytes that HDR_SIZE says by its first word; raises InputError for none."""
    word = said.split(maxsplit=1)[0] if said else ""
    is_number = word.isdigit() and len(word) < 19
    if not is_number or not 0 < int(word) <= MAX_BYTES:
        raise _wrong(
            path,
            f"must have a whole number of bytes up to {MAX_BYTES} as {_SIZE}, got {said!r:.60}",
        )
    return int(word)


def check_samples(fields: Mapping[str, str], path: Path) -> None:
    """Raise InputError where baseband would take the samples of a header for others.

    Where ``BYTES_PER_SECOND`` is that of one antenna and beam, samples are of one, such as a sum.
    """
    counts = {key: _whole(fields, key) for key in ("NBIT", "NDIM", "NPOL", "NCHAN")}
    for key, allowed, what in (
        ("NBIT", (8,), "8, bits of a number as baseband reads"),
        ("NDIM", (1, 2), "1, real, or 2, complex samples"),
    ):
        if key in fields and counts[key] not in allowed:
            raise _wrong(path, f"must have an {key} of {what}, got {fields[key]!r:.60}")
    day = _word(fields, "MJD_START")
    if day and "." not in day[1:]:
        raise _wrong(
            path, f"must have the day and its fraction as MJD_START, as 59596.25, got {day!r:.60}"
        )
    several = {key: _whole(fields, key) or 1 for key in ("NANT", "NBEAM")}
    if max(several.values()) == 1:
        return
    said, step = _number(fields, "BYTES_PER_SECOND"), _number(fields, "TSAMP")
    each = np.prod([count or 1 for count in counts.values()], dtype=float) / 8
    if said and step and abs(said * float(step) / 1e6 / each - 1) < 1 / 4:
        return
    key, count = max(several.items(), key=lambda one: one[1])
    raise _wrong(
        path,
        f"must be of one antenna and beam, got {key} {count}, and it does not say how their "
        "samples lie; write those of each into a file of its own, or where they are of one give "
        f"{key} as 1",
    )


def check_size(fields: Mapping[str, str], path: Path, held: int, each: int) -> None:
    """Raise InputError where baseband finds less than the file has.

    Args:
        fields: fields of the header.
        path: the path of the file.
        held: bytes of samples that baseband finds.
        each: bytes of a sample. It leaves out the last ones that are no whole word.
    """
    said, header = _whole(fields, "FILE_SIZE"), _whole(fields, _SIZE) or USUAL_BYTES
    if not said:
        return
    there = path.stat().st_size - header * -(-held // said)
    if there - held >= _WORD * each:
        raise _wrong(
            path,
            f"must have the bytes of its samples as FILE_SIZE, {there}, got {said}, by which "
            f"{there - held} of them are no samples; write what is right into the header",
        )


def start_in(fields: Mapping[str, str]) -> str:
    """Return the date of the first sample in ISO 8601 and UTC, by PICOSECONDS; "" without them.

    They are the fraction of a UTC_START of whole seconds, which the first sample of the file is
    OBS_OFFSET bytes behind. MJD_START has it in fewer digits, or not.
    """
    utc, fraction = _UTC.fullmatch(_word(fields, "UTC_START")), _number(fields, "PICOSECONDS")
    if utc is None or not fraction:
        return ""
    try:
        begin = np.datetime64(f"{utc[1]}T{utc[2]}", "s")
    except ValueError:  # such as a 13th month
        return ""
    bits = [_whole(fields, key) or 1 for key in ("NBIT", "NDIM", "NPOL", "NCHAN")]
    samples = 8 * (_whole(fields, "OBS_OFFSET") or 0) // int(np.prod(bits, dtype=object))
    passed = fraction / 10**12 + samples * (_number(fields, "TSAMP") or 0) / 10**6
    seconds, nanoseconds = divmod(round(10**9 * passed), 10**9)
    if seconds >= _MAX_SECONDS:
        return ""
    return f"{begin + np.timedelta64(seconds, 's')}.{nanoseconds:09d}"


def _word(fields: Mapping[str, str], key: str) -> str:
    """Return the first word of a value, as baseband takes it; empty where there is none."""
    return (fields.get(key, "").split(maxsplit=1) or [""])[0]


def _number(fields: Mapping[str, str], key: str) -> Fraction | None:
    """Return the value of a key where it is a number of digits, from 0 on."""
    word = _word(fields, key)
    return Fraction(word) if _NUMBER.fullmatch(word) else None


def _whole(fields: Mapping[str, str], key: str) -> int | None:
    """Return the value of a key where it is a whole number, from 0 on."""
    word = _word(fields, key)
    return int(word) if word.isdigit() and len(word) < 19 else None


def _wrong(path: Path, text: str) -> InputError:
    return InputError(f"input.file: the header of {path} {text}")
