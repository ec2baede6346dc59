"""The matrix of a gate as its kernel reads it. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from argand.gates.canonical import Array
from argand.gates.plan import GatePlan
from argand.precision import Precision
from argand.rounding import encode, split

CORE_COLUMNS = 8
"""Columns of the matrix that four lanes of wgmma read at a time, two each."""


def operand(matrix: Array, plan: GatePlan, exponent: int) -> Array:
    """Return a matrix (2^width, 2^width), compensated where it has to be, in a kernel's layout.

    CUDA cores read it by columns, tensor cores by rows with the columns at `column_positions`.
    Where the plan packs terms, those of 2^exponent times the matrix take the places of its real and
    imaginary parts. Where it reads fragments, they are `fragments`.
    """
    kind = plan.precision.output
    if not plan.on_tensor_cores:
        return np.ascontiguousarray(matrix.T.astype(kind))
    if plan.reads_fragments:
        return fragments(matrix, plan, exponent)
    positions = column_positions(plan)
    if plan.kind != "wgmma":
        return np.ascontiguousarray(matrix.astype(kind))
    # Axis 0 is the row, then the highest bit of a column comes first.
    source = sorted(range(plan.width), key=positions.__getitem__, reverse=True)
    axes = [0, *(plan.width - bit for bit in source)]
    by_bits = matrix.reshape((len(matrix), *(2,) * plan.width))
    found = by_bits.transpose(axes).astype(kind, order="C").reshape(matrix.shape)
    exchanged = found.reshape(len(matrix), -1, 2, CORE_COLUMNS)
    rows = np.arange(len(matrix)) & exchanged_rows(plan) != 0
    exchanged[rows] = exchanged[rows][:, :, ::-1]
    return packed_terms(found, plan.precision, exponent) if plan.packs_terms else found


def packed_terms(matrix: Array, precision: Precision, exponent: int) -> Array:
    """Return the terms of 2^exponent times a matrix, complex64 in C order, as a matrix of its type.

    A word has both 16-bit terms of a part, the first one in its low half. Not finite, its second
    term is NaN (``PackedTerms`` of ``cuda/gates/matrix_kernel.cuh``).
    """
    words, *second = _encoded_terms(matrix.view(np.float32), precision, exponent)
    for term in second:
        words |= term << np.uint32(16)
    return words.view(np.complex64)


def _encoded_terms(numbers: Array, precision: Precision, exponent: int) -> list[Array]:
    """Return the bits of each term of 2^exponent times numbers, as words."""
    scaled = np.array([exponent], np.int32) if precision.scaled else None
    first, *second = split(numbers, precision, scaled)
    for term in second:
        term[~np.isfinite(first)] = np.nan
    return [encode(term, precision.operand).astype(np.uint32) for term in (first, *second)]


def fragments(matrix: Array, plan: GatePlan, exponent: int) -> Array:
    """Return the terms of 2^exponent times a matrix as B fragments of its transpose.

    They are (octets of rows, k-tiles, real and imaginary part, 32 lanes, terms, 2 slots) words.
    """
    row = plan.precision
    places = _fragment_places(
        plan.width, plan.targets_qubit0, row.operand.mma_k, 4 // row.operand.bytes
    )
    numbers = np.ascontiguousarray(matrix.astype(np.complex64)).view(np.float32)
    octets, k_tiles, lanes, slots = places.shape[1:]
    words = np.empty((octets, k_tiles, 2, lanes, row.terms, slots), np.uint32)
    for term, bits in enumerate(_encoded_terms(numbers, row, exponent)):
        first, *second = bits.reshape(-1, 2)[places]
        for others in second:
            first |= others << np.uint32(16)
        words[..., term, :] = np.moveaxis(first, -1, 2)
    return words


@lru_cache(maxsize=16)
def _fragment_places(width: int, targets_qubit0: bool, mma_k: int, per_word: int) -> Array:
    """Return the numbers of a matrix that a word holds: (numbers, octets, k-tiles, lanes, slots).

    ``DirectMmaGate`` of ``cuda/gates/direct_mma_kernel.cuh`` numbers rows and columns alike.
    """
    order = 1 << width

    def number_of(octet: Array, lane: Array, bit: Array) -> Array:
        own = lane & 3
        return octet << 3 | (own << 1 | bit if targets_qubit0 else bit << 2 | own)

    number, octet, k_tile, lane, slot = np.ogrid[:per_word, : order // 8, : order // mma_k, :32, :2]
    rows = number_of(octet, lane >> 3, lane >> 2 & 1)
    half = number_of(2 * k_tile + slot, lane, number)
    columns = half if per_word == 2 else number_of(k_tile, lane, slot)
    return np.asarray(rows << width | columns)


def exchanged_rows(plan: GatePlan) -> int:
    """Return the bit of a row's number by which neighbouring core matrices swap; 0 for none.

    Eight lanes of wgmma read two rows from shared memory at a time, and meet all banks so.
    """
    return 0 if plan.kind != "wgmma" else 2 if plan.targets_qubit0 else 1


def column_positions(plan: GatePlan) -> Sequence[int]:
    """Return the bit of the operand that stands for each bit of a column's number.

    A lane of wgmma reads two columns of a row at a time, and four lanes the eight of a core matrix
    (``WgmmaGate::load_fragments``). They lie beside each other, so that every byte read is used.
    """
    bits = list(range(plan.width))
    if plan.kind != "wgmma":
        return bits
    # The bits of a register's numbers and of the lane; those of core matrix and k-tile follow.
    number, *lanes = (0, -1, -2) if plan.targets_qubit0 else (-1, -2, -3)
    order = [bits[number], *(bits[lane] for lane in lanes)]
    order += [bit for bit in bits if bit not in order]
    return [order.index(bit) for bit in bits]
