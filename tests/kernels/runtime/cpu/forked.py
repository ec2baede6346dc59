"""A check in a child of fork, beside the threads of the parent."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable


def holds_in_a_child(check: Callable[[], bool]) -> bool:
    """Return whether a check holds in a child of fork; an error there is a check that does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 1
        finally:  # else the child would go on as a second worker of pytest
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
