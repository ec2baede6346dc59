"""A peer: an image by CuPy, the weights of a channel in memory and two products."""

from __future__ import annotations

from typing import Any

from benchmarks.peers._image import ALGORITHM, candidates, image_by
from benchmarks.peers._peer import Peer


def image(precision: str, covariances: Any, *place: Any) -> Any:
    """Power over directions, as `argand.image` has it."""
    import cupy

    return image_by(cupy, precision, covariances, *place)


PRECISIONS = ("fp64", "fp32")
PEER = Peer(
    name="cupy", operation="image", backends=("cuda",), precisions=PRECISIONS,
    algorithm=lambda precision: ALGORITHM, modules=("cupy",), compute=image,
    prepared=lambda: candidates("cupy", image, PRECISIONS),
)  # fmt: skip
