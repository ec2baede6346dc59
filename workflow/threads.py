"""Work shared out by threads in blocks that do not depend on how many threads there are.

Results come in the blocks' order, so what is made of them is the same to the last bit for any
number of threads. NumPy, BLAS and pocketfft let others compute while they do; BLAS itself is held
to one thread (`hold_blas`), or both numbers would multiply.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from threadpoolctl import threadpool_limits

Block = TypeVar("Block")
Found = TypeVar("Found")

_BLAS = ("OMP", "OPENBLAS", "GOTO", "MKL", "BLIS")


@dataclass(frozen=True)
class _Shared:
    """Threads to share work out to; no pool where it is not shared."""

    pool: ThreadPoolExecutor | None
    count: int


_THREADS: contextvars.ContextVar[_Shared | None] = contextvars.ContextVar("threads", default=None)


@contextlib.contextmanager
def by_threads(count: int) -> Iterator[None]:
    """Have `each` share its work out to ``count`` threads within the block."""
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(count)) if count > 1 else None
        token = _THREADS.set(_Shared(pool, count))
        try:
            yield
        finally:
            _THREADS.reset(token)


def thread_count(otherwise: int = 1) -> int:
    """Return how many threads work may take here, ``otherwise`` outside of `by_threads`."""
    shared = _THREADS.get()
    return shared.count if shared else otherwise


def each(function: Callable[[Block], Found], blocks: Iterable[Block]) -> Iterator[Found]:
    """Yield a function's results for each block, in order, a few blocks ahead of the caller.

    Called by one of the threads it does everything itself. A thread has the context of the caller
    (`numpy.errstate`, for one).
    """
    shared = _THREADS.get()
    if shared is None or shared.pool is None:
        yield from map(function, blocks)
        return
    ahead: deque[Future[Found]] = deque()
    try:
        for block in blocks:
            context = contextvars.copy_context()
            ahead.append(shared.pool.submit(context.run, _alone, function, block))
            if len(ahead) == 2 * shared.count:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        for future in ahead:
            future.cancel()


def for_each(function: Callable[[Block], object], blocks: Iterable[Block]) -> None:
    """Call a function without a result on each block, as `each` does; return when all are done."""
    deque(each(function, blocks), maxlen=0)


def _alone(function: Callable[[Block], Found], block: Block) -> Found:
    _THREADS.set(_Shared(None, 1))
    return function(block)


def stretches(length: int, step: int) -> list[slice]:
    """Return slices of ``step`` that cover a length."""
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


_WAITING = {"OPENBLAS_THREAD_TIMEOUT": "16", "OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Variables that set how long threads of OpenBLAS (2^16 cycles, some 25 us), of OpenMP and of MKL
spin while they wait for work."""


def rest_blas() -> None:
    """Have the threads of BLAS sleep soon after a product, in this process and those it starts.

    OpenBLAS's go on looking for work for 2^26 cycles, some 30 ms: they take cores from whatever is
    timed next, and from other programs. NumPy and SciPy bring a BLAS each, so two implementations
    that are timed in turn take up to 16 times as long; a product after a pause takes longer in
    return, because threads wake (docs/experiments/2026-11-28-small-calls-on-a-cpu.md). Between the
    products of one call they stay awake: 8 systems of 64 rows with 81 sides take 0.5 ms, and 1.5
    where threads sleep at once. Values that the user has set stay. Call this before NumPy is
    imported.
    """
    for name, value in _WAITING.items():
        os.environ.setdefault(name, value)


def hold_blas() -> None:
    """Have BLAS compute on the thread that calls it, in this process and those it starts.

    To be called before NumPy is imported, whose BLAS reads the environment then and starts no
    threads. Where it has been, each loaded BLAS is set to one thread; a warning names those that
    cannot be.
    """
    for library in _BLAS:
        os.environ[f"{library}_NUM_THREADS"] = "1"
    os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
    if "numpy" in sys.modules:
        import scipy.linalg.blas  # noqa: F401  (SciPy may bring a BLAS of its own)

        if not threadpool_limits(1, user_api="blas").get_original_num_threads()["blas"]:
            warnings.warn("BLAS may take more threads than the job asked for", stacklevel=2)
