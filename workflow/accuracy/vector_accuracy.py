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

_MOST_STAGES = 2 * (STAGES + 2)
"""Of any plan: a convolution in passes has two of columns and those of a line, there and back."""
_CHUNK_VALUES = 1 << 22
"""Complex values compared at a time."""


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
    sizes, errors, parts = np.zeros(0), np.zeros(0), np.zeros((2, 0))
    misplaced = 0
    step = max(1, _CHUNK_VALUES // length)
    with np.errstate(all="ignore"):
        for start in range(0, len(rows[0]), step):
            exact, got = (x[start : start + step] for x in rows)
            known = finite_lines(exact, -1)
            misplaced += int(np.count_nonzero(known != finite_lines(got, -1)))
            error = np.where(known[:, None], got - exact, 0)
            scale = reference.magnitude.reshape(-1)[start : start + step]
            largest = np.abs([error.real, error.imag]).max(axis=-1)
            parts = np.append(parts, np.where(largest == 0, 0, largest / scale), axis=1)
            sizes = np.append(sizes, np.linalg.norm(np.where(known[:, None], exact, 0), axis=-1))
            errors = np.append(errors, np.linalg.norm(error, axis=-1))
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
    square = lost = 0.0
    overlap = 0j
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _CHUNK_VALUES):
            got = result[start : start + _CHUNK_VALUES].astype(complex)
            exact = reference.values[start : start + _CHUNK_VALUES]
            square += float(np.vdot(got, got).real)
            overlap += complex(np.vdot(exact, got))
            got -= exact
            lost += float(np.vdot(got, got).real)
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
