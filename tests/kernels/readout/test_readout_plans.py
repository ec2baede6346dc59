"""Arguments of readout's kernels, as NumPy reads them; the kernels compile. Needs no GPU."""

from __future__ import annotations

from itertools import product
from typing import Any

import argand
import numpy as np
import pytest
from argand.readout.bit_runs import Runs, runs_to
from argand.readout.marginals import plan_marginals
from argand.readout.pauli_passes import PauliPass, factor_of, make_passes
from argand.readout.problem import Pauli, parse_pauli
from argand.readout.source import (
    KERNELS,
    LANE_BITS,
    LANE_FLIPS,
    MAX_STRINGS,
    REGISTER_BITS,
    kernel_forms,
    kernel_name,
    kernel_source,
)

from tests.covers import EXHAUSTIVE, covered
from tests.kernels.compiled import ARCHS, assert_clean
from tests.kernels.readout.readout_cases import random_state, random_strings, sum_bound

ITEMS = pytest.mark.parametrize(("dtype", "item"), [("complex64", 8), ("complex128", 16)])


FORMS = [
    {"target": target, "name": name, "dtype": dtype, "aligned": aligned}
    for target, name in product(ARCHS, KERNELS)
    for dtype, aligned in kernel_forms(name) if aligned or EXHAUSTIVE
]  # fmt: skip


@pytest.mark.parametrize("form", covered(FORMS), ids=lambda form: "-".join(map(str, form.values())))
def test_every_kernel_compiles_without_spills(form: dict[str, Any]) -> None:
    target, *of_kernel = form.values()
    assert_clean(kernel_source(*of_kernel), target, kernel_name(*of_kernel))


def passes_of(qubits: int, item: int, strings: list[str]) -> tuple[list[PauliPass], list[Pauli]]:
    paulis = [parse_pauli(one, qubits) for one in strings]
    return make_passes(qubits, item, paulis), paulis


def move_bits(number: int, runs: Runs) -> int:
    return sum((number & mask) << shift for mask, shift in runs)


def numbers_of(one: PauliPass, places: int) -> Any:
    """The amplitudes of a pass: (tile, register, lane, place in a chunk)."""
    tiles = np.array([move_bits(tile, list(one.runs)) for tile in range(one.tiles)])
    axes = [tiles, one.masks[:REGISTER_BITS], one.masks[REGISTER_BITS:], [1] * (places == 2)]
    found = axes[0].reshape(-1, 1, 1, 1)
    for axis, masks in enumerate(axes[1:], 1):
        shape = [1] * 4
        shape[axis] = -1
        part = [
            np.bitwise_xor.reduce([0, *(m for bit, m in enumerate(masks) if number >> bit & 1)])
            for number in range(1 << len(masks))
        ]
        found = found ^ np.array(part, int).reshape(shape)
    return found


def summed(state: Any, one: PauliPass, paulis: list[Pauli], string: int, places: int) -> float:
    """The sum of a string as its pass takes it, over the pairs of its kind, in fp64."""
    values, numbers = one.values(paulis, places), numbers_of(one, places)
    slot = one.strings.index(string)
    kind = max(k for k in range(len(one.first) - 1) if one.first[k] <= slot < one.first[k + 1])
    a = state[numbers].astype(complex)
    partner, mine = a, np.ones(numbers.shape, bool)
    registers, lanes = np.arange(1 << REGISTER_BITS), np.arange(1 << LANE_BITS)
    if kind == 1:
        partner, mine = a[..., ::-1], np.broadcast_to(np.arange(places) == 0, mine.shape)
    elif 2 <= kind < 2 + REGISTER_BITS:
        flip = 1 << (kind - 2)
        partner = a[:, registers ^ flip]
        mine = np.broadcast_to((registers & flip == 0)[None, :, None, None], mine.shape)
    elif kind:
        flip = 1 << (LANE_BITS - LANE_FLIPS + kind - 2 - REGISTER_BITS)
        partner = a[:, :, lanes ^ flip]
        upper = (lanes & flip != 0)[None, None, :, None]
        half = (registers >= len(registers) // 2)[None, :, None, None]
        mine = np.broadcast_to(upper == half, mine.shape)
    terms = np.conj(partner) * a
    terms = terms.imag if values["odd"] >> slot & 1 else terms.real
    element = registers[:, None] * places + np.arange(places)
    pattern = values["pattern"][slot] >> element & 1
    thread = numbers[:, :1, :, :1] & values["signs"][slot]
    parity = np.vectorize(lambda x: int(x).bit_count() & 1)(thread) ^ pattern[None, :, None, :]
    return float((terms * (1 - 2 * parity) * mine).sum() * factor_of(paulis[string], True))


@ITEMS
def test_passes_sum_every_string(rng: np.random.Generator, dtype: str, item: int) -> None:
    places = 16 // item
    qubits = REGISTER_BITS + LANE_BITS + places.bit_length()  # two tiles
    state = random_state(rng, qubits, dtype)
    strings = random_strings(rng, qubits, 24)
    passes, paulis = passes_of(qubits, item, strings)
    expected = argand.expectation(state, strings)
    assert sorted(number for one in passes for number in one.strings) == list(range(len(strings)))
    for one in passes:
        numbers = numbers_of(one, places)
        assert np.array_equal(np.sort(numbers, axis=None), np.arange(1 << qubits))
        for number in one.strings:
            found = summed(state, one, paulis, number, places)
            assert abs(found - expected[number]) <= 2 * sum_bound(state, 1 << qubits)


def test_six_independent_flips_share_a_pass() -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice([*"IXYZ"], 28)) for _ in range(100)]
    passes, _ = passes_of(28, 8, strings)
    assert len(passes) == 17  # 100 strings, six a pass
    diagonal = ["".join(rng.choice([*"IZ"], 28)) for _ in range(40)]
    assert [len(one.strings) for one in passes_of(28, 8, diagonal)[0]] == [MAX_STRINGS] * 2 + [8]


