"""What is said about one result: its errors, its bound, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Errors of one result against its fp64 reference; None where a measure does not apply.

    Attributes:
        rel_frobenius: ||X^ - X||_F / ||X||_F over the reference's rows.
        componentwise_re, componentwise_im: largest error of the real and of the imaginary part,
            over |alpha| |A| |B| + |beta| |C| with the moduli of the entries; for spectra over
            |F| |x|.
        max_ulp: largest error of a softmax in units in the last place of the output's type.
        row_sum_error: largest |sum of a softmax row - 1|.
        max_row_error: largest relative 2-norm error of a row of spectra.
        norm_drift: |2-norm of a state - 1|.
        fidelity: |<psi|psi^>|^2 over both squared norms.
        bound: the a-priori bound: of the componentwise error for products, of max_row_error for
            spectra, of rel_frobenius for states, of an element's relative error for softmax.
        lines_out_of_range: rows of A and columns of B of a product that a scaled precision does not
            hold to its unit roundoff, with ``largest_spread`` (`argand.scaling_range`). They are
            within the bound, which is relative to the norms of such lines.
        verified: whether all checks passed; ``reason`` says with numbers which did not.
        reference: ``full`` or ``sampled`` with ``reference_rows`` rows.
    """

    rel_frobenius: float | None = None
    componentwise_re: float | None = None
    componentwise_im: float | None = None
    max_ulp: float | None = None
    row_sum_error: float | None = None
    max_row_error: float | None = None
    norm_drift: float | None = None
    fidelity: float | None = None
    bound: float | None = None
    lines_out_of_range: int | None = None
    largest_spread: float | None = None
    verified: bool
    reason: str
    reference: str
    reference_rows: int


_SMALLEST = ("fidelity",)
_SUMS = ("lines_out_of_range", "reference_rows")
_SAID = ("verified", "reason", "reference")


def worst_of(parts: Mapping[str, Any]) -> Accuracy:
    """What the accuracies of the parts of a result say of the whole.

    Errors are those of the worst part; the relative Frobenius error of the whole is at most that.
    It is verified where every part is, and the reason names the parts that are not. A measure that
    a part lacks is None.

    Args:
        parts: by the part's name, anything with the attributes of an `Accuracy`.
    """
    judged = list(parts.values())
    values: dict[str, Any] = {}
    for name in (one.name for one in fields(Accuracy) if one.name not in _SAID):
        found = [getattr(part, name) for part in judged]
        together = sum if name in _SUMS else min if name in _SMALLEST else max
        values[name] = None if any(value is None for value in found) else together(found)
    reasons = [
        f"{name}: {part.reason}" if name else part.reason
        for name, part in parts.items()
        if part.reason
    ]
    sampled = any(part.reference == "sampled" for part in judged)
    return Accuracy(
        verified=all(part.verified for part in judged),
        reason="; ".join(reasons),
        reference="sampled" if sampled else judged[0].reference,
        **values,
    )


@dataclass
class Checks:
    """Collects what failed."""

    failures: list[str] = field(default_factory=list)

    def require(self, passed: bool | np.bool_, message: str) -> None:
        """Note ``message`` unless ``passed``."""
        if not passed:
            self.failures.append(message)

    def at_most(self, name: str, value: float, bound: float) -> None:
        """Note a value above its bound; NaN is above every bound."""
        self.require(value <= bound, f"{name} {value:.3g} exceeds {bound:.3g}")

    @property
    def verified(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def reason(self) -> str:
        """What failed, or nothing."""
        return "; ".join(self.failures)


def finite(x: Array) -> npt.NDArray[np.bool_]:
    """Where x is neither NaN nor infinite, as an array."""
    return np.asarray(np.isfinite(x), bool)


def finite_lines(x: Array, axis: int, *, keepdims: bool = False) -> Array:
    """Where all of x along ``axis`` is finite."""
    return np.asarray(np.isfinite(x).all(axis=axis, keepdims=keepdims))


def ratio(error: float, size: float) -> float:
    """error / size, with 0 / 0 = 0: a result that has to be zero may only be zero."""
    if error == 0:
        return 0.0
    return error / size if size > 0 else float("inf")


def same_shape(result: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError where a result does not have its reference's shape."""
    if tuple(result.shape) != shape:
        raise ValueError(f"result must have shape {shape}, got {tuple(result.shape)}")
