"""Our GPU gates against fp64 and the CPU model, on every element, wherever their qubits lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, apply_gate
from argand.device import Device
from argand.gates.canonical import gate_form
from argand.gates.heuristics import mma_plans
from argand.gates.plan import CUDA_CORE_WIDTH, widest_mma

from tests.kernels.gates.gate_cases import dense_gate, gate_bound, random_state, random_unitary

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]

QUBITS = 15
MANY = 22
"""Qubits of a state that has many tiles for each block."""
MORE_THAN_FP32 = [name for name in PRECISIONS if name not in ("fp32", "fp64")]
KERNELS = [
    (name, width)
    for name, row in PRECISIONS.items()
    for width in range(1, 8)
    if row.exact_operands or width > CUDA_CORE_WIDTH or name == "3xfp16"
]
"""Precisions and widths: narrow gates of complex64 have the same kernel at all its precisions."""
EXACTER = ("fp64", "fp32", "3xtf32", "3xfp16")
"""At the others a wrong amplitude might hide in what is rounded."""
PLACEMENTS = ("low", "mid", "high", "spread", "random")


def placed(where: str, width: int, qubits: int, rng: np.random.Generator) -> list[int]:
    """The targets of a gate at a placement."""
    if where == "random":
        return [int(target) for target in rng.permutation(qubits)[:width]]
    first = {"low": 0, "mid": 4, "high": qubits - width}
    if where in first:
        return list(range(first[where], first[where] + width))
    return [round(i * (qubits - 1) / max(1, width - 1)) for i in range(width)]


def error_of(cp: Any, found: Any, expected: Any) -> float:
    """||found - expected|| on the GPU, in fp64."""
    return float(cp.linalg.norm(found - expected))


def check(
    cp: Any, state: Array, matrix: Array, targets: Sequence[int], controls: Sequence[int],
    precision: str,
) -> Array:  # fmt: skip
    """Apply a gate to a copy of a state of norm 1 on the GPU, and compare every amplitude."""
    row = PRECISIONS[precision]
    state = state.astype(row.output)
    given = cp.asarray(state)
    expected = dense_gate(given, matrix, targets, controls)
    assert apply_gate(given, matrix, targets, controls=controls, precision=precision) is given
    assert error_of(cp, given, expected) <= gate_bound(row, len(targets))
    found: Array = given.get()
    outside = np.zeros(state.size, bool)
    for control in controls:
        outside |= (np.arange(state.size) >> control) & 1 == 0
    assert found[outside].tobytes() == state[outside].tobytes()
    return found


@pytest.mark.parametrize(("precision", "width"), [one for one in KERNELS if one[0] in EXACTER])
def test_every_width_and_placement(
    cp: Any, rng: np.random.Generator, precision: str, width: int
) -> None:
    for where in PLACEMENTS:
        targets = placed(where, width, QUBITS, rng)
        matrix, state = random_unitary(rng, width), random_state(rng, QUBITS)
        check(cp, state, matrix, targets, (), precision)


@pytest.mark.parametrize(("precision", "width"), KERNELS)
def test_the_cpu_is_the_model(
    cp: Any, rng: np.random.Generator, precision: str, width: int
) -> None:
    matrix, row = random_unitary(rng, width), PRECISIONS[precision]
    state = random_state(rng, 12).astype(row.output)
    targets = placed("random", width, 12, rng)
    found = apply_gate(cp.asarray(state), matrix, targets, precision=precision).get()
    model = apply_gate(state.copy(), matrix, targets, precision=precision)
    assert np.linalg.norm(found - model) <= 2 * gate_bound(row, width)


@pytest.mark.parametrize(
    ("precision", "width"), [one for one in KERNELS if one[0] in ("3xfp16", "3xtf32", "fp64")]
)
def test_many_tiles(cp: Any, rng: np.random.Generator, precision: str, width: int) -> None:
    """More of them than blocks; at 3xfp16 errors of 5e-7 at most, 1e-6 at 7 qubits."""
    row = PRECISIONS[precision]
    bound = gate_bound(row, width)
    if precision == "3xfp16":
        bound = 5e-7 if width < 7 else 1e-6
    normal = cp.random.default_rng(width).standard_normal((2**MANY, 2), dtype=np.float64)
    state = normal.view(np.complex128)[:, 0]
    state = (state / cp.linalg.norm(state)).astype(row.output)
    for where in PLACEMENTS:
        targets, matrix = placed(where, width, MANY, rng), random_unitary(rng, width)
        expected = dense_gate(state, matrix, targets)
        found = apply_gate(state.copy(), matrix, targets, precision=precision)
        assert error_of(cp, found, expected) <= bound, (where, targets)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", ["3xfp16", "fp64"])
@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("controls", [(0,), (1,), (14,), (3, 7), (2, 13, 0), (0, 1, 9)])
def test_controls(
    cp: Any, rng: np.random.Generator, precision: str, width: int, controls: tuple[int, ...]
) -> None:
    free = [qubit for qubit in range(QUBITS) if qubit not in controls]
    targets = [int(target) for target in rng.permutation(free)[:width]]
    matrix, state = random_unitary(rng, width), random_state(rng, QUBITS)
    check(cp, state, matrix, targets, controls, precision)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", ["fp64", "3xfp16"])
@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("controls", [(), (0,), (12, 5)])
def test_permutations_with_phases(
    cp: Any, rng: np.random.Generator, precision: str, width: int, controls: tuple[int, ...]
) -> None:
    free = [qubit for qubit in range(QUBITS) if qubit not in controls]
    targets = [int(target) for target in rng.permutation(free)[:width]]
    order = 2**width
    matrix = np.diag(np.exp(2j * np.pi * rng.random(order)))[rng.permutation(order)]
    assert gate_form(QUBITS, matrix, targets, controls).monomial
    check(cp, random_state(rng, QUBITS), matrix, targets, controls, precision)


@pytest.mark.parametrize("precision", ["3xfp16", "fp64"])
@pytest.mark.parametrize("qubits", [1, 2, 3, 5, 7, 8, 10, 11, 12])
def test_small_states(cp: Any, rng: np.random.Generator, precision: str, qubits: int) -> None:
    for width in range(1, min(qubits, 7) + 1):
        order = [int(qubit) for qubit in rng.permutation(qubits)]
        targets, rest = order[:width], order[width:]
        matrix, state = random_unitary(rng, width), random_state(rng, qubits)
        check(cp, state, matrix, targets, (), precision)
        check(cp, state, matrix, targets, rest[:1], precision)
        check(cp, state, matrix, targets, rest, precision)


@pytest.mark.parametrize(
    ("precision", "width"), [("3xtf32", 7), ("3xfp16", 8), ("3xfp16", 9), ("fp64", 8)]
)
def test_wide_gates_are_products(
    cp: Any, rng: np.random.Generator, precision: str, width: int
) -> None:
    targets = [int(target) for target in rng.permutation(13)[:width]]
    matrix, state = random_unitary(rng, width), random_state(rng, 13)
    rest = [qubit for qubit in range(13) if qubit not in targets]
    check(cp, state, matrix, targets, (), precision)
    check(cp, state, matrix, targets, rest[:2], precision)


@pytest.mark.parametrize("precision", MORE_THAN_FP32)
@pytest.mark.parametrize("width", [4, 5, 6, 7])
def test_scales_of_state_and_matrix(
    cp: Any, rng: np.random.Generator, precision: str, width: int
) -> None:
    targets = [int(target) for target in rng.permutation(12)[:width]]
    matrix, state = random_unitary(rng, width), random_state(rng, 12).astype(np.complex64)
    expected = dense_gate(state, matrix, targets)
    for exponent in (-100, 100):
        scaled = cp.asarray(state * np.float32(2.0**exponent))
        apply_gate(scaled, matrix * 2.0**-exponent, targets, precision=precision)
        assert np.linalg.norm(scaled.get() - expected) <= gate_bound(PRECISIONS[precision], width)


@pytest.mark.parametrize("width", range(1, 8))
def test_a_basis_state_becomes_a_column(cp: Any, rng: np.random.Generator, width: int) -> None:
    targets = [int(target) for target in rng.permutation(QUBITS)[:width]]
    matrix = random_unitary(rng, width)
    state = np.zeros(2**QUBITS)
    state[int(rng.integers(2**QUBITS))] = 1
    found = check(cp, state, matrix, targets, (), "3xfp16")
    assert np.count_nonzero(found) == 2**width


@pytest.mark.parametrize("width", [2, 5, 6, 7])
@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, -np.inf)])
def test_what_is_not_finite_stays_in_its_column(
    cp: Any, rng: np.random.Generator, width: int, bad: complex
) -> None:
    targets = [int(target) for target in rng.permutation(QUBITS)[:width]]
    matrix, state = random_unitary(rng, width), random_state(rng, QUBITS).astype(np.complex64)
    expected = dense_gate(state, matrix, targets)
    state[77] = bad
    found = apply_gate(cp.asarray(state), matrix, targets).get()
    mask = ~sum(1 << target for target in targets)
    column = (np.arange(state.size) & mask) == (77 & mask)
    assert not np.isfinite(found[column]).any()
    assert np.linalg.norm((found - expected)[~column]) <= gate_bound(PRECISIONS["3xfp16"], width)


def test_a_view_that_begins_within_a_chunk(cp: Any, rng: np.random.Generator) -> None:
    matrix, state = random_unitary(rng, 5), random_state(rng, 12).astype(np.complex64)
    memory = cp.full(2**12 + 2, np.nan, np.complex64)
    memory[1:-1] = cp.asarray(state)
    apply_gate(memory[1:-1], matrix, (0, 3, 4, 8, 11))
    found = memory.get()
    assert np.isnan(found[[0, -1]]).all()
    expected = dense_gate(state, matrix, (0, 3, 4, 8, 11))
    assert np.linalg.norm(found[1:-1] - expected) <= gate_bound(PRECISIONS["3xfp16"], 5)


@pytest.mark.parametrize("width", range(1, 8))
def test_the_same_bits_every_time(cp: Any, rng: np.random.Generator, width: int) -> None:
    targets = [int(target) for target in rng.permutation(20)[:width]]
    matrix = random_unitary(rng, width)
    state = cp.asarray(random_state(rng, 20).astype(np.complex64))
    first = apply_gate(state.copy(), matrix, targets).view(np.uint64)
    for _ in range(10):
        assert (apply_gate(state.copy(), matrix, targets).view(np.uint64) == first).all()


@pytest.mark.parametrize(
    ("precision", "width"),
    [
        (name, width)
        for name in ("3xtf32", "3xfp16", "tf32", "fp16", "bf16")
        for width in range(CUDA_CORE_WIDTH + 1, widest_mma(PRECISIONS[name]) + 1)
    ],
)
def test_every_kernel_of_products(
    cp: Any, gpu: Device, rng: np.random.Generator, precision: str, width: int
) -> None:
    """Those of larger states and of older cards too, and wgmma without roles."""
    from argand.gates import gpu as cuda_gates
    from argand.gates.gate_launch import GateLaunch

    row, qubits = PRECISIONS[precision], 17
    for where in ("low", "mid", "spread"):
        form = gate_form(qubits, random_unitary(rng, width), placed(where, width, qubits, rng))
        state = cp.asarray(random_state(rng, qubits).astype(np.complex64))
        expected = dense_gate(state, form.matrix, form.targets)
        inside = form.targets[0] == 0
        for plan in mma_plans(row, gpu.require_arch(), width=width, targets_qubit0=inside):
            launch, found = GateLaunch(plan, qubits, form, gpu), state.copy()
            cuda_gates.PreparedGate(launch, form, row)(found)
            assert error_of(cp, found, expected) <= gate_bound(row, width), plan


@pytest.mark.parametrize("width", [1, 4, 5, 6, 7])
def test_offsets_beyond_32_bits(cp: Any, rng: np.random.Generator, width: int) -> None:
    """A basis state of 32 qubits, 34 GB: its column and nothing else."""
    qubits = 32
    if cp.cuda.Device().mem_info[0] < (8 << qubits) + (4 << 30):
        pytest.skip("the card has no 38 GB free")
    targets = [31, 0, 17, 30, 5, 9, 24][:width]
    matrix = random_unitary(rng, width)
    start = int(rng.integers(2**qubits)) | 1 << 29
    state = cp.zeros(2**qubits, np.complex64)
    state[start] = 1
    apply_gate(state, matrix, targets, controls=(29,))
    own = sum((start >> target & 1) << j for j, target in enumerate(targets))
    rest = start & ~sum(1 << target for target in targets)
    places = [
        rest | sum((row >> j & 1) << target for j, target in enumerate(targets))
        for row in range(2**width)
    ]
    bound = gate_bound(PRECISIONS["3xfp16"], width)
    found = np.array([complex(state[at]) for at in places])
    assert np.linalg.norm(found - matrix[:, own]) <= bound
    assert int(cp.count_nonzero(state)) == 2**width
    del state
    cp.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("width", [1, 2, 6, 7, 8])
def test_matrices_on_the_gpu_are_told_apart(cp: Any, rng: np.random.Generator, width: int) -> None:
    """In turn, equal in their last row, with strides, and at another type: each is itself."""
    first, state = random_unitary(rng, width), random_state(rng, 12)
    second = first.copy()
    second[0] *= 1j
    turned = cp.asarray(np.ascontiguousarray(first.T)).T
    targets = placed("mid", width, 12, rng)
    given = (cp.asarray(first), cp.asarray(second), turned, cp.asarray(first.astype(np.complex64)))
    expected = {
        id(matrix): apply_gate(cp.asarray(state.astype(np.complex64)), matrix.get(), targets).get()
        for matrix in given
    }
    for _ in range(3):
        for matrix in given:
            found = apply_gate(cp.asarray(state.astype(np.complex64)), matrix, targets)
            np.testing.assert_array_equal(found.get(), expected[id(matrix)])
