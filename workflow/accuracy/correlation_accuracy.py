"""The assessment of correlations: as products, and in the units of interferometry.

A visibility V_ij = sum over t of x_i conj(x_j) is an element of a product, so the bounds are those
of products. Beside them stand, on one matrix of fp64,

- the largest error of a complex coherence V_ij / sqrt(V_ii V_jj), whose modulus is at most 1;
- the largest error of the signal-to-noise ratio of a source whose direction is known, in dB. The
  beam that is steered toward it, s^H V s / n^2 with |s_i| = 1, holds the source's power and the
  n-th part of the noise; an antenna, tr V / n on average, holds the source's power and the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from argand import Precision

from workflow.accuracy.assessment import Accuracy, Array, finite
from workflow.accuracy.hermitian_reference import hermitian_reference, hermitian_square
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.references import FLOP_BUDGET, ProductReference

MEASURES = (
    Measure(
        column="coherence_error", caption="coherence error", scientific=True,
        what="Largest |error| of V_ij / sqrt(V_ii V_jj).",
    ),
    Measure(
        column="snr_error_db", caption="SNR error", unit="dB", scientific=True,
        what="Largest error of a planted source's ratio of signal to noise.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class CorrelationReference:
    """Correlations in fp64.

    Attributes:
        product: the product of x (..., n, k) and its conjugate transpose.
        first: (n, n), the first matrix, complex128; None where it takes too long.
        steering: (sources, n), of moduli 1, or 0 for an input that a source does not reach; None
            where no sources are known.
    """

    product: ProductReference
    first: Array | None
    steering: Array | None


def correlation_reference(
    x: Array, steering: Array | None = None, *, seed: int = 0
) -> CorrelationReference:
    """Return the reference of x x^H for x (..., n, k); see the class and `hermitian_reference`."""
    product = hermitian_reference(x, seed=seed)
    n, k = x.shape[-2:]
    first: Array | None = None
    if product.batch and n and not product.sampled:
        first = product.values[:n]
    elif product.batch and n and 4 * n**2 * k <= FLOP_BUDGET:
        with np.errstate(all="ignore"):
            first = hermitian_square(x.reshape(-1, n, k)[0].astype(complex))
    return CorrelationReference(product, first, steering)


def assess_correlation(
    reference: CorrelationReference, result: Array, precision: Precision, *, backend: str
) -> Accuracy:
    """Verify correlations (..., n, n) as `assess_product` does.

    ``coherence_error`` and ``snr_error_db`` are of the first matrix; None where it is not at hand,
    holds what is not finite or, of the latter, where no source is known or one is lost in noise.

    Raises ValueError where the shape differs.
    """
    found = assess_product(reference.product, result, precision, backend=backend)
    first = reference.first
    if first is None or not finite(first).all():
        return found
    ours = np.asarray(result).reshape(-1, *first.shape)[0].astype(complex)
    if not finite(ours).all():
        return found
    own = measured(
        coherence_error=float(np.max(np.abs(coherence(ours) - coherence(first)), initial=0)),
        snr_error_db=_snr_error(ours, first, reference.steering),
    )
    return replace(found, measures=own)


def coherence(matrix: Array) -> Array:
    """Return V_ij / sqrt(V_ii V_jj); 0 where an input has no power."""
    power = np.sqrt(np.maximum(np.diagonal(matrix).real, 0))
    scale = np.divide(1, power, out=np.zeros_like(power), where=power > 0)
    return np.asarray(matrix * scale[:, None] * scale)


def signal_to_noise(matrix: Array, steering: Array) -> Array:
    """Return (sources,): power of a source over that of the noise of an input; see the module."""
    reached = np.abs(steering)
    count = np.maximum(reached.sum(axis=1), 1)
    beam = np.einsum("si,ij,sj->s", np.conj(steering), matrix, steering).real / count**2
    every = (reached @ np.diagonal(matrix).real) / count
    noise = (every - beam) * count / np.maximum(count - 1, 1)
    with np.errstate(all="ignore"):
        return np.asarray((beam - noise / count) / noise)


def _snr_error(ours: Array, first: Array, steering: Array | None) -> float | None:
    if steering is None or not len(steering):
        return None
    found, expected = (signal_to_noise(matrix, steering) for matrix in (ours, first))
    if not (np.isfinite(found).all() and (found > 0).all() and (expected > 0).all()):
        return None
    return float(np.max(np.abs(10 * np.log10(found / expected))))
