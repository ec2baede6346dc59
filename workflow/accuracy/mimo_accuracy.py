"""The assessment of equalised symbols: residuals of their systems, EVM and bit errors.

Symbols solve (G + E) x = b + f with G = H^H H + s I, b = H^H y: E and f hold the errors of the
products and of the solver. So the residual b - G x^ is bounded, and x^ - x is at most that over the
least eigenvalue of G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.hermitian.bounds import backward_bound
from argand.runtime.complex_types import UNIT_ROUNDOFF

from workflow import qam
from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    finite_lines,
    largest_ratio,
    ratio,
    same_shape,
)
from workflow.accuracy.bounds import product_bound
from workflow.accuracy.hermitian_solver import solver_bound
from workflow.accuracy.lines import norm_along, norm_of
from workflow.accuracy.measures import Measure, Value, measured
from workflow.error_counts import counts_text, summed_counts

MEASURES = (
    Measure(
        column="snr_db", caption="highest SNR", unit="dB",
        what="The highest signal-to-noise ratio, at which EVM, bit errors and information are.",
    ),
    Measure(
        column="evm_db", caption="EVM", at="snr_db", unit="dB",
        what="Power of the error of symbols at the highest SNR, over that of what was sent.",
    ),
    Measure(
        column="bit_error_rate", caption="bit error rate", at="snr_db", scientific=True,
        what="Bits that are wrong at the highest SNR, over all.",
    ),
    Measure(
        column="information_bits", caption="information", at="snr_db",
        unit="bits a symbol", together=min,
        what="That soft bits carry at the highest SNR, with the power of each transmitter's error "
        "as noise.",
    ),
    Measure(
        column="bits_changed", caption="bits changed", scientific=True,
        what="Bits that differ from those of symbols in fp64, at any SNR, over all.",
    ),
    Measure(
        column="bit_errors", caption="bit errors", text=True, together=summed_counts,
        what="At each SNR in dB the bits that are wrong, over all.",
    ),
    Measure(
        column="error_power", caption="error power", text=True, together=summed_counts,
        what="At each SNR in dB the power of the error of symbols, over that of what was sent.",
    ),
)  # fmt: skip
Array = npt.NDArray[Any]
_SOFT = 1 << 16
"""Symbols at most, evenly chosen, whose soft bits are measured."""
_SCALING_LOSS = 2.0**-38
"""Fraction of a line's largest component that a scaled precision may lose of smaller ones."""


@dataclass(frozen=True)
class MimoReference:
    """Systems and symbols in fp64.

    Attributes:
        h: (1, time, frequency, receiver, transmitter).
        y: (snr, time, frequency, receiver, symbol).
        g: (snr, time, frequency, n, n); b: (snr, time, frequency, n, symbol).
        x: as b; NaN where G is not positive definite.
        least: (snr, time, frequency), the least eigenvalue of G.
        ratios: (snr,) in dB.
        sent: (time, frequency, n, symbol), numbers of the symbols; ``order`` of the constellation.
        load: (snr,), s.
    """

    h: Array
    y: Array
    g: Array
    b: Array
    x: Array
    least: Array
    ratios: Array
    sent: Array
    order: int
    load: Array


def mimo_reference(
    channel: Array, received: Array, sent: Array, load: Array, order: int, ratios: Array
) -> MimoReference:
    """Return the symbols by LAPACK's zpotrf and zpotrs through SciPy."""
    from scipy import linalg

    h, y = channel.astype(complex)[None], received.astype(complex)
    adjoint = h.conj().swapaxes(-1, -2)
    n = h.shape[-1]
    g = adjoint @ h + load[:, None, None, None, None] * np.eye(n)
    b = adjoint @ y
    x = np.full(b.shape, complex(np.nan, np.nan))
    least = np.full(g.shape[:-2], 0.0)
    for index in np.ndindex(*g.shape[:-2]):
        try:
            x[index] = linalg.cho_solve(linalg.cho_factor(g[index], lower=True), b[index])
        except linalg.LinAlgError:
            continue
        least[index] = max(0.0, float(np.linalg.eigvalsh(g[index])[0]))
    return MimoReference(
        h=h, y=y, g=g, b=b, x=x, least=least, ratios=ratios, sent=sent, order=order, load=load,
    )  # fmt: skip


