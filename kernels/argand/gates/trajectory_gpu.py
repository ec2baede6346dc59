"""Trajectories of small states on a GPU: all of them by one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from argand.device import Device
from argand.gates import trajectory_source as source
from argand.gates.gate import Gate
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import load


def run_in_one_launch(
    qubits: int, gates: Sequence[Gate], first: int, trajectories: int, seed: int,
    depolarising: float,
    damping: float, dtype: str, device: Device,
) -> Any | None:  # fmt: skip
    """Return the states (trajectories, 2^qubits) on a GPU, queued on its current stream.

    None where a state does not fit in a block's shared memory or a gate has too many targets.
    """
    item, arch = np.dtype(dtype).itemsize, device.require_arch()
    shared = source.shared_bytes(qubits, item)
    forms = source.forms_of(qubits, gates)
    static = 1024
    if shared + static > arch.shared_bytes or any(f.width > source.MOST_WIDTH for f in forms):
        return None
    with cupy.cuda.Device(device.index):
        operations, matrices = source.operations_of(gates, forms, depolarising + damping > 0, dtype)
        held = cupy.asarray(operations.view(np.uint8)), cupy.asarray(matrices)
        states = cupy.empty((trajectories, 1 << qubits), dtype)
        bits = source.group_bits(qubits)
        blocks = -(-trajectories // (source.THREADS >> bits))
        kernel = load(
            source.kernel_source(dtype), arch.target, source.kernel_name(dtype), shared
        )  # fmt: skip
        values = {
            "states": states.data.ptr, "operations": held[0].data.ptr, "matrices": held[1].data.ptr,
            "first": first, "trajectories": trajectories,
            "seed": seed - 2**64 if seed >> 63 else seed,
            "pauli_scale": 4 / depolarising if depolarising else 0.0, "damping": damping,
            "kept": float(np.sqrt(1 - damping)), "operation_count": len(operations),
            "qubits": qubits, "group_bits": bits,
        }  # fmt: skip
        arguments = Arguments(arguments_dtype(source.ARGUMENTS), values)
        BoundKernel(kernel, blocks, source.THREADS, arguments, shared_bytes=shared)({})
        return states
