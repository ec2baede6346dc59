"""Detected beams of conjugate and negative views, for frameworks that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand.frameworks.rules import stored


def adapted(arrays: dict[str, Any], options: dict[str, Any]) -> Callable[[Any], None] | None:
    """Detect the conjugate beams where an operand is a conjugate view, or the larger one of two.

    They have the same powers, and the Stokes parameter V with the other sign. The conjugate of an
    operand that is no conjugate view is copied. The sign of beams leaves what is detected as it is.
    """
    (w, _, w_is_conjugate), (x, _, x_is_conjugate) = (
        stored(arrays[name]) for name in ("weights", "samples")
    )
    beams_are_conjugate = x_is_conjugate
    if w_is_conjugate != x_is_conjugate:
        if not (hasattr(w, "is_conj") and hasattr(x, "is_conj")):
            return None  # such as Pairs, which have no conjugate view
        beams_are_conjugate = x_is_conjugate == (w.numel() <= x.numel())
        if w.numel() <= x.numel():
            w = w.conj()
        else:
            x = x.conj()
    arrays["weights"], arrays["samples"] = w, x
    if not beams_are_conjugate or options["detect"] != "stokes":
        return None
    return lambda found: found[..., 3, :, :].neg_()
