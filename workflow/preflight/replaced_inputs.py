"""Inputs whose content is not what was staged, though their size and time of change are.

Snakemake stages again what has another size or time of modification; programs may set the time, as
``cp -p``, ``rsync -t`` and ``touch -r`` do. So a staged file that was not made from its present
inputs is given an earlier time than they have.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from workflow.inputs.provenance import file_digests
from workflow.storage.failures import DataError, printable
from workflow.storage.files import sha256_of
from workflow.storage.memory import in_words
from workflow.storage.staged import read_staged_shape
from workflow.study import Study

_SAID_BYTES = 1 << 30
"""A file of so many bytes takes a second or more to read, so it is named before."""


def age_replaced(study: Study, folder: Path, say: Callable[[str], None]) -> list[Path]:
    """Give staged files whose inputs were replaced the time 0; return them and say which.

    An input is read, for its SHA-256, where its status has changed since (``st_ctime``, which no
    program sets) and its time of modification is before that of the staged file; the next time it
    is not, because the staged file's own status changes with that. A staged file that is missing
    or damaged is left to Snakemake and its readers.

    Args:
        study: whose inputs are checked.
        folder: its results.
        say: is given a line for each staged file that is to be made again, and before a large
            input is read.

    Raises OSError where a staged file is another user's, who alone may set its time.
    """
    aged, digest_of = [], cache(sha256_of)  # workloads may share an input
    for name in study.names:
        staged = folder / "staged" / f"{name}.h5"
        try:
            status = staged.stat()
            files = {one: one.stat() for one in study.input_files(name)}
            touched = [one for one in files if _is_touched(one, files[one], status)]
            known = file_digests(read_staged_shape(staged).attributes) if touched else {}
            for one in touched if known else ():
                if files[one].st_size >= _SAID_BYTES:
                    size = in_words(files[one].st_size)
                    say(f"{_printable(one)}: touched since it was staged; reading its {size}")
            replaced = [one for one in touched if known and digest_of(one) != known.get(str(one))]
        except (OSError, DataError):
            continue
        if replaced:
            os.utime(staged, ns=(status.st_atime_ns, 0))
            aged.append(staged)
            names = ", ".join(map(_printable, replaced))
            say(f"{names}: not what {_printable(staged)} was made of, so that is made again")
        elif known:
            with contextlib.suppress(PermissionError):  # another user's: it is read each time
                os.utime(staged, ns=(status.st_atime_ns, status.st_mtime_ns))
    return aged


def _is_touched(path: Path, given: os.stat_result, staged: os.stat_result) -> bool:
    """Return whether an input may have been replaced without Snakemake seeing it by its time.

    Its own status tells, or that of a link in its place. Some milliseconds have one time, so a
    status of the staged file's own may be a later one.
    """
    changed = max(given.st_ctime_ns, path.lstat().st_ctime_ns)
    return changed >= staged.st_ctime_ns and given.st_mtime_ns <= staged.st_mtime_ns


def _printable(path: Path) -> str:
    return printable(str(path))
