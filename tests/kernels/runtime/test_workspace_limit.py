"""The workspace limit of a process: by a context, by the environment, and in keys of calls."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from argand import WorkspaceError, gemm, workspace_limit
from argand.gemm import tuned
from argand.runtime.workspace_limit import VARIABLE, allowed_workspace, require_workspace


def test_contexts_lie_within_each_other() -> None:
    assert allowed_workspace() is None
    with workspace_limit(1 << 20):
        assert allowed_workspace() == 1 << 20
        with suppress(RuntimeError), workspace_limit(np.int64(7)):
            assert allowed_workspace() == 7
            raise RuntimeError
        with workspace_limit(None):
            assert allowed_workspace() is None
        assert allowed_workspace() == 1 << 20
    assert allowed_workspace() is None


def test_calls_are_kept_by_the_limit() -> None:
    """The generation of tuned plans, which is in every key, says which limit there was."""
    before = tuned.TABLE.generation
    with workspace_limit(5):
        first = tuned.TABLE.generation
        with workspace_limit(6):
            assert len({before, first, tuned.TABLE.generation}) == 3
        assert tuned.TABLE.generation == first
        tuned.TABLE.changed()
        assert tuned.TABLE.generation != first
    assert tuned.TABLE.generation == before + 1


@pytest.mark.parametrize("wrong", [1.5, "64", [1]])
def test_what_is_no_integer(wrong: Any) -> None:
    with pytest.raises(TypeError, match="nbytes"), workspace_limit(wrong):
        pass


def test_negative_limits() -> None:
    with pytest.raises(ValueError, match="at least 0, got -1"), workspace_limit(-1):
        pass


def test_what_the_error_says() -> None:
    require_workspace("a call", 1 << 40)
    with workspace_limit(10):
        require_workspace("a call", 10)
        expected = f"a call needs 11 bytes of workspace, 10 are allowed: raise .*{VARIABLE}, or go"
        with pytest.raises(WorkspaceError, match=expected) as error:
            require_workspace("a call", 11, "go")
    assert isinstance(error.value, ValueError)


def test_a_cpu_has_none() -> None:
    a = np.ones((3, 4), np.complex64)
    with workspace_limit(0):
        assert gemm(a, a, op_b="T").shape == (3, 3)


@pytest.mark.parametrize(("given", "expected"), [("1048576", "1048576"), ("", "None")])
def test_the_environment_names_the_limit_of_a_process(given: str, expected: str) -> None:
    assert _started(given).stdout.strip() == expected


@pytest.mark.parametrize("given", ["64MiB", "-1", "1e6"])
def test_what_is_no_number_in_the_environment(given: str) -> None:
    done = _started(given)
    assert done.returncode
    assert f"{VARIABLE} must be a number of bytes, got '{given}'" in done.stderr


def _started(given: str) -> subprocess.CompletedProcess[str]:
    code = "from argand.runtime.workspace_limit import allowed_workspace as x; print(x())"
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {VARIABLE: given}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
