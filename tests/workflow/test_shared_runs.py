"""Runs that the tests of one session share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shared_runs import made_once


def make(folder: Path) -> None:
    with (folder.parent / "makers").open("a") as log:
        log.write("x")
    (folder / "content").write_text("whole")


def read(folder: Path) -> str:
    return (made_once(folder, make) / "content").read_text()


def test_of_several_at_once_one_makes_it(tmp_path: Path) -> None:
    """Threads hold the lock of a file against each other as processes do."""
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, 6 * [tmp_path / "shared"])) == 6 * ["whole"]
    assert (tmp_path / "makers").read_text() == "x"


def test_what_failed_is_made_again_from_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        made_once(tmp_path / "shared", fail)
    made_once(tmp_path / "shared", make)
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["content"]
