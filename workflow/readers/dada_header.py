"""Headers of DADA files: lines of a key, a value and a comment within the first bytes of a file.

baseband has the sizes and times of samples from them. What else they say is read here, because
baseband keeps the first word of a value alone. It also reads a last line that is not ended on into
the samples, takes the size of a header from any line that begins with the letters of `HDR_SIZE`,
and has samples begin after a header that is longer than it says; each moves their beginning. A line
of any length it reads into memory. Such headers are refused here before baseband reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from workflow.storage.input_error import InputError

USUAL_BYTES = 4096
"""Bytes of a header that does not say its size (`HDR_SIZE`)."""
MOST_BYTES = 1 << 20
"""Bytes of a header that is read."""
_SIZE = "HDR_SIZE"


def fields_of(path: Path) -> dict[str, str]:
    """Return the values of a header's keys as they stand there, without comments.

    Raises InputError where the file cannot be read, where a line is not of ASCII or not ended
    within the header, where it is not certain what size the header says, and where that is above
    `MOST_BYTES`.
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
    if not is_number or not 0 < int(word) <= MOST_BYTES:
        raise _wrong(
            path,
            f"must have a whole number of bytes up to {MOST_BYTES} as {_SIZE}, got {said!r:.60}",
        )
    return int(word)


def _wrong(path: Path, text: str) -> InputError:
    return InputError(f"input.file: the header of {path} {text}")
