"""A peer: gates by NVIDIA's cuStateVec, its C library called as it is (``custatevec-cu13``).

Circuits are fused to each width that may be its best, and each width is a candidate. Each of its
passes has one gate, so they are fused for the fewest passes of one gate.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate, plan_circuit
from argand.gates.canonical import gate_form
from argand.gates.costs import table_costs

from benchmarks.peers._peer import Candidate, CannotRunError, Peer

_WIDTHS = (2, 3, 4, 5)
"""Widths that circuits are fused to: from 5 on its gates take twice as long."""
COMPLEX64, _COMPUTE_FP32, _ROW_MAJOR = 4, 4, 1
"""Values of ``cudaDataType_t``, ``custatevecComputeType_t`` and ``custatevecMatrixLayout_t``."""
_WORKSPACE_BYTES = 1 << 30


def library() -> Path | None:
    """Return the library's path: ``$CUSTATEVEC``, or in Python's packages; None without it."""
    given = os.environ.get("CUSTATEVEC")
    folders = [Path(folder) / "cuquantum" / "lib" for folder in sys.path]
    found = [Path(given)] if given else []
    found += [path for folder in folders for path in sorted(folder.glob("libcustatevec.so*"))]
    return next((path for path in found if path.is_file()), None)


class StateVector:
    """Gates on complex64 states by cuStateVec. Raises CannotRunError where it is not installed."""

    def __init__(self) -> None:
        path = library()
        if path is None:
            raise CannotRunError(lacks())
        import cupy

        self._library = ctypes.CDLL(str(path))
        self.handle = ctypes.c_void_p()
        self.call("custatevecCreate", ctypes.byref(self.handle))
        self._workspace = cupy.empty(_WORKSPACE_BYTES, cupy.uint8)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library. Raises RuntimeError where it fails."""
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with status {status}")

    def version(self) -> str:
        """Return the library's version, major to patch."""
        part, found = ctypes.c_int32(), []
        for which in range(3):  # of libraryPropertyType
            self.call("custatevecGetProperty", ctypes.c_int(which), ctypes.byref(part))
            found.append(str(part.value))
        return ".".join(found)

    def apply(
        self, state: Any, matrix: Any, targets: Sequence[int], controls: Sequence[int] = ()
    ) -> Any:
        """Apply a gate in place; state and matrix complex64 on the GPU, arguments as for ours."""
        self.call(
            "custatevecApplyMatrix", self.handle, ctypes.c_void_p(state.data.ptr), COMPLEX64,
            ctypes.c_uint32(int(state.size).bit_length() - 1), ctypes.c_void_p(matrix.data.ptr),
            COMPLEX64, _ROW_MAJOR, ctypes.c_int32(0), numbers(targets),
            ctypes.c_uint32(len(targets)), numbers(controls), None,
            ctypes.c_uint32(len(controls)), _COMPUTE_FP32,
            ctypes.c_void_p(self._workspace.data.ptr), ctypes.c_size_t(_WORKSPACE_BYTES),
        )  # fmt: skip
        return state


@lru_cache(maxsize=1)
def state_vector() -> StateVector:
    """Return the library, opened once."""
    return StateVector()


def numbers(qubits: Sequence[int]) -> Any:
    """Return qubits, or other small numbers, as an array of C; None of none."""
    return (ctypes.c_int32 * len(qubits))(*qubits) if qubits else None


def lacks() -> str:
    """Return what is missing, and how to install it; empty where nothing is."""
    return "" if library() else "cuStateVec is not installed (pip install custatevec-cu13)"


def _prepared(qubits: int, gates: Sequence[Gate], device: Device) -> list[Candidate]:
    """Return one gate as it is; a circuit fused to each width."""
    if len(gates) == 1:
        return [_candidate(qubits, gates, None, device)]
    return [_candidate(qubits, gates, width, device) for width in _WIDTHS]


def _candidate(qubits: int, gates: Sequence[Gate], width: int | None, device: Device) -> Candidate:
    forms = [gate_form(qubits, gate.matrix, gate.targets, gate.controls) for gate in gates]
    if width is not None:
        costs = table_costs(PRECISIONS["3xfp16"], device)  # without passes that gates share
        forms = list(plan_circuit(qubits, gates, device=device, width=width, costs=costs).forms)

    def prepare(state: Any) -> tuple[Any, ...]:
        import cupy

        matrices = [cupy.asarray(form.matrix.astype(np.complex64)) for form in forms]
        return state.copy(), state_vector(), matrices

    def compute(state: Any, vector: StateVector, matrices: list[Any]) -> Any:
        for form, matrix in zip(forms, matrices, strict=True):
            vector.apply(state, matrix, form.targets, form.controls)
        return state

    return Candidate(
        "custatevec", PRECISIONS["fp32"], _algorithm(width), prepare, compute,
        widths=tuple(form.width for form in forms),
    )  # fmt: skip


def _algorithm(width: int | None) -> str:
    return "gate by gate" if width is None else f"fused to {width} qubits"


PEER = Peer(
    name="custatevec", operation="gates", backends=("cuda",), precisions=("fp32",),
    algorithm=lambda _: _algorithm(None), modules=("cupy",), prepared=_prepared, lacks=lacks,
    version=lambda: f"cuStateVec {state_vector().version()}",
)  # fmt: skip
