"""The memory that a computation may take: what the machine has, what was asked for."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_STATUS = Path("/proc/self/status")
_SLACK_BYTES = 256 << 20
"""Bytes for what grows beside the data: caches of libraries, the interpreter, thread stacks."""

_SCRATCH: ContextVar[Path | None] = ContextVar("scratch", default=None)


def machine_memory() -> int:
    """Return the bytes that this process could have: the machine's, or its control group's."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(total, int(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no control group, or one without a limit ("max")
        return total


@contextlib.contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Hold this process to ``more`` bytes (and a slack) beyond what it has; then MemoryError.

    Memory that libraries allocate counts too. Linux alone enforces it (RLIMIT_DATA); elsewhere it
    does nothing.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + more + _SLACK_BYTES
    bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([limit, *bounds]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextlib.contextmanager
def scratch_in(folder: Path) -> Iterator[None]:
    """Let what does not fit into memory lie in unnamed files there, within the block."""
    folder.mkdir(parents=True, exist_ok=True)
    token = _SCRATCH.set(folder)
    try:
        yield
    finally:
        _SCRATCH.reset(token)


def scratch_folder() -> Path | None:
    """Return the folder of `scratch_in`; None outside of it."""
    return _SCRATCH.get()


def in_words(size: int) -> str:
    """Return a number of bytes with a binary unit."""
    value, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    digits = f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"  # 1012, not 1.01e+03
    return f"{digits} {units[0]}"


def peak_bytes() -> int:
    """Return the most memory that this process has had at once; 0 where there is no /proc."""
    return _status_bytes("VmHWM")


def _data_bytes() -> int:
    """Return the bytes that count against RLIMIT_DATA now; 0 where there is no /proc."""
    return _status_bytes("VmData")


def _status_bytes(key: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{key}:")), 0)
