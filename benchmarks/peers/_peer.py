"""The protocol of a peer: what a file of this folder says of its library."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import argand
from argand import PRECISIONS, Precision

Operation = str
"""The package of argand that computes it too, such as ``gemm``."""
Backend = Literal["cpu", "cuda"]


class CannotRunError(RuntimeError):
    """A candidate cannot solve this case here: it is not installed, or has no such operation."""


def _nothing(*_: Any) -> str:
    return ""


def _itself(x: Any) -> Any:
    return x


@cache
def operations() -> list[str]:
    """Return the packages of argand that compute something: all but `argand.runtime`."""
    packages = (module.name for module in pkgutil.iter_modules(argand.__path__) if module.ispkg)
    return sorted(set(packages) - {"runtime"})


@dataclass(frozen=True)
class Candidate:
    """One implementation at one precision, as a benchmark measures it: ours or a peer's.

    ``prepare`` turns operands (NumPy arrays, or CuPy arrays on a GPU) into what ``compute`` takes,
    before any clock starts, and raises CannotRunError where the case is beyond it; ``result`` turns
    what was computed into an array that the check takes. Where a library takes a place for its
    result, ``prepare`` fills it with NaN, so that an element that it does not write is seen.

    Attributes:
        input, output: columns of `workflow.records.BenchmarkRecord`.
        chosen: what the implementation chose of what was prepared; it stands behind ``algorithm``.
        predicted_us: the time that it was expected to take.
        widths: for circuits, the qubits of the gates that it applies one after another, for their
            bound.
    """

    name: str
    precision: Precision
    algorithm: str
    prepare: Callable[..., tuple[Any, ...]]
    compute: Callable[..., Any]
    result: Callable[[Any], Any] = _itself
    input: str = "complex64"
    output: str = "complex64"
    chosen: Callable[..., str] = _nothing
    predicted_us: float | None = None
    widths: tuple[int, ...] = ()


def absent(candidate: Candidate, reason: str) -> Candidate:
    """Return the candidate as a row that says why it is not there."""

    def prepare(*_: Any) -> tuple[Any, ...]:
        raise CannotRunError(reason)

    return replace(candidate, prepare=prepare)


@dataclass(frozen=True)
class Peer:
    """A library's way to compute an operation.

    ``compute(precision, ...)`` is one whole call at a precision's name, as a user makes it, on
    arrays of the device in that precision's type:

    - gemm: ``(precision, a, b, c=None, *, alpha=1, beta=0, op_a="N", op_b="N")``, as `argand.gemm`;
    - dft: ``(precision, x, *, inverse=False, norm="backward")``, along the last axis;
    - softmax: ``(precision, x)``, real x, over the last axis;
    - solve: ``(precision, a, b)`` of (n, n) and (n, r);
    - hermitian: ``(precision, r, b)`` of (..., n, n), definite, and (..., n, k);
    - image: ``(precision, covariances, positions, frequencies, directions)``, as `argand.image`
      with unit vectors; the covariances in the precision's type;
    - beam_power: ``(precision, weights, samples, *, detect="power", integrate=1)``, as
      `argand.beam_power`;
    - channelise: ``(precision, x, coefficients, channels, oversampling=1)``, of taps times
      channels coefficients, as `argand.channelise`;
    - spectrum: ``(precision, x, window, overlap, average, scaling="density", sample_rate=1.0,
      detrend=None)``, means of whole groups of ``average`` segments, as `argand.spectrum`.

    Studies measure every peer that has it. ``prepared(...)`` gives a benchmark's candidates, with
    whatever the library makes once (plans, planes, a place for the result) made before the clock
    starts:

    - gemm, dft, image, beam_power, hermitian: ``()``;
    - softmax: ``(kind, output, operation="softmax")``, the elements of x and of the result, as
      fp16, and the function's name;
    - gates: ``(qubits, gates, device)``, `argand.Gate` one after another;
    - readout: ``(shots, chosen, strings)``, of a state: so many shots where there are any, else the
      values of Pauli strings where there are any, else the marginals of the chosen qubits.

    Without it they are ``compute`` on copies of the operands; options follow them as they are.

    Attributes:
        name: as studies, commands and tables have it; the same in several operations where it is
            the same library.
        backends: on which devices it computes.
        precisions: names, in the order of rows.
        algorithm: what it runs, by a precision's name, for the tables.
        modules: modules of Python that it needs; the first one's version is its own.
        benchmarked: whether benchmarks measure it, which studies do with or without.
        precision: how operands are rounded at a precision's name.
        lacks: what else is missing, of libraries that are not modules; empty where nothing is.
        hint: how to install it, behind the message that it is missing.
        version: the name and version of libraries that are not modules.

    Raises ValueError where it has neither ``compute`` nor ``prepared``, or an operation that is no
    package of argand.
    """

    name: str
    operation: Operation
    backends: tuple[Backend, ...]
    precisions: tuple[str, ...]
    algorithm: Callable[[str], str]
    modules: tuple[str, ...]
    compute: Callable[..., Any] | None = None
    prepared: Callable[..., list[Candidate]] | None = None
    benchmarked: bool = True
    precision: Callable[[str], Precision] = PRECISIONS.__getitem__
    lacks: Callable[[], str] = _nothing
    hint: str = ""
    version: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        if self.compute is None and self.prepared is None:
            raise ValueError(f"peer {self.name} must have compute or prepared")
        if self.operation not in (known := operations()):
            raise ValueError(
                f"peer {self.name}: operation must be one of {known}, got {self.operation!r}"
            )

    def missing(self) -> str:
        """Return the package that is not installed, and how to install it.

        Empty where it can compute.
        """
        missing = [name for name in self.modules if find_spec(name) is None]
        if not missing:
            return self.lacks()
        verb = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {verb} not installed{self.hint and f' ({self.hint})'}"

    def installed(self) -> str:
        """Return the library's name and version. Raises CannotRunError with what is missing."""
        if reason := self.missing():
            raise CannotRunError(reason)
        if self.version is not None:
            return self.version()
        return f"{self.modules[0]} {import_module(self.modules[0]).__version__}"

    def computation(self, precision: str) -> Callable[..., Any]:
        """Return ``compute`` at a precision. Raises CannotRunError where it has none."""
        if self.compute is None:
            raise CannotRunError(f"{self.name} takes prepared operands only")
        return partial(self.compute, precision)

    def candidates(self, **problem: Any) -> list[Candidate]:
        """Return a benchmark's candidates; those of a missing peer say so when they are run.

        Args:
            problem: what ``prepared`` of the operation takes.
        """
        if self.prepared is not None:
            found = self.prepared(**problem)
        elif (problem.get("kind", "fp32"), problem.get("operation", "softmax")) == (
            "fp32", "softmax"
        ):  # fmt: skip
            found = [self._whole(name) for name in self.precisions]
        else:  # elements that no precision has arrays of, or another function
            found = []
        reason = self.missing()
        return [absent(one, reason) for one in found] if reason else found

    def _whole(self, name: str) -> Candidate:
        row = self.precision(name)
        shown = "fp32" if self.operation == "softmax" else row.output
        return Candidate(
            self.name, row, self.algorithm(name), partial(_copies, row), self.computation(name),
            input=shown, output=shown,
        )  # fmt: skip


def _copies(precision: Precision, *given: Any) -> tuple[Any, ...]:
    """Return the copies of operands in the type that they have in memory at a precision.

    What is no array is returned as it is.
    """
    return tuple(
        x.astype(precision.output if x.dtype.kind == "c" else precision.real_output)
        if hasattr(x, "astype")
        else x
        for x in given
    )


def unscaled(precision: Precision) -> Precision:
    """Return the precision of operands that were rounded as they are, without scales."""
    return replace(precision, scaled=False)


def seconds_to_choose_by(call: Callable[[], Any]) -> float:
    """Return the shortest of three times on a GPU after a warm-up, to choose an algorithm by."""
    import cupy

    call()
    times = []
    for _ in range(3):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        call()
        after.record()
        after.synchronize()
        times.append(1e-3 * float(cupy.cuda.get_elapsed_time(before, after)))
    return min(times)
