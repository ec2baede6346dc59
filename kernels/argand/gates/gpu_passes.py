"""Passes over a state that a GPU is given in one launch, as a CUDA graph or kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from argand.gates.gate_launch import launch_at_chunk
from argand.gates.gpu import PreparedGate
from argand.gates.gpu_sequence import PreparedSequence
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence

Pass = Callable[[Any], None]
_MAX_KERNELS = 128
"""Kernels of a graph: another address of the state is written into each of them."""


class LaunchedPasses:
    """Passes of a kernel each, one after another, whose matrices are on the current GPU."""

    def __init__(self, passes: Sequence[PreparedGate | PreparedSequence]) -> None:
        self._passes = passes  # which hold the matrices
        self._device = cupy.cuda.Device().id
        kernels = [one.kernel() for one in passes]
        self._launches = LaunchSequence(
            kernels,
            lambda addresses: [
                kernel.argument_update({"state": Address(0)}, (), addresses) for kernel in kernels
            ],
        )

    def __call__(self, state: Any) -> None:
        """Queue them on the current stream."""
        stream = cupy.cuda.get_current_stream(self._device).ptr
        launch_at_chunk(state, lambda at: self._launches((at,), stream))


def launched_together(passes: Sequence[Pass]) -> list[Pass]:
    """Return calls that do the same, one for several passes of a kernel each.

    Gates that `gemm` applies, since they have many qubits, stay calls of their own.
    """
    found: list[Pass] = []
    together: list[PreparedGate | PreparedSequence] = []

    def end_launch() -> None:
        if together:
            found.append(LaunchedPasses(list(together)) if len(together) > 1 else together[0])
            together.clear()

    for one in passes:
        if isinstance(one, (PreparedGate, PreparedSequence)):
            together.append(one)
            if len(together) == _MAX_KERNELS:
                end_launch()
        else:
            end_launch()
            found.append(one)
    end_launch()
    return found
