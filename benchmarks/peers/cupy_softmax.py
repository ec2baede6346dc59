"""A peer of studies: CuPy's softmax, of several kernels with temporaries as large as x."""

from __future__ import annotations

from typing import Any

from benchmarks.peers._peer import Peer


def softmax(_precision: str, x: Any) -> Any:
    """Return softmax of a CuPy array over the last axis, in its type."""
    from cupyx.scipy import special

    return special.softmax(x, axis=-1)


PEER = Peer(
    name="cupy", operation="softmax", backends=("cuda",), precisions=("fp32", "fp64"),
    algorithm=lambda _: "cupyx.scipy.special", modules=("cupy",), compute=softmax,
    benchmarked=False,
)  # fmt: skip
