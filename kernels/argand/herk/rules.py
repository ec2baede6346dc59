"""Hermitian products of conjugate and negative views, for frameworks that have them."""

from __future__ import annotations

from typing import Any

from argand.frameworks.rules import stored
from argand.gemm.rules import of_conjugate


def adapted(arrays: dict[str, Any], options: dict[str, Any]) -> None:
    """Take a conjugate view as an op; signs leave a Hermitian product as it is."""
    x, _, conjugate = stored(arrays["a"])
    if conjugate:
        x, options["op"] = of_conjugate(x, options["op"])
    arrays["a"] = x
