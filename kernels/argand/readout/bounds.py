"""A-priori bounds of what readout adds to the error of a state (docs/kernels/readout.md)."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-53
_SINGLE = 2.0**-24
_CHAIN = 20
"""Roundings of a term in fp32 on a GPU: two of its products, those of a chain of 16 sums and of
the two chains, rounded up."""


def sum_bound(qubits: int) -> float:
    """Return the error of a sum of up to 2^n terms in fp64, over the sum of their magnitudes.

    On the CPU sums are of blocks of 2^15 numbers and then of blocks, on a GPU of tiles of at least
    2^9 amplitudes or of all that one thread of 128 takes; 64 covers trees over threads and blocks.
    """
    return (2**15 + 2.0 ** max(qubits - 9, 0) + 64) * UNIT_ROUNDOFF


def expectation_bound(qubits: int, dtype: str, backend: str) -> float:
    """Return the error of <state|P|state> over the square of the state's norm.

    The magnitudes |a_i| |a_(i ^ flips)| add up to at most that. On a GPU terms of complex64 and
    chains of them are in fp32.
    """
    single = _CHAIN * _SINGLE if (dtype, backend) == ("complex64", "cuda") else 0.0
    return single * (1 + _CHAIN * _SINGLE) + sum_bound(qubits)
