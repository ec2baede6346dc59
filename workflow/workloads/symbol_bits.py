"""Bits of equalised symbols, hard and soft, as products have them."""

from __future__ import annotations

import numpy as np

from workflow import qam
from workflow.data import Array, blank, is_blank


def hard(symbols: Array, order: int) -> Array:
    """Return the bits (..., bit) of the nearest symbols, the highest first, in fp32.

    They are 0 and 1, and NaN where a system has no solution or a subcarrier no channel. An outline
    has an outline (`blank`).

    Args:
        symbols: (snr, time, frequency, transmitter, symbol).
        order: the order of the constellation.
    """
    if is_blank(symbols):
        return blank((*symbols.shape, qam.bits_of(order)), np.float32)
    shifts = np.arange(qam.bits_of(order))[::-1]
    found = (qam.hard_bits(symbols, order)[..., None] >> shifts & 1).astype(np.float32)
    found[~(np.isfinite(symbols) & _arrived(symbols))] = np.nan
    return found


def soft(symbols: Array, sent: Array, order: int) -> Array:
    """Return the log-likelihood ratios (..., bit) of bits, the highest first, in fp32.

    The noise is the power of each transmitter's error. They are NaN where `hard` bits are, and an
    outline has an outline (`blank`).

    Args:
        symbols: (snr, time, frequency, transmitter, symbol).
        sent: the numbers of those that were sent, all axes but the first.
    """
    if is_blank(symbols):
        return blank((*symbols.shape, qam.bits_of(order)), np.float32)
    found = symbols.astype(complex)
    used = np.where(_arrived(found), found, complex(np.nan, np.nan))
    noise = qam.error_power(sent, used, order)
    return qam.soft_bits(used, order, noise).astype(np.float32)


def _arrived(symbols: Array) -> Array:
    """Return whether the subcarriers of (snr, time, frequency, transmitter, symbol) have a channel.

    Where it is 0 least squares give 0, which is no symbol; zero forcing gives NaN. The last two
    axes have length 1.
    """
    return np.asarray(symbols.any(axis=(3, 4), keepdims=True))
