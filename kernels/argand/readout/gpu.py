"""Readout on a GPU: launches of the kernels of ``cuda/readout``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.multiprocessor import WARP
from argand.readout import marginals, pauli_passes
from argand.readout.problem import Pauli
from argand.readout.source import (
    BLOCK_CELLS,
    CHUNK,
    KERNELS,
    kernel_form,
    kernel_name,
    kernel_source,
    structure_of,
)
from argand.readout.weights import UNIT_BITS, norm_exponent
from argand.runtime.calls.layout import device_of
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.captured_memory import keep_in_graph
from argand.runtime.memory.device_table import device_table

_SMALL_QUBITS = 13
"""States up to here lie in the caches of a multiprocessor: strings are computed one by one."""
_INT32_QUBITS = 31
"""States up to here have numbers that int32 holds."""
_COUNTED_AT_ONCE = 1 << 14
"""The most shots that one block sorts and counts, in 64 KiB of shared memory. CuPy's sort and
selection, whose calls take a fifth of a millisecond, are faster beyond (H200)."""
_BLOCKS = 8
"""Blocks of a multiprocessor that a grid has at most, where blocks take several tiles."""


class _State:
    """Traits that launches depend on: size, type, whether it begins on a chunk, and the device."""

    def __init__(self, state: Any) -> None:
        self.qubits = int(state.size).bit_length() - 1
        self.form = (str(state.dtype), state.data.ptr % CHUNK == 0)
        self.item = int(state.dtype.itemsize)
        self.device = gpu(cupy.cuda.Device().id)


Counts = tuple[Any, Any]
"""Outcomes, ascending, and how often each was drawn; int64."""


def sample(
    state: Any, shots: int, seed: int, *, ascending: bool = True, count: bool = False
) -> tuple[Any, Counts | None]:
    """Return the basis state of each shot, and with ``count`` their counts where one block can.

    They are int32 up to `_INT32_QUBITS`, because a sort takes half the passes then, else int64.
    With ``ascending`` those that are not counted are sorted; else they are in the order of shots.
    Waits for the GPU.
    """
    with device_of(state):
        made = _State(state)
        cells = -(-state.nbytes // (CHUNK * WARP))
        blocks = -(-cells // BLOCK_CELLS)
        cell_ends = cupy.empty(blocks * BLOCK_CELLS, np.uint64)
        block_ends = cupy.empty(blocks, np.uint64)
        norms = cupy.empty(1 + blocks, np.float64)  # the first is for the number of outcomes
        narrow = made.qubits <= _INT32_QUBITS
        found = cupy.empty(shots, np.int32 if narrow else np.int64)
        launches = _sample_launches(made.qubits, *made.form, blocks, shots, made.device)
        members = {
            "state": state.data.ptr, "cell_ends": cell_ends.data.ptr, "found": found.data.ptr,
            "block_ends": block_ends.data.ptr, "block_norms": norms.data.ptr + norms.itemsize,
            "seed": seed - 2**64 if seed >> 63 else seed, "found_is_int32": int(narrow),
        }  # fmt: skip
        counts = _begin_count(found, norms, made.device) if count else None

        def run(exponent: int) -> tuple[int, int]:
            scale = np.ldexp(1.0, UNIT_BITS + exponent)
            for launch in launches:
                launch({**members, "scale": int(scale.view(np.int64))})
            if counts is not None:
                counts.start()
            elif ascending:
                found.sort()  # before the host waits for the norm
            read = norms[:2].get()  # waits
            return norm_exponent(float(read[1])), int(read.view(np.int64)[0])

        exponent, outcomes = run(0)
        if exponent:
            _, outcomes = run(exponent)
        return found, None if counts is None else counts.first(outcomes)


@lru_cache(maxsize=256)
def _sample_launches(
    qubits: int, dtype: str, aligned: bool, blocks: int, shots: int, device: Device
) -> tuple[BoundKernel, ...]:
    values = {
        "state": 0, "cell_ends": 0, "block_ends": 0, "block_norms": 0, "found": 0, "seed": 0,
        "scale": 0.0, "amplitudes": 1 << qubits, "blocks": blocks, "shots": shots,
        "found_is_int32": 0,
    }  # fmt: skip
    grids = {"sum_cells": blocks, "sum_blocks": 1, "find_shots": _blocks_for("find_shots", shots)}
    return tuple(
        _launch(name, dtype, aligned, grid, values, device) for name, grid in grids.items()
    )


def counted(shots: Any) -> Counts | None:
    """Return the counts of shots in any order; None where one block cannot. Waits for the GPU."""
    found = cupy.empty(1, np.int64)
    counts = _begin_count(shots, found, gpu(cupy.cuda.Device().id))
    if counts is None:
        return None
    counts.start()
    return counts.first(int(found[0]))


class _Count(NamedTuple):
    """A launch that counts shots, and what it writes."""

    launch: BoundKernel
    members: Mapping[str, int]
    outcomes: Any
    counts: Any

    def start(self) -> None:
        """Queue it on the current stream."""
        self.launch(self.members)

    def first(self, outcomes: int) -> Counts:
        """Return as many outcomes as it found, with their counts."""
        return self.outcomes[:outcomes], self.counts[:outcomes]


def _begin_count(shots: Any, found: Any, device: Device) -> _Count | None:
    """Return the launch that counts shots, their outcomes' number to ``found``; None of many."""
    capacity = 1 << (shots.size - 1).bit_length()
    if shots.dtype != np.int32 or capacity > _COUNTED_AT_ONCE:
        return None
    outcomes, counts = cupy.empty(shots.size, np.int64), cupy.empty(shots.size, np.int64)
    members = {
        "shots": shots.data.ptr, "outcomes": outcomes.data.ptr, "counts": counts.data.ptr,
        "found": found.data.ptr,
    }  # fmt: skip
    launch = _count_launch(shots.size, capacity, capacity * shots.itemsize, device)
    return _Count(launch, members, outcomes, counts)


