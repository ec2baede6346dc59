"""Readout on the CPU: blocks of the state by NumPy, never a copy of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argand.readout.problem import Pauli, by_flips
from argand.readout.uniforms import thresholds
from argand.readout.weights import norm_exponent, probabilities_of, weights_of
from argand.runtime.cpu.threads import on_all_cores

BLOCK_QUBITS = 14
"""Qubits of a block: a quarter of a megabyte of complex128, in a core's cache with its products."""
_ROW_QUBITS = 7
"""Qubits of what is read and written in a row where all qubits change their order: a kilobyte."""
_SIGNED_STRINGS = 32
"""Strings whose signs over a block are held at a time: 8 MiB."""


def sample(state: Any, shots: int, seed: int) -> Any:
    """Return the basis state of each shot, int64, ascending."""
    sums, norm = _block_sums(state, 0)
    exponent = norm_exponent(norm)
    if exponent:
        sums, _ = _block_sums(state, exponent)
    ends = np.cumsum(sums, dtype=np.uint64)
    drawn = thresholds(seed, shots, int(ends[-1]))
    drawn.sort()
    found = np.empty(shots, np.int64)
    first = 0
    for number, (start, block) in enumerate(_blocks(state)):
        last = int(np.searchsorted(drawn, ends[number], side="left"))
        if last > first:
            within = np.cumsum(weights_of(probabilities_of(block), exponent), dtype=np.uint64)
            inside, outcomes = drawn[first:last], found[first:last]
            inside -= ends[number] - sums[number]
            outcomes[...] = np.searchsorted(within, inside, side="right")
            outcomes += start
        first = last
    return found


def probabilities(state: Any, chosen: Sequence[int]) -> Any:
    """Return the sums of |a|^2 over all other qubits, float64, (2^k,)."""
    if 1 << len(chosen) == state.size:
        ascending = all(bit == qubit for bit, qubit in enumerate(chosen))
        return _in_order(state) if ascending else _permuted(state, chosen)
    inside: list[tuple[int, int]] = []
    outside: list[tuple[int, int]] = []
    width = min(BLOCK_QUBITS, int(state.size).bit_length() - 1)
    for bit, qubit in enumerate(chosen):
        (inside if qubit < width else outside).append((qubit, bit))
    kept = sorted(inside)
    others = sorted(set(range(width)) - set(chosen), reverse=True)
    if state.size == 1 << width:
        sums = _summed(probabilities_of(state), others)
        ranks = [rank for rank, _ in sorted(enumerate(kept), key=lambda one: -one[1][1])]
        axes = [len(kept) - 1 - rank for rank in ranks]
        return sums.reshape([2] * len(kept)).transpose(axes).ravel()
    outcomes = _moved_bits(
        np.arange(1 << len(kept)), [(rank, bit) for rank, (_, bit) in enumerate(kept)]
    )
    out = np.zeros(1 << len(chosen))
    for start, block in _blocks(state):
        high = int(_moved_bits(np.int64(start), outside))
        found = probabilities_of(block)
        out[outcomes + high] += _summed(found, others) if kept else found.sum()
    return out


def _summed(found: Any, others: Sequence[int]) -> Any:
    """Return the sums over some qubits, the highest first, so that rows stay long."""
    for qubit in others:
        halves = found.reshape(-1, 2, 1 << qubit)
        found = halves[:, 0] + halves[:, 1]
    return found.ravel()


def _in_order(state: Any) -> Any:
    """Return the probabilities of all qubits, as they lie."""
    out = np.empty(state.shape)

    def work(numbered: tuple[int, Any]) -> None:
        start, block = numbered
        out[start : start + block.size] = probabilities_of(block)

    on_all_cores(work, _blocks(state))
    return out


def _permuted(state: Any, chosen: Sequence[int]) -> Any:
    """Return the probabilities of all qubits: bit j of an outcome is that of qubit chosen[j].

    By tiles that have rows of the state and rows of the outcomes, so that both are read and
    written in a row, and the bits change their order in a core's cache.
    """
    qubits = len(chosen)
    row = min(_ROW_QUBITS, qubits)
    ends = {qubit: bit for bit, qubit in enumerate(chosen)}
    lowest = sorted(range(qubits), key=lambda qubit: (qubit >= row and ends[qubit] >= row, qubit))
    inner = sorted(lowest[: max(BLOCK_QUBITS, 2 * row)])
    outer = [qubit for qubit in range(qubits) if qubit not in inner]
    order = sorted(inner, key=lambda qubit: ends[qubit])
    tile, tiles = np.arange(1 << len(inner)), np.arange(1 << len(outer))
    rows = tile[: 1 << (len(inner) - row)]
    places = _moved_bits(tile, [(bit, inner.index(qubit)) for bit, qubit in enumerate(order)])
    rows_in = _moved_bits(rows, [(bit, qubit - row) for bit, qubit in enumerate(inner[row:])])
    rows_out = _moved_bits(rows, [(bit, ends[q] - row) for bit, q in enumerate(order[row:])])
    tiles_in = _moved_bits(tiles, [(bit, qubit - row) for bit, qubit in enumerate(outer)])
    tiles_out = _moved_bits(tiles, [(bit, ends[qubit] - row) for bit, qubit in enumerate(outer)])
    out = np.empty((state.size >> row, 1 << row))
    state = state.reshape(out.shape)

    def work(number: int) -> None:
        found = probabilities_of(state[rows_in + tiles_in[number]].ravel())
        out[rows_out + tiles_out[number]] = found[places].reshape(-1, 1 << row)

    on_all_cores(work, range(len(tiles)))
    return out.ravel()


