"""Work shared out to processes and by threads: order, context, errors, deaths, memory, BLAS."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
from streamed_runs import run_python

from workflow.processes import shared_array, shared_out
from workflow.threads import by_threads, each, for_each, hold_blas, stretches, thread_count


def numbered(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    for block in blocks:
        yield block, os.getpid()


@pytest.mark.parametrize(("processes", "used"), [(1, 1), (3, 3), (50, 11)])
def test_what_is_found_comes_in_order(processes: int, used: int) -> None:
    found = list(shared_out(numbered, range(11), processes))
    assert [block for block, _ in found] == list(range(11))
    pids = {pid for _, pid in found}
    assert len(pids) == used
    assert (os.getpid() in pids) == (used == 1)
    assert list(shared_out(numbered, [], processes)) == []


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def test_an_error_is_raised_here_and_all_end() -> None:
    before = children()  # other tests of this process may have left some

    def fail(blocks: Sequence[int]) -> Iterator[int]:
        for block in blocks:
            if block == 4:
                raise ValueError("four")
            yield block

    found = []
    with pytest.raises(ValueError, match="four"):
        found.extend(shared_out(fail, range(100), 3))
    assert children() <= before


def test_a_process_that_is_killed_is_an_error() -> None:
    before = children()

    def die(blocks: Sequence[int]) -> Iterator[int]:
        for block in blocks:
            if block == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield block

    with pytest.raises(RuntimeError, match="was killed"):
        list(shared_out(die, range(10), 2))
    assert children() <= before


ORPHANS = """
import os, signal, time
from pathlib import Path
from workflow.processes import shared_out

def wait(blocks):
    for block in blocks:
        Path(f"{block}.pid").write_text(str(os.getpid()))
        yield block
        time.sleep(60)

for block in shared_out(wait, range(4), 2):
    if block == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path, root: Path) -> None:
    ended = run_python(ORPHANS, tmp_path, root)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    pids = [int((tmp_path / f"{block}.pid").read_text()) for block in (0, 1)]
    deadline = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_array_is_shared() -> None:
    values = shared_array((4, 3), np.complex128)
    assert not values.any()

    def fill(rows: Sequence[int]) -> Iterator[None]:
        for row in rows:
            values[row] = row + 1
            yield

    assert len(list(shared_out(fill, range(4), 2))) == 4
    assert np.array_equal(values, np.repeat(np.arange(1, 5), 3).reshape(4, 3))


KEPT = """
import resource
import numpy as np
from workflow.processes import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
faults()
print(faults())
"""


def test_memory_that_is_freed_is_kept(tmp_path: Path, root: Path) -> None:
    """For 20 arrays of 8 MiB no page is new, where malloc is glibc's."""
    assert int(run_python(KEPT, tmp_path, root).stdout) < 100


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_what_threads_find_comes_in_order(threads: int) -> None:
    with by_threads(threads):
        assert list(each(lambda x: x * x, range(100))) == [x * x for x in range(100)]
        assert thread_count() == threads
    assert thread_count() == 1
    assert thread_count(5) == 5


def test_all_threads_take_part_and_only_a_few_blocks_are_ahead() -> None:
    together, asked = threading.Barrier(3, timeout=20), []

    def blocks() -> Iterator[int]:
        for number in range(90):
            asked.append(number)
            yield number

    with by_threads(3):
        for number, _ in enumerate(each(lambda _: together.wait(), blocks())):
            assert len(asked) <= number + 6
    assert len(asked) == 90


def test_a_thread_has_the_callers_context_and_shares_out_nothing() -> None:
    def inner(x: int) -> tuple[float, int, str]:
        with np.errstate(invalid="raise"):
            pass
        name = threading.current_thread().name
        nested = set(each(lambda _: threading.current_thread().name, range(4)))
        assert nested == {name}
        return float(np.float64(x) / 0.0), thread_count(9), name

    with by_threads(2), np.errstate(divide="ignore"):
        found = list(each(inner, range(1, 9)))
    assert {one[:2] for one in found} == {(np.inf, 1)}
    assert threading.current_thread().name not in {name for *_, name in found}


def test_an_error_reaches_the_caller() -> None:
    def fail(x: int) -> None:
        if x == 3:
            raise ValueError("three")

    with by_threads(2), pytest.raises(ValueError, match="three"):
        for_each(fail, range(1000))


def test_stretches_cover_a_length() -> None:
    assert stretches(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert stretches(0, 3) == []


HELD = """
import sys
from workflow.threads import hold_blas
if sys.argv[1] == "before":
    hold_blas()
import threading
import time
from pathlib import Path
import numpy as np
from scipy.linalg.blas import dgemm
x = np.ones((1200, 1200))
if sys.argv[1] == "after":
    hold_blas()

def computing():
    ticks = [Path(task, "stat").read_text().rpartition(")")[2].split() for task in tasks]
    return [int(one[11]) + int(one[12]) for one in ticks]

time.sleep(0.3)  # a thread of OpenBLAS's that has just begun waits actively for a moment
tasks = sorted(Path("/proc/self/task").iterdir())
before = computing()
x @ x
dgemm(1.0, x, x)
print(sum(then > now for now, then in zip(before, computing(), strict=True)))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_blas_is_held_to_the_thread_that_calls_it(when: str, tmp_path: Path, root: Path) -> None:
    """Before NumPy is imported, and after."""
    ended = run_python(HELD, tmp_path, root, when)
    assert ended.stdout.split() == ["1"], ended.stderr


RESTING = """
import os
from workflow.threads import rest_blas
rest_blas()
import time
import numpy as np
x = np.ones((500, 500))
x @ x
before = time.process_time()
time.sleep(0.02)
print(os.environ["OPENBLAS_THREAD_TIMEOUT"], time.process_time() - before < 0.01)
"""


def test_threads_of_blas_rest_after_a_product(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that wait actively would each take the processor for the 20 ms of sleep."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    ended = run_python(RESTING, tmp_path, root)
    assert ended.stdout.split() == ["16", "True"], ended.stderr
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "26")  # what a user has set stays
    assert run_python(RESTING, tmp_path, root).stdout.split()[0] == "26"


class UnknownBlas:
    """A stand-in for threadpoolctl's answer on libraries that it does not know."""

    def get_original_num_threads(self) -> dict[str, int | None]:
        return {"blas": None}


def test_a_blas_that_cannot_be_held_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP", "OPENBLAS", "GOTO", "MKL", "BLIS"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "2")
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "2")
    monkeypatch.setattr("workflow.threads.threadpool_limits", lambda *_, **__: UnknownBlas())
    with pytest.warns(UserWarning, match="more threads than the job asked for"):
        hold_blas()
