"""Programs that a command waits for: their exit status, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from argand.command.children import INTERRUPTED, finished


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_an_interrupt_waits_for_the_program_that_has_it_too() -> None:
    """The signal goes to the group of processes, as Ctrl-C of a terminal does."""
    child = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.6), print('ended'), exit(3)))\n"
        "print('begun', flush=True)\n"
        "for _ in range(600): time.sleep(0.05)  # a signal just before one sleep does not end it"
    )
    parent = (
        "import signal, sys; from argand.command.children import finished\n"
        # A shell's background jobs ignore interrupts, and what they start does.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"print(finished([sys.executable, '-c', {child!r}]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=20)[0].split() == ["ended", str(INTERRUPTED)]


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_sigterm_ends_the_program_too() -> None:
    """It would go on alone, as Snakemake and its jobs, where `kill` ends the command."""
    child = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), print('ended'), sys.exit(3)))\n"
        "print('begun', flush=True)\n"
        "for _ in range(600): time.sleep(0.05)"
    )
    parent = (
        "import sys; from argand.command.children import finished\n"
        f"print(finished([sys.executable, '-c', {child!r}]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
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
