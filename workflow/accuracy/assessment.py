"""The assessment of one result: its errors, its bound, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.precision import FP64

from workflow.accuracy.measures import Value, of_parts

Array = npt.NDArray[Any]

Verdict = Literal["verified", "unproven", "suspect", "wrong"]
"""Verdicts of a result, from the best to the worst."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
PROVABLE = 0.1
"""Largest bound on a relative error that proves something: one decimal digit of the result."""
NOT_COMPARED = "not provable: no value could be compared, as none is finite"
"""Why a result of NaN and infinities alone is unproven."""
FAILURE = 1e-9
"""Probability that a right result is beyond a probabilistic bound, or fails a random check."""


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Errors of one result against its fp64 reference; None where a measure does not apply.

    Attributes:
        rel_frobenius: ||X^ - X||_F / ||X||_F over the reference's rows.
        componentwise_re, componentwise_im: largest error of the real and of the imaginary part,
            over |alpha| |A| |B| + |beta| |C| with the moduli of the entries; for spectra over
            |F| |x|; of solutions that of b - A x^, over |A| |x^| + |b|.
        max_row_error: largest relative 2-norm error of a row of spectra.
        measures: what only this kind of result has, by the column's name
            (`workflow.accuracy.measures`).
        error_limit: what rel_frobenius of the whole result is at most: itself with a full
            reference, else at a confidence of 1 - 1e-9 (`workflow.accuracy.whole_error`).
        bound: what rel_frobenius must not exceed: the smaller one of the worst-case bound and of
            the probabilistic one, which a right result exceeds with a probability of 1e-9.
        worst_bound: the worst-case bound of rel_frobenius.
        ratio: bound over rel_frobenius; None where the error is 0, and at fp64, where the reference
            errs as much as the result.
        lines_out_of_range: rows of A and columns of B of a product that a scaled precision does not
            represent to its unit roundoff, with ``largest_spread``
            (`argand.gemm.scaling_range`), or of which exact integers lose a component
            (`argand.gemm.modular.integer_range`). They are within the bound, which is relative to
            the norms of such lines.
        verdict: ``verified`` where all checks passed and the bound proves something; ``unproven``
            where they passed but the bound is above `PROVABLE`; ``wrong`` beyond what is possible;
            ``suspect`` beyond what is probable, on a second sample too.
        verified: whether the verdict is ``verified``; ``reason`` says with numbers why not.
        reference: ``full`` or ``sampled`` with ``reference_rows`` rows.
    """

    rel_frobenius: float | None = None
    error_limit: float | None = None
    componentwise_re: float | None = None
    componentwise_im: float | None = None
    max_row_error: float | None = None
    measures: Mapping[str, Value] = field(default_factory=dict)
    bound: float | None = None
    worst_bound: float | None = None
    ratio: float | None = None
    lines_out_of_range: int | None = None
    largest_spread: float | None = None
    verdict: Verdict
    verified: bool
    reason: str
    reference: str
    reference_rows: int


_SUMS = ("lines_out_of_range", "reference_rows")
_APART = ("measures", "verdict", "verified", "reason", "reference")


def worst_of(parts: Mapping[str, Any]) -> Accuracy:
    """Return the accuracy of the whole from those of the parts of a result.

    Errors are those of the worst part; the relative Frobenius error of the whole is at most that.
    It is verified where every part is, and the reason names the parts that are not. A measure that
    a part lacks is None for the whole. Parts in which nothing could be compared, such as a blank
    channel, do not count; where there is no other part, the whole is unproven.

    Args:
        parts: anything with the attributes of an `Accuracy`, by the part's name.
    """
    assessed = list(parts.values())
    values: dict[str, Any] = {}
    for name in (one.name for one in fields(Accuracy) if one.name not in _APART):
        found = [getattr(part, name) for part in assessed]
        together = sum if name in _SUMS else max
        values[name] = None if any(value is None for value in found) else together(found)
    compared = [part for part in assessed if part.reference_rows != 0]
    deciding = {
        name: part
        for name, part in parts.items()
        if part.reference_rows != 0 or part.verdict not in ("verified", "unproven")
    }
    reasons = [
        f"{name}: {part.reason}" if name else part.reason
        for name, part in deciding.items()
        if part.reason
    ] or [NOT_COMPARED] * (not deciding)
    sampled = any(part.reference == "sampled" for part in assessed)
    verdicts = [part.verdict for part in deciding.values()] or ["unproven"]
    verdict = max(verdicts, key=[*VERDICTS, ""].index)
    if values["ratio"] is not None:
        values["ratio"] = values["bound"] / values["rel_frobenius"]
    return Accuracy(
        measures=of_parts(part.measures for part in compared or assessed),
        verdict=verdict,
        verified=verdict == "verified",
        reason="; ".join(reasons),
        reference="sampled" if sampled else assessed[0].reference,
        **values,
    )


@dataclass
class Checks:
    """Collects what failed: beyond what is possible, or beyond what is probable."""

    wrong: list[str] = field(default_factory=list)
    suspect: list[str] = field(default_factory=list)

    def require(self, passed: bool | np.bool_, message: str) -> None:
        """Note ``message`` as wrong unless ``passed``."""
        if not passed:
            self.wrong.append(message)

    def expect(self, passed: bool | np.bool_, message: str) -> None:
        """Note ``message`` as suspect unless ``passed``."""
        if not passed:
            self.suspect.append(message)

    def placed(self, counts: Array, what: str, dtype: np.dtype[Any]) -> None:
        """Note `misplaced` entries of a result of this type, and why they may be so."""
        lost, gained, unknown = map(int, counts)
        if lost:
            largest = f"{float(np.finfo(dtype).max):.3g}, the largest {dtype.name}"
            why = f"beyond {largest}, is infinity: scale the data"
            if unknown:
                why = f"{unknown} of fp64 are not: the data hold NaN or infinities, or go beyond "
                why += largest
            self.wrong.append(f"{lost} {what} are not finite where those of fp64 are; {why}")
        if gained:
            self.wrong.append(f"{gained} {what} are finite where those of fp64 are not")

    def at_most(self, name: str, value: float, bound: float) -> None:
        """Note a value above its bound; NaN is above every bound."""
        self.require(value <= bound, f"{name} {value:.3g} exceeds {bound:.3g}")

    def conclude(
        self, error: float, worst: float, probable: float, precision: Precision
    ) -> dict[str, Any]:
        """Return the fields of an `Accuracy` that follow from a relative error and its two bounds.

        The error must not exceed either. Where the smaller one proves nothing, nothing else does.
        """
        self.at_most("rel_frobenius", error, worst)
        self.expect(
            error <= probable,
            f"rel_frobenius {error:.3g} exceeds {probable:.3g}, which a right result exceeds with "
            f"a probability of {FAILURE:g}",
        )
        bound = min(worst, probable)
        verdict: Verdict = "wrong" if self.wrong else "suspect" if self.suspect else "verified"
        reasons = self.wrong or [f"suspect: {message}" for message in self.suspect]
        if verdict == "verified" and not bound <= PROVABLE:
            verdict = "unproven"
            reasons = [
                f"not provable at this precision: the bound on the relative error is {bound:.3g}, "
                f"at most {PROVABLE:g} proves something"
            ]
        return {
            "rel_frobenius": error,
            "bound": bound,
            "worst_bound": worst,
            "ratio": bound / error if error and precision.accumulator != FP64 else None,
            "verdict": verdict,
            "verified": verdict == "verified",
            "reason": "; ".join(reasons),
        }


def finite(x: Array) -> npt.NDArray[np.bool_]:
    """Return where x is neither NaN nor infinite, as an array."""
    return np.asarray(np.isfinite(x), bool)


def misplaced(known: Array, got: Array) -> Array:
    """Return counts (3,) from where fp64 (``known``) and where a result is finite.

    They count entries that are finite only in fp64, only in the result, and not in fp64.
    """
    return np.array([np.count_nonzero(x) for x in (known & ~got, got & ~known, ~known)])


def finite_lines(x: Array, axis: int) -> Array:
    """Return where all of x along ``axis`` is finite."""
    return np.asarray(np.isfinite(x).all(axis=axis))


def ratio(error: float, size: float) -> float:
    """Return error / size, with 0 / 0 = 0: a result that has to be zero may only be zero."""
    if error == 0:
        return 0.0
    return error / size if size > 0 else float("inf")


def excess_of(error: Array, allowed: Array) -> Array:
    """Return each error over what is allowed; 0 / 0 is 0, and NaN counts as infinite."""
    with np.errstate(all="ignore"):
        found = np.where(error == 0, 0.0, error / allowed)
    found[np.isnan(found)] = np.inf
    return found


def largest_ratio(error: Array, size: Array) -> float:
    """Return the largest error over a size or what is allowed (`excess_of`); 0 of no errors."""
    return float(excess_of(error, size).max(initial=0))


def same_shape(result: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError where a result does not have its reference's shape."""
    if tuple(result.shape) != shape:
        raise ValueError(f"result must have shape {shape}, got {tuple(result.shape)}")
