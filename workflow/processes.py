"""Work shared out to forked processes, which do not wait for each other's hold of the interpreter.

NumPy gives that up in every call, and takes it again: with four threads on blocks of a cache's size
most of the time would go into handing it around.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Block = TypeVar("Block")
Found = TypeVar("Found")

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES, _LARGEST_BYTES = 256 << 20, 32 << 20
"""Bytes of freed memory that a process keeps, and of the largest block of it."""


def shared_out(
    work: Callable[[Sequence[Block]], Iterator[Found]], blocks: Sequence[Block], processes: int
) -> Iterator[Found]:
    """Yield the results of some work on each block, in order, by ``processes`` processes.

    Each process takes every ``processes``-th block, and is a copy of this process as it is now;
    with one process it is this one. An error of any is raised here, RuntimeError where one is
    killed; the others end then, as they do when this process dies (on Linux).

    Args:
        work: returns, for blocks, an iterator over what it finds for each, in order.
    """
    processes = min(processes, len(blocks))
    if processes < 2:
        yield from work(blocks)
        return
    context = multiprocessing.get_context("fork")
    with contextlib.ExitStack() as stack:
        pipes = []
        for rank in range(processes):
            mine, theirs = context.Pipe(duplex=False)
            stack.enter_context(mine)
            child = context.Process(target=_serve, args=(work, blocks[rank::processes], theirs))
            with warnings.catch_warnings():
                # Threads that wait are not in a copy; it computes and holds nothing that belongs to
                # them.
                warnings.simplefilter("ignore", DeprecationWarning)
                child.start()
            stack.callback(_end, child)
            theirs.close()
            pipes.append(mine)
        for number in range(len(blocks)):
            try:
                error, found = pipes[number % processes].recv()
            except EOFError:
                raise RuntimeError("a process that shared the work was killed") from None
            if error is not None:
                raise error
            yield found


def _serve(
    work: Callable[[Sequence[Block]], Iterator[Found]], blocks: Sequence[Block], to: Connection
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(AttributeError, OSError):  # of Linux
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        for found in work(blocks):
            to.send((None, found))
    except BaseException as error:
        to.send((error, None))


def _end(child: Any) -> None:
    child.terminate()
    child.join()


def shared_array(shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros that forked processes share: each sees what others write."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), dtype, int(np.prod(shape))).reshape(shape)


def keep_freed_memory() -> None:
    """Have blocks of up to 32 MiB that are freed stay with this process (where malloc is glibc's).

    It would give them back to the system and ask again for each temporary array, and the system
    would clear every page of it.
    """
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
