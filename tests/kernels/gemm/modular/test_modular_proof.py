"""The proof of exact products as a GPU computes it, in Python's integers: ranges and sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from argand.gemm.modular.constants import LARGEST_RESIDUE, fraction_constants
from argand.gemm.modular.moduli import MARGIN_BITS, MAX_MODULI, MIN_MODULI, MODULI, moduli
from argand.gemm.modular.product_plan import COLUMN_BLOCK
from argand.gemm.modular.proof import PRIME
from argand.gemm.modular.proof_constants import PAIR_WEIGHT, plane_weights, proof_constants
from argand.gemm.modular.proof_plan import LANES_TERMS, OWN_TERMS

COUNTS = range(MIN_MODULI, MAX_MODULI + 1)


def wide(x: int) -> int:
    """A signed number of 64 bits: it must fit."""
    assert -(1 << 63) <= x < 1 << 63
    return x


def fold(x: int) -> int:
    """`fold` of proof.cuh."""
    return (wide(x) & PRIME) + (x >> 31)


def modulo(x: int) -> int:
    """`modulo` of proof.cuh."""
    x = fold(fold(x))
    x += PRIME if x < 0 else 0
    x -= PRIME if x >= PRIME else 0
    assert 0 <= x < PRIME
    return x


def signed(x: int) -> int:
    """The low 32 bits as a signed number."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


@pytest.mark.parametrize("x", [0, 1, -1, PRIME, -PRIME, PRIME - 1, 2**62, -(2**62), 2**63 - 1,
                               -(2**63), 3 * PRIME, 2**33, -(2**32)])  # fmt: skip
def test_folded_numbers_stay_congruent(x: int) -> None:
    assert modulo(x) == x % PRIME
    assert -(1 << 32) <= fold(x) < 1 << 33


