"""The most memory that a call may take beside its operands and its result.

It is of the whole process, as the memory is, so that it holds in threads of torch and of XLA too.
Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakSet

from argand.checks import as_integer
from argand.runtime.plan import PlanError

VARIABLE = "ARGAND_WORKSPACE_LIMIT"
"""The environment variable with the limit of a process, in bytes."""


class WorkspaceError(PlanError):
    """No plan of a call takes as little memory as is allowed; ``needed`` is what it takes."""

    needed: int = 0


class Follower(Protocol):
    """An object that plans calls, and is told of a change of the limit."""

    def changed_limit(self) -> None:
        """Have calls that were planned under another limit planned anew."""


class _Limit:
    """The limit in bytes, None without one, and its followers."""

    def __init__(self, given: str | None) -> None:
        if given and not given.isdecimal():
            raise ValueError(f"{VARIABLE} must be a number of bytes, got {given!r}")
        self.nbytes: int | None = int(given) if given else None
        self.followers: WeakSet[Any] = WeakSet()

    def set(self, nbytes: int | None) -> None:
        self.nbytes = nbytes
        for follower in list(self.followers):
            follower.changed_limit()


_LIMIT = _Limit(os.environ.get(VARIABLE))


@contextmanager
def workspace_limit(nbytes: int | None) -> Iterator[None]:
    """Have calls of all threads take at most so many bytes of workspace within the context.

    Workspace is memory on a GPU that a call takes beside its operands and its result: packed
    operands, partial sums, intermediate results. Within the limit products, Hermitian products,
    contractions, transforms and gates take the fastest plan whose workspace fits, which may compute
    them in panels; the result may have other bits. Plans and prepared circuits keep the workspace
    that they were made with. cuBLAS, which computes fp64 and fp32, takes 32 MiB. Copies of
    operands that kernels cannot read, and of other types, are not counted. Without a context the
    limit is that of the environment variable ``ARGAND_WORKSPACE_LIMIT``, in bytes, or none.

    Args:
        nbytes: the limit; None is no limit.

    Raises:
        ValueError: a negative limit.
        TypeError: a limit that is no integer.
        WorkspaceError: from calls within the context: no plan takes as little. It is a ValueError,
            and says what the call needs.

    Example:
        >>> a = np.ones((4, 3), np.complex64)
        >>> with argand.workspace_limit(32 << 20):
        ...     argand.gemm(a, a, op_b="C").shape
        (4, 4)
    """
    if nbytes is not None:
        nbytes = as_integer(nbytes, "nbytes")
        if nbytes < 0:
            raise ValueError(f"nbytes must be at least 0, got {nbytes}")
    before = _LIMIT.nbytes
    _LIMIT.set(nbytes)
    try:
        yield
    finally:
        _LIMIT.set(before)


def allowed_workspace() -> int | None:
    """Return the bytes that a call may take, None without a limit."""
    return _LIMIT.nbytes


def follow_limit(follower: Follower) -> None:
    """Tell an object, as long as it lives, of changes of the limit."""
    _LIMIT.followers.add(follower)


def require_workspace(what: str, needed: int, advice: str = "") -> None:
    """Raise WorkspaceError where a call needs more bytes than it may take."""
    if _LIMIT.nbytes is not None and needed > _LIMIT.nbytes:
        raise workspace_error(what, needed, _LIMIT.nbytes, advice)


def workspace_error(what: str, needed: int, allowed: int, advice: str = "") -> WorkspaceError:
    """Return the error of a call that needs more bytes than it may take."""
    error = WorkspaceError(
        f"{what} needs {needed} bytes of workspace, {allowed} are allowed: raise the limit of "
        f"argand.workspace_limit or {VARIABLE}{', or ' if advice else ''}{advice}"
    )
    error.needed = needed
    return error
