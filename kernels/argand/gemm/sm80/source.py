"""Source of the kernels of the mma.sync family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.gemm.linear_combination import LINEAR_COMBINATION
from argand.gemm.precision_fields import precision_fields
from argand.gemm.sm80.plan import MmaPlan
from argand.precision import Precision
from argand.runtime.compile.cpp import changed, constant
from argand.runtime.compile.kernel_entry import kernel_entry, symbol_words
from argand.runtime.launch.arguments import size_check


def mma_kernel_name(precision: Precision, plan: MmaPlan) -> str:
    """Return the kernel's symbol: ``gemm_mma_tf32_64x64x16_4_b_k_major_vector_2``.

    It has the precision, the tile, the stages of the ring, and what differs from a plan's defaults;
    the number of `grid_slices` is an argument.
    """
    tile = f"{plan.block_m}x{plan.block_n}x{plan.block_k}_{plan.stages}"
    words = symbol_words(replace(plan, grid_slices=1)) + ["grid_split"] * (plan.grid_slices > 1)
    return "_".join(["gemm_mma", precision.symbol, tile, *words])


# The arguments of every kernel of the family, in order: GemmArguments of gemm/sm80_plan.cuh.
GEMM_ARGUMENTS: tuple[tuple[str, str], ...] = (
    *(("const float2*", name) for name in ("a", "b")),
    *(("int64", name) for name in ("m", "k", "first_batch")),
    *(("int", name) for name in ("store_pairs_n", "grid_slices")),
    *(("int64", name) for name in (
        "n",
        "a_stride_m", "a_stride_k", "a_stride_batch",
        "b_stride_n", "b_stride_k", "b_stride_batch",
    )),
    ("const float2*", "c"),
    *(("int", name) for name in ("conjugate_b", "conjugate_result")),
    *LINEAR_COMBINATION,
    ("float2*", "out"),
    *(("int64", name) for name in (
        "out_stride_m", "out_stride_n", "out_stride_batch",
        "c_stride_m", "c_stride_n", "c_stride_batch",
    )),
    *(("const uint32*", name) for name in ("a_absmax", "b_absmax")),
    *(("int64", name) for name in ("a_absmax_stride_batch", "b_absmax_stride_batch")),
    ("float4*", "partials"), ("uint32*", "arrived"),
)  # fmt: skip


_SIZES = (
    "block_m", "block_n", "block_k", "warps_m", "warps_n", "warps_k", "cluster", "stages",
    "promotion_interval",
)  # fmt: skip
_RARE = (
    "triangle", "any_strides", "mirror", "one_tile", "copies_between", "whole_k", "blocks_per_sm",
)  # fmt: skip


def mma_source(precision: Precision, plan: MmaPlan) -> str:
    """Return the CUDA C++ of one kernel of the family."""
    fields = precision_fields(precision) | {
        "products": len(precision.products),
        "product_a": tuple(a for a, _ in precision.products),
        "product_b": tuple(b for _, b in precision.products),
        "scaled": precision.scaled,
        "finds_absmax": plan.finds_absmax,
        **{name: getattr(plan, name) for name in _SIZES},
        "a_k_major": plan.a_k_major,
        "b_k_major": plan.b_k_major,
        "vector": plan.vector,
        **changed(plan, *_RARE),
    }
    fields |= {"grid_split": True} if plan.grid_slices > 1 else {}
    return (
        '#include "gemm/sm80_kernel.cuh"\n'
        f"{size_check('GemmArguments', GEMM_ARGUMENTS)}"
        f"{constant('MmaPlan', fields)}"
        + kernel_entry(
            mma_kernel_name(precision, plan),
            "GemmArguments",
            "gemm_mma<kPlan>(args);",
            plan.threads,
            plan.launch_blocks,  # else ptxas keeps registers for more blocks, and is slower
            cluster=plan.cluster,
        )
    )
