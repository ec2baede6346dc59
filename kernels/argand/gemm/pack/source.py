"""Source of the pack kernel of the wgmma family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from collections.abc import Sequence

from argand.gemm.pack.plan import THREADS, PackPlan, scales
from argand.gemm.precision_fields import precision_fields
from argand.precision import Precision
from argand.runtime.compile.cpp import changed, constant
from argand.runtime.compile.kernel_entry import kernel_entry, symbol_words
from argand.runtime.launch.arguments import size_check

PACK_SOURCE: tuple[tuple[str, str], ...] = (
    ("const void*", "x"), ("void*", "planes"),
    ("uint32*", "row_absmax"), ("uint2*", "panel_counters"), ("float2*", "descale"),
    ("int64", "row_stride"), ("int64", "k_stride"), ("int64", "batch_stride"),
    *(("int", name) for name in ("rows", "k", "pitch", "exchange_absmax", "conjugate")),
)  # fmt: skip
"""Arguments of one source, in order: PackArguments of gemm/pack_tile.cuh."""


def pack_arguments(sources: int) -> tuple[tuple[str, str], ...]:
    """Return the kernel's arguments: each source's, then how many blocks the first has."""
    each = [(kind, f"{name}_{i}") for i in range(sources) for kind, name in PACK_SOURCE]
    return (*each, ("int64", "first_blocks"))


def pack_kernel_name(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """Return the kernel's symbol, in which the words of each source's plan follow ``of``."""
    words = [word for plan in plans for word in ("of", *symbol_words(plan))]
    return "_".join(["gemm_pack", precision.symbol, *words])


def pack_source(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """Return the CUDA C++ of the kernel that packs one source or two."""
    constants = "".join(
        constant("PackPlan", _members(precision, plan), f"kPlan{i}") for i, plan in enumerate(plans)
    )
    blocks = min(plan.blocks_per_sm for plan in plans)
    shared = " > ".join(f"kPlan{i}.shared_elements()" for i in range(len(plans)))
    if len(plans) > 1:
        shared += " ? kPlan0.shared_elements() : kPlan1.shared_elements()"
    sources = " ".join(f"PackArguments source_{i};" for i in range(len(plans)))
    second = (
        "    if (blockIdx.x >= args.first_blocks) {\n"
        "        pack_planes<kPlan1>(args.source_1, args.first_blocks, tile, row_absmax);\n"
        "        return;\n"
        "    }\n"
    )
    return (
        '#include "gemm/pack_kernel.cuh"\n'
        f"struct Arguments {{ {sources} int64 first_blocks; }};\n"
        f"{size_check('Arguments', pack_arguments(len(plans)))}"
        f"{constants}"
        + kernel_entry(
            pack_kernel_name(precision, plans),
            "Arguments",
            f"__shared__ float2 tile[{shared}];\n"
            "    __shared__ uint32 row_absmax[kMaxPackRows];\n"
            f"{second if len(plans) > 1 else ''}"
            "    pack_planes<kPlan0>(args.source_0, 0, tile, row_absmax);",
            THREADS,
            blocks,
            cluster=plans[0].cluster,
        )
    )


def _members(precision: Precision, plan: PackPlan) -> dict[str, object]:
    return precision_fields(precision) | {
        "scaled": scales(precision, plan),
        "half_source": plan.half_source,
        "k_major": plan.k_major,
        "vector": plan.vector,
        "rows": plan.rows,
        **changed(plan, "exchanges_k", "cluster", "elements"),
    }