@ITEMS
def test_dependent_flips_wait_for_the_next_pass(dtype: str, item: int) -> None:
    strings = ["I" * 12 + one for one in ("XXI", "IXX", "XIX", "IIX", "XII")]
    passes, _ = passes_of(15, item, strings)
    served = [{strings[number] for number in one.strings} for one in passes]
    assert set().union(*served) == set(strings)
    assert all(len(one) < 4 for one in served)  # three qubits have three independent flips


def test_lanes_read_side_by_side() -> None:
    """Lanes of a quarter of a warp read 128 bytes in a row, whatever the flips."""
    passes, _ = passes_of(28, 8, ["X" + "I" * 27, "Z" * 28, "XY" * 14])
    assert passes[0].masks[REGISTER_BITS : REGISTER_BITS + LANE_BITS - LANE_FLIPS] == (2, 4, 8)


@ITEMS
@pytest.mark.parametrize("qubits", [1, 9, 10, 11, 12, 14])
def test_marginals_read_every_amplitude_once(
    rng: np.random.Generator, dtype: str, item: int, qubits: int
) -> None:
    state = random_state(rng, qubits, dtype)
    for count in {0, 1, qubits // 2, qubits}:
        chosen = rng.permutation(qubits)[:count].tolist()
        plan = plan_marginals(qubits, item, chosen, 8)
        found = marginals_by(plan, state)
        assert (
            abs(found - argand.probabilities(state, chosen)) <= sum_bound(state, 2**qubits)
        ).all()


def marginals_by(plan: Any, state: Any) -> Any:
    """The marginals as the kernels take them: places of a tile over shares, then outcomes."""
    sums, finish = plan.sums(), plan.finish()
    power = abs(state.astype(complex)) ** 2
    tiles = power.reshape(-1, sums["amplitudes"])
    free = list(zip(sums["free_mask"], sums["free_shift"], strict=True))
    high = list(zip(sums["high_mask"], sums["high_shift"], strict=True))
    out = np.full(finish["outcomes"], np.nan)
    low_count = finish["low_count"]
    for outcome in range(finish["outcomes"]):
        low, setting = outcome & ((1 << low_count) - 1), outcome >> low_count
        place = sum((low >> bit & 1) << sums["low_bit"][bit] for bit in range(low_count))
        places = np.arange(sums["amplitudes"])
        mine = places & ~sums["place_mask"] == place
        total = 0.0
        for share in range(sums["shares"]):
            for number in range(share, sums["tiles"], sums["shares"]):
                total += tiles[move_bits(setting, high) | move_bits(number, free)][mine].sum()
        to = sum(
            (outcome >> bit & 1) << finish["order"][bit] for bit in range(outcome.bit_length())
        )
        out[to] = total
    return out


def test_runs_move_bits_together() -> None:
    assert runs_to([0, 1, 4, 5, 6, 9]) == [(0b11, 0), (0b11100, 2), (0b100000, 4)]
    assert move_bits(0b101101, runs_to([0, 1, 4, 5, 6, 9])) == 0b1000110001
