"""The assessment of spectra and of state vectors, by 2-norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from argand import Precision
from argand.dft_butterfly import STAGES
from argand.dft_method import Method
from argand.dft_plan import Plan

from workflow.accuracy import bounds
from workflow.accuracy.gate_bounds import evolution_bound
from workflow.accuracy.judgement import Accuracy, Checks, finite_lines, ratio, same_shape
from workflow.accuracy.references import Array, SpectrumReference, StateReference
from workflow.accuracy.transform_bounds import dft_bound, plan_bound
from workflow.threads import each, stretches

_MOST_STAGES = 2 * (STAGES + 2)
"""Of any plan: a convolution in passes has two of columns and those of a line, there and back."""
_BLOCK_VALUES = 1 << 16
"""Complex values compared at a time: what is made of them stays in a core's cache."""
_AMPLITUDES = 1 << 18
"""Of a state: more, since little is done with each, and threads hand the interpreter around."""


def assess_spectrum(
    reference: SpectrumReference,
    result: Array,
    precision: Precision,
    *,
    backend: str,
    factors: Sequence[int] = (),
    method: Method | None = None,
    plan: Plan | None = None,
) -> Accuracy:
    """Hold each spectrum of (..., N) to `bounds.transform_bound` in the 2-norm.

    ``factors`` are the lengths of the dense stages, with product N. Where there is a ``method`` of
    `argand.dft`, it is `transform_bounds.dft_bound` of it, and where there is the ``plan`` that ran
    on a GPU, `transform_bounds.plan_bound` of it. A row of zeros must be exactly zero, a row whose
    reference is not finite must not be finite. Below the accumulator's range each of the 2 N
    operations of a value may lose `bounds.Underflow`; a stage's table and sums amplify that by at
    most N.

    Raises ValueError where the shape differs or the factors do not make up N.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    length = int(result.shape[-1])
    if plan is not None:
        bound, stages = plan_bound(plan, precision, length), _MOST_STAGES
    elif method is not None:
        bound, stages = dft_bound(precision, method, backend), len(method.stages)
    elif int(np.prod(factors, dtype=np.int64)) == length:
        bound, stages = bounds.transform_bound(precision, factors, backend), len(factors)
    else:
        raise ValueError(f"factors must have the product {length}, got {list(factors)}")
    terms = bounds.underflow(precision, backend)
    lost = stages * 4.0 * length**2 * (terms.operand + terms.result)
    checks = Checks()
    rows = reference.values.reshape(-1, length), result.reshape(-1, length)
    count = len(rows[0])
    sizes, errors, parts = np.zeros(count), np.zeros(count), np.zeros((2, count))
    magnitude = reference.magnitude.reshape(-1)

    def compare(some: slice) -> int:
        """Fill in the measures of some rows; how many are finite or not against the truth."""
        exact, got = (x[some] for x in rows)
        known = finite_lines(exact, -1)
        error = np.where(known[:, None], got - exact, 0)
        largest = np.abs([error.real, error.imag]).max(axis=-1)
        parts[:, some] = np.where(largest == 0, 0, largest / magnitude[some])
        sizes[some] = np.linalg.norm(np.where(known[:, None], exact, 0), axis=-1)
        errors[some] = np.linalg.norm(error, axis=-1)
        return int(np.count_nonzero(known != finite_lines(got, -1)))

    with np.errstate(all="ignore"):
        blocks = stretches(count, max(1, _BLOCK_VALUES // max(length, 1)))
        misplaced = sum(each(compare, blocks))
        allowed = np.where(sizes == 0, 0, bound * sizes + lost)
        relative = np.where(errors == 0, 0, errors / sizes)
        excess = np.where(errors == 0, 0, errors / allowed)
        excess[np.isnan(excess)] = np.inf
    checks.require(misplaced == 0, f"{misplaced} rows are finite or not where X is the other")
    if excess.size and not excess.max() <= 1:
        checks.require(
            False,
            f"max_row_error: row {int(excess.argmax())} is {excess.max():.3g} times what is "
            f"allowed (bound {bound:.3g})",
        )
    return Accuracy(
        rel_frobenius=ratio(float(np.linalg.norm(errors)), float(np.linalg.norm(sizes))),
        componentwise_re=float(parts[0].max(initial=0)),
        componentwise_im=float(parts[1].max(initial=0)),
        max_row_error=float(relative.max(initial=0)),
        bound=bound,
        verified=checks.verified,
        reason=checks.reason,
        reference="full",
        reference_rows=len(rows[0]),
    )


def assess_state(
    reference: StateReference,
    result: Array,
    precision: Precision,
    *,
    widths: Sequence[int],
    backend: str,
) -> Accuracy:
    """Hold a state (2^n,) after gates of ``widths`` qubits to `evolution_bound` = e.

    The relative 2-norm error must be at most e, so the norm may drift by e (beyond the
    reference's own), and the angle between the states has a sine of at most e: the fidelity is at
    least 1 - e^2.

    Raises ValueError where the shape differs.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    bound, checks = evolution_bound(precision, widths, backend), Checks()

    def compare(some: slice) -> tuple[float, complex, float]:
        """<got, got>, <exact, got> and <error, error> of some amplitudes."""
        got, exact = result[some].astype(complex), reference.values[some]
        square, overlap = float(np.vdot(got, got).real), complex(np.vdot(exact, got))
        got -= exact
        return square, overlap, float(np.vdot(got, got).real)

    with np.errstate(all="ignore"):
        square, overlap, lost = 0.0, 0j, 0.0
        for found in each(compare, stretches(result.size, _AMPLITUDES)):
            square, overlap, lost = square + found[0], overlap + found[1], lost + found[2]
        norm = math.sqrt(square)
        error = ratio(math.sqrt(lost), reference.norm)
        fidelity = (
            float((abs(overlap) / np.float64(norm * reference.norm)) ** 2) if norm > 0 else 0.0
        )
    drift = abs(norm - 1)
    checks.require(np.isfinite(norm), "the state is not finite")
    checks.at_most("rel_frobenius", error, bound)
    own = abs(reference.norm - 1)
    checks.at_most("norm_drift", drift, own + bound * reference.norm)
    # The fidelity itself is a quotient of sums in fp64, of relative error below 2^-30.
    checks.at_most("1 - fidelity", 1 - fidelity, bound**2 + 2.0**-30)
    return Accuracy(
        rel_frobenius=error,
        norm_drift=drift,
        fidelity=fidelity,
        bound=bound,
        verified=checks.verified,
        reason=checks.reason,
        reference="full",
        reference_rows=1,
    )
