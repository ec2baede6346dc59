"""A peer: scipy.special.softmax."""

from __future__ import annotations

from functools import partial
from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, Peer


def softmax(_precision: str, x: Any) -> Any:
    """Return softmax over the last axis, in the type of x."""
    from scipy import special

    return special.softmax(x, axis=-1)


def _prepared(kind: str, output: str, operation: str = "softmax") -> list[Candidate]:
    """Return a call at fp32: SciPy has no type for the others."""
    if kind != "fp32":
        return []
    from scipy import special

    return [
        Candidate(
            "scipy", PRECISIONS["fp32"], f"special.{operation}", lambda x: (x.copy(),),
            partial(getattr(special, operation), axis=-1), input=kind, output=output,
        )
    ]  # fmt: skip


PEER = Peer(
    name="scipy", operation="softmax", backends=("cpu",), precisions=("fp32", "fp64"),
    algorithm=lambda _: "scipy.special", modules=("scipy",), compute=softmax, prepared=_prepared,
)  # fmt: skip
