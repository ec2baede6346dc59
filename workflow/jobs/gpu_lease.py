"""GPUs taken by one process at a time, on a machine that several jobs, runs and users share.

A device is held by a lock of the kernel's on a file of its own, so a process that dies gives it
back. The files lie where every user of the machine finds them: a folder of a user's own, such as
XDG_RUNTIME_DIR, would not keep two users apart, and a folder inside /tmp would belong to the user
who made it first and could empty it. Machines whose users or containers have a /tmp each share a
folder by ARGAND_LOCK_FOLDER.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from argand import DeviceError

from workflow.counted import counted
from workflow.jobs.gpu_devices import VISIBLE, Gpu, slurm_job, usable_gpus
from workflow.storage.shared_lock import SharedLock

_POLL_S = 0.2
_FIRST_WORD_S = 1.0
_EVERY_S = 60.0
"""Seconds until a waiting job says so, and between its words from then on."""


@dataclass(frozen=True)
class Lease:
    """The devices that a process has to itself, how long it waited, and who gave them."""

    gpus: tuple[Gpu, ...]
    waited_s: float
    given_by: str


def lock_folder() -> Path:
    """Return where the locks of this machine's GPUs are."""
    return Path(os.environ.get("ARGAND_LOCK_FOLDER", "/tmp"))


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextlib.contextmanager
def lease(
    count: int,
    job: str = "",
    *,
    machine: Sequence[Gpu] | None = None,
    environ: MutableMapping[str, str] = os.environ,
    folder: Path | None = None,
    say: Callable[[str], None] = _to_stderr,
) -> Iterator[Lease]:
    """Have ``count`` GPUs to oneself; CUDA_VISIBLE_DEVICES names just them inside the block.

    Must begin before anything starts CUDA in this process. All of them are taken at once or none,
    so that two jobs of several GPUs never hold what the other waits for.

    Where Slurm gave as many devices as are asked for, they are used as they are, without locks.
    Where it gave more, several jobs run in its allocation and share them out among themselves.

    Args:
        count: at least 1.
        job: what the devices are for, shown to others who wait.
        machine: the machine's GPUs, where they are known already.
        environ: where CUDA_VISIBLE_DEVICES is read and set.
        folder: where the locks are, instead of `lock_folder`.
        say: is called while the lease waits, with what it waits for, how long, and the holder.

    Raises DeviceError where fewer than ``count`` devices may be used, LockRefusedError where a lock
    file is not one of ours.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    gpus = usable_gpus(environ, machine)
    if count > len(gpus):
        raise DeviceError(_too_many(count, gpus, environ))
    slurm = slurm_job(environ)
    if slurm and count == len(gpus):
        yield Lease(tuple(gpus), 0.0, f"Slurm job {slurm}")
        return
    scope = f"slurm-{slurm}-" if slurm else ""
    folder = folder or lock_folder()
    started = time.monotonic()
    with contextlib.ExitStack() as opened:
        locks = [(gpu, _opened(opened, folder, f"{scope}{gpu.identity}")) for gpu in gpus]
        names = "\n".join(sorted(lock.path.name for _, lock in locks))
        digest = hashlib.sha256(names.encode()).hexdigest()[:16]
        queue = _opened(opened, folder, f"queue-{digest}")
        turn = _opened(opened, folder, "turn")
        with _reminders(lambda: say(_waiting(count, locks, queue, time.monotonic() - started))):
            taken = _take(count, locks, queue, turn, _note(job))
        try:
            with _visible(taken, environ):
                yield Lease(tuple(taken), time.monotonic() - started, "lock")
        finally:
            for _, lock in locks:
                lock.release()


@contextlib.contextmanager
def _visible(gpus: Sequence[Gpu], environ: MutableMapping[str, str]) -> Iterator[None]:
    """Have CUDA_VISIBLE_DEVICES name these alone, and afterwards what it named before."""
    before = environ.get(VISIBLE)
    environ[VISIBLE] = ",".join(gpu.identity for gpu in gpus)
    try:
        yield
    finally:
        if before is None:
            environ.pop(VISIBLE, None)
        else:
            environ[VISIBLE] = before


def _opened(opened: contextlib.ExitStack, folder: Path, name: str) -> SharedLock:
    lock = SharedLock(folder / f"argand-gpu-{re.sub(r'[^A-Za-z0-9.-]', '_', name)}.lock")
    opened.callback(lock.close)
    return lock


def _take(
    count: int,
    locks: Sequence[tuple[Gpu, SharedLock]],
    queue: SharedLock,
    turn: SharedLock,
    note: str,
) -> list[Gpu]:
    """Wait until ``count`` devices are free at once and take them.

    Those who may use the same devices stand in a queue, a lock that the kernel hands on in turn, so
    a job of several GPUs is not overtaken for ever by jobs of one. Those who may use others stand
    in another queue, so nobody waits behind a job that wants none of his; between queues an attempt
    is made by one at a time, so that two cannot take half each.
    """
    with queue:
        queue.describe(note)
        while True:
            with turn:
                free = [(gpu, lock) for gpu, lock in locks if lock.try_take()]
                taken = free[:count] if len(free) >= count else []
                for _, lock in free[len(taken) :]:
                    lock.release()
            if taken:
                for _, lock in taken:
                    lock.describe(note)
                return [gpu for gpu, _ in taken]
            time.sleep(_POLL_S)


def _note(job: str) -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in many containers
        user = str(os.getuid())
    since = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    return f"process {os.getpid()} of {user}, {job or 'unnamed'}, since {since}"


@contextlib.contextmanager
def _reminders(remind: Callable[[], None]) -> Iterator[None]:
    """Call ``remind`` every now and then while the block, which waits for the kernel, goes on."""
    done = threading.Event()

    def run() -> None:
        pause = _FIRST_WORD_S
        while not done.wait(pause):
            remind()
            pause = _EVERY_S

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _waiting(
    count: int, locks: Sequence[tuple[Gpu, SharedLock]], queue: SharedLock, seconds: float
) -> str:
    held = [f"{gpu} by {note}" for gpu, lock in locks if (note := lock.note())]
    first = queue.note()
    ahead = f"; first in the queue: {first}" if f"process {os.getpid()} " not in first else ""
    what = f"{count} of {counted(len(locks), 'GPU')}, {seconds:.0f} s so far"
    return f"waiting for {what}; held: {'; '.join(held) or 'not known'}{ahead}"


def _too_many(count: int, gpus: Sequence[Gpu], environ: MutableMapping[str, str]) -> str:
    allowed = "this machine has"
    if slurm := slurm_job(environ):
        allowed = f"Slurm job {slurm} was given"
    elif VISIBLE in environ:
        allowed = f"{VISIBLE}={environ[VISIBLE]!r} allows"
    there = ", ".join(map(str, gpus)) or "none"
    return f"the job asks for {counted(count, 'GPU')}; {allowed} {len(gpus)}: {there}"
