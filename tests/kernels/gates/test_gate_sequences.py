"""Sequences of gates: their schedule, and the kernel's bits by a model of it in NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Gate, apply_gate
from argand.device import ARCHITECTURES
from argand.gates import sequence_plan as plans
from argand.gates import sequence_tables as tables
from argand.gates.canonical import gate_form
from argand.gates.fusion import checked_gates, fused_gate
from argand.gates.layout import independent
from argand.gates.sequences import in_groups, sequences_of
from argand.runtime.plan import PlanError

from tests.kernels.compiled import ARCHS, assert_clean
from tests.kernels.gates.gate_cases import random_unitary
from tests.kernels.precisions import TENSOR

PLAN = plans.plan_sequence(PRECISIONS["3xfp16"], ARCHS["sm_90a"])


def random_circuit(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    found = []
    for _ in range(count):
        width = int(rng.choice([1, 1, 2, 2, 3, 5], p=[0.2, 0.2, 0.2, 0.25, 0.1, 0.05]))
        taken = [int(qubit) for qubit in rng.permutation(qubits)[: width + 1]]
        if width == 1 and rng.random() < 0.5:
            found.append(Gate(np.diag([1, 1j]), (taken[0],), (taken[1],)))
        else:
            found.append(Gate(random_unitary(rng, width), tuple(taken[:width])))
    return found


def test_a_circuit_is_the_same_in_sequences(rng: np.random.Generator) -> None:
    """Each gate once; gates of five qubits and what is not unitary stay alone."""
    qubits = 13
    circuit = checked_gates(
        qubits, [*random_circuit(rng, qubits, 60), Gate(2 * np.eye(2)[::-1], (3,))]
    )
    passes, groups = sequences_of(qubits, circuit, 12, PLAN.gates)
    assert sorted(number for one in passes for number in one.gates) == [*range(61)]
    state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
    expected, found = state.copy(), state.copy()
    for gate in circuit:
        apply_gate(expected, gate.matrix, gate.targets, controls=gate.controls)
    fused = [fused_gate([circuit[n] for n in one.gates], one.qubits) for one in passes]
    for gate in fused:
        apply_gate(found, gate.matrix, gate.targets, controls=gate.controls)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    for group, members in zip(groups, in_groups(groups), strict=True):
        shared = passes[members]
        if len(shared) > 1:
            assert max(len(one.qubits) for one in shared) <= plans.WIDTH
            forms = [gate_form(qubits, g.matrix, g.targets, g.controls) for g in fused[members]]
            tables.tables(qubits, forms, group.tile, PLAN)
    assert sum(group.count for group in groups) == len(passes)
    assert len(groups) < len(passes) / 2
    with pytest.raises(PlanError, match="must fit in a tile of 12 qubits, got 13"):
        plans.completed_tile(20, range(3, 13))


def number_at(places: tuple[int, ...], number: Any) -> Any:
    """The amplitude of a tile whose bits at the places are those of a number."""
    return sum((number >> bit & 1) << place for bit, place in enumerate(places))


def by_mma(tile: Any, roles: tables.GateRoles, matrix: Any, threads: int) -> Any:
    """One gate as ``apply`` in ``cuda/gates/sequence_sm80.cuh`` reads, multiplies and writes.

    Lane l holds column l / 4 of B at k of l % 4 and its number, and of results the columns
    2 (l % 4) and the next of rows l / 4 and l / 4 + 8.
    """
    found = np.full_like(tile, np.nan)
    steps = len(tile) // 8 // threads
    bits, warps = threads.bit_length() - 1, threads // 32
    thread, step = np.meshgrid(np.arange(threads), np.arange(steps), indexing="ij")
    later = number_at(roles.read[bits:], step)
    lane, targets_qubit0 = thread % 32, roles.targets_qubit0
    held = np.full((threads, steps, 16, 2), np.nan, complex)  # thread, step, k, column tile
    read = number_at(roles.read[:bits], thread) + later
    lane_k, number_k = ((1, 2), (0, 3)) if targets_qubit0 else ((0, 1), (2, 3))
    for column in range(2):
        for number in range(4):
            second = roles.rows[0 if targets_qubit0 else 2], roles.rows[3]
            at = read + number_at(second, number) + (column << roles.pair)
            k = number_at(lane_k, lane & 3) + number_at(number_k, number)
            np.put_along_axis(held[..., column], k[..., None], tile[at][..., None], axis=2)
    # The columns of a warp's tile, gathered from its lanes.
    columns = np.full(
        (warps, steps, 2, 16, 8), np.nan, complex
    )  # warp, step, column tile, k, column
    for lanes in range(4):
        rows = held.reshape(warps, 8, 4, steps, 16, 2)[:, :, lanes]
        columns = np.where(np.isnan(columns), rows.transpose(0, 2, 4, 3, 1), columns)
    products = matrix @ columns
    result = number_at(roles.result[:bits], thread) + later
    row_bits, half_bit = ((1, 2, 3), 0) if targets_qubit0 else ((0, 1, 2), 3)
    for number in range(4):
        edge, half = number & 1, number >> 1
        at = result + number_at(roles.registers, number)
        for low in range(2):  # the amplitudes of a chunk
            tiles, upper = (half, low) if targets_qubit0 else (low, half)
            row = number_at(row_bits, lane >> 2) | upper << half_bit
            value = products[thread // 32, step, tiles, row, 2 * (lane & 3) + edge]
            found[at + low] = value
    return found


def by_wgmma(tile: Any, roles: tables.GateRoles, matrix: Any, threads: int) -> Any:
    """One gate as ``apply`` in ``cuda/gates/sequence_sm90.cuh`` does, real and imaginary parts.

    A lane's amplitudes are numbers 0 to 3 of two columns. Place 2 t + e + 8 h of a line of the
    matrix is number e + 2 h of lane t; line 8 j + 2 t + part is a part of number j of lane t.
    """
    found = np.full_like(tile, np.nan)
    bits, steps = threads.bit_length() - 1, len(tile) // 8 // threads
    lane_k, number_k = ((1, 2), (0, 3)) if roles.targets_qubit0 else ((0, 1), (2, 3))
    row_of = np.array([[number_at(lane_k, t) + number_at(number_k, j) for j in range(4)]
                       for t in range(4)])  # fmt: skip
    place, line = np.arange(16), np.arange(32)
    column = row_of[place // 2 % 4, place % 2 + place // 8 * 2]
    entries = matrix[row_of[line // 2 % 4, line // 8]][:, column]
    odd = (line % 2 == 1)[:, None]
    planes = np.where(odd, entries.imag, entries.real), np.where(odd, entries.real, -entries.imag)
    second = roles.rows[0 if roles.targets_qubit0 else 2], roles.rows[3]
    thread, step = np.meshgrid(np.arange(threads), np.arange(steps), indexing="ij")
    start = number_at(roles.read[:bits], thread) + number_at(roles.read[bits:], step)
    number = np.arange(4)
    at = start[..., None] + number_at(second, number)  # thread, step, number
    for other in range(2):  # of the two columns
        here = at + (other << roles.pair)
        x = tile[here].reshape(-1, 4, steps, 4)  # column, lane, step, number
        rows = x.transpose(0, 2, 3, 1).reshape(-1, steps, 2, 2, 4)  # column, step, h, e, lane
        rows = rows.transpose(0, 1, 2, 4, 3).reshape(-1, steps, 16)
        y = rows.real @ planes[0].T + rows.imag @ planes[1].T
        parts = y.reshape(-1, steps, 4, 4, 2)  # column, step, number, lane, part
        found[here] = (parts[..., 0] + 1j * parts[..., 1]).transpose(0, 3, 1, 2).reshape(here.shape)
    return found


@pytest.mark.parametrize("size", plans.TILES)
@pytest.mark.parametrize(
    "targets", [(0, 1, 2, 3), (0, 4, 8, 11), (1, 2, 3, 4), (8, 9, 10, 11), (1, 4, 8, -1)]
)
def test_the_kernels_bits(rng: np.random.Generator, targets: tuple[int, ...], size: int) -> None:
    """Every amplitude is read and written once, and accesses of eight lanes meet all banks."""
    threads = plans.SequencePlan(PRECISIONS["3xfp16"], size, 1, 1).group_threads
    targets = tuple(place % size for place in targets)
    matrix = random_unitary(rng, 4)
    tile = rng.standard_normal((2**size, 2)).view(complex)[:, 0]
    roles = tables.roles_of(targets, size)
    moved = tables.permuted(matrix, [targets.index(place) for place in roles.rows])
    expected = tile.copy()
    apply_gate(expected, matrix, targets)
    for model in (by_mma, by_wgmma):
        np.testing.assert_allclose(model(tile, roles, moved, threads), expected, atol=1e-12)
    for pattern in (roles.read[:3], roles.result[:3]):
        assert independent([tables._VECTORS[place] for place in pattern])
    masks = [tables.mask_of(place) for place in range(size)]
    addresses = {0}
    for mask in masks:
        addresses |= {mask ^ other for other in addresses}
    assert addresses == set(range(0, 8 << size, 8))


@pytest.mark.parametrize("qubits", [13, 20, 25])
@pytest.mark.parametrize("size", plans.TILES)
def test_the_last_gate_stores_each_chunk_of_a_tile_once(size: int, qubits: int) -> None:
    large = plans.plan_sequence(PRECISIONS["3xfp16"], ARCHS["sm_90a"], size)
    assert large is not None
    plan = plans.for_few_tiles(large, qubits, 132)
    assert (plan.steps < large.steps) == (qubits < 25)
    assert plan.shared_bytes(plan.gates) + plan.static_bytes <= ARCHS["sm_90a"].shared_bytes
    tile = plans.completed_tile(qubits, range(qubits - size + 4, qubits), size)
    chunks = {0}
    for qubit in tile[1:]:  # qubit 0 lies within a chunk
        chunks |= {8 << qubit | other for other in chunks}
    for targets in ((tile[0], tile[5], tile[7], tile[-1]), tile[1:5]):
        form = gate_form(qubits, np.eye(16)[::-1] * (1 + 1j) + 1, targets)
        values = tables.launch_values(qubits, tile, form, plan)
        offsets = [0]
        for name in ("result_offset", "register_offset", "step_offset"):
            for offset in filter(None, values[name]):
                offsets += [offset ^ other for other in offsets]
        assert sorted(offsets) == sorted(chunks)


def test_gates_on_fewer_qubits_are_placed(rng: np.random.Generator) -> None:
    tile = (0, 1, 2, 5, 6, 9, 11, 12, 13, 15, 18, 20)
    matrix = random_unitary(rng, 2)
    form = gate_form(21, matrix, (11, 2))
    places, placed = tables.placed_gate(form, tile)
    assert places == (2, 6, 10, 11)
    state = rng.standard_normal((16, 2)).view(complex)[:, 0]
    expected = state.copy()
    apply_gate(expected, matrix, (1, 0))
    np.testing.assert_allclose(placed @ state, expected, atol=1e-13)


COMPILED = [("sm_80", "3xtf32", 12), ("sm_90a", "3xfp16", 12), ("sm_90a", "tf32", 13)]
"""The kernels of the short run: of both families, and of both tiles."""
EVERY = [
    (arch.target, name, size)
    for arch, name, size in product(ARCHITECTURES, TENSOR, plans.TILES)
    if plans.plan_sequence(PRECISIONS[name], arch, size) is not None
]


@pytest.mark.parametrize(
    ("target", "precision", "size"),
    [*COMPILED, *(pytest.param(*one, marks=pytest.mark.exhaustive)
                  for one in EVERY if one not in COMPILED)],
)  # fmt: skip
def test_the_kernel_compiles_without_spills(target: str, precision: str, size: int) -> None:
    row = PRECISIONS[precision]
    plan = plans.plan_sequence(row, ARCHS[target], size)
    assert plan is not None
    assert plan.wgmma == (row.operand.bytes == 2 and target == "sm_90a")
    assert_clean(plans.kernel_source(plan), target, plans.kernel_name(plan))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "qubits"), [(12, 12), (12, 20), (13, 13)])
def test_kernels_of_few_tiles_compile_without_spills(size: int, qubits: int) -> None:
    plan = plans.plan_sequence(PRECISIONS["3xfp16"], ARCHS["sm_90a"], size)
    assert plan is not None
    few = plans.for_few_tiles(plan, qubits, 132)
    assert few.steps < plan.steps
    assert_clean(plans.kernel_source(few), "sm_90a", plans.kernel_name(few))


def test_which_precisions_share_passes() -> None:
    """Those of tensor cores, where shared memory holds the tiles and enough matrices."""
    assert plans.plan_sequence(PRECISIONS["fp64"], ARCHS["sm_90a"]) is None
    for arch in ARCHITECTURES:
        large = plans.plan_sequence(PRECISIONS["3xfp16"], arch, max(plans.TILES))
        assert (large is None) == (arch.shared_bytes < 200 * 1024)
        plan = plans.plan_sequence(PRECISIONS["3xfp16"], arch)
        assert plan is not None
        assert plan.gates >= plans.MIN_PRODUCTS
        used = plan.shared_bytes(plan.gates) + plan.static_bytes
        assert used <= arch.shared_bytes
        assert plan.stages >= plan.groups  # or stages would be waited for that no group has left
