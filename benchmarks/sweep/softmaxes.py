"""Softmaxes of drawn widths: all operations and kinds of elements."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision
from argand.device import gpu
from argand.precision import HALF_FORMATS
from argand.softmax.api import FUNCTIONS
from argand.softmax.candidates import candidate_plans
from argand.softmax.formats import (
    COMPLEX_KINDS,
    REAL_KINDS,
    Operation,
    bf16_values,
)
from argand.softmax.plan import RowPlan
from argand.softmax.problem import SoftmaxProblem
from scipy import special

from benchmarks.harness.measuring import array_module
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, candidates
from benchmarks.softmax import check as softmax_check
from benchmarks.softmax.cases import Case as Elements
from benchmarks.softmax.cases import logits
from benchmarks.sweep.case import Assess, Case
from workflow.accuracy import Accuracy

PEERS = ("torch", "scipy")
"""Libraries that need no kernel tuned for each width, as Triton's is in `benchmarks.softmax`."""
_OPERATIONS: tuple[Operation, ...] = ("softmax",) * 6 + ("log_softmax",) * 3 + ("logsumexp",)
_KINDS = ("fp32",) * 4 + ("fp16",) * 3 + ("bf16",) * 3 + ("complex64",)
"""Operations and kinds are drawn from these, each as often as it is listed."""
_HALVES_WRITTEN = ("", "", "fp32")
"""Types of results of 16-bit elements, drawn from these; "" is the type of the elements."""
_PRECISIONS = {"fp32": ("fp32", "fp16", "bf16"), "fp16": ("fp16", "fp32"),
               "bf16": ("bf16", "fp32"), "complex64": ("fp32",)}  # fmt: skip
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "complex64": 8}
_CHECKED_VALUES = 1 << 16
_UNITS = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}


class SoftmaxCase(Case):
    """Rows of a drawn width."""

    def __init__(
        self, rows: int, columns: int, kind: str, operation: Operation, written: str = ""
    ) -> None:
        self._elements = Elements(rows, columns, kind, written)
        self._function = operation
        self.operation = "softmax"
        self.shape = f"{rows}x{columns}"
        self.kind = f"{operation} {kind}" + (f" to {written}" if written else "")
        results = rows * (1 if operation == "logsumexp" else columns)
        self.bytes_moved = rows * columns * _BYTES[kind] + results * _BYTES[self._elements.output]
        self.flops = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal logits of standard deviation 4, or complex numbers."""
        return (logits(self._elements, seed, 4.0, device),)

    def ours(self, device: Device) -> list[Candidate]:
        """Return the function at the precisions that are measured of these elements."""
        return [self._candidate(PRECISIONS[x], device) for x in _PRECISIONS[self._elements.kind]]

    def _candidate(self, precision: Precision, device: Device) -> Candidate:
        arrays, case = array_module(device), self._elements

        def prepare(x: Any) -> tuple[Any, ...]:
            shape = x.shape[:-1] if self._function == "logsumexp" else x.shape
            out = arrays.empty(shape, REAL_KINDS[case.output])
            out[...] = 0xFFFF if case.output == "bf16" else np.nan
            return x, out

        call = partial(
            FUNCTIONS[self._function], precision=precision, power=case.kind in COMPLEX_KINDS,
            output=case.output, format="bf16" if case.kind == "bf16" else None,
        )  # fmt: skip
        return Candidate(
            "argand", precision, self._function, prepare, lambda x, out: call(x, out=out),
            input=case.kind, output=case.output,
            chosen=partial(_plan, self._function, case, precision),
        )  # fmt: skip

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' function of these elements."""
        found = candidates(
            "softmax", device.backend, kind=self._elements.kind, output=self._elements.output,
            operation=self._function,
        )  # fmt: skip
        return [one for one in found if one.name in PEERS]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares sampled rows with SciPy in fp64."""
        (x,), case = operands, self._elements
        sample = sampled_rows(case.rows, max(2, _CHECKED_VALUES // case.columns))
        rows = on_host(x[sample])
        if self._function == "softmax":
            reference, lost = softmax_check.sampled_reference(case, x, sample)
            return partial(
                softmax_check.check, reference, sample, device.backend, kind=case.output, lost=lost
            )
        if case.kind in COMPLEX_KINDS:
            exact = np.abs(rows.astype(np.complex128)) ** 2
        else:
            exact = (bf16_values(rows) if case.kind == "bf16" else rows).astype(np.float64)
        return partial(_logarithms, self._function, case, exact, sample)

    def peer_class(self, precision: Precision) -> str:
        """Return one class: a library's softmax has no precision but that of its elements."""
        return "softmax"

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> list[tuple[RowPlan, int]]:
        """Return candidate plans of rows of this length, each with the values of an access."""
        from argand.softmax.gpu import form_of

        x, out = inputs
        device = gpu(x.device.id)
        form = form_of(_problem(self._function, self._elements, candidate.precision, x), x, out)
        arch, sm_count = device.require_arch(), device.sm_count
        found = candidate_plans(form, arch, sm_count, self._elements.columns)
        return [(plan, form.vector) for plan in dict.fromkeys(found.values())]

    def with_plan(self, plan: tuple[RowPlan, int]) -> AbstractContextManager[object]:
        """Return a context in which softmaxes take this plan."""
        from argand.softmax.gpu import PLAN_OVERRIDE

        return PLAN_OVERRIDE.use(plan)


