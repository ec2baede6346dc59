"""Readout of a state: ours, and the lines that a user of NumPy or CuPy writes, in one run.

    python -m benchmarks.readout --csv readout.csv
    python -m benchmarks.readout --qubits 24 --device cpu --shots 100000

Times are those of whole calls, checks included, on a random state. `passes` is the time over that
of reading the state once at the copy rate of the device, read and written bytes counted. Answers
are compared with fp64: all shots with the CPU's, sampled strings and all marginals with sums by
NumPy or CuPy in fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import Device, expectation, probabilities, sample
from argand.readout.bounds import expectation_bound, sum_bound
from argand.runtime.ceilings import measure_ceilings

from benchmarks.gates.check import random_state
from benchmarks.harness.measuring import array_module
from benchmarks.harness.samples import on_host
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from workflow.circuits import plain_answers

_CHECKED_STRINGS = 10


@dataclass(frozen=True, kw_only=True)
class ReadoutRow(WholeCall):
    """One way to one answer.

    Attributes:
        call: what was asked.
        qubits, dtype: of the state.
        passes: median time over that of reading the state once at the copy rate.
        copy_gbytes_per_s: that rate, as it was measured.
        speedup: the peer's median time over this one's; None where there is none.
        error: over ``bound``; shots that differ from the CPU's are infinitely wrong.
        verified: whether it is at most 1; a peer's shots are not checked.
    """

    call: str
    qubits: int
    dtype: str
    implementation: str
    passes: float
    copy_gbytes_per_s: float
    speedup: float | None
    error: float | None
    verified: bool


@dataclass(frozen=True)
class _Question:
    """A question: our call, a peer's, and the error of our answer over its bound."""

    call: str
    ours: Callable[[], Any]
    peer: Callable[[], Any] | None
    error: Callable[[Any], float]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where an answer of ours was wrong."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "readout")
    device = clock.device
    rate = measure_ceilings(device).copy_gbytes_per_s
    state = random_state(arguments.qubits, device, arguments.seed)
    fixed = {"qubits": arguments.qubits, "dtype": str(state.dtype), "copy_gbytes_per_s": rate}
    for question in _questions(arguments, state, device):
        peer: float | None = None
        for name, call in (("numpy lines", question.peer), ("argand", question.ours)):
            if call is None or (name != "argand" and arguments.no_peer):
                continue
            error = question.error(call()) if name == "argand" else None
            columns = clock.timed(call, ours=name == "argand")
            time_us = columns["time_us_p50"]
            row = ReadoutRow(
                call=question.call, implementation=name, error=error,
                passes=time_us / (1e-3 * state.nbytes / rate),
                speedup=peer / time_us if peer else None,
                verified=error is None or error <= 1, **fixed, **columns,
            )  # fmt: skip
            peer = time_us
            table.add([row], _line(row))
    return table.status("verified")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--qubits", type=int, default=28)
    found.add_argument("--shots", type=int, default=1_000_000)
    found.add_argument("--strings", type=int, default=100)
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


def _questions(arguments: argparse.Namespace, state: Any, device: Device) -> Iterator[_Question]:
    qubits, shots, arrays = arguments.qubits, arguments.shots, array_module(device)
    rng = np.random.default_rng(arguments.seed)
    yield _Question(
        f"{shots} shots",
        lambda: sample(state, shots, seed=arguments.seed),
        lambda: _plain_shots(state, shots, arrays),
        lambda found: _count_error(found, state, shots, arguments.seed),
    )
    for count in (1, 8, 20):
        chosen = rng.permutation(qubits)[:count].tolist()
        yield _Question(
            f"marginals of {count} qubits",
            lambda chosen=chosen: probabilities(state, chosen),  # type: ignore[misc]
            lambda chosen=chosen: _plain_marginals(state, chosen, arrays),  # type: ignore[misc]
            lambda found, chosen=chosen: _most(  # type: ignore[misc]
                found - plain_answers.marginals(state, chosen), 2 * sum_bound(qubits)
            ),
        )
    for kind, letters in (("random", "IXYZ"), ("diagonal", "IZ")):
        strings = ["".join(rng.choice([*letters], qubits)) for _ in range(arguments.strings)]
        bound = expectation_bound(qubits, str(state.dtype), device.backend) + sum_bound(qubits)
        yield _Question(
            f"{len(strings)} {kind} Pauli strings",
            lambda strings=strings: expectation(state, strings),  # type: ignore[misc]
            # On a GPU its launches for each qubit of each block would take minutes.
            (lambda strings=strings: plain_answers.expectation(state, strings))  # type: ignore[misc]
            if device.backend == "cpu"
            else None,
            lambda found, strings=strings, bound=bound: _most(  # type: ignore[misc]
                on_host(found)[:_CHECKED_STRINGS]
                - on_host(plain_answers.expectation(state, strings[:_CHECKED_STRINGS])),
                bound,
            ),
        )


def _plain_shots(state: Any, shots: int, arrays: Any) -> Any:
    """Return shots as a user draws them: running sums of |a|^2 and bisection."""
    ends = arrays.cumsum(abs(state) ** 2, dtype=np.float64)
    drawn = arrays.random.random(shots) * ends[-1]
    return arrays.unique(arrays.searchsorted(ends, drawn), return_counts=True)


def _plain_marginals(state: Any, chosen: Sequence[int], arrays: Any) -> Any:
    """Return marginals as a user takes them: |a|^2 with an axis a qubit, summed over the others."""
    qubits = int(state.size).bit_length() - 1
    axes = tuple(qubits - 1 - q for q in range(qubits) if q not in chosen)
    summed = (abs(state) ** 2).reshape([2] * qubits).sum(axis=axes, dtype=np.float64)
    left = sorted(chosen, reverse=True)
    return summed.transpose([left.index(qubit) for qubit in reversed(chosen)]).ravel()


def _most(apart: Any, bound: float) -> float:
    return float(abs(apart).max() / bound)


def _count_error(found: Any, state: Any, shots: int, seed: int) -> float:
    expected = sample(on_host(state), shots, seed=seed)
    same = all(np.array_equal(on_host(x), y) for x, y in zip(found, expected, strict=True))
    return 0.0 if same else float("inf")


def _line(row: ReadoutRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f}"
    return (
        f"{row.qubits} qubits {row.call:28} {row.implementation:12} "
        f"{1e-3 * row.time_us_p50:10.3f} ms {row.passes:8.2f} passes{faster}"
        f"{'' if row.error is None else f'  error over bound {row.error:.1e}'}"
        f"{'' if row.verified else '  WRONG'}"
    )


if __name__ == "__main__":
    sys.exit(main())
