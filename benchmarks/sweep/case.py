"""The protocol of a case, and the row that each measurement becomes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from argand import Device, Precision
from argand.beam_power.problem import EXACT
from argand.precision import any_precision

from benchmarks.peers import Candidate
from workflow.accuracy import Accuracy

OURS = "argand", "argand plan", "argand product", "plan"
"""Implementations that are no peers: a call, one that was planned before, the product that is a
part of it, and a candidate plan."""
Assess = Callable[[Any, Candidate], Accuracy | int]
"""Compares a result with fp64: its accuracy, or its place among those that are assessed later."""


def precision_row(name: str) -> Precision:
    """Return the row of a precision, also of `EXACT` sums of int8, which no study names."""
    return EXACT if name == EXACT.name else any_precision(name)


class Case(ABC):
    """One problem of drawn or given sizes, which ours and the peers solve.

    `operands` is called first, and may set shape, flops and bytes_moved, where they follow from
    what a device has room for.
    """

    operation: str
    """The package of argand that solves it."""
    shape: str
    """Its sizes, as rows and the summary have them."""
    kind: str
    """Its types and options, as rows have them."""
    flops: float
    """Nominal floating-point operations of one call."""
    bytes_moved: float
    """Bytes of operands and result together, as users have them in memory."""

    in_place: bool = False
    """Whether the result replaces an operand, so that half as much memory is touched."""
    given: bool = False
    """Whether a file gave the sizes (`benchmarks.sweep.given`), so that none is reduced."""

    @abstractmethod
    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return random operands on the device."""

    @abstractmethod
    def ours(self, device: Device) -> list[Candidate]:
        """Return our own functions at each precision that is measured."""

    @abstractmethod
    def peers(self, device: Device) -> list[Candidate]:
        """Return the candidates of peers; those that are missing say so when they are run."""

    @abstractmethod
    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares a result with fp64, on a sample where it is large."""

    def room(self, most: Mapping[str, int], device: Device) -> float:
        """Return what sizes may take, by the device's backend; infinity where they were given."""
        return math.inf if self.given else most[device.backend]

    def sampled(self, of_drawn: int, of_given: int) -> int:
        """Return how much of a result is compared with fp64: more where there are few cases."""
        return of_given if self.given else of_drawn

    def kernels(self, device: Device) -> Sequence[tuple[str, str]] | None:
        """Return source and target of all kernels of ours; None where only calls know them."""
        return None

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> Sequence[Any]:
        """Return candidate plans of our ``candidate`` of what it prepared, on the current GPU.

        They are those that are not estimated far behind; none where there is no choice.
        """
        return ()

    def with_plan(self, plan: Any) -> AbstractContextManager[object]:
        """Return a context in which calls take this plan."""
        raise ValueError(f"{self.operation} has no candidate plans")

    def peer_class(self, precision: Precision) -> str:
        """Return the class of precisions that are compared with each other."""
        return precision.peer_class


@dataclass(frozen=True)
class Row:
    """One implementation of one case, or one candidate plan of it; `OURS` are no peers.

    ``ratio`` is the best verified peer's time of the same class over this one; ``regret`` the time
    of the plan that a call takes over that of its fastest candidate plan. ``over_bound`` is the
    error over its bound, in the measure that the check bounds. ``of_real``, where sizes were given,
    is ``tflops`` times the precision's products of terms, over the rate of cuBLAS's real product of
    the operand's format at 8192^3, which is timed in turn with the calls.
    ``measures`` are those of this kind of result alone, as ``name=value`` separated by spaces.
    """

    operation: str
    shape: str
    kind: str
    precision: str
    implementation: str
    time_us: float | None
    host_us: float | None
    of_copy: float | None
    tflops: float | None
    ratio: float | None
    regret: float | None
    error: float | None
    verified: bool
    plan: str
    reason: str
    peer_class: str
    device: str
    seed: int
    kernel_digest: str
    versions: str
    timestamp: str
    gbytes_per_s: float | None = None
    of_real: float | None = None
    over_bound: float | None = None
    measures: str = ""
