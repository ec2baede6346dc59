"""A peer: a complex product in Triton on planar operands, four real dots for each k-tile.

All that favours it is done before the clock starts: planes are split, rounded, padded and laid out,
and its fastest configuration is chosen. The result stays planar.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from argand import Precision, get_precision

from benchmarks.peers._peer import Candidate, Peer, unscaled

_PRECISIONS = ("tf32", "3xtf32", "fp16")
_ALGORITHM = "planar 4M, planes made before the clock"


def rounding(precision: str) -> Precision:
    """Return tf32 that drops low bits, as tensor cores do, and the roundings of other names."""
    if precision == "tf32":
        return get_precision("tf32", "toward_zero")
    return unscaled(get_precision(precision)) if precision == "fp16" else get_precision(precision)


def _prepared() -> list[Candidate]:
    """Return one for each precision; only products without a batch."""
    return [
        Candidate(
            "triton", rounding(name), _ALGORITHM, partial(_prepare, name), partial(_compute, name),
            _joined, input="planar", chosen=lambda tile, *_: str(tile),
        )
        for name in _PRECISIONS
    ]  # fmt: skip


def _prepare(precision: str, a: Any, b: Any) -> tuple[Any, ...]:
    from benchmarks.peers import _triton_planar

    return _triton_planar.prepare(precision, a, b)


def _compute(precision: str, *prepared: Any) -> Any:
    from benchmarks.peers import _triton_planar

    return _triton_planar.compute(precision, *prepared)


def _joined(computed: Any) -> Any:
    from benchmarks.peers import _triton_planar

    return _triton_planar.joined(computed)


PEER = Peer(
    name="triton", operation="gemm", backends=("cuda",), precisions=_PRECISIONS,
    algorithm=lambda _: _ALGORITHM, modules=("triton", "torch"), prepared=_prepared,
    precision=rounding,
)  # fmt: skip