def _logarithms(
    function: str, case: Elements, exact: Any, sample: Any, result: Any, candidate: Candidate
) -> Accuracy:
    """Compare logarithms with fp64: |error| <= w max|x| + 8 u (max|x| + log n + 1) + w |value|.

    w is the unit roundoff of the precision, by which x is rounded, or of the result's kind where
    that is larger; u that of fp32.
    """
    truth = np.asarray(getattr(special, function)(exact, axis=-1))
    rows = on_host(result[sample])
    found = (bf16_values(rows) if case.output == "bf16" else rows).astype(np.float64)
    unit = 2.0**-24
    size = float(np.abs(exact).max()) + np.log(case.columns) + 1
    rounded = 0.0 if candidate.name != "argand" else _operand_unit(candidate.precision, case.kind)
    power = 4 * unit * size if case.kind in COMPLEX_KINDS else 0.0
    allowed = 8 * unit * size + 2 * rounded * size + power + 2 * _UNITS[case.output] * np.abs(truth)
    excess = float((np.abs(found - truth) / allowed).max())
    error = float(np.linalg.norm(found - truth)) / max(float(np.linalg.norm(truth)), 1e-30)
    finite = bool(np.isfinite(found).all())
    good = finite and excess <= 1
    reason = "" if good else f"error is {excess:.2g} of what is allowed"
    return Accuracy(
        rel_frobenius=error, verified=good, verdict="verified" if good else "wrong", reason=reason,
        reference="sampled", reference_rows=len(sample),
    )  # fmt: skip


def _operand_unit(precision: Precision, kind: str) -> float:
    """Return unit roundoff of the operands, 0 where the elements already are of that kind."""
    if precision.exact_operands or precision.operand.name == kind:
        return 0.0
    return precision.u


def _plan(operation: Operation, case: Elements, precision: Precision, x: Any, out: Any) -> str:
    """Return the plan of a call on a GPU."""
    if isinstance(x, np.ndarray):
        return ""
    from argand.softmax.gpu import SoftmaxLaunch

    return str(SoftmaxLaunch(_problem(operation, case, precision, x), x, out).plan)


def _problem(operation: Operation, case: Elements, precision: Precision, x: Any) -> SoftmaxProblem:
    return SoftmaxProblem(tuple(x.shape), operation, precision, case.kind, case.output, 1.0)


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 16 to 2^20 columns, log-uniform, 2^27 elements, kinds and operations.

    What results are written as is drawn last, so that a seed draws the widths and kinds that it
    drew before.
    """
    columns = sizes(rng, 16, 1 << 20, (cases,)).tolist()
    return _drawn(rng, [(max(1, (1 << 27) // count), count) for count in columns])


def draw_few(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 1 to 4096 rows of 16 to 65536 columns, 2^24 elements at most, kinds and operations."""
    rows, columns = (sizes(rng, *between, (cases,)) for between in ((1, 1 << 12), (16, 1 << 16)))
    most = np.maximum(1, (1 << 24) // columns)
    return _drawn(rng, list(zip(np.minimum(rows, most).tolist(), columns.tolist(), strict=True)))


def _drawn(rng: np.random.Generator, shapes: Sequence[tuple[int, int]]) -> list[Case]:
    """Draw kinds and operations of these rows and columns, then what results are written as."""
    what = [
        (_KINDS[int(rng.integers(len(_KINDS)))], _OPERATIONS[int(rng.integers(len(_OPERATIONS)))])
        for _ in shapes
    ]
    found: list[Case] = []
    for (rows, columns), (kind, operation) in zip(shapes, what, strict=True):
        written = _HALVES_WRITTEN[int(rng.integers(len(_HALVES_WRITTEN)))]
        if kind not in HALF_FORMATS or operation == "logsumexp":
            written = ""
        found.append(SoftmaxCase(rows, columns, kind, operation, written))
    return found


def draw_small(rng: np.random.Generator, sizes: Any) -> Case:
    """Draw 1 to 512 rows and columns."""
    rows, columns = sizes(rng, 1, 512, (2,)).tolist()
    return SoftmaxCase(rows, columns, _KINDS[int(rng.integers(len(_KINDS)))], "softmax")
