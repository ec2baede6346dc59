"""Polarizations of visibilities, by the codes of AIPS memo 117, which the UVH5 memo has too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workflow.data import Array

POLARIZATIONS = {
    1: "I", 2: "Q", 3: "U", 4: "V", -1: "rr", -2: "ll", -3: "rl", -4: "lr", -5: "xx", -6: "yy",
    -7: "xy", -8: "yx",
}  # fmt: skip
"""Names by code: of two feeds that of the baseline's first antenna and that of its second."""
_IN_TURN = {-3: -4, -4: -3, -7: -8, -8: -7}


def in_turn(codes: Sequence[int]) -> Array:
    """Return for each code the place of that of its feeds in turn, yx for xy; -1 of none there."""
    turned = [_IN_TURN.get(code, code) for code in codes]
    return np.array([codes.index(code) if code in codes else -1 for code in turned])
