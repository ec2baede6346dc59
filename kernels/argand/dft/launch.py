"""Launches of the plans of one kernel on a GPU: tables and arguments, at any address."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import gpu
from argand.dft.butterfly import ButterflyPlan, butterfly_tables
from argand.dft.cluster import ClusterPlan, cluster_tables
from argand.dft.cpu import stage_shift, table_exponent
from argand.dft.fragments import fragments, fused_twiddles
from argand.dft.hankel import HankelPlan, core_matrix_table, gather_offsets
from argand.dft.mixed_radix import MixedRadixPlan, mixed_radix_table
from argand.dft.plan import ARGUMENTS, DensePlan, KernelPlan, dft_source, kernel_name
from argand.dft.problem import DftProblem
from argand.dft.single_cta import SingleCtaPlan, single_cta_table
from argand.dft.tables import Array
from argand.precision import Precision
from argand.runtime.compile.loading import load
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel, max_active_clusters
from argand.runtime.memory.device_table import device_table
from argand.runtime.memory.workspace import zeroed_workspace

_DTYPE = arguments_dtype(ARGUMENTS)
_current_stream = cupy.cuda.get_current_stream
_MEMBERS = {name: Address(i) for i, name in enumerate(("x", "out", "tile_counter"))}
"""Members of ``DftArguments`` that differ from call to call."""


class DftLaunch:
    """Transforms of rows that lie ``strides`` elements apart, in x and in the result.

    Raises CompileError where NVRTC fails.
    """

    def __init__(
        self, problem: DftProblem, plan: KernelPlan, strides: tuple[int, int], device: int
    ) -> None:
        precision = problem.precision
        arch, sm_count = gpu(device).require_arch(), gpu(device).sm_count
        shared = plan.shared_bytes(precision)
        kernel = load(
            dft_source(plan, precision), arch.target, kernel_name(plan, precision), shared
        )
        self._tables, factors = _tables_and_factors(problem, plan, device)
        values: dict[str, Any] = dict.fromkeys(_DTYPE.names or (), 0)
        values |= {
            "rows": problem.rows, "x_stride": strides[0], "out_stride": strides[1],
            "sign": -1.0 if problem.inverse else 1.0, **factors,
        }  # fmt: skip
        # The kernel points to the tables, which live as long as the launch.
        values |= {name: table.data.ptr for name, table in self._tables.items()}
        blocks, threads = _grid(plan, problem.rows, sm_count)
        if isinstance(plan, ClusterPlan):
            most = max_active_clusters(kernel.ptr, plan.cluster_size, plan.threads, shared)
            blocks = min(most, problem.rows) * plan.cluster_size
        #: Bytes of the tables, which other launches may share.
        self.nbytes = sum(int(table.nbytes) for table in self._tables.values())
        self._device = device
        bound = BoundKernel(kernel, blocks, threads, Arguments(_DTYPE, values), shared_bytes=shared)
        #: The launch, of x, the result and the counter of tiles.
        self.launches = LaunchSequence(
            [bound], lambda addresses: [bound.argument_update(_MEMBERS, (), addresses)]
        )

    def __call__(self, x: int, out: int) -> None:
        """Queue it on the current stream, for arrays at these addresses."""
        stream = _current_stream(self._device).ptr
        self.launches((x, out, zeroed_workspace(4, stream, self._device, self)), stream)


def _grid(plan: KernelPlan, rows: int, sm_count: int) -> tuple[int, int]:
    """Return the blocks of a launch, except a cluster plan's, and the threads of each."""
    if isinstance(plan, ButterflyPlan):
        return min(sm_count, rows), 32 * plan.warps * plan.busy_groups(rows, sm_count)
    blocks = -(-rows // plan.transforms)
    # All but mixed radices are persistent.
    return blocks if isinstance(plan, MixedRadixPlan) else min(sm_count, blocks), plan.threads


def _tables_and_factors(
    problem: DftProblem, plan: KernelPlan, device: int
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the tables that a plan's kernel reads, on a device, and the factors of its results.

    Both are by the members of ``DftArguments``, where cuda/dft/plan.cuh says what they are. Factors
    undo the powers of two by which tables are scaled into the operand's range.
    """
    precision = problem.precision
    unit = factor = problem.factor
    exponent = table_exponent(precision)
    more: dict[str, float] = {}
    tables: dict[str, Any] = {}
    if isinstance(plan, DensePlan):
        tables["table"] = _on_device(device, _folded, (plan.length,), plan.warps, precision)
        factor *= 2.0**-exponent
    elif isinstance(plan, HankelPlan):
        tables["table"] = _on_device(device, core_matrix_table, plan, precision)
        tables["gather_offsets"] = _on_device(device, gather_offsets, plan)
        factor *= 2.0**-exponent
        more["bias_step"] = plan.bias_step(precision)
    elif isinstance(plan, ButterflyPlan):
        scaled, tables = _on_device(device, butterfly_tables, plan, inverse=problem.inverse)
        unit *= 2.0**-scaled
    elif isinstance(plan, MixedRadixPlan | SingleCtaPlan | ClusterPlan):
        tables["twiddles"] = _twiddles_of(plan, device)
        unit *= -1.0 if problem.inverse else 1.0
    else:
        factors = (plan.n1, plan.n2)
        lengths, tile_rows = tuple(dict.fromkeys(factors)), plan.warps * plan.m_tiles
        tables["table"] = _on_device(device, _folded, lengths, 1, precision)
        tables["twiddles"], tables["mirror_twiddles"] = _on_device(
            device, fused_twiddles, *factors, tile_rows, inverse=problem.inverse
        )
        unit *= 2.0 ** stage_shift(precision, plan.n1)
        factor = unit * 2.0**-exponent
    return tables, {"alternate_scale": unit, "scale": factor, **more}


def _twiddles_of(plan: MixedRadixPlan | SingleCtaPlan | ClusterPlan, device: int) -> Any:
    """Return the twiddles of a plan of butterflies in fp32, on a device."""
    if isinstance(plan, SingleCtaPlan):
        return _on_device(device, single_cta_table, plan)
    make = mixed_radix_table if isinstance(plan, MixedRadixPlan) else cluster_tables
    return _on_device(device, make, plan.radices)


def _folded(lengths: tuple[int, ...], warps: int, precision: Precision) -> Array:
    """Return the folded tables of these lengths, one after the other."""
    return np.concatenate([fragments(length, warps, precision).ravel() for length in lengths])


@lru_cache(maxsize=256)
def _on_device(device: int, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Return what ``make`` returns of its arguments, with its arrays on the current device."""
    return _moved(make(*given, **named))


def _moved(found: Any) -> Any:
    if isinstance(found, np.ndarray):
        return device_table(found)
    if isinstance(found, dict):
        return {name: device_table(table) for name, table in found.items()}
    return tuple(map(_moved, found)) if isinstance(found, tuple) else found
