"""Trajectories of small states on a GPU: all of them by one launch."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from argand.device import Device
from argand.gates import trajectory_source as source
from argand.gates.noisy_circuit import NoisyCircuit
from argand.runtime.launch.kernel import bound_kernel


def run_in_one_launch(
    circuit: NoisyCircuit, first: int, trajectories: int, device: Device
) -> Any | None:
    """Return the states (trajectories, 2^qubits) on a GPU, queued on its current stream.

    None where a state does not fit in a block's shared memory or a gate has too many targets.
    """
    qubits, dtype, damping = circuit.qubits, circuit.precision.output, circuit.damping
    item, arch = np.dtype(dtype).itemsize, device.require_arch()
    shared = source.shared_bytes(qubits, item)
    forms = source.forms_of(qubits, circuit.gates)
    fits = shared + source.STATIC_BYTES <= arch.shared_bytes
    if not fits or any(form.width > source.MAX_WIDTH for form in forms):
        return None
    with cupy.cuda.Device(device.index):
        operations, matrices = source.operations_of(
            circuit.gates, forms, circuit.depolarising + damping > 0, dtype
        )
        held = cupy.asarray(operations.view(np.uint8)), cupy.asarray(matrices)
        states = cupy.empty((trajectories, 1 << qubits), dtype)
        bits = source.group_bits(qubits)
        blocks = -(-trajectories // (source.THREADS >> bits))
        values = {
            "states": states.data.ptr, "operations": held[0].data.ptr, "matrices": held[1].data.ptr,
            "first": first, "trajectories": trajectories,
            "seed": circuit.seed - 2**64 if circuit.seed >> 63 else circuit.seed,
            "pauli_scale": 4 / circuit.depolarising if circuit.depolarising else 0.0,
            "damping": damping,
            "kept": float(np.sqrt(1 - damping)), "operation_count": len(operations),
            "qubits": qubits, "group_bits": bits,
        }  # fmt: skip
        launch = bound_kernel(
            source.kernel_source(dtype), source.kernel_name(dtype), blocks, source.THREADS,
            source.ARGUMENTS, device, values, shared,
        )  # fmt: skip
        launch({})
        return states
