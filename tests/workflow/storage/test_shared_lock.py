"""Locks that users of one machine share: who dies lets go, and nobody's files are touched."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workflow.storage import shared_lock
from workflow.storage.shared_lock import LockRefusedError, SharedLock

HOLD = """
import subprocess, sys, time
from pathlib import Path
from workflow.storage import shared_lock
from workflow.storage.shared_lock import SharedLock
lock = SharedLock(Path(sys.argv[1]))
lock.take()
lock.describe("the test's holder")
child = subprocess.Popen(["sleep", "60"]) if "child" in sys.argv else None
print(child.pid if child else 0, flush=True)
time.sleep(60)
"""
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.lock"


@contextmanager
def holder(path: Path, root: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that holds the lock, and the number of its child."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *flags], stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process, child
        finally:
            process.kill()
            if child:
                os.kill(child, 9)


def test_one_holder_who_is_named(path: Path, root: Path) -> None:
    with holder(path, root):
        lock = SharedLock(path)
        assert not lock.try_take()
        assert lock.note() == "the test's holder"
        lock.close()


def test_a_kill_releases_it_although_a_child_lives(path: Path, root: Path) -> None:
    lock = SharedLock(path)
    with holder(path, root, "child") as (process, child):
        assert not lock.try_take()
        process.kill()
        process.wait()
        os.kill(child, 0)
        assert lock.try_take()
    lock.close()


def test_a_forked_child_does_not_keep_it(path: Path) -> None:
    lock = SharedLock(path)
    lock.take()
    (ready, say_ready), (end, say_end) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.write(say_ready, b"!")
        os.close(say_end)
        os.read(end, 1)
        os._exit(0)
    os.read(ready, 1)
    still_ours = SharedLock(path)
    assert not still_ours.try_take()
    lock.close()  # closes without unlocking: a child that shared it would have it still
    assert still_ours.try_take()
    still_ours.close()
    os.close(say_end)
    os.waitpid(child, 0)
    for pipe in (ready, say_ready, end):
        os.close(pipe)


def test_waiting_ends_when_it_is_given_back_and_the_note_goes(path: Path) -> None:
    first, second = SharedLock(path), SharedLock(path)
    first.take()
    first.describe("first")
    released: list[str] = []

    def release() -> None:
        released.append(second.note())  # the holder's, while the other waits
        first.release()

    timer = threading.Timer(0.3, release)
    timer.start()
    second.take()
    assert released == ["first"]
    assert second.note() == ""
    timer.join()
    first.close()
    second.close()


def test_a_file_that_was_removed_meanwhile_is_not_held_in_vain(path: Path) -> None:
    lock = SharedLock(path)
    path.unlink()
    assert lock.try_take()
    other = SharedLock(path)
    assert not other.try_take()
    lock.close()
    other.close()


def test_what_is_no_note_is_never_overwritten(path: Path) -> None:
    path.write_text("somebody's data\n")
    lock = SharedLock(path)
    lock.take()
    lock.describe("hello")
    assert lock.note() == ""
    lock.release()
    lock.close()
    assert path.read_text() == "somebody's data\n"


def test_a_note_is_one_printable_line(path: Path) -> None:
    path.write_bytes(b"argand \x1b[31mred\nsecond\n" + b"x" * 10000)
    lock = SharedLock(path)
    assert lock.note() == r"\x1b[31mred"
    lock.close()


def test_a_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(LockRefusedError, match=r"no-such.*No such file or directory"):
        SharedLock(tmp_path / "no-such" / "x.lock")


def test_anyone_may_take_it_whatever_the_umask(path: Path) -> None:
    before = os.umask(0o077)
    try:
        SharedLock(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666


def as_user(number: int, what: Callable[[], bool]) -> bool:
    """A function's answer in a process of another user."""
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgid(number)
            os.setuid(number)
            status = 0 if what() else 1
        except BaseException:
            traceback.print_exc()
        finally:  # else the child would go on as a second worker of pytest
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lock of another user's in /tmp, where Linux protects files against being opened."""
    if os.getuid():
        pytest.skip("needs root, to become other users")
    monkeypatch.setattr(shared_lock, "_OPENING_S", 0.1)
    path = Path("/tmp") / f"argand-test-{os.getpid()}.lock"
    assert as_user(NOBODY, lambda: SharedLock(path).try_take())
    assert path.stat().st_uid == NOBODY
    yield path
    path.unlink()


def test_two_users_exclude_each_other(public: Path) -> None:
    with SharedLock(public) as lock:
        lock.describe("root")

        def sees_the_holder() -> bool:
            other = SharedLock(public)
            return other.note() == "root" and not other.try_take()

        assert as_user(NOBODY, sees_the_holder)
        assert as_user(NOBODY - 1, sees_the_holder)
    lock.close()


def test_a_lock_needs_no_right_to_write(public: Path) -> None:
    public.chmod(0o444)

    def takes_it_without_a_note() -> bool:
        other = SharedLock(public)
        other.describe("not written")
        return other.try_take() and not other.note()

    assert as_user(NOBODY - 1, takes_it_without_a_note)


def test_a_lock_that_one_may_not_read_is_an_error(public: Path) -> None:
    public.chmod(0o600)

    def is_refused() -> bool:
        with pytest.raises(LockRefusedError, match="Permission denied; it must be readable"):
            SharedLock(public)
        return True

    assert as_user(NOBODY - 1, is_refused)
