"""Work shared out to forked processes: order, errors, deaths, memory in common."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest
from streamed_runs import run_python

from workflow.processes import shared_array, shared_out


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