@lru_cache(maxsize=256)
def _count_launch(shots: int, capacity: int, nbytes: int, device: Device) -> BoundKernel:
    values = {
        "shots": 0, "outcomes": 0, "counts": 0, "found": 0, "count": shots, "capacity": capacity,
    }  # fmt: skip
    return _launch("count_shots", "complex64", True, 1, values, device, nbytes)


def probabilities(state: Any, chosen: Sequence[int]) -> Any:
    """Return the sums of |a|^2 over all other qubits, float64, (2^k,)."""
    with device_of(state):
        made = _State(state)
        plan, launches = _marginal_launches(made.qubits, *made.form, tuple(chosen), made.device)
        out = cupy.empty(1 << len(chosen), np.float64)
        partials = out if plan.shares == 1 else cupy.empty(plan.shares << len(chosen), np.float64)
        launches[0]({"state": state.data.ptr, "partials": partials.data.ptr})
        if plan.shares > 1:
            launches[1]({"partials": partials.data.ptr, "out": out.data.ptr})
        return out


@lru_cache(maxsize=256)
def _marginal_launches(
    qubits: int, dtype: str, aligned: bool, chosen: tuple[int, ...], device: Device
) -> tuple[marginals.MarginalPlan, tuple[BoundKernel, BoundKernel]]:
    item = np.dtype(dtype).itemsize
    most = _BLOCKS * device.sm_count
    plan = marginals.plan_marginals(qubits, item, chosen, most)
    finished = min(most, _blocks_for("finish_marginals", plan.lanes << len(chosen)))
    return plan, (
        _launch("sum_marginals", dtype, aligned, min(most, plan.items), plan.sums(), device),
        _launch("finish_marginals", dtype, aligned, finished, plan.finish(), device),
    )


def expectation(state: Any, paulis: Sequence[Pauli]) -> Any:
    """Return coefficient <state|P|state> of each Pauli string, float64."""
    with device_of(state):
        out = cupy.empty(len(paulis), np.float64)
        if not paulis:
            return out
        made = _State(state)
        strings = _strings_of(made.qubits, *made.form, tuple(paulis), made.device)
        keep_in_graph(strings)
        strings(state, out)
        return out


