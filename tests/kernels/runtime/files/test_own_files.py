"""Files that are believed: only what nobody but their user could have written."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from argand.runtime.files.own_files import (
    NotOwnError,
    NotOwnFolderError,
    own_folder,
    read_own,
    write_own,
)
from argand.runtime.files.plain_files import NotPlainError

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "x"
    write_own(path, b"mine")
    return path


def of_another(path: Path) -> None:
    if os.getuid():
        pytest.skip("needs root, to give files to another user")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def test_what_is_written_is_read_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_own(tmp_path / "deep" / "cache" / "x", b"mine")
    finally:
        os.umask(before)
    assert read_own(tmp_path / "deep" / "cache" / "x") == b"mine"
    assert stat.S_IMODE((tmp_path / "deep" / "cache" / "x").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "deep" / "cache").stat().st_mode) == 0o755


def test_nothing_there_is_nothing_there(path: Path, tmp_path: Path) -> None:
    for missing in (path.with_name("y"), tmp_path / "none" / "x"):
        with pytest.raises(FileNotFoundError):
            read_own(missing)


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_folder_that_everybody_writes_to(path: Path, mode: int) -> None:
    path.parent.chmod(mode)
    advice = "use a folder of your own" if mode & stat.S_ISVTX else "chmod go-w"
    with pytest.raises(NotOwnFolderError, match=rf"cache can be written by everybody.*{advice}"):
        read_own(path)
    with pytest.raises(NotOwnFolderError):
        write_own(path, b"other")


@pytest.mark.parametrize(("members", "own"), [([], True), (["me"], True), (["me", "you"], False)])
def test_a_group_may_write_where_it_is_the_user_alone(
    path: Path, members: list[str], own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = path.stat().st_gid
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me", pw_gid=group))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="me", gr_mem=members))
    path.parent.chmod(0o775)
    path.chmod(0o664)
    if own:
        assert read_own(path) == b"mine"
    else:
        with pytest.raises(NotOwnFolderError, match="can be written by its group"):
            read_own(path)


def test_a_folder_of_another_user(path: Path) -> None:
    of_another(path.parent)
    with (
        pytest.raises(NotOwnFolderError, match=r"cache belongs to user \w+"),
        own_folder(path.parent),
    ):
        pass


def test_a_link_in_the_place_of_the_folder(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path.parent)
    with pytest.raises(NotOwnFolderError, match="is a symbolic link"):
        read_own(tmp_path / "link" / "x")
    with pytest.raises(NotOwnFolderError, match="is no folder"):
        read_own(path / "x")


def test_a_file_of_another_user_or_that_others_write_to(path: Path) -> None:
    path.chmod(0o646)
    with pytest.raises(NotOwnError, match="x can be written by everybody"):
        read_own(path)
    of_another(path)
    with pytest.raises(NotOwnError, match=r"x belongs to user \w+"):
        read_own(path)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("link", "a symbolic link"),
        ("names", "a file with 2 names"),
        ("pipe", "a pipe"),
        ("folder", "a folder"),
    ],
)
def test_what_is_no_file_of_one_name(path: Path, tmp_path: Path, what: str, words: str) -> None:
    (tmp_path / "planted").write_bytes(b"planted")
    path.unlink()
    if what == "link":
        path.symlink_to(tmp_path / "planted")
    elif what == "names":
        path.hardlink_to(tmp_path / "planted")
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(NotPlainError, match=f"found {words}.*move or remove it"):
        read_own(path)
