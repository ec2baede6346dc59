"""Arguments and CUDA C++ of the kernels of gates. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand.gates.layout import CHUNK, MAX_CHUNKS, PLANE_COLUMNS, joint_parts
from argand.gates.plan import (
    MAX_WIDTH,
    WARP_SPECIALIZED_BUFFERS,
    GatePlan,
    separate_small_products,
)
from argand.runtime.compile.cpp import listed, literal, operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_function
from argand.runtime.launch.arguments import Fields, size_check

_MAX_SEGMENTS = 20
"""Most runs of bits of a tile's number that lie together among the qubits."""
_MAX_THREAD_BITS = 9
"""Most bits of the number of a thread."""

ARGUMENTS: Fields = (
    ("char*", "state"), ("const void*", "matrix"), ("int64", "control_offset"),
    ("int64", "matrix_exponent"), ("const int*", "exponent_at"),
    ("int64", f"thread_offset[{_MAX_THREAD_BITS}]"), ("int64", f"chunk_offset[{MAX_CHUNKS}]"),
    ("int64", f"result_offset[{_MAX_THREAD_BITS}]"), ("int64", "register_offset[3]"),
    ("uint32", f"thread_mask[{_MAX_THREAD_BITS}]"), ("uint32", f"chunk_mask[{MAX_CHUNKS}]"),
    ("uint32", "tiles"), ("uint32", "segments"),
    ("uint32", f"segment_mask[{_MAX_SEGMENTS}]"), ("uint32", f"segment_shift[{_MAX_SEGMENTS}]"),
    ("uint32", f"row_mask[{MAX_WIDTH}]"),
    ("uint32", f"read_mask[{_MAX_THREAD_BITS}]"),
    ("uint32", "column_mask[2]"), ("uint32", "pair_mask"),
    ("uint32", f"result_mask[{_MAX_THREAD_BITS}]"), ("uint32", "register_mask[3]"),
    ("uint32", f"thread_row[{_MAX_THREAD_BITS}]"), ("uint32", f"chunk_row[{MAX_CHUNKS}]"),
    ("uint32", f"thread_plane[{_MAX_THREAD_BITS}]"), ("uint32", f"chunk_plane[{MAX_CHUNKS}]"),
    ("int", "controls_qubit0"), ("int", "controls_qubit1"), ("uint32", "tile_mask"),
    ("uint32", "tile_stride"),
)  # fmt: skip
"""Members of ``GateArguments`` in ``cuda/gates/tile.cuh``."""


def kernel_name(plan: GatePlan) -> str:
    """Return the kernel's symbol: operation, kind, precision, width, layout."""
    where = "inside" if plan.targets_qubit0 else "outside"
    precision = plan.precision.symbol if plan.on_tensor_cores else f"fp{4 * plan.item}"
    kind = "warp_specialized" if plan.warp_specialized else plan.kind
    how = f"n{plan.near}" if plan.kind == "direct" else f"s{plan.stages}"
    whole = "_whole" if plan.kind == "direct" and plan.whole_sectors else ""
    return f"gate_{kind}_{precision}_{plan.width}_{where}_{how}{whole}"


def gate_source(plan: GatePlan) -> str:
    """Return the CUDA C++ of the plan's kernel."""
    before = ""
    if plan.kind == "wgmma":
        both = 2 if joint_parts(plan.width, plan.targets_qubit0) else 1
        before = '#include "device/warpgroup.cuh"\n' + wgmma_function(
            plan.precision.operand, both * PLANE_COLUMNS, both
        )
    if plan.on_tensor_cores:
        header, gate = tensor_core_gate(plan)
        body = f"{gate} gate; gate.run(args);"
    else:
        header, body = _cuda_core_gate(plan)
    return (
        f'{before}#include "gates/{header}_kernel.cuh"\n'
        f"{size_check('GateArguments', ARGUMENTS)}"
        + kernel_entry(kernel_name(plan), "GateArguments", body, plan.threads, plan.blocks)
    )


def _cuda_core_gate(plan: GatePlan) -> tuple[str, str]:
    """Return the header, without its end, and the kernel's body."""
    targets_qubit0 = literal(plan.targets_qubit0)
    real = "double" if plan.item == CHUNK else "float"
    if plan.kind == "direct":
        sizes = f"{plan.near}, {plan.threads}, {literal(plan.whole_sectors)}"
        return "direct", f"direct_gate<{plan.width}, {targets_qubit0}, {sizes}>(args);"
    if plan.kind == "small":
        return "cuda_core", f"small_gate<{real}, {plan.width}, {plan.threads}>(args);"
    sizes = f"{plan.tile_bytes}, {plan.threads}, {plan.stages}"
    return "cuda_core", f"{plan.kind}_gate<{real}, {plan.width}, {targets_qubit0}, {sizes}>(args);"


def tensor_core_gate(plan: GatePlan) -> tuple[str, str]:
    """Return the header, without its end, and the type in it whose ``run`` is the kernel."""
    row = plan.precision
    separate = literal(separate_small_products(row, plan.width))
    if plan.kind == "direct_mma":
        header, name, last = "direct_mma", "DirectMmaGate", f"{plan.threads}, {separate}"
    elif plan.kind == "mma":
        header, name, last = "sm80", "MmaGate", f"{plan.stages}, {separate}"
    elif plan.warp_specialized:
        header, name = "sm90_warp_specialized", "WarpSpecializedGate"
        last = f"{plan.stages}, {WARP_SPECIALIZED_BUFFERS}"
    else:
        header, name, last = "sm90", "WgmmaGate", f"{plan.stages}"
    form = listed(operand_arguments(row), plan.width, plan.targets_qubit0, last)
    return header, f"{name}<{form}>"


def argument_values(values: Mapping[str, object]) -> dict[str, Any]:
    """Return a value for each member: 0 where none is given, lists filled up with 0."""
    found: dict[str, Any] = {}
    for _, member in ARGUMENTS:
        name, _, length = member.partition("[")
        value = values.get(name, 0)
        if length:
            given = list(value) if isinstance(value, (list, tuple)) else []
            found[name] = (*given, *[0] * (int(length[:-1]) - len(given)))
        else:
            found[name] = value
    return found