def outcomes_of(basis_states: Any, chosen: Sequence[int]) -> Any:
    """Return the values of some qubits: bit j of an outcome is that of qubit chosen[j]."""
    return _moved_bits(basis_states, [(qubit, bit) for bit, qubit in enumerate(chosen)])


def expectation(state: Any, paulis: Sequence[Pauli]) -> Any:
    """Return coefficient <state|P|state> of each Pauli string, float64."""
    found = np.zeros(len(paulis))
    with np.errstate(all="ignore"):  # amplitudes that are not finite
        for flips, numbers in by_flips(paulis).items():
            for first in range(0, len(numbers), _SIGNED_STRINGS):
                some = numbers[first : first + _SIGNED_STRINGS]
                found[some] = _group(state, flips, [paulis[number] for number in some])
    return found


def _group(state: Any, flips: int, paulis: Sequence[Pauli]) -> Any:
    """Return the expectation values of strings that flip the same qubits.

    The terms of i and i ^ flips are complex conjugates of each other, so blocks whose highest
    flipped bit is 0 suffice where that bit lies above the blocks. Re(i^ys c) is Re c, -Im c, -Re c,
    Im c for ys = 0, 1, 2, 3, and Im(conj(b) a) is Re(conj(b) (-i a)).
    """
    if state.size <= 1 << BLOCK_QUBITS:
        return _group_in_one_block(state, flips, paulis)
    width = BLOCK_QUBITS
    low, high = flips & ((1 << width) - 1), flips >> width
    numbers = np.arange(1 << width)
    partners = numbers ^ low
    half = 1 << (high.bit_length() - 1) if high else 0
    sums = np.zeros(len(paulis))
    factors = np.array([_factor(one) for one in paulis])
    odd = np.array([one.ys % 2 for one in paulis], bool)
    # A sign for the real and one for the imaginary part of each amplitude.
    signs = [np.repeat(_signs(numbers & one.signs), 2) for one in paulis]
    by_part = [
        (which, np.array([signs[number] for number in np.flatnonzero(which)]), factor)
        for which, factor in ((~odd, 1.0), (odd, -1j))
        if which.any()
    ]
    for start, block in _blocks(state):  # products by einsum: threads of a BLAS cost more here
        if start >> width & half:
            continue
        other = start ^ (high << width)
        partner = _reals(state[other : other + block.size][partners] if low else
                         state[other : other + block.size])  # fmt: skip
        outside = np.array([1.0 - 2.0 * ((start & one.signs).bit_count() % 2) for one in paulis])
        for which, rows, factor in by_part:
            own = _reals(block if factor == 1.0 else block * np.complex64(factor))
            sums[which] += outside[which] * np.einsum("sa,a->s", rows, partner * own)
    return factors * sums * (2.0 if half else 1.0)


def _group_in_one_block(state: Any, flips: int, paulis: Sequence[Pauli]) -> Any:
    """Return the expectation values of strings with the same flips, of a state of one block.

    Sums and differences take the place of signs.
    """
    numbers = np.arange(state.size)
    partner = _reals(state[numbers ^ flips] if flips else state)
    products: dict[bool, Any] = {}
    sums = np.empty(len(paulis))
    for number, one in enumerate(paulis):
        odd = one.ys % 2 == 1
        if odd not in products:
            parts = partner * _reals(state * np.complex64(-1j) if odd else state)
            products[odd] = parts[::2] + parts[1::2]
        sums[number] = _factor(one) * _signed_sum(products[odd], one.signs)
    return sums


def _factor(pauli: Pauli) -> float:
    return (-1.0) ** ((pauli.ys + 1) // 2) * pauli.coefficient


def _signed_sum(terms: Any, signs: int) -> Any:
    """Return the sum of 2^n terms, negative where an odd number of the bits ``signs`` is set."""
    while terms.size > 1:
        half = terms.size // 2
        combine = np.subtract if signs & half else np.add
        terms = combine(terms[:half], terms[half:])
    return terms[0]


def _reals(amplitudes: Any) -> Any:
    """Return real and imaginary parts next to each other, float64."""
    return amplitudes.view(amplitudes.real.dtype).astype(np.float64, copy=False)


def _signs(masked: Any) -> Any:
    """Return 1 where a number has an even count of bits, else -1; float64."""
    return 1.0 - 2.0 * (np.bitwise_count(masked) & 1)


def _block_sums(state: Any, exponent: int) -> tuple[Any, float]:
    """Return the sum of each block's weights, uint64, void beyond 64 bits; and the sum of |a|^2."""
    sums, norm = [], 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for _, block in _blocks(state):
            found = probabilities_of(block)
            norm += float(found.sum())
            sums.append(weights_of(found, exponent).sum(dtype=np.uint64))
    return np.array(sums, np.uint64), norm


def _blocks(state: Any) -> Iterator[tuple[int, Any]]:
    """Yield the first basis state and the amplitudes of each block."""
    size = min(1 << BLOCK_QUBITS, state.size)
    for start in range(0, state.size, size):
        yield start, state[start : start + size]


def _moved_bits(numbers: Any, moves: Sequence[tuple[int, int]]) -> Any:
    """Return the numbers made of some bits: (from, to) of each."""
    found = numbers & 0
    for source, to in moves:
        found = found | (((numbers >> source) & 1) << to)
    return found
