"""Results whose time of change is in the future, as after a clock was set back.

Snakemake makes again what is older than its inputs. It would keep such a result, also where one of
its inputs was made again and the run was killed then, because the new input is older. So these
results are given a time before any other.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from workflow.counted import counted
from workflow.storage.failures import printable
from workflow.storage.files import CLOCK_SKEW_S

_OF_NO_STEP = {"logs", "benchmarks", "times"}
"""Folders of results whose times Snakemake does not compare."""


def age_future(folder: Path, say: Callable[[str], None]) -> list[Path]:
    """Give results whose time of change is in the future the time 0; return them, say how many.

    Snakemake then makes again each result that reads a user's file, because that is newer.

    Args:
        folder: the results.
        say: is given a line where there are any.

    Raises OSError where one is another user's, who alone may set its time.
    """
    latest, aged = time.time() + CLOCK_SKEW_S, []
    for path in sorted(folder.rglob("*")):
        within = path.relative_to(folder).parts
        if within[0] in _OF_NO_STEP or path.name.startswith("."):
            continue
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_mtime > latest:
            os.utime(path, ns=(status.st_atime_ns, 0))
            aged.append(path)
    if aged:
        say(
            f"{printable(str(folder))}: {counted(len(aged), 'file')} changed in the future, such "
            f"as {printable(str(aged[0].relative_to(folder)))}: was a clock set back? What follows "
            "from an input is made again"
        )
    return aged
