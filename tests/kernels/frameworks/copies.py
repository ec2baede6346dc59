"""What stands in for a copy that a call must not make."""

from __future__ import annotations

from typing import Any


def copied_conjugate(_: Any) -> None:
    """In place of ``Tensor.resolve_conj``."""
    raise AssertionError("a conjugate view is copied")
