"""Checks of tensors that come again, which a call or a plan shares among its addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand.frameworks.torch_functions import check_of

_MAX_CHECKS = 16
"""Most checks of a form: with and without `out`, with parameters for tensors, in torch's modes."""


class TensorChecks:
    """The checks of one call, or of one plan: whether tensors are of its form.

    To check all of a call's tensors takes as long as to launch it.
    """

    def __init__(self) -> None:
        self._checks: list[tuple[int, Callable[..., bool]]] = []  # with the number of tensors

    def passed_by(self, given: tuple[Any, ...]) -> Callable[..., bool]:
        """Return a check that these tensors pass: one that there is, or a new one."""
        for count, check in self._checks:
            if count == len(given) and check(*given):
                return check
        if len(self._checks) >= _MAX_CHECKS:
            self._checks.clear()
        self._checks.append((len(given), check_of(given)))
        return self._checks[-1][1]
