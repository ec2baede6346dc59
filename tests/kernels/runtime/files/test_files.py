"""Files that are whole or absent, opened where others may have put something."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from argand.runtime.files import whole_files
from argand.runtime.files.plain_files import NotPlainError, open_plain, read_plain
from argand.runtime.files.whole_files import atomic_path


def _fail_half_way(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise ValueError("planted")


def test_replaced_only_on_success(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("old")
    with pytest.raises(ValueError, match="planted"):
        _fail_half_way(path)
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["x.txt"]


def test_the_disk_has_the_file_before_its_name_and_the_name_before_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done = tmp_path / "x.txt", []

    def fsync(handle: int) -> None:
        synced = Path(f"/proc/self/fd/{handle}").readlink()
        done.append(("folder" if synced == tmp_path else synced.read_text(), path.exists()))

    monkeypatch.setattr(whole_files.os, "fsync", fsync)
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
    assert done == [("whole", False), ("folder", True)]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "a") as temporary:
        temporary.write_text("x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_what_is_not_permitted_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")

    def refuse() -> None:
        assert len(list(tmp_path.iterdir())) == 2, "asked when the new file is whole"
        raise PermissionError("planted")

    with pytest.raises(PermissionError, match="planted"), atomic_path(path, refuse) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_made_appended_to_and_read(tmp_path: Path) -> None:
    for _ in range(2):
        file = open_plain(tmp_path / "x", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        assert not os.get_inheritable(file)
        os.write(file, b"line\n")
        os.close(file)
    assert read_plain(tmp_path / "x") == b"line\nline\n"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT | os.O_EXCL])
def test_nothing_is_held_open_or_waited_for(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(NotPlainError, match=r"x: found a pipe .*; move or remove it"):
        open_plain(tmp_path / "x", flags)
    held = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder, and what is closed meanwhile
            held.append(file.readlink())
    assert held
    assert tmp_path / "x" not in held


def test_other_errors_name_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "none" / "x")):
        open_plain(tmp_path / "none" / "x", os.O_RDONLY)


@pytest.mark.parametrize("what", ["pipe", "folder"])
def test_a_name_that_is_taken_by_no_file_is_an_error_before_anything_is_written(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "x"
    path.mkdir() if what == "folder" else os.mkfifo(path)
    with pytest.raises(NotPlainError, match=f"x: found a {what}"), atomic_path(path):
        raise AssertionError("begun")
    assert list(tmp_path.iterdir()) == [path]
