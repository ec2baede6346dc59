"""Ways to compute a workload, ours and peers', and the work that sizes mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argand import Precision

from workflow.data import Array

OURS = "argand"
"""The name of the implementation that is not a peer's."""
Computation = Callable[[Mapping[str, Any]], Any]
"""Computes the result from operands in device memory (NumPy or CuPy arrays): what is timed."""


class NoResultError(RuntimeError):
    """An implementation has no result for these operands, such as a solution of a singular system.

    The reason is recorded, and other implementations go on.
    """


@dataclass(frozen=True)
class Implementation:
    """One way to compute a workload: `OURS` at a precision, or a peer's.

    ``prepare`` turns the staged operands (NumPy) into the ones that `compute` takes, before any
    clock starts: only what a user would have at hand already belongs there (types, layout).
    ``predicted_us`` is the time that it is expected to take, where there is a table of costs.
    ``plan_words`` are the plan that it runs by, where that is its own choice and the work or the
    bound depends on it, in words that `Workload.as_computed` reads.
    ``proved`` computes what `compute` does and proves it: it raises an error where the machine
    computed it wrongly. The result that is written is that of ``proved``; times are of `compute`,
    those of chunks, which are computed once, of ``proved``.
    ``proof`` are the words for it in the algorithm of a record.
    """

    name: str
    precision: Precision
    algorithm: str
    compute: Computation
    prepare: Callable[[Mapping[str, Array]], Mapping[str, Array]]
    predicted_us: float | None = None
    plan_words: str = ""
    proved: Computation | None = None
    proof: str = ""

    @classmethod
    def ours(cls, *given: Any, **named: Any) -> Implementation:
        """Return one of `OURS`; all other fields are given, in their order or by name."""
        return cls(OURS, *given, **named)

    @property
    def is_ours(self) -> bool:
        """Whether it is ours, not a peer's."""
        return self.name == OURS

    @property
    def rounding(self) -> str:
        """The roundings of the precision's terms, with commas between, as a result has them."""
        return ",".join(self.precision.roundings)


@dataclass(frozen=True)
class Shape:
    """The sizes that a record reports, and the work they mean.

    ``flops`` are nominal (8 batch m n k for products), ``bytes_moved`` counts each operand read and
    each result written once at the size it has in device memory at that precision.
    """

    flops: float
    bytes_moved: float
    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    rows: int | None = None
    columns: int | None = None

    def sizes(self) -> dict[str, Any]:
        """Return the sizes by the columns of a record."""
        work = ("flops", "bytes_moved")
        return {name: value for name, value in vars(self).items() if name not in work}

    def rates(self, time_us: float, limit_s: float | None) -> dict[str, Any]:
        """Return the rates of the work at a time, by the columns of a record.

        ``limit_s`` is the least time at the device's measured ceilings, where that is known.
        """
        seconds = 1e-6 * time_us
        return {
            "tflops": self.flops / seconds / 1e12,
            "gbytes_per_s": self.bytes_moved / seconds / 1e9,
            "limit_fraction": None if limit_s is None else limit_s / seconds,
        }


@dataclass(frozen=True)
class OtherWork:
    """Work of a call on a CPU beside the products whose operations `Shape` counts.

    Attributes:
        exponentials: complex exponentials, or cosines with their sines.
        terms: products of two numbers that a step adds up one by one, in blocks that a cache holds.
        peer_bytes: bytes in fp64 that a peer's steps over whole arrays read and write.
    """

    exponentials: float = 0.0
    terms: float = 0.0
    peer_bytes: float = 0.0
