"""Source of the kernels of the wgmma family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from argand.gemm.linear_combination import LINEAR_COMBINATION
from argand.gemm.precision_fields import precision_fields
from argand.gemm.sm90.plan import WgmmaPlan
from argand.precision import Precision
from argand.runtime.compile.cpp import changed, constant
from argand.runtime.compile.dependent_launch import WAIT_FIRST
from argand.runtime.compile.kernel_entry import symbol_words
from argand.runtime.compile.wgmma import wgmma_function, wgmma_pair_function
from argand.runtime.launch.arguments import size_check

_MEMBERS = (
    "half_output", "tma_epilogue", "out_m_major", "fused_pack", "m_warpgroups", "block_n",
    "block_k", "stages", "spill_interval", "spill_columns", "overlapped_stages",
)  # fmt: skip
"""Members of a plan that its constant in CUDA C++ always names."""
_RARE = (
    "triangle", "conjugate_y", "power", "odd_pitch", "odd_batches", "mirror", "ping_pong",
    "shared_columns", "k_warpgroups", "cluster",
)  # fmt: skip
"""Members that are named only where they differ from their defaults."""


def wgmma_kernel_name(precision: Precision, plan: WgmmaPlan) -> str:
    """Return the kernel's symbol: ``gemm_wgmma_tf32_128x128x32_3_planar_tma_epilogue_descale``.

    It has the precision, the tile, the stages of the ring, and what differs from a plan's defaults.
    """
    tile = f"{plan.block_m}x{plan.block_n}x{plan.block_k}_{plan.stages}"
    return "_".join(["gemm_wgmma", precision.symbol, tile, *symbol_words(plan)])


# WgmmaArguments of gemm/sm90_plan.cuh, which follow three tensor maps, or five of odd batches.
WGMMA_ARGUMENTS: tuple[tuple[str, str], ...] = (
    ("const float2*", "c"), ("void*", "out"), ("float2*", "spill"),
    ("const float2*", "x_descale"), ("const float2*", "y_descale"),
    ("float2*", "partials"), ("uint32*", "partials_ready"), ("const float2*", "y_source"),
    ("void*", "y_planes"), ("uint32*", "packed_counts"), ("uint32*", "throttle"),
    *(("int", name) for name in (
        "m", "n", "k", "batches", "x_batched", "y_batched", "split_k_slices", "k_tiles_per_slice",
        "first_tile", "data_parallel_tiles", "stream_k_tiles", "k_tiles_per_block",
        "aligned_period", "throttle_interval", "maximum_lead",
        "y_pitch", "pack_conjugate", "pack_rows", "panels_per_wave", "pack_maximum_lead",
        "begins_early",
    )),
    *(("int64", name) for name in (
        "y_stride_n", "y_stride_batch", "c_stride_m", "c_stride_n", "c_stride_batch",
        "out_stride_m", "out_stride_n", "out_stride_batch",
        "spill_stride_m", "spill_stride_n", "spill_stride_batch",
    )),
    *LINEAR_COMBINATION,
    *(("int", name) for name in (
        "conjugate_result", "store_pairs_m", "store_pairs_n", "spill_pairs_n",
    )),
)  # fmt: skip


def wgmma_source(precision: Precision, plan: WgmmaPlan) -> str:
    """Return the CUDA C++ of one kernel of the family."""
    more = ["odd_batch_even", "odd_batch_odd"] if plan.odd_batches else []
    names = ["x_map", "y_map", "out_map", *more]
    parameters = " ".join(f"const __grid_constant__ TensorMap {name}," for name in names)
    last = more or ["x_map", "out_map"]  # which are not read
    clusters = f"__cluster_dims__({plan.cluster}, 1, 1) " if plan.cluster > 1 else ""
    return (
        '#include "device/warpgroup.cuh"\n'
        f"{_instructions(precision, plan)}"
        '#include "gemm/sm90_kernel.cuh"\n'
        f"{size_check('WgmmaArguments', WGMMA_ARGUMENTS)}"
        f"{constant('WgmmaPlan', _fields(precision, plan))}"
        f'extern "C" __global__ void {clusters}__launch_bounds__({plan.threads}, 1)\n'
        f"{wgmma_kernel_name(precision, plan)}({parameters}\n"
        "    const __grid_constant__ WgmmaArguments args) {\n"
        f"    if (!args.begins_early)\n    {WAIT_FIRST}"
        f"    gemm_wgmma<kPlan>(x_map, y_map, out_map, args, {', '.join(last)});\n"
        "}\n"
    )


def _fields(precision: Precision, plan: WgmmaPlan) -> dict[str, object]:
    """Return the members of a ``WgmmaPlan`` in CUDA C++; those that are left out have a default."""
    return precision_fields(precision) | {
        "products": len(precision.products),
        "product_x": tuple(x for x, _ in precision.products),
        "product_y": tuple(y for _, y in precision.products),
        "storage": f"Storage::{plan.storage}",
        "x_k_major": plan.k_major,
        "scaled": precision.scaled and not plan.prescaled,
        **{name: getattr(plan, name) for name in _MEMBERS},
        "epilogue": f"Epilogue::{plan.epilogue}",
        **changed(plan, *_RARE),
    }


def _instructions(precision: Precision, plan: WgmmaPlan) -> str:
    """Return the functions of wgmma that the kernel calls."""
    operand = precision.operand
    if precision.terms > 1:
        found = wgmma_pair_function(operand, plan.block_n)
        found += wgmma_pair_function(operand, plan.block_n, rows_in_shared=True)
    else:
        found = wgmma_function(operand, plan.block_n)
    if plan.overlapped_stages:
        found += wgmma_function(operand, plan.block_n // 2)
    return found
