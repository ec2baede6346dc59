"""Gates on the CPU: the model of every precision, and of gates that have no kernel of their own.

The amplitudes that a gate acts upon are viewed as a matrix, a row for each setting of the targets;
the product with the gate's matrix is `argand.gemm`'s, with its rounding and splits. Works on
NumPy's arrays and on CuPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.gates.canonical import GateForm
from argand.gates.plan import cuda_core_width
from argand.gemm.api import gemm
from argand.precision import PRECISIONS, Precision


def product_precision(precision: Precision, width: int) -> Precision:
    """The precision of a gate's products: fp32 for narrow gates on complex64, as on a GPU."""
    narrow = precision.output == "complex64" and width <= cuda_core_width(precision)
    return PRECISIONS["fp32"] if narrow else precision


def apply_gate(state: Any, form: GateForm, precision: Precision) -> None:
    """Apply a gate in place to a contiguous state of 2^n amplitudes; copies what it acts upon."""
    view = gate_view(state, form)
    shape = view.shape
    if form.monomial:
        rows = view.reshape(2**form.width, -1)
        factors = form.factors.astype(precision.output)
        if not isinstance(state, np.ndarray):
            factors = _on_device(factors)
        view[...] = (factors[:, None] * rows[form.columns_of_rows]).reshape(shape)
        return
    matrix = np.ascontiguousarray(form.matrix.astype(precision.output))
    if not isinstance(state, np.ndarray):
        matrix = _on_device(matrix)
    rows = view.reshape(2**form.width, -1)
    found = gemm(matrix, rows, precision=product_precision(precision, form.width))
    view[...] = found.reshape(shape)


def _on_device(x: Any) -> Any:
    import cupy

    return cupy.asarray(x)


def gate_view(state: Any, form: GateForm) -> Any:
    """A view of the amplitudes of a gate: one axis a target, the highest first, then the others.

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