def residues_of(x: int, y: int, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Residues of x + i y as kernels leave them: some are not the least in magnitude."""
    found = []
    for row in moduli(count).rows:
        pair = []
        for value in (x + row.root * y, x - row.root * y):
            least = (value + row.p // 2) % row.p - row.p // 2
            other = least - row.p if least > 0 else least + row.p
            near = abs(other) <= min(LARGEST_RESIDUE, row.p // 2 + 2)
            pair.append(other if near and rng.random() < 0.5 else least)
        found.append(pair)
    return found


Words = list[tuple[int, int]]
"""The random numbers of columns: both parts of x before they are reduced."""


def sum_of_a_row(residues: list[list[list[int]]], words: Words, count: int) -> int:
    """`RowProof::add_row` for a row of a block: Re C' x modulo the prime, by planes and digits."""
    constants, weights = proof_constants(count), plane_weights(count)
    digits = fraction_constants(count, 3)
    found = 0
    for plane in range(2 * count):
        for pair in range(4):
            product = 0
            for element, word in zip(residues, words, strict=True):
                low, high = (word[pair // 2] >> 8 * (2 * pair % 4 + i) & 0xFF for i in range(2))
                product += element[plane // 2][plane % 2] * (low + 256 * high)
            assert signed(product) == product
            weight = weights[4 * plane + pair]
            assert abs(weight) <= PRIME // 2
            found += product * weight
    for element, word in zip(residues, words, strict=True):
        for part, rows in enumerate((digits.real, digits.imag)):
            leading = 0
            for (plus, minus), row in zip(element, rows, strict=True):
                leading += (plus - minus if part else plus + minus) * row[0]
            x = word[part] % PRIME * constants.scale % PRIME
            x -= PRIME if x > PRIME // 2 else 0
            # Four of them are added before they are folded.
            assert 4 * abs(signed(leading)) * abs(x) < 1 << 63
            found += fold(signed(leading) * (-x if part else x))
    return found % PRIME


@pytest.mark.parametrize("count", COUNTS)
def test_residues_give_the_integers_times_x(rng: np.random.Generator, count: int) -> None:
    whole = moduli(count)
    # The largest that a result may be, and numbers of all sizes.
    most = whole.product // 2 - (whole.product >> MARGIN_BITS + 1)
    values = [most, -most, 0, 1, -1]
    while len(values) < 24:
        bits = int(rng.integers(2, most.bit_length()))
        values.append(int(rng.integers(1 << 62)) % (1 << min(bits, 62)) << max(0, bits - 62))
    pairs = list(zip(values, reversed(values), strict=True))
    words: Words = [(0, 2**32 - 1), (2**32 - 1, 0)]
    words += [(int(x), int(y)) for x, y in rng.integers(1 << 32, size=(22, 2))]
    residues = [residues_of(x, y, count, rng) for x, y in pairs]
    found = sum_of_a_row(residues, words, count)
    products = ((x, y, *word) for (x, y), word in zip(pairs, words, strict=True))
    assert found == sum(x * re - y * im for x, y, re, im in products) % PRIME
    # The last bit of one residue changes C' by a multiple of P / p, which is not a multiple of q.
    plane = int(rng.integers(2 * count))
    residues[3][plane // 2][plane % 2] ^= 1
    assert sum_of_a_row(residues, words, count) != found


@pytest.mark.parametrize("count", COUNTS)
def test_sums_of_a_lane_fit_64_bits(count: int) -> None:
    """A lane adds two rows of planes for each 16 of them, a pair of bytes each."""
    tiles = -(-2 * count // 16)
    largest = COLUMN_BLOCK * LARGEST_RESIDUE * (255 + 256 * 255)
    assert largest < 1 << 31
    assert 2 * tiles * largest * (PRIME // 2) < 1 << 63
    # Four products of a leading digit, and what three folded numbers and eight times the prime add
    # up to in a warp, in the 54 bits of its sum.
    assert 4 * (1 << 31) * (PRIME // 2) < 1 << 63
    least, most = -(1 << 32), 1 << 33
    assert 3 * least + 8 * PRIME >= 0
    assert 32 * (3 * most + 8 * PRIME) < 1 << 54


def test_integers_in_halves_fit_64_bits() -> None:
    """`ProofSum` of proof.cuh, of any integers: a lane's terms, and its halves joined."""
    for terms, products in ((LANES_TERMS // 32, 2), (OWN_TERMS, 2)):
        low = terms * products * (1 << 31) * ((1 << 16) - 1)
        assert low < 1 << 63
        assert (1 << 33) * (1 << 16) + (1 << 33) < 1 << 63


def test_no_modulus_is_a_multiple_of_the_prime() -> None:
    assert all(p < PRIME for p in MODULI)
    assert math.gcd(math.prod(MODULI), PRIME) == 1
    assert PAIR_WEIGHT == 256**2


def test_a_wrong_row_escapes_with_a_probability_below_two_to_the_minus_30() -> None:
    """Parts of x are 32 random bits modulo the prime: no number comes more often than three times.

    A number D of a row, not 0, adds Re D Re x - Im D Im x to the real part: for whatever else the
    row adds, one value of the part of x whose factor is not 0 makes the sum 0.
    """
    most = -(-(1 << 32) // PRIME)
    assert most / 2**32 < 2**-30


def test_leading_digits_that_tell_too_little_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from argand.gemm.modular import proof_constants as module

    monkeypatch.setattr(module, "LARGEST_RESIDUE", 1 << 20)
    with pytest.raises(ValueError, match="leading digits of 7 moduli do not tell the multiple"):
        module.proof_constants.__wrapped__(7)


def test_the_weights_are_those_of_sums_and_differences() -> None:
    weights = plane_weights(6)
    for plus, minus in zip(weights[::8], weights[4::8], strict=True):
        assert plus == minus
    for plus, minus in zip(weights[2::8], weights[6::8], strict=True):
        assert plus == -minus
