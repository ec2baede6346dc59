"""`argand doctor` on machines that are not this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand import workspace_limit
from argand.command.doctor import compiler_named, report


@pytest.mark.parametrize("version", ["12.9", "12.10", "13.0"])
def test_a_toolkit_that_is_new_enough(version: str) -> None:
    assert compiler_named(version) == f"NVRTC {version}"


@pytest.mark.parametrize("version", ["12.4", "12.8", "11.8"])
def test_a_toolkit_that_is_too_old_is_said(version: str) -> None:
    said = compiler_named(version)
    assert said.startswith(f"NVRTC {version}, under which some are slower")
    assert "12.9 or newer" in said


def test_a_limit_of_workspace_is_said() -> None:
    with workspace_limit(1 << 20):
        assert ("workspace", "at most 1048576 bytes a call") in report()
    with workspace_limit(None):
        assert dict(report())["workspace"].startswith("no limit")


def test_a_cache_that_others_may_write_to_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls on a GPU refuse it."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    assert dict(report())["cache"].startswith(f"{tmp_path}, 0 files")
    tmp_path.chmod(0o777)
    assert "can be written by everybody" in dict(report())["cache"]
    monkeypatch.setenv("ARGAND_CACHE", "/dev/null")
    assert dict(report())["cache"].startswith("NOT usable, so that calls on a GPU fail: /dev/null")
