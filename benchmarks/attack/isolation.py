"""A call in a forked child with limits on memory and time: how it ended is an outcome."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Literal

MEMORY = 2 << 30
"""Bytes of address space that a child may take beside what it inherits."""
SECONDS = 60.0


@dataclass(frozen=True)
class Outcome:
    """The end of a call: a value, an error, or the end of its process."""

    how: Literal["returned", "raised", "ended"]
    value: Any = None
    error: str = ""
    text: str = ""

    def __str__(self) -> str:
        if self.how == "returned":
            return f"returned {self.value!r}"
        return f"{self.error}: {self.text}" if self.how == "raised" else f"ended by {self.text}"


def isolated(call: Callable[[], Any], *, memory: int = MEMORY, seconds: float = SECONDS) -> Outcome:
    """Return a call's outcome in a child of this process; its value must be picklable."""
    mine, theirs = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that wait are not in the copy
        child = os.fork()
    if child == 0:
        try:
            os.setsid()
            faulthandler.disable()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            limit = _address_space() + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            found = _outcome(call)
            try:
                theirs.send(found)
            except Exception as error:
                theirs.send(Outcome("raised", error=type(error).__name__, text=str(error)))
        finally:
            os._exit(0)
    theirs.close()
    try:
        return _received(mine, child, seconds)
    finally:
        mine.close()


def _outcome(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome("returned", call())
    except SystemExit as error:
        return Outcome("raised", error="SystemExit", text=str(error.code))
    except BaseException as error:
        name = f"{type(error).__module__}.{type(error).__name__}"
        return Outcome("raised", error=name.removeprefix("builtins."), text=str(error))


def _received(pipe: Any, child: int, seconds: float) -> Outcome:
    """Return the child's message; how it ended where it sends nothing in time."""
    found = None
    try:
        if pipe.poll(seconds):
            found = pipe.recv()
        else:
            found = Outcome("ended", text=f"the limit of {seconds:g} s")
    except EOFError:
        pass
    except Exception as error:
        found = Outcome("raised", error=type(error).__name__, text=str(error))
    if found is not None:
        end_group(child)
    _, status = os.waitpid(child, 0)
    if found is None:
        number = os.waitstatus_to_exitcode(status)
        text = signal.Signals(-number).name if number < 0 else f"exit status {number}"
        found = Outcome("ended", text=text)
    return found


def end_group(leader: int) -> None:
    """Kill (-9) a session's process group that this process started."""
    for _ in range(50):  # a child that has just been forked leads no group yet
        try:
            os.killpg(leader, signal.SIGKILL)
            return
        except ProcessLookupError:
            time.sleep(0.001)
            if not Path(f"/proc/{leader}").exists():
                return


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
