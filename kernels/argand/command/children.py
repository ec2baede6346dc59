"""Programs that a command starts, and waits for."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

INTERRUPTED = 130
"""The status of a program that the keyboard interrupted, as shells have it."""


def finished(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program to its end and return its exit status, `INTERRUPTED` after Ctrl-C.

    The status of a program that a signal ended is 128 plus the signal's number, as in shells.
    Ctrl-C reaches the program too, which ends by itself; `subprocess.run` would kill it. SIGTERM,
    as `kill` and service managers send it to one process, is passed on.
    """
    interrupted = False
    with subprocess.Popen(command, env=environment) as process, _passed_on(process):
        while True:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                interrupted = True
            else:
                return INTERRUPTED if interrupted else 128 - status if status < 0 else status


@contextlib.contextmanager
def _passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    except ValueError:  # a thread that is not the main one gets no signal
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def ended(command: Callable[[], int]) -> int:
    """Return a command's exit status, that of shells where nobody reads on, as behind `head`.

    Letters that the terminal's encoding lacks are printed as question marks.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        status = command()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end, and would say that this failed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # SIGPIPE, of which Windows has no name
    return status
