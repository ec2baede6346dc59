"""Gates on a GPU: launches of the kernels of ``cuda/gates``, and the call cache.

Layout, kernel and grid depend on a gate's place alone; launches are kept by place. The call cache
keeps calls by the content of their matrix, with the matrix on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.gates.canonical import Array, GateForm, GatePlace
from argand.gates.cpu import gate_view, multiply_by_diagonal, product_precision
from argand.gates.gate_launch import GateLaunch, launch_at_chunk
from argand.gates.heuristics import GateTraits, plan_gate
from argand.gates.layout import CHUNK
from argand.gates.matrix_source import SOURCES
from argand.gates.operands import operand
from argand.gates.plan import GatePlan
from argand.gates.source import gate_source
from argand.gates.state_blocks import block_memory, blocks_of, columns_within
from argand.gates.truncation import compensated
from argand.gemm import gpu as cuda_gemm
from argand.gemm.api import gemm
from argand.gemm.problem import gemm_problem
from argand.precision import Precision
from argand.rounding import LARGEST_SHIFT, scale_exponents
from argand.runtime.calls.call_cache import CallCache, Form, Key, NoFormError
from argand.runtime.calls.kept_call import Run
from argand.runtime.calls.layout import device_of
from argand.runtime.compile.loading import compile_later
from argand.runtime.launch.kernel import BoundKernel
from argand.runtime.libraries.cublas import MIN_WORKSPACE_BYTES
from argand.runtime.memory.captured_memory import keep_in_graph
from argand.runtime.memory.device_table import stream_table
from argand.runtime.memory.workspace import stream_key
from argand.runtime.memory.workspace_limit import allowed_workspace, holding
from argand.runtime.plans.plan_override import PlanOverride

_WORD_MASK = 2**64 - 1
_MAX_STREAMS = 16
"""Streams for which a matrix is kept."""
_current_device = cupy.cuda.runtime.getDevice
_current_stream = cupy.cuda.get_current_stream


def _matrix_form(x: Any) -> Form:
    """Return the form of a host matrix: type, shape and last row; its call compares all of it."""
    if type(x) is not np.ndarray or not x.size:
        raise NoFormError(type(x).__name__)
    return x.dtype, x.shape, x[-1].tobytes(), _current_device()


PLAN_OVERRIDE: PlanOverride[GatePlan] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every gate takes this plan, which must have its width."""
CALLS = CallCache(PLAN_OVERRIDE, form_of=_matrix_form)


def apply_gate(
    state: Any, form: GateForm, precision: Precision, matrix: Any = None, key: Key | None = None
) -> None:
    """Apply a gate in place to a contiguous state on a GPU, on its current stream.

    With the host ``matrix`` of the form and a ``key`` the call cache keeps the call.

    Raises CompileError where NVRTC fails.
    """
    with device_of(state):
        gate = prepared_gate(state, form, precision)
        gate(state)
        at_chunk = state.data.ptr % CHUNK == 0
        if isinstance(gate, PreparedGate) and isinstance(matrix, np.ndarray) and at_chunk:
            run = gate.for_matrix(matrix)
            nbytes = int(gate.matrix.nbytes)
            CALLS.keep(key, run, (matrix,), state, state.shape, precision.output, nbytes)


def compile_gates(state: Any, forms: Sequence[GateForm], precision: Precision) -> None:
    """Begin to compile the kernels of gates beside each other; their launches wait for them."""
    device, qubits = gpu(cupy.cuda.Device().id), int(state.size).bit_length() - 1
    places = dict.fromkeys(form.place for form in forms)
    for plan in dict.fromkeys(plan_for(qubits, place, precision, device) for place in places):
        if plan is not None:
            compile_later(gate_source(plan), device.require_arch().target)


def prepared_gate(state: Any, form: GateForm, precision: Precision) -> Callable[[Any], None]:
    """Return a call that applies a gate, whose matrix is on the GPU, to states like this one."""
    qubits = int(state.size).bit_length() - 1
    launch = _launch_for(cupy.cuda.Device().id, qubits, form.place, precision, PLAN_OVERRIDE.value)
    if launch is None:
        return partial(_apply_as_product, form=form, precision=precision)
    return PreparedGate(launch, form, precision)


def apply_device_matrix(
    state: Any,
    matrix: Any,
    targets: Sequence[int],
    controls: Sequence[int],
    precision: Precision,
    key: Key | None,
) -> bool:
    """Apply a gate whose matrix is on the state's GPU, in place, without reading the matrix.

    Its shape and the qubits were checked. It returns False, and does nothing, for a gate that has
    no kernel. Raises CompileError where NVRTC fails.
    """
    place = GatePlace(tuple(sorted(targets)), tuple(sorted(controls)), monomial=False)
    qubits = int(state.size).bit_length() - 1
    with device_of(state):
        launch = _launch_for(cupy.cuda.Device().id, qubits, place, precision, PLAN_OVERRIDE.value)
        if launch is None:
            return False
        read = matrix if str(matrix.dtype) in SOURCES else matrix.astype(np.complex128)
        if cupy.may_share_memory(read, state):
            read = read.copy()
        run = launch.for_matrices(targets, read)
        launch_at_chunk(state, lambda at: run(read.data.ptr, at))
        if read is matrix and state.data.ptr % CHUNK == 0:
            CALLS.keep(key, run, (matrix,), state, state.shape, precision.output)
        return True


