"""Programs that a command waits for: their exit status, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from argand.command.children import INTERRUPTED, finished

FINISHED = (
    "from argand.command.children import finished; print(finished([sys.executable, '-c', {}]))"
)
"""The command, as a program that waits for another."""


@contextmanager
def waiting(name: str, seconds: float, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """A program that waits for one which ends some time after a signal, with the status 3."""
    child = (
        "import signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *_:"
        f" (time.sleep({seconds}), print('ended'), sys.exit(3)))\n"
        "print('begun', flush=True)\n"
        "for _ in range(600): time.sleep(0.05)  # a signal just before one sleep does not end it"
    )
    parent = f"import signal, sys\n{before}\n{FINISHED.format(repr(child))}"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process


def has_handler(pid: int, number: int) -> bool:
    """Return whether a process has a handler of a signal."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_an_interrupt_waits_for_the_program_that_has_it_too() -> None:
    """The signal goes to the group of processes, as Ctrl-C of a terminal does."""
    # A shell's background jobs ignore interrupts, and what they start does.
    heeded = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    with waiting("SIGINT", 0.6, heeded) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=20)[0].split() == ["ended", str(INTERRUPTED)]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for handlers of signals")
def test_sigterm_ends_the_program_too() -> None:
    """It would go on alone, as Snakemake and its jobs, where `kill` ends the command."""
    with waiting("SIGTERM", 0.3) as process:
        while not has_handler(process.pid, signal.SIGTERM):
            time.sleep(0.01)
        process.terminate()
        assert process.communicate(timeout=20)[0].split() == ["ended", "3"]


def test_a_program_that_a_signal_ended_has_the_status_of_shells() -> None:
    child = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert finished([sys.executable, "-c", child]) == 128 + signal.SIGKILL


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    """As `argand check | head -1`: a line is read, the others have nowhere to go."""
    child = (
        "import sys; from argand.command.children import ended\n"
        "sys.exit(ended(lambda: print('line\\n' * 1_000_000) or 0))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", child], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 141
    whole = subprocess.run([sys.executable, "-c", child], capture_output=True, check=True)
    assert whole.stderr == b""


def test_letters_that_an_encoding_lacks_are_replaced() -> None:
    child = (
        "import sys; from argand.command.children import ended\n"
        "sys.exit(ended(lambda: print('2 \\u2013 3 \\u00b5s') or 0))"
    )
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-c", child]
    found = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert found.stdout == b"2 ? 3 \xb5s\n"


@pytest.mark.parametrize("words", [("doctor",), ("--version",)])
def test_the_command_ends_where_nobody_reads(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "argand", *words]
    found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, b"")
