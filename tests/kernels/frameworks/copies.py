"""A stand-in for a copy that calls must not make."""

from __future__ import annotations

from typing import Any


def copied_conjugate(_: Any) -> None:
    """Fail where ``Tensor.resolve_conj`` would copy."""
    raise AssertionError("a conjugate view is copied")
