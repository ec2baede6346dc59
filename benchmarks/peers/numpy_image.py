"""A peer: an image by NumPy, the weights of a channel in memory and two products."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._image import ALGORITHM, candidates, image_by
from benchmarks.peers._peer import Peer


def image(precision: str, covariances: Any, *place: Any) -> Any:
    """Power over directions, as `argand.image` has it."""
    return image_by(np, precision, covariances, *place)


PRECISIONS = ("fp64", "fp32")
PEER = Peer(
    name="numpy", operation="image", backends=("cpu",), precisions=PRECISIONS,
    algorithm=lambda precision: ALGORITHM, modules=("numpy",), compute=image,
    prepared=lambda: candidates("numpy", image, PRECISIONS),
)  # fmt: skip
