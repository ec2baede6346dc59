"""Errors of a file that could not be read or written: which one, why, and what to do.

A job reads some files while it writes another. An error of the system names the file that it
is about: the one in the error or in HDF5's message, else the one that was being read or written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from workflow.storage.memory import in_words

_NAMED = re.compile(r"\b(?:file)?name = '([^']*)'")
_NUMBERED = re.compile(r"\berrno = (\d+)")
"""The system's number and words of an error, as HDF5 writes them into its own text."""
_LACKING = re.compile(r"\b(no|object|attribute|link)\b", re.IGNORECASE)
"""In what h5py says of an object that a file lacks, and `storage` of data; in no name of a key."""
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part")
"""A name of `argand.runtime.files.whole_files.atomic_path`."""

_ADVICE = {
    errno.EDQUOT: "the quota of this user is used up; free some of it or ask for more",
    errno.EFBIG: "the file would be larger than ulimit -f or the file system allows",
    errno.EROFS: "the file system takes no writes; run in another folder",
    errno.EACCES: "this user has no right to it; give it, or run in another folder",
    errno.EPERM: "this user has no right to it; give it, or run in another folder",
    errno.EMFILE: "this process has all the files open that ulimit -n allows; raise it",
    errno.ENFILE: "this machine has all the files open that it allows; close some",
    errno.ENOMEM: "this machine has no memory left; end what takes it",
    errno.EIO: "its device fails; look at the system's log",
    errno.ESTALE: "its file server has lost it; run again",
}


def printable(text: str) -> str:
    """Return text without line breaks and a terminal's control sequences: they are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class DataError(RuntimeError):
    """A file that the pipeline wrote is missing a part, damaged, or of another kind."""


class WriteError(OSError):
    """A file cannot be written; the text names it, the cause and what to do."""

    def __init__(self, number: int | None, text: str) -> None:
        super().__init__(number, text)
        self._text = text

    def __str__(self) -> str:
        return self._text


def number_of(error: BaseException) -> int | None:
    """Return the system's number of an error, where it has one: h5py has some in the text alone."""
    found = getattr(error, "errno", None)
    if isinstance(found, int):
        return found
    words = _NUMBERED.search(str(error))
    return int(words[1]) if words else None


def is_of_system(error: BaseException) -> bool:
    """Return whether an error says nothing of a file's content: making it again is no help."""
    return number_of(error) in {*_ADVICE, errno.ENOSPC}


def cause_of(error: BaseException) -> str:
    """Return the system's words for an error, and what to do about it.

    Otherwise they are the error's own words.
    """
    number = number_of(error)
    if number is None:
        return str(error)
    advice = _ADVICE.get(number)
    return f"{os.strerror(number)}{f': {advice}' if advice else ''}"


@contextlib.contextmanager
def reading(path: Path, *, alone: bool = False) -> Iterator[None]:
    """Read a file of ours within the block; its errors become DataError that names it.

    Errors about another file, or about none, are left as they are, and so is a KeyError of a
    mapping, which is an error of the code. With ``alone`` nothing else is done in the block, so
    that every error concerns this file.
    """
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        named = _file_of(error)
        ours = _is_same(named, path) if named else alone or number_of(error) is None
        if not ours:
            raise
        if is_of_system(error):
            raise DataError(f"{path}: cannot be read ({cause_of(error)})") from error
        raise DataError(
            f"{path}: missing, truncated or damaged ({error}); delete it and run again"
        ) from error
    except KeyError as error:
        if not alone and not _LACKING.search(str(error)):
            raise
        raise DataError(f"{path}: incomplete ({error}); delete it and run again") from error


@contextlib.contextmanager
def writing(path: Path, needed: int | None = None, *, alone: bool = True) -> Iterator[None]:
    """Write a file within the block; its errors become WriteError that names it.

    ``path`` may be the temporary name of `argand.runtime.files.whole_files.atomic_path`. ``needed``
    is how many bytes are written, where that is known. Errors of other files are left as they are,
    and so are those without a number of the system's, which are no matter of writing. Without
    ``alone`` other work is done in the block, so that errors concern this file only where they name
    it: HDF5 does so in what it says of failed writes, also of those it does when it closes the
    file.
    """
    try:
        yield
    except WriteError:
        raise
    except (OSError, RuntimeError) as error:
        named = _file_of(error)
        ours = _is_same(named, path) if named else alone
        if number_of(error) is None or not ours:
            raise
        raise write_error(path, error, needed) from error


def synced(descriptor: int, path: Path) -> None:
    """Wait until what was written to a file is on its disk. Raises WriteError."""
    with writing(path):
        os.fsync(descriptor)


def write_error(path: Path, error: BaseException, needed: int | None = None) -> WriteError:
    """Return the error of a file, or its temporary one, that could not be written."""
    hidden = _TEMPORARY.fullmatch(path.name)
    final = path.with_name(hidden[1]) if hidden else path
    number = number_of(error)
    if number != errno.ENOSPC:
        return WriteError(number, f"{final}: cannot be written ({cause_of(error)})")
    written = ""
    with contextlib.suppress(OSError):
        written = f"{in_words(path.stat().st_size)} of it were written, "
    if needed is not None:
        written = f"{in_words(needed)} were to be added, {written}"
    free = "an unknown number of bytes"
    with contextlib.suppress(OSError):
        free = in_words(shutil.disk_usage(final.parent).free)
    return WriteError(
        number,
        f"{final}: cannot be written (No space left on device): {written}and the device that holds "
        f"{final.parent} has {free} free; make room there, or run in another folder",
    )


def _file_of(error: BaseException) -> str | None:
    """Return the file that an error names."""
    name = getattr(error, "filename", None)
    if isinstance(name, bytes):
        return os.fsdecode(name)
    if isinstance(name, str | os.PathLike):
        return os.fspath(name)
    words = _NAMED.search(str(error))
    return words[1] if words else None


def _is_same(name: str, path: Path) -> bool:
    return Path(name) == path or Path(name).resolve() == path.resolve()
