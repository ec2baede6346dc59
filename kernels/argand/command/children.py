"""Programs that a command starts, and waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

INTERRUPTED = 130
"""The status of a program that the keyboard interrupted, as shells have it."""


def finished(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program to its end and return its exit status, `INTERRUPTED` after Ctrl-C.

    The status of a program that a signal ended is 128 plus the signal's number, as in shells.
    Ctrl-C reaches the program too, which ends by itself; `subprocess.run` would kill it.
    """
    interrupted = False
    with subprocess.Popen(command, env=environment) as process:
        while True:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                interrupted = True
            else:
                return INTERRUPTED if interrupted else 128 - status if status < 0 else status
