"""Gates on the CPU against fp64, what they cost in accuracy, and what is recognised or refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, Gate, apply_gate
from argand.gates.api import apply_form
from argand.gates.canonical import gate_form
from argand.gates.cpu import apply_gates
from argand.gates.plan import CUDA_CORE_WIDTH

from tests.kernels.gates.gate_cases import dense_gate, gate_bound, random_state, random_unitary

Array = npt.NDArray[Any]
SINGLE = [name for name, row in PRECISIONS.items() if row.output == "complex64"]


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("targets", [(0,), (3, 1), (2, 0, 4), (1, 5, 3, 0), (6, 2, 0, 1, 4)])
@pytest.mark.parametrize("controls", [(), (7,), (8, 7)])
def test_a_gate_is_its_matrix(
    rng: np.random.Generator, precision: str, targets: tuple[int, ...], controls: tuple[int, ...]
) -> None:
    matrix = random_unitary(rng, len(targets))
    state = random_state(rng, 9).astype(PRECISIONS[precision].output)
    expected = dense_gate(state, matrix, targets, controls)
    found = state.copy()
    assert apply_gate(found, matrix, targets, controls=controls, precision=precision) is found
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error <= gate_bound(PRECISIONS[precision], len(targets))


@pytest.mark.parametrize(("qubits", "width"), [(1, 1), (2, 2), (7, 7), (8, 8), (10, 9)])
def test_states_as_small_as_the_gate_and_wide_gates(
    rng: np.random.Generator, qubits: int, width: int
) -> None:
    matrix = random_unitary(rng, width)
    targets = [int(target) for target in rng.permutation(qubits)[:width]]
    state = random_state(rng, qubits).astype(np.complex64)
    expected = dense_gate(state, matrix, targets)
    apply_gate(state, matrix, targets)
    assert np.linalg.norm(state - expected) <= gate_bound(PRECISIONS["3xfp16"], width)


def test_qubits_may_be_an_array(rng: np.random.Generator) -> None:
    state, matrix = random_state(rng, 4).astype(np.complex64), random_unitary(rng, 2)
    found = apply_gate(state.copy(), matrix, np.array([3, 1]), controls=np.array([0]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, apply_gate(state, matrix, (3, 1), controls=(0,)))


def test_a_matrix_may_be_a_table_of_pandas(rng: np.random.Generator) -> None:
    """Its ``get`` takes a column's name, where CuPy's copies to the host."""
    pandas = pytest.importorskip("pandas")
    state, matrix = random_state(rng, 3), random_unitary(rng, 1)
    found = apply_gate(state.copy(), pandas.DataFrame(matrix), (1,))
    np.testing.assert_array_equal(found, apply_gate(state, matrix, (1,)))


def test_what_a_control_excludes_keeps_its_bits(rng: np.random.Generator) -> None:
    state = random_state(rng, 6).astype(np.complex64)
    state[5] = complex(np.nan, -0.0)  # qubit 1 is 0
    before = state.copy()
    apply_gate(state, random_unitary(rng, 2), (0, 4), controls=(1,))
    outside = (np.arange(64) >> 1) & 1 == 0
    assert state[outside].tobytes() == before[outside].tobytes()
    assert not np.array_equal(state[~outside], before[~outside])


def test_the_default_precision_is_that_of_the_state(rng: np.random.Generator) -> None:
    matrix = random_unitary(rng, 5)
    state = random_state(rng, 6)
    expected = dense_gate(state, matrix, range(5))
    np.testing.assert_allclose(apply_gate(state.copy(), matrix, range(5)), expected, atol=1e-14)
    single = state.astype(np.complex64)
    named = apply_gate(single.copy(), matrix, range(5), precision="fp32")  # as the CPU computes
    np.testing.assert_array_equal(apply_gate(single, matrix, range(5)), named)


def test_narrow_gates_are_summed_in_fp32(rng: np.random.Generator) -> None:
    matrix = random_unitary(rng, CUDA_CORE_WIDTH)
    state = random_state(rng, 6).astype(np.complex64)
    found = [
        apply_gate(state.copy(), matrix, (1, 2, 5), precision=name).tobytes() for name in SINGLE
    ]
    assert len(set(found)) == 1


X = np.array([[0, 1], [1, 0]])
SWAP = np.eye(4)[[0, 2, 1, 3]]


def kron(high: Any, low: Any) -> Array:
    return np.kron(high, low)


def test_controls_in_a_matrix_are_found() -> None:
    # Qiskit's CNOT: targets (control, target), control the lower bit.
    cnot = np.eye(4)[[0, 3, 2, 1]]
    form = gate_form(8, cnot, (5, 2))
    assert (form.targets, form.controls, form.monomial) == ((2,), (5,), True)
    np.testing.assert_array_equal(form.matrix, X)
    toffoli = np.eye(8)[[0, 1, 2, 7, 4, 5, 6, 3]]
    form = gate_form(8, toffoli, (6, 1, 4))
    assert (form.targets, form.controls) == ((4,), (1, 6))
    phase = np.diag([1, 1, 1, 1j])
    form = gate_form(8, phase, (3, 0), (7,))
    assert (form.targets, form.controls, form.monomial) == ((0,), (3, 7), True)


def test_idle_targets_are_left_out(rng: np.random.Generator) -> None:
    unitary = random_unitary(rng, 1)
    form = gate_form(4, kron(np.eye(2), kron(unitary, np.eye(2))), (3, 0, 1))
    assert (form.targets, form.controls, form.monomial) == ((0,), (), False)
    np.testing.assert_array_equal(form.matrix, unitary)
    assert gate_form(3, np.eye(4), (2, 1)).is_identity


def test_a_wide_diagonal_is_taken_apart_without_copies_of_its_matrix(
    rng: np.random.Generator,
) -> None:
    """Targets descend; the highest bit of a number is a control, the next is idle."""
    factors = np.exp(2j * np.pi * rng.random(256))
    matrix = np.diag(np.r_[np.ones(512), factors, factors])
    tracemalloc.start()
    try:
        form = gate_form(12, matrix, range(11, 1, -1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (form.targets, form.controls, form.monomial) == ((*range(4, 12),), (2,), True)
    expected = factors.reshape((2,) * 8).transpose().reshape(-1)
    np.testing.assert_array_equal(form.matrix, np.diag(expected))
    assert peak < matrix.nbytes / 4
    assert not gate_form(12, matrix, range(11, 1, -1)).is_identity
    assert gate_form(12, np.eye(1024), range(11, 1, -1)).is_identity


def test_the_matrix_of_a_form_is_contiguous_as_kernels_read_it(rng: np.random.Generator) -> None:
    for order in "CF":
        matrix = random_unitary(rng, 6).copy(order)
        matrix.flags.writeable = False
        form = gate_form(6, matrix, range(6))
        np.testing.assert_array_equal(form.matrix, matrix)
        assert form.matrix.flags.c_contiguous


@pytest.mark.parametrize("lower", [False, True])
def test_a_target_that_is_diagonal_but_for_one_corner_is_kept(
    rng: np.random.Generator, lower: bool
) -> None:
    """As no unitary is: a noise channel's operators may be."""
    corner = np.zeros((2, 2))
    corner[(1, 0) if lower else (0, 1)] = 0.5
    both = np.array([[1.0, 1], [0, 0]])  # one number in each column alone, or in each row
    for one in (np.eye(2) + corner, both.T if lower else both):
        for matrix in (kron(one, np.eye(2)), kron(np.eye(2), one), kron(one, one)):
            state = random_state(rng, 4)
            expected = dense_gate(state, matrix, (1, 3))
            apply_gate(state, matrix, (1, 3), precision="fp64")
            np.testing.assert_allclose(state, expected, rtol=0, atol=2.0**-50)


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_permutations_and_phases_cost_no_products(rng: np.random.Generator, precision: str) -> None:
    order = rng.permutation(16)
    factors = np.exp(2j * np.pi * rng.random(16))
    matrix = np.diag(factors)[order]
    state = random_state(rng, 7).astype(PRECISIONS[precision].output)
    expected = dense_gate(state, matrix, (6, 0, 3, 2))
    assert gate_form(7, matrix, (6, 0, 3, 2)).monomial
    found = apply_gate(state.copy(), matrix, (6, 0, 3, 2), precision=precision)
    np.testing.assert_allclose(found, expected, rtol=4 * PRECISIONS[precision].u)
    in_circuit = state.copy()
    apply_gates(in_circuit, [gate_form(7, matrix, (6, 0, 3, 2))], PRECISIONS[precision])
    np.testing.assert_array_equal(in_circuit, found)
    moved = apply_gate(state.copy(), SWAP, (6, 1), precision=precision)
    np.testing.assert_array_equal(moved, dense_gate(state, SWAP, (6, 1)))


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize(
    ("targets", "controls"),
    [((0,), ()), ((10, 9), ()), ((9, 2), ()), ((1, 0), (10,)), ((10, 4), (0,)), ((8, 3), (7, 9))],
)
def test_a_diagonal_multiplies_what_it_acts_upon(
    rng: np.random.Generator, precision: str, targets: tuple[int, ...], controls: tuple[int, ...]
) -> None:
    """With targets and controls below, among and above the qubits whose factors are repeated."""
    matrix = np.diag(np.exp(2j * np.pi * rng.random(2 ** len(targets))))
    state = random_state(rng, 11).astype(PRECISIONS[precision].output)
    expected = dense_gate(state, matrix, targets, controls)
    found = apply_gate(state.copy(), matrix, targets, controls=controls, precision=precision)
    np.testing.assert_allclose(found, expected, rtol=4 * PRECISIONS[precision].u)


