"""Files opened where others may have put something."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from argand.runtime.files import atomic_path
from argand.runtime.plain_files import NotPlainError, open_plain, read_plain


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
