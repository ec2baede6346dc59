"""Images of conjugate and negative views of covariances, for frameworks that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand.frameworks.rules import stored


def adapted(arrays: dict[str, Any], options: dict[str, Any]) -> Callable[[Any], None] | None:
    """Turn the sign of the weights in place of conjugating them and the covariances."""
    arrays["covariances"], negative, conjugate = stored(arrays["covariances"])
    if conjugate:
        options["sign"] = -options["sign"]
    return (lambda found: found.neg_()) if negative else None