class PreparedGate:
    """A gate whose matrix is on the current GPU; ``matrix`` may replace the form's, compensated."""

    def __init__(
        self, launch: GateLaunch, form: GateForm, precision: Precision, matrix: Array | None = None
    ) -> None:
        self._launch = launch
        self._given = launch, form, precision, matrix
        plan = launch.plan
        if matrix is None and plan.kind != "permute":
            matrix = compensated(form.matrix, plan) if plan.on_tensor_cores else form.matrix
        exponent = matrix_exponent(form, precision)
        #: The matrix in the kernel's layout, on the device.
        self.matrix = stream_table(
            _permutation(form, precision) if matrix is None else operand(matrix, plan, exponent)
        )
        self._numbers = int(self.matrix.data.ptr), exponent & _WORD_MASK

    def __call__(self, state: Any) -> None:
        """Queue it on the current stream."""
        launch_at_chunk(state, lambda at: self._launch(at, *self._numbers))

    def kernel(self) -> BoundKernel:
        """Return its launch, for a ``state`` that is to be set."""
        return self._launch.with_matrix(*self._numbers)

    def for_matrix(self, matrix: Array) -> Run:
        """Return the call for the call cache, which takes host matrices of the same bits."""
        content = bytearray(matrix.tobytes())
        # Memory of a stream is copied to and given back in its order.
        gates = {stream_key(_current_stream().ptr): self}

        def run(matrix: Array, state: int) -> Any:
            if not matrix.flags.c_contiguous:
                matrix = matrix.copy(order="C")
            # A bytearray compares the array's memory with its own, bit by bit, without a copy.
            if content != matrix:
                return NotImplemented
            stream = _current_stream().ptr
            place = stream_key(stream)
            gate = gates.get(place)
            if gate is None:
                if len(gates) >= _MAX_STREAMS:
                    gates.clear()
                gate = gates[place] = PreparedGate(*self._given)
            keep_in_graph(gate, stream)
            return gate._launch(state, *gate._numbers)

        return run


def _apply_as_product(state: Any, form: GateForm, precision: Precision) -> None:
    """Apply a gate as a product, in blocks of the state where the workspace limit asks for them."""
    with device_of(state):
        if form.diagonal:
            multiply_by_diagonal(state, form, precision)
            return
        view, targets = gate_view(state, form), (slice(None),) * form.width
        columns = view.size >> form.width
        memory = block_memory(form, precision, MIN_WORKSPACE_BYTES)
        most = columns_within(form, memory, columns)
        given = form.factors[:, None] if form.monomial else form.matrix
        matrix = stream_table(np.ascontiguousarray(given.astype(precision.output)))
        for block in blocks_of(view.shape[form.width :], most):
            _apply_to_block(view[(*targets, *block)], matrix, form, precision)


def _apply_to_block(part: Any, matrix: Any, form: GateForm, precision: Precision) -> None:
    """Apply a gate to some columns; its memory is given back after each block."""
    rows = part.reshape(2**form.width, -1)
    if form.monomial:
        found = matrix * rows[form.columns_of_rows]
    else:
        found = _product(matrix, rows, product_precision(precision, form.width))
    part[...] = found.reshape(part.shape)


def _product(matrix: Any, rows: Any, precision: Precision) -> Any:
    """Return a product of a gate's block, within what a limit leaves beside the block's copies."""
    if allowed_workspace() is None:
        return gemm(matrix, rows, precision=precision)
    problem = gemm_problem(matrix.shape, rows.shape, None, precision=precision)
    with holding(matrix.nbytes + 2 * rows.nbytes, "a gate, in blocks of the state,"):
        return cuda_gemm.gemm(problem, matrix, rows, None, None)


@lru_cache(maxsize=4096)
def _launch_for(
    device: int, qubits: int, place: GatePlace, precision: Precision, override: GatePlan | None
) -> GateLaunch | None:
    """Return the launch for gates of this place; None where `gemm` applies them."""
    plan = override or plan_for(qubits, place, precision, gpu(device))
    return None if plan is None else GateLaunch(plan, qubits, place, gpu(device))


def plan_for(
    qubits: int, form: GateForm | GatePlace, precision: Precision, device: Device
) -> GatePlan | None:
    """Return the plan for a gate on a state of ``qubits`` qubits; None where `gemm` applies it."""
    item = 16 if precision.output == "complex128" else 8
    traits = GateTraits.of(qubits, form, item)
    return plan_gate(traits, precision, device.require_arch(), device.sm_count)


def _permutation(form: GateForm, precision: Precision) -> Array:
    """Return the operand of a matrix with one entry a row, in bytes: entries, then columns."""
    factors = form.factors.astype(precision.output).view(np.uint8)
    return np.concatenate([factors, form.columns_of_rows.astype(np.uint32).view(np.uint8)])


def matrix_exponent(form: GateForm, precision: Precision) -> int:
    """Return the exponent of the power of two that scales the matrix into the operand's range."""
    if not precision.scaled:
        return 0
    found = scale_exponents(form.matrix.reshape(1, -1).astype(np.complex64), -1, precision.operand)
    return max(-LARGEST_SHIFT, min(LARGEST_SHIFT, int(found.item())))
