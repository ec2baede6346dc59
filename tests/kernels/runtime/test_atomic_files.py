"""Files that are whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand.runtime import files
from argand.runtime.files import atomic_path


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

    monkeypatch.setattr(files.os, "fsync", fsync)
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
