"""Qubit gates on a state vector, in place: the call that a user makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import check_written, refuse_misaligned
from argand.defaults import default_precision
from argand.device import is_cuda_array, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gates import cpu as numpy_gates
from argand.gates.canonical import GateForm, check_matrix_form, check_qubits, gate_form
from argand.gates.gate import ordered_qubits
from argand.gates.rules import RULES
from argand.precision import Precision, get_precision


def apply_gate(
    state: Any,
    matrix: Any,
    targets: Sequence[int],
    *,
    controls: Sequence[int] = (),
    precision: str | Precision | None = None,
) -> Any:
    """Apply a gate U to some qubits of a state in place: state <- U state.

    Qubits are numbered as in Qiskit, qubit 0 the least significant bit of an amplitude's number.

    Args:
        state: (2^n,), contiguous, complex64 or complex128 (fp64). NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU.
        matrix: (2^k, 2^k); bit j of a row or column number is targets[j]. It need not be unitary.
            On a GPU the call cache serves NumPy arrays of the same content. A CuPy array is not
            read, so that nothing waits for it: up to 7 qubits the gate is a product whatever
            the matrix holds; that of a wider gate is copied to the host.
        targets: k different qubits in any order. Up to 7 have kernels of their own; wider gates are
            products of `argand.gemm` and take memory for two more states.
        controls: further qubits: where one of them is 0, amplitudes are not touched.
        precision: that of the products, by default fp64 for complex128, and for complex64 fp32 on
            the CPU and 3xfp16 on a GPU. Up to three qubits complex64 gates are computed in fp32 at
            every precision, in the same time. Matrices with one entry a row and column (phases,
            swaps, CNOT) take no products, unless they are CuPy's.

    Returns:
        The state.

    Raises:
        ValueError: a state that is not contiguous, of another type, or not of 2^n amplitudes,
            qubits that are not different ones of it, a matrix of another shape, a precision of
            another type.
        TypeError: targets or controls that are no sequences of qubits.

    Example:
        >>> state = np.array([1, 0, 0, 0], np.complex64)
        >>> _ = argand.apply_gate(state, [[0, 1], [1, 0]], [1])  # a NOT on qubit 1
        >>> state
        array([0.+0.j, 0.+0.j, 1.+0.j, 0.+0.j], dtype=complex64)
    """
    targets, controls = ordered_qubits(targets, controls)
    key, qubits = None, targets + controls
    # A bool or a float equals the integer whose call was kept.
    if is_cupy_array(state) and [*map(type, qubits)].count(int) == len(qubits):
        options = (qubits, len(targets), precision)
        key, found = _cuda().CALLS.repeat((matrix,), state, options)
        if found is not None:
            return state
    if has_foreign(state, matrix):
        return call_on_foreign(
            apply_gate, {"state": state, "matrix": matrix}, rules=RULES, written="state",
            targets=targets, controls=controls, precision=precision,
        )  # fmt: skip
    row = state_precision(state, precision)
    refuse_misaligned("matrix", matrix)
    if is_cupy_array(state) and is_cupy_array(matrix) and matrix.device == state.device:
        check_qubits(qubits_of(state), targets, controls)
        check_matrix_form(matrix, targets)
        if _cuda().apply_device_matrix(state, matrix, targets, controls, row, key):
            return state
    form = gate_form(qubits_of(state), matrix, targets, controls)
    if key is None or form.is_identity:
        apply_form(state, form, row)
    else:
        _cuda().apply_gate(state, form, row, matrix, key)
    return state


def apply_form(state: Any, form: GateForm, precision: Precision) -> None:
    """Apply a gate, given as its form, to a state that was checked."""
    if form.is_identity:
        return
    if is_cuda_array(state):
        _cuda().apply_gate(state, form, precision)
    else:
        numpy_gates.apply_gate(state, form, precision)


def compile_gates(state: Any, forms: Sequence[GateForm], precision: Precision) -> None:
    """Begin to compile the kernels of gates on a GPU's state, all of them beside each other."""
    _cuda().compile_gates(state, forms, precision)


def prepared_gate(state: Any, form: GateForm, precision: Precision) -> Callable[[Any], None]:
    """Return a call that applies a gate to any state of this size and type.

    On a GPU the matrix is copied beforehand, and the call only launches.
    """
    if is_cuda_array(state):
        prepared: Callable[[Any], None] = _cuda().prepared_gate(state, form, precision)
        return prepared
    return partial(numpy_gates.apply_gate, form=form, precision=precision)


def prepared_sequence(
    state: Any, forms: Sequence[GateForm], precision: Precision, tile: Sequence[int]
) -> Callable[[Any], None]:
    """Return a call that applies gates in one pass over any state like this one, on its GPU.

    The qubits of the ``tile`` are those of the gates, without one of each controlled phase.
    """
    from argand.gates.gpu_sequence import PreparedSequence

    with state.device:
        return PreparedSequence(qubits_of(state), forms, precision, tile)


@cache
def _cuda() -> ModuleType:
    """Return `argand.gates.gpu`, imported once: an import statement takes most of a microsecond."""
    from argand.gates import gpu

    return gpu


def state_precision(state: Any, precision: str | Precision | None) -> Precision:
    """Return the precision for a state. Raises ValueError where its type is another."""
    found = str(getattr(state, "dtype", type(state).__name__))
    if not is_cuda_array(state) and not isinstance(state, np.ndarray):
        raise ValueError(f"state must be a NumPy or a CuPy array, got {type(state).__name__}")
    if precision is None:
        precision = default_precision("gate", (state,), on_gpu=is_cuda_array(state))
    row = get_precision(precision)
    if found != row.output:
        raise ValueError(f"state must be {row.output} at {row.name}, got {found}")
    return row


def qubits_of(state: Any) -> int:
    """Return the number of qubits of a state. Raises ValueError for no contiguous vector of 2^n."""
    if state.ndim != 1 or not state.flags.c_contiguous:
        raise ValueError(
            "state must be a contiguous vector, "
            f"got shape {state.shape} with strides {state.strides}"
        )
    if state.size < 2 or state.size & (state.size - 1):
        raise ValueError(f"state must have 2^n amplitudes with n at least 1, got {state.size}")
    check_written("state", state)
    return int(state.size).bit_length() - 1
