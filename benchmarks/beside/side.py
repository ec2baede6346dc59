"""The calls of one checkout, in a process of its own that measures them when it is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.beside.messages import Draw

# Nothing here imports argand before `_serve` has said which one.


class SideError(Exception):
    """A checkout could not make or time a call; the text is its error's."""


class Side:
    """A checkout's process; `close` ends it.

    Args:
        root: the checkout, whose ``kernels/argand`` is imported. The benchmarks are of this one.
        draw: the cases.

    Raises:
        SideError: the checkout has no argand, or none that these benchmarks can call.
    """

    def __init__(self, root: Path, draw: Draw) -> None:
        self._pipe, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=_serve, args=(root, draw, theirs))
        self._process.start()
        theirs.close()
        try:
            self.answer()
        except SideError as error:
            self.close()
            raise SideError(f"{root}: {error}") from None

    def ask(self, name: str, *given: Any) -> None:
        """Have the process do something; `answer` waits for what comes of it."""
        with suppress(BrokenPipeError):  # a process that has ended, which `answer` says
            self._pipe.send((name, given))

    def answer(self) -> Any:
        """Return the answer of the process. Raises SideError for its errors and for its end."""
        try:
            right, found = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise SideError(f"the process ended with status {self._process.exitcode}") from None
        if not right:
            raise SideError(found)
        return found

    def call(self, name: str, *given: Any) -> Any:
        """Return the answer of the process to a question. Raises SideError as `answer` does."""
        self.ask(name, *given)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


def _serve(root: Path, draw: Draw, pipe: Connection) -> None:
    """Answer questions until the pipe is closed; the first answer is None or why there is none."""
    sys.path.insert(0, str(root / "kernels"))
    calls: Any = None

    def begin() -> None:
        nonlocal calls
        import argand

        if not Path(argand.__file__).is_relative_to(root):
            raise ImportError("no argand in kernels/")
        from benchmarks.beside.calls import DrawnCalls

        calls = DrawnCalls(draw)

    ask: Callable[[], Any] = begin
    while True:
        try:
            pipe.send((True, ask()))
        except Exception as error:  # it is the other process's to say
            pipe.send((False, f"{type(error).__name__}: {error}"))
        try:
            name, given = pipe.recv()
        except EOFError:
            return
        ask = partial(getattr(calls, name), *given)
