"""A plugin of pytest: scipy.fft computes by argand while SciPy's own tests run.

What argand does not have goes on to SciPy. At the end one line counts the calls of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import scipy.fft
from argand import fft_backend

CALLS: Counter[str] = Counter()


class Counting:
    """The backend, with its calls counted."""

    __ua_domain__ = fft_backend.__ua_domain__

    @staticmethod
    def __ua_function__(method: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        result = fft_backend.__ua_function__(method, args, kwargs)
        CALLS["scipy" if result is NotImplemented else "argand"] += 1
        return result


# Not the global one, which has nothing behind it.
_CONTEXT = scipy.fft.set_backend(Counting)
_CONTEXT.__enter__()


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"calls: {CALLS['argand']} argand, {CALLS['scipy']} scipy")
