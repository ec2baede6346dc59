"""Sequences of gates: their schedule, and the kernel's bits by a model of it in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Gate, apply_gate
from argand.gates import sequence_plan as plans
from argand.gates.canonical import gate_form
from argand.gates.fusion import checked_gates, fused_gate
from argand.gates.layout import independent
from argand.gates.sequences import in_groups, sequences_of

from tests.kernels.compiled import ARCHS, assert_clean

PLAN = plans.plan_sequence(PRECISIONS["3xfp16"], ARCHS["sm_90a"])
BITS = np.arange(16)


def unitary(rng: np.random.Generator, width: int) -> Any:
    parts = rng.standard_normal((2, 2**width, 2**width))
    return np.linalg.qr(parts[0] + 1j * parts[1])[0]


def random_circuit(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    found = []
    for _ in range(count):
        width = int(rng.choice([1, 1, 2, 2, 3, 5], p=[0.2, 0.2, 0.2, 0.25, 0.1, 0.05]))
        taken = [int(qubit) for qubit in rng.permutation(qubits)[: width + 1]]
        if width == 1 and rng.random() < 0.5:
            found.append(Gate(np.diag([1, 1j]), (taken[0],), (taken[1],)))
        else:
            found.append(Gate(unitary(rng, width), tuple(taken[:width])))
    return found


def test_a_circuit_is_the_same_in_sequences(rng: np.random.Generator) -> None:
    """Each gate once; gates of five qubits and what is not unitary stay alone."""
    qubits = 13
    circuit = checked_gates(
        qubits, [*random_circuit(rng, qubits, 60), Gate(2 * np.eye(2)[::-1], (3,))]
    )
    passes, groups = sequences_of(qubits, circuit)
    assert sorted(number for one in passes for number in one.gates) == [*range(61)]
    state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
    wanted, found = state.copy(), state.copy()
    for gate in circuit:
        apply_gate(wanted, gate.matrix, gate.targets, controls=gate.controls)
    for one in passes:
        gate = fused_gate([circuit[number] for number in one.gates], one.qubits)
        apply_gate(found, gate.matrix, gate.targets, controls=gate.controls)
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())
    for group in in_groups(groups):
        shared = passes[group]
        if len(shared) > 1:
            assert max(len(one.qubits) for one in shared) <= plans.WIDTH
            forms = [gate_form(qubits, unitary(rng, len(one.qubits)), one.qubits) for one in shared]
            plans.tile_qubits(qubits, forms)
    assert sum(groups) == len(passes)
    assert len(groups) < len(passes) / 2
    with pytest.raises(plans.PlanError, match="must fit in a tile of 12 qubits, got 13"):
        plans.tile_qubits(20, [gate_form(20, unitary(rng, 2), (q, q + 10)) for q in range(5, 10)])


def number_at(places: tuple[int, ...], number: Any) -> Any:
    """The amplitude of a tile whose bits at the places are those of a number."""
    return sum((number >> bit & 1) << place for bit, place in enumerate(places))


def by_kernel(tile: Any, roles: plans.GateRoles, matrix: Any) -> Any:
    """One gate as ``apply`` in ``cuda/gates/sequence_kernel.cuh`` reads, multiplies and writes.

    Lane l holds column l / 4 of B at k of l % 4 and its number, and of results the columns
    2 (l % 4) and the next of rows l / 4 and l / 4 + 8.
    """
    found = np.full_like(tile, np.nan)
    thread, step = np.meshgrid(np.arange(256), np.arange(2), indexing="ij")
    lane, inside = thread % 32, roles.inside
    held = np.full((256, 2, 16, 2), np.nan, complex)  # thread, step, k, column tile
    read = number_at(roles.read, thread) + (step << roles.slow[3])
    lane_k, number_k = ((1, 2), (0, 3)) if inside else ((0, 1), (2, 3))
    for column in range(2):
        for number in range(4):
            second = roles.rows[0 if inside else 2], roles.rows[3]
            at = read + number_at(second, number) + (column << roles.pair)
            k = number_at(lane_k, lane & 3) + number_at(number_k, number)
            np.put_along_axis(held[..., column], k[..., None], tile[at][..., None], axis=2)
    # The columns of a warp's tile, gathered from its lanes.
    columns = np.full((8, 2, 2, 16, 8), np.nan, complex)  # warp, step, column tile, k, column
    for lanes in range(4):
        rows = held.reshape(8, 8, 4, 2, 16, 2)[:, :, lanes]
        columns = np.where(np.isnan(columns), rows.transpose(0, 2, 4, 3, 1), columns)
    products = matrix @ columns
    result = number_at(roles.result, thread) + (step << roles.slow[3])
    row_bits, half_bit = ((1, 2, 3), 0) if inside else ((0, 1, 2), 3)
    for number in range(4):
        edge, half = number & 1, number >> 1
        at = result + number_at(roles.registers, number)
        for low in range(2):  # the amplitudes of a chunk
            tiles, upper = (half, low) if inside else (low, half)
            row = number_at(row_bits, lane >> 2) | upper << half_bit
            value = products[thread // 32, step, tiles, row, 2 * (lane & 3) + edge]
            found[at + low] = value
    return found


@pytest.mark.parametrize(
    "targets", [(0, 1, 2, 3), (0, 4, 8, 11), (1, 2, 3, 4), (8, 9, 10, 11), (1, 4, 8, 11)]
)
def test_the_kernels_bits(rng: np.random.Generator, targets: tuple[int, ...]) -> None:
    """Every amplitude is read and written once, and accesses of eight lanes meet all banks."""
    matrix = unitary(rng, 4)
    tile = rng.standard_normal((2**12, 2)).view(complex)[:, 0]
    roles = plans.roles_of(targets)
    moved = plans.permuted(matrix, [targets.index(place) for place in roles.rows])
    wanted = tile.copy()
    apply_gate(wanted, matrix, targets)
    np.testing.assert_allclose(by_kernel(tile, roles, moved), wanted, atol=1e-12)
    for pattern in (roles.read[:3], roles.result[:3]):
        assert independent([plans._VECTORS[place] for place in pattern])
    masks = [plans.mask_of(place) for place in range(12)]
    addresses = {0}
    for mask in masks:
        addresses |= {mask ^ other for other in addresses}
    assert addresses == set(range(0, 8 << 12, 8))


def test_every_gate_of_a_tile_meets_all_banks() -> None:
    from itertools import combinations

    conflicts = 0
    for targets in list(combinations(range(12), 4))[::7]:
        roles = plans.roles_of(targets)
        assert sorted((*roles.rows, *roles.fast, roles.pair, *roles.slow)) == [*range(12)]
        conflicts += not all(
            independent([plans._VECTORS[place] for place in pattern])
            for pattern in (roles.read[:3], roles.result[:3])
        )
    assert conflicts == 0


def test_gates_on_fewer_qubits_are_placed(rng: np.random.Generator) -> None:
    tile = (0, 1, 2, 5, 6, 9, 11, 12, 13, 15, 18, 20)
    matrix = unitary(rng, 2)
    form = gate_form(21, matrix, (11, 2))
    places, placed = plans.placed_gate(form, tile)
    assert places == (2, 6, 10, 11)
    state = rng.standard_normal((16, 2)).view(complex)[:, 0]
    wanted = state.copy()
    apply_gate(wanted, matrix, (1, 0))
    np.testing.assert_allclose(placed @ state, wanted, atol=1e-13)


@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32"])
def test_the_kernel_compiles_without_spills(precision: str) -> None:
    plan = plans.plan_sequence(PRECISIONS[precision], ARCHS["sm_90a"])
    assert plan is not None
    assert_clean(plans.kernel_source(plan), "sm_90a", plans.kernel_name(plan))
    assert plans.plan_sequence(PRECISIONS["fp64"], ARCHS["sm_90a"]) is None