@lru_cache(maxsize=64)
def _strings_of(
    qubits: int, dtype: str, aligned: bool, paulis: tuple[Pauli, ...], device: Device
) -> _SmallStrings | _Strings:
    if qubits <= _SMALL_QUBITS:
        return _SmallStrings(qubits, dtype, paulis, device)
    return _Strings(qubits, dtype, aligned, paulis, device)


class _SmallStrings:
    """Pauli strings of a small state: one launch, a block for each."""

    def __init__(self, qubits: int, dtype: str, paulis: Sequence[Pauli], device: Device) -> None:
        self._tables = [
            device_table(np.array(column, kind))
            for column, kind in (
                (range(len(paulis)), np.int64),
                ([pauli_passes.factor_of(one, pairs_once=False) for one in paulis], np.float64),
                ([one.flips for one in paulis], np.int64),
                ([one.signs for one in paulis], np.int64),
                ([one.ys % 2 for one in paulis], np.int64),
            )
        ]
        names = ("places", "factors", "flips", "signs", "odd")
        addresses = {name: t.data.ptr for name, t in zip(names, self._tables, strict=True)}
        values = {**addresses, "partials": 0, "out": 0, "state": 0, "blocks": 0}
        values["amplitudes"] = 1 << qubits
        self._launch = _launch("small_strings", dtype, True, len(paulis), values, device)

    def __call__(self, state: Any, out: Any) -> None:
        """Queue it on the current stream."""
        self._launch({"state": state.data.ptr, "out": out.data.ptr})


class _Strings:
    """Pauli strings of a large state: passes over it, then the sums of what blocks left."""

    def __init__(
        self, qubits: int, dtype: str, aligned: bool, paulis: Sequence[Pauli], device: Device
    ) -> None:
        item = np.dtype(dtype).itemsize
        self._passes = pauli_passes.make_passes(qubits, item, paulis)
        order = [number for one in self._passes for number in one.strings]
        factors = [pauli_passes.factor_of(paulis[number], pairs_once=True) for number in order]
        self._tables = device_table(np.array(order, np.int64)), device_table(np.array(factors))
        warps = KERNELS["sum_strings"][1] // WARP
        resident = KERNELS["sum_strings"][2] * device.sm_count
        self._blocks = min(resident, -(-self._passes[0].tiles // warps))
        self._launches = [
            _launch(
                "sum_strings", dtype, aligned, self._blocks,
                {"state": 0, "partials": 0, **one.values(paulis, CHUNK // item)}, device,
            )
            for one in self._passes
        ]  # fmt: skip
        values = {
            "partials": 0, "out": 0, "places": self._tables[0].data.ptr,
            "factors": self._tables[1].data.ptr, "blocks": self._blocks, "state": 0, "flips": 0,
            "signs": 0, "odd": 0, "amplitudes": 0,
        }  # fmt: skip
        self._finish = _launch("finish_strings", dtype, aligned, len(order), values, device)

    def __call__(self, state: Any, out: Any) -> None:
        """Queue it on the current stream."""
        partials = cupy.empty((out.size, self._blocks), np.float64)
        at = partials.data.ptr
        for one, launch in zip(self._passes, self._launches, strict=True):
            launch({"state": state.data.ptr, "partials": at})
            at += len(one.strings) * self._blocks * partials.itemsize
        self._finish({"partials": partials.data.ptr, "out": out.data.ptr})


def _blocks_for(name: str, threads: int) -> int:
    return -(-threads // KERNELS[name][1])


def _launch(
    name: str, dtype: str, aligned: bool, blocks: int, values: Mapping[str, Any], device: Device,
    shared_bytes: int = 0,
) -> BoundKernel:  # fmt: skip
    form = kernel_form(name, dtype, aligned)
    return bound_kernel(
        kernel_source(name, *form), kernel_name(name, *form), blocks, KERNELS[name][1],
        structure_of(name), device, values, shared_bytes,
    )  # fmt: skip
