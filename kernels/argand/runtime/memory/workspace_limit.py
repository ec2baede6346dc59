"""The most memory that a call may take beside its operands and its result.

It holds for the whole process, as the memory does, so also in threads of torch and of XLA. Nothing
here needs a GPU or CuPy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, local
from traceback import clear_frames
from typing import Any, Protocol
from weakref import WeakSet

from argand.checks import as_integer
from argand.runtime.plan import PlanError

VARIABLE = "ARGAND_WORKSPACE_LIMIT"
"""The environment variable with the limit of a process, in bytes."""
_MAX_DIGITS = 30
"""More are no number of bytes."""


class WorkspaceError(PlanError):
    """No plan of a call takes as little memory as is allowed; ``needed`` is what it takes."""

    needed: int = 0
    allowed: int = 0
    advice: str = ""


class Follower(Protocol):
    """An object that plans calls, and is told of a change of the limit."""

    def changed_limit(self) -> None:
        """Have calls that were planned under another limit planned again."""


class _Limit:
    """The limit in bytes, None without one, of the context that was entered last, and followers."""

    def __init__(self, given: str | None) -> None:
        self._outside = _bytes_in(given)
        self.nbytes = self._outside
        self._contexts: dict[object, int | None] = {}  # those that threads are in, in their order
        self._followers: WeakSet[Any] = WeakSet()
        # A context that is left while garbage is collected may come within another one's change.
        self._lock = RLock()

    @contextmanager
    def within(self, nbytes: int | None) -> Iterator[None]:
        """Set the limit; contexts of threads may overlap, and end in any order."""
        context = object()
        with self._lock:
            self._contexts[context] = nbytes
            self._change()
        try:
            yield
        finally:
            with self._lock:
                del self._contexts[context]
                self._change()

    def _change(self) -> None:
        self.nbytes = next(reversed(self._contexts.values()), self._outside)
        for follower in list(self._followers):
            follower.changed_limit()

    def follow(self, follower: Follower) -> None:
        with self._lock:
            self._followers.add(follower)


def _bytes_in(given: str | None) -> int | None:
    """Return the number of a text, None without one; raises ValueError for any other text."""
    if not given:
        return None
    if given.isascii() and given.isdecimal() and len(given) <= _MAX_DIGITS:
        return int(given)
    shown = given if len(given) <= _MAX_DIGITS else given[:_MAX_DIGITS] + "..."
    raise ValueError(f"{VARIABLE} must be a number of bytes, got {shown!r}")


_LIMIT = _Limit(os.environ.get(VARIABLE))


class _Held(local):
    """Bytes of workspace that a thread's call holds while it makes the calls it consists of."""

    nbytes = 0


_HELD = _Held()


@contextmanager
def workspace_limit(nbytes: int | None) -> Iterator[None]:
    """Have calls of all threads take at most ``nbytes`` of workspace within the context.

    Workspace is memory on a GPU that a call takes beside its operands and its result: packed
    operands, partial sums, intermediate results. Within the limit products, Hermitian products,
    contractions, transforms and gates take the fastest plan whose workspace fits, which may compute
    them in panels; the result may have other bits. Plans and prepared circuits keep the workspace
    that they were made with. cuBLAS, which computes fp64 and fp32, takes up to 32 MiB, and at least
    16 KiB. Copies of operands that kernels cannot read, and of other types, are not counted. Where
    threads are in contexts of their own, the one that was entered last counts. Without a context
    the limit is that of the environment variable ``ARGAND_WORKSPACE_LIMIT``, in bytes, when argand
    is imported, or none.

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
    with _LIMIT.within(nbytes):
        yield


def allowed_workspace() -> int | None:
    """Return the bytes that a call may take, None without a limit.

    They are less than none where a call holds more than the limit: nothing can be planned then.
    """
    return None if _LIMIT.nbytes is None else _LIMIT.nbytes - _HELD.nbytes


@contextmanager
def holding(nbytes: int, what: str) -> Iterator[None]:
    """Allow this thread ``nbytes`` less, which a call holds while it makes those within.

    No call cache may keep these, since its keys have the whole limit. Raises WorkspaceError, which
    names ``what``, where they need more than is left.
    """
    before = _HELD.nbytes
    _HELD.nbytes = before + nbytes
    try:
        yield
    except WorkspaceError as error:
        clear_frames(error.__traceback__)  # which may hold arrays until garbage is collected
        allowed = error.allowed + nbytes
        raise workspace_error(what, error.needed + nbytes, allowed, error.advice) from error
    finally:
        _HELD.nbytes = before


def follow_limit(follower: Follower) -> None:
    """Tell an object, as long as it lives, of changes of the limit."""
    _LIMIT.follow(follower)


def require_workspace(what: str, needed: int, advice: str = "") -> None:
    """Raise WorkspaceError where a call needs more bytes than it may take."""
    allowed = allowed_workspace()
    if allowed is not None and needed > allowed:
        raise workspace_error(what, needed, allowed, advice)


def workspace_error(what: str, needed: int, allowed: int, advice: str = "") -> WorkspaceError:
    """Return the error of a call that needs more bytes than it may take."""
    error = WorkspaceError(
        f"{what} needs {needed} bytes of workspace, {allowed} are allowed: raise the limit of "
        f"argand.workspace_limit or {VARIABLE}{', or ' if advice else ''}{advice}"
    )
    error.needed, error.allowed, error.advice = needed, allowed, advice
    return error
