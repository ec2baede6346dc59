"""Gates on the CPU: the model of every precision, and of gates that have no kernel of their own.

The amplitudes that a gate acts upon are viewed as a matrix, a row for each setting of the targets;
the product with the gate's matrix is `argand.gemm`'s, with its rounding and splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand.gates.canonical import GateForm
from argand.gates.plan import cuda_core_width
from argand.gemm.api import gemm
from argand.precision import PRECISIONS, Precision

_ROW_QUBITS = 8
"""Low qubits whose factors a diagonal gate lays out: rows of 256 amplitudes, a few kilobytes."""

Scratch = tuple[Any, Any]
"""Two vectors like the state, whose contents may be overwritten."""


def product_precision(precision: Precision, width: int) -> Precision:
    """Return the precision of a gate's products: fp32 for narrow gates of complex64, as on GPUs."""
    narrow = precision.output == "complex64" and width <= cuda_core_width(precision)
    return PRECISIONS["fp32"] if narrow else precision


def apply_gates(state: Any, forms: Sequence[GateForm], precision: Precision) -> None:
    """Apply gates in order to a NumPy state, with memory for two more states that all of them use.

    Memory that each gate asked the system for would cost more than the gate: its pages are new.
    """
    scratch = np.empty_like(state), np.empty_like(state)
    for form in forms:
        apply_gate(state, form, precision, scratch)


def apply_gate(
    state: Any, form: GateForm, precision: Precision, scratch: Scratch | None = None
) -> None:
    """Apply a gate in place to a contiguous state of 2^n amplitudes.

    What it acts upon is copied, unless its matrix is diagonal: to ``scratch``, two vectors like the
    state, where they are given.
    """
    if form.diagonal:
        multiply_by_diagonal(state, form, precision, scratch)
        return
    view = gate_view(state, form)
    rows = view
    if scratch is not None and not view.flags.c_contiguous:
        rows = _like(view, scratch[0])
        np.copyto(rows, view)
    rows = rows.reshape(2**form.width, -1)
    out = None if scratch is None else _like(rows, scratch[1])
    if form.monomial:
        factors = form.factors.astype(precision.output)
        if out is None:
            moved = rows[form.columns_of_rows]
        else:  # with mode="raise" NumPy would take a copy of what it writes
            moved = np.take(rows, form.columns_of_rows, axis=0, out=out, mode="clip")
        found = np.multiply(factors[:, None], moved, out=out)
    else:
        matrix = np.ascontiguousarray(form.matrix.astype(precision.output))
        found = gemm(matrix, rows, precision=product_precision(precision, form.width), out=out)
    view[...] = found.reshape(view.shape)


def _like(view: Any, vector: Any) -> Any:
    """Return the beginning of a vector in the shape of a view."""
    return vector[: view.size].reshape(view.shape)


def multiply_by_diagonal(
    state: Any, form: GateForm, precision: Precision, scratch: Scratch | None = None
) -> None:
    """Multiply each amplitude by its factor, in one or two passes over a state, also of CuPy.

    Where a target or a control is low, the factors are repeated over all lower qubits, so that
    NumPy's inner loop is long. NumPy multiplies a row of complex128 by another in place six times
    slower than into new memory, so those rows are copied back.
    """
    qubits = int(state.size).bit_length() - 1
    low = min(_ROW_QUBITS, qubits, *form.controls)
    if min(form.targets) >= low:
        low = 0
    lengths: list[int] = []
    factor_lengths: list[int] = []
    index: list[slice] = []
    run = 1
    for qubit in reversed(range(low, qubits)):
        if qubit not in form.targets and qubit not in form.controls:
            run *= 2
            continue
        control = qubit in form.controls
        lengths += [run, 2]
        factor_lengths += [1, 1 if control else 2]
        index += [slice(None), slice(1, 2) if control else slice(None)]
        run = 1
    view = state.reshape(*lengths, run, 2**low)[tuple(index)]
    high = sum(target >= low for target in form.targets)
    own = [2 if qubit in form.targets else 1 for qubit in reversed(range(low))]
    repeated = np.broadcast_to(
        form.factors.astype(precision.output).reshape([2] * high + own), [2] * (high + low)
    )
    factors = np.ascontiguousarray(repeated).reshape(*factor_lengths, 1, 2**low)
    if not isinstance(state, np.ndarray):
        from argand.runtime.memory.device_table import stream_table

        factors = stream_table(factors)
    if low and isinstance(state, np.ndarray):
        out = None if scratch is None else _like(view, scratch[0])
        view[...] = np.multiply(factors, view, out=out)
    else:
        np.multiply(factors, view, out=view)


def gate_view(state: Any, form: GateForm) -> Any:
    """Return a view of the amplitudes of a gate: an axis a target, the highest first, then others.

    Adjacent qubits that are neither targets nor controls share an axis, so there are few axes.
    """
    qubits = int(state.size).bit_length() - 1
    special = set(form.targets) | set(form.controls)
    lengths: list[int] = []
    axis_of: dict[int, int] = {}
    run = 1
    for qubit in reversed(range(qubits)):
        if qubit not in special:
            run *= 2
            continue
        if run > 1:
            lengths.append(run)
        run = 1
        axis_of[qubit] = len(lengths)
        lengths.append(2)
    if run > 1:
        lengths.append(run)
    view = state.reshape(lengths)
    index = tuple(
        slice(1, 2) if axis in {axis_of[control] for control in form.controls} else slice(None)
        for axis in range(len(lengths))
    )
    front = [axis_of[target] for target in reversed(form.targets)]
    rest = [axis for axis in range(len(lengths)) if axis not in front]
    return view[index].transpose(front + rest)
