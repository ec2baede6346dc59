"""Constants of a GPU's proof of exact products, and why its sums are those of the integers C'.

For each modulus p, S_p is the sum or the difference of two residues, w_p / p the weight that takes
S_p to the fraction C' / P, and d_p = floor(2^32 w_p / p) the weight's leading digit. The kernel
that decodes finds L, the leading digit of a part of C' / P: the sum of S_p d_p modulo 2^32, as a
signed number. Without the modulo that sum is L + 2^32 m, and m is the multiple of P by which sum
S_p c_p, c_p = w_p P / p, exceeds C': C' stays 2^-11 P away from P / 2, and the floors take less
than 2^-19 (`proof_constants` raises where they do not). So

    C' = sum S_p (c_p - P 2^-32 d_p) + P 2^-32 L

modulo any odd number. Its first sum is linear in the residues: a row's is found from the products
of its residues with x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from argand.gemm.modular.constants import LARGEST_RESIDUE, fraction_constants
from argand.gemm.modular.moduli import MARGIN_BITS, moduli
from argand.gemm.modular.proof import PRIME

PAIR_WEIGHT = 1 << 16
"""Weight of the second pair of bytes of a random number."""
_LEADING_BITS = 32


@dataclass(frozen=True)
class ProofConstants:
    """Constants that turn residues and leading digits into C' modulo `PRIME`.

    Attributes:
        weights: the weights of S_p for the real and the imaginary part, for each modulus.
        scale: the weight of L.
    """

    weights: tuple[tuple[int, int], ...]
    scale: int


@cache
def proof_constants(count: int) -> ProofConstants:
    """Return the constants of ``count`` moduli, each from 0 to PRIME - 1.

    Raises ValueError where leading digits do not tell the multiple of P.
    """
    whole, digits = moduli(count), fraction_constants(count, 3)
    if 2 * count * 2 * LARGEST_RESIDUE >> _LEADING_BITS - MARGIN_BITS - 1:
        raise ValueError(f"leading digits of {count} moduli do not tell the multiple")
    scale = whole.product * pow(2, -_LEADING_BITS, PRIME) % PRIME
    weights = tuple(
        (
            (row.real * row.rest - scale * real[0]) % PRIME,
            (row.imag * row.rest - scale * imag[0]) % PRIME,
        )
        for row, real, imag in zip(whole.rows, digits.real, digits.imag, strict=True)
    )
    return ProofConstants(weights, scale)


def plane_weights(count: int) -> list[int]:
    """Return weights of each plane and pair of bytes of x in Re C' x, the least in magnitude.

    The real part of x has the first two pairs, which multiply real parts of C', and the imaginary
    one the others, which are subtracted. S_p is the sum of both planes of a modulus for real parts,
    for imaginary ones the first less the second.
    """
    return [
        _least(part * factor)
        for real, imag in proof_constants(count).weights
        for sign in (1, -1)
        for part in (real, -sign * imag)
        for factor in (1, PAIR_WEIGHT)
    ]


def proof_source(count: int) -> str:
    """Return the CUDA C++ of ``kProofWeights``."""
    weights = plane_weights(count)
    return (
        f"__device__ const int kProofWeights[{len(weights)}] = {{\n    "
        + ",\n    ".join(map(str, weights))
        + "};\n"
    )


def _least(x: int) -> int:
    return (x + PRIME // 2) % PRIME - PRIME // 2
