"""The CUDA C++ of a softmax kernel, and its arguments. Needs no GPU and no CuPy."""

from __future__ import annotations

import math

from argand.runtime.compile.cpp import constant, roundings
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check
from argand.softmax.plan import RowPlan, SoftmaxForm
from argand.softmax.problem import rounded_operand

ARGUMENTS: Fields = (
    ("const void*", "x"), ("const void*", "x_end"), ("void*", "out"),
    ("int64", "rows"), ("int64", "columns"), ("int64", "x_stride"), ("int64", "out_stride"),
    ("double", "scale"), ("float", "scale_fp32"), ("float", "scale_log2"),
    ("float", "ln2_over_scale_high"), ("float", "ln2_over_scale_low"),
    ("float", "underflow_distance"), ("float", "origin_spacing"), ("void*", "exchange"),
    ("int64", "slice_columns"), ("int64", "load_stages"), ("int64", "epilogue_stages"),
)  # fmt: skip
"""Members of ``SoftmaxArguments`` in ``cuda/softmax/plan.cuh``."""


def kernel_name(form: SoftmaxForm, plan: RowPlan) -> str:
    """Return the kernel's symbol."""
    if plan.slab:
        shape = f"{plan.row_threads}x{plan.values}_{plan.slab_stages}{'_bulk' * plan.bulk}"
    else:
        shape = f"{plan.cluster}x{plan.row_threads}x{plan.values}_{form.vector}"
        shape += "_edges" * form.unaligned_rows
    return (
        f"{form.operation}_{form.input}_{form.output}_{form.precision.symbol}_{plan.kind}_"
        f"{shape}{'_scaled' * (not form.unit_scale)}"
    )


def softmax_source(form: SoftmaxForm, plan: RowPlan) -> str:
    """Return the CUDA C++ of one kernel of the family."""
    precision = form.precision
    rounding = "exact" if precision.exact_operands else rounded_operand(precision).name
    vector, unaligned = (1, False) if plan.slab else (form.vector, form.unaligned_rows)
    fields = {
        "operation": f"Operation::{form.operation}",
        "input": f"DataType::{form.input}",
        "output": f"DataType::{form.output}",
        "compute_fp64": form.compute_fp64,
        "unit_scale": form.unit_scale,
        "input_rounding": f"Operand::{rounding}",
        "terms": precision.terms,
        "roundings": roundings(precision),
        "row_threads": plan.row_threads,
        "block_threads": plan.block_threads,
        "values_per_thread": plan.values,
        "vector_width": vector,
        "unaligned_rows": unaligned,
        "resident": plan.resident,
        "staged": plan.staged,
        "blocks_per_row": plan.cluster,
        "ring": plan.ring,
        "arrive_per_lane": plan.arrive_per_lane,
        "slab_stages": plan.slab_stages,
        "bulk": plan.bulk,
        "packed": plan.packed(form),
        "ulp_accurate": not (form.compute_fp64 or form.approximate),
    }
    return (
        '#include "softmax/kernel.cuh"\n'
        f"{size_check('SoftmaxArguments', ARGUMENTS)}"
        f"{constant('RowPlan', fields)}"
        + kernel_entry(
            kernel_name(form, plan),
            "SoftmaxArguments",
            "softmax_rows<kPlan>(args);",
            plan.block_threads,
            _blocks(form, plan),
            cluster=1 if plan.ring else plan.cluster,
        )
    )


def _blocks(form: SoftmaxForm, plan: RowPlan) -> str:
    """Return the blocks per multiprocessor that limit registers: fp64 slabs spill after Hopper."""
    fewer = max(1, plan.blocks - 1)
    if not (form.compute_fp64 and plan.slab) or plan.blocks == fewer:
        return str(plan.blocks)
    return f"__CUDA_ARCH__ < 1000 ? {plan.blocks} : {fewer}"


def scale_arguments(scale: float) -> dict[str, float]:
    """Return the members of ``SoftmaxArguments`` that depend on the scale s of e^(s x).

    ln(2) / s is split in two parts whose sum has twice fp32's precision. Values further than 180
    powers of two below a row's maximum are clamped to that distance: their exponentials are less
    than half of fp32's smallest number. Origins are some 2^14 powers of two apart.
    """
    import numpy as np

    power = math.log(2) / scale
    high = float(np.float32(power))
    return {
        "scale": scale,
        "scale_fp32": scale,
        "scale_log2": 1 / power,
        "ln2_over_scale_high": high,
        "ln2_over_scale_low": (power - high) * scale,
        "underflow_distance": 180 * power,
        "origin_spacing": 2.0 ** (14 + math.floor(math.log2(power))),
    }
