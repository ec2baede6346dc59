"""The workspace limit of a process: by a context, by the environment, and in keys of calls."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from argand import WorkspaceError, gemm, workspace_limit
from argand.gemm import tuned
from argand.runtime.memory.workspace_limit import (
    VARIABLE,
    _bytes_in,
    allowed_workspace,
    follow_limit,
    holding,
    require_workspace,
)


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


def test_contexts_of_threads_end_in_any_order() -> None:
    first, second = workspace_limit(5), workspace_limit(6)
    first.__enter__()
    second.__enter__()
    assert allowed_workspace() == 6
    first.__exit__(None, None, None)
    assert allowed_workspace() == 6
    second.__exit__(None, None, None)
    assert allowed_workspace() is None


class Noted:
    """Follows the limit, and notes each one."""

    def changed_limit(self) -> None:
        self.limit = allowed_workspace()


def test_many_threads_leave_no_limit_behind() -> None:
    """Nor a generation of plans that is of another limit than the one that there is."""

    def enter(seed: int) -> None:
        for nbytes in np.random.default_rng(seed).integers(1, 9, 200):
            with workspace_limit(None if nbytes == 1 else int(nbytes)):
                follow_limit(Noted())

    before = tuned.TABLE.generation
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(8)))
    assert allowed_workspace() is None
    assert tuned.TABLE.generation == before


def test_a_context_that_is_never_entered_and_one_that_garbage_collection_ends() -> None:
    workspace_limit(5)

    def unfinished() -> Iterator[int]:
        with workspace_limit(7):
            yield 1

    made = unfinished()
    assert next(made) == 1
    assert allowed_workspace() == 7
    del made
    gc.collect()
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


def test_what_a_call_holds_counts_for_those_that_it_makes() -> None:
    """In its thread alone, and in what an error says to be needed."""
    with holding(1 << 40, "a call"):
        assert allowed_workspace() is None
    with workspace_limit(10):
        with holding(3, "a call"), holding(2, "a part"), ThreadPoolExecutor(1) as pool:
            assert allowed_workspace() == 5
            assert pool.submit(allowed_workspace).result() == 10
        with pytest.raises(WorkspaceError, match="a call needs 11 bytes") as error:  # noqa: SIM117
            with holding(3, "a call"), holding(2, "a part"):
                require_workspace("a part of it", 6, "go")
        assert "or go" in str(error.value)
        assert error.value.needed == 11
        assert allowed_workspace() == 10
        with pytest.raises(WorkspaceError, match="a call needs 11"), holding(11, "a call"):
            require_workspace("a part that needs none", 0)


def test_a_cpu_has_none() -> None:
    a = np.ones((3, 4), np.complex64)
    with workspace_limit(0):
        assert gemm(a, a, op_b="T").shape == (3, 3)


@pytest.mark.parametrize(
    ("given", "expected"), [("1048576", 1 << 20), ("", None), (None, None), ("0", 0), ("007", 7)]
)
def test_what_the_environment_may_hold(given: str | None, expected: int | None) -> None:
    assert _bytes_in(given) == expected


@pytest.mark.parametrize("given", [
    "32MiB", "-1", "+1", "1e6", "1e400", "0x10", "1_000", "1.5", "nan", "inf", "None", " ", " 64",
    "64\n", "\u0661\u0662", "\u00b2", "9" * 31, "9" * 5000,
])  # fmt: skip
def test_what_is_no_number_in_the_environment(given: str) -> None:
    with pytest.raises(ValueError, match=f"{VARIABLE} must be a number of bytes, got '") as error:
        _bytes_in(given)
    assert len(str(error.value)) < 100


def test_an_import_says_what_is_wrong_in_the_environment() -> None:
    done = _started("1e400")
    assert done.returncode
    assert f"{VARIABLE} must be a number of bytes, got '1e400'" in done.stderr


def test_the_environment_names_the_limit_of_a_process_which_reads_it_once() -> None:
    change = f"import os; os.environ['{VARIABLE}'] = '9'; print(x())"
    assert _started("7", change).stdout.split() == ["7", "7"]


def _started(given: str, more: str = "") -> subprocess.CompletedProcess[str]:
    module = "argand.runtime.memory.workspace_limit"
    code = f"from {module} import allowed_workspace as x; print(x()); {more}"
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {VARIABLE: given}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
