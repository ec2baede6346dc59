"""Candidates that the peers of filter banks and of spectral estimates share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Candidate

SIGNAL_PRECISIONS = ("fp64", "fp32")


def signal_candidates(
    name: str, algorithm: str, compute: Callable[..., Any], *, power: bool
) -> list[Candidate]:
    """Return the candidates of a benchmark, with samples in the precision's type.

    ``compute`` takes a precision's name, the samples and what else the operation takes; with
    ``power`` its result is real.
    """

    def at(precision: str) -> Candidate:
        row = PRECISIONS[precision]

        def prepare(x: Any, *how: Any) -> tuple[Any, ...]:
            return x.astype(row.output if x.dtype.kind == "c" else row.real_output), *how

        def computed(*given: Any) -> Any:
            return compute(precision, *given)

        output = row.real_output if power else row.output
        return Candidate(name, row, algorithm, prepare, computed, input=row.output, output=output)

    return [at(precision) for precision in SIGNAL_PRECISIONS]