def assess_mimo(
    reference: MimoReference, result: Array, precision: Precision, backend: str
) -> Accuracy:
    """Verify symbols (snr, time, frequency, transmitter, symbol); see the module.

    ``max_row_error`` is the largest relative error of the symbols that are sent at once. Where G is
    not positive definite in fp64 there must be none. Where it nowhere is, something is wrong,
    unless all channels are zero: a shard or a piece may be subcarriers that nobody sends on.
    """
    result = np.asarray(result)
    same_shape(result, reference.x.shape)
    checks = Checks()
    known, got = (finite_lines(x, -2) for x in (reference.x, result))
    checks.require(known.any() or not reference.h.any(), "each channel is singular in fp64")
    misplaced = int(np.count_nonzero(got & ~known))
    checks.require(misplaced == 0, f"{misplaced} symbols are finite, of a singular channel")
    lost = int(np.count_nonzero(known & ~got))
    checks.require(lost == 0, f"{lost} symbols have no value: lmmse or more receivers may help")
    both = known & got
    with np.errstate(all="ignore"):
        truth = np.where(both[..., None, :], reference.x, 0)
        wide = np.where(both[..., None, :], result, 0).astype(complex)
        errors, sizes, norm = (norm_along(z, -2) for z in (wide - truth, truth, wide))
        residual = norm_along(reference.b - reference.g @ wide, -2)
        proved = []
        for probable in (False, True):
            allowed = _residual_bound(reference, precision, backend, norm, probable=probable)
            worst = largest_ratio(np.where(both, residual, 0), allowed)
            message = f"a residual is {worst:.3g} times its bound"
            (checks.expect if probable else checks.require)(worst <= 1, message)
            enclosed = np.where(both, allowed / reference.least[..., None], 0)
            proved.append(ratio(norm_of(enclosed), norm_of(sizes)))
        relative = ratio(norm_of(errors), norm_of(sizes))
        rows = float(np.where(errors == 0, 0, errors / sizes).max(initial=0))
        # Symbols do not count where a channel is 0, as on subcarriers that nobody uses.
        carries = np.abs(reference.h).max(axis=(-2, -1), initial=0) > 0
        used: Array = known & carries[..., None]
        values = _measures(reference, result, used)
    return Accuracy(
        error_limit=relative, max_row_error=rows, reference="full",
        reference_rows=int(np.count_nonzero(used)),
        measures=values,
        **checks.conclude(relative, proved[0], proved[1], precision),
    )  # fmt: skip


def _residual_bound(
    reference: MimoReference, precision: Precision, backend: str, norm: Array, *, probable: bool
) -> Array:
    """Return the bound of ||b - G x|| for each column of x: of the products and the solver."""
    h, y = np.abs(reference.h), np.abs(reference.y)
    k, n = h.shape[-2:]
    dtype = precision.output
    u, own = UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF["complex128"]
    each = math.sqrt(2) * (product_bound(precision, k, backend) + 4 * k * own) + u
    floor = 2 * k * _SCALING_LOSS if precision.scaled else 0.0
    h_line = norm_along(h.max(axis=-2, initial=0), -1)
    y_line = y.max(axis=-2, initial=0)
    of_g = each * norm_along(h.swapaxes(-1, -2) @ h, (-2, -1)) + floor * h_line**2
    of_b = each * norm_along(h.swapaxes(-1, -2) @ y, -2)
    of_b = of_b + floor * h_line[..., None] * y_line
    trace = np.trace(reference.g, axis1=-2, axis2=-1).real
    size = norm_along(reference.g, (-2, -1))
    solver = solver_bound(reference.g, dtype, probable=probable)
    solver = solver + 2 * u * size + (2 * backward_bound(n, "complex128") + 4 * n * own) * trace
    return np.asarray((solver + of_g)[..., None] * norm + of_b)


def _measures(reference: MimoReference, result: Array, used: Array) -> dict[str, Value]:
    """Return EVM, bit errors and information at the highest SNR, and bits that are not fp64's.

    ``used`` says which (snr, time, frequency, symbol) count.
    """
    order, sent = reference.order, reference.sent
    if not used[-1].any():
        return {}
    bits, each = qam.bits_of(order), sent.shape[2]
    totals = used.reshape(len(used), -1).sum(axis=1) * (each * bits)
    used = np.broadcast_to(used[:, :, :, None], result.shape)
    symbols = qam.modulated(sent, order)
    error = np.square(np.abs(result - symbols))
    powers = [float(one[here].sum(dtype=float)) for one, here in zip(error, used, strict=True)]
    arrived = [float(np.square(np.abs(symbols[here])).sum()) for here in used]
    ours, exact = (qam.hard_bits(x, order) for x in (result, reference.x))
    wrong, changed = (
        (qam.bit_errors(one, ours) * used).reshape(len(used), -1).sum(axis=1, dtype=int)
        for one in (sent, exact)
    )
    # The square of an error may overflow, which its norm does not.
    off = ratio(norm_of((result[-1] - symbols)[used[-1]]), norm_of(symbols[used[-1]]))
    places = reference.ratios.tolist()
    return measured(
        snr_db=float(reference.ratios[-1]),
        evm_db=20 * math.log10(off) if 0 < off < math.inf else None,
        bit_error_rate=float(wrong[-1] / totals[-1]),
        bit_errors=counts_text(places, wrong.tolist(), totals.tolist()),
        error_power=counts_text(places, powers, arrived),
        information_bits=_information(reference, result[-1].astype(complex), used[-1]),
        bits_changed=float(changed.sum() / totals.sum()),
    )


def _information(reference: MimoReference, found: Array, used: Array) -> float | None:
    """Return the bits that soft bits of (time, frequency, transmitter, symbol) carry a symbol.

    The noise is the power of each transmitter's error; None where it is 0 or no number.
    """
    order, sent = reference.order, reference.sent
    error = np.square(np.abs(found - qam.modulated(sent, order)))
    noise = np.mean(error, axis=(0, 1, 3), keepdims=True, where=used)
    if not (noise.min() > 0 and np.isfinite(noise).all()):
        return None
    numbers, near, power = (x[used] for x in (sent, found, np.broadcast_to(noise, error.shape)))
    some = slice(None, None, -(-numbers.size // _SOFT))
    ratios = qam.soft_bits(near[some], order, power[some])
    return qam.information(numbers[some], ratios, order)