def test_gates_that_share_memory_are_those_that_do_not(rng: np.random.Generator) -> None:
    """To the bit: products, permutations and diagonals, on all and on half of the state."""
    gates = [
        (random_unitary(rng, 3), (5, 0, 2), ()),
        (SWAP, (6, 1), (3,)),
        (np.diag(np.exp(1j * rng.random(4))), (4, 0), ()),
        (random_unitary(rng, 2), (1, 6), (0,)),
    ]
    forms = [gate_form(7, *gate) for gate in gates]
    found = random_state(rng, 7).astype(np.complex64)
    expected = found.copy()
    apply_gates(found, forms, PRECISIONS["3xfp16"])
    for form in forms:
        apply_form(expected, form, PRECISIONS["3xfp16"])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": ()}, "at least one qubit"),
        ({"targets": (0, 0)}, "different qubits"),
        ({"controls": (1,)}, "different qubits"),
        ({"targets": (0, 3)}, "from 0 to 2, got 3"),
        ({"targets": (-1, 0)}, "from 0 to 2, got -1"),
        ({"targets": (0.0, 1)}, "must be integers, got 0.0"),
        ({"targets": (True, 0)}, "must be integers, got True"),
        ({"matrix": np.eye(8)}, r"shape \(4, 4\) for 2 targets, got \(8, 8\)"),
        ({"matrix": np.full((4, 4), "x")}, "must be numbers"),
        ({"state": np.ones(6, np.complex64)}, "2\\^n amplitudes with n at least 1, got 6"),
        ({"state": np.ones(1, np.complex64)}, "got 1"),
        ({"state": np.ones((2, 4), np.complex64)}, "contiguous vector, got shape"),
        ({"state": np.ones(16, np.complex64)[::2]}, "contiguous vector"),
        ({"state": np.ones(8)}, "state must be complex128 at fp64, got float64"),
        ({"state": [1, 0]}, "NumPy or a CuPy array, got list"),
        ({"precision": "fp64"}, "state must be complex128 at fp64, got complex64"),
        ({"precision": "int8"}, "precision must be one of"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "state": np.ones(8, np.complex64), "matrix": np.eye(4), "targets": (0, 1),
    }  # fmt: skip
    given |= change
    with pytest.raises(ValueError, match=message):
        apply_gate(given.pop("state"), given.pop("matrix"), given.pop("targets"), **given)


def test_a_state_that_cannot_be_written_is_refused() -> None:
    state = np.ones(8, np.complex64)
    state.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        apply_gate(state, X, (0,))


def test_qubits_may_be_iterators(rng: np.random.Generator) -> None:
    """They are read once: a control that was read before would be none."""

    def read_once() -> tuple[Any, Any]:
        return iter([0]), map(int, "21")

    flip, state = np.array([[0, 1], [1, 0]]), random_state(rng, 3)
    expected = apply_gate(state.copy(), flip, (0,), controls=(2, 1))
    targets, controls = read_once()
    found = apply_gate(state.copy(), flip, targets, controls=controls)
    np.testing.assert_array_equal(found, expected)
    gate = Gate(flip, *read_once())
    assert (gate.targets, gate.controls) == ((0,), (2, 1))
