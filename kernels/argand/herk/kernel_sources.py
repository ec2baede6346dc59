"""Arguments and CUDA C++ of the kernels of Hermitian products. Needs no GPU and no CuPy."""

from __future__ import annotations

from typing import Literal

from argand.herk.problem import Form
from argand.runtime.compile.cpp import listed, literal
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_s8_function
from argand.runtime.launch.arguments import size_check

SIDE, MIRROR_THREADS, GATHER_THREADS = 32, 256, 128
"""kSide, kMirrorThreads and kGatherThreads of herk/finish.cuh."""
PACK_ROWS, PACK_THREADS = 32, 256
"""kPackRows and kPackThreads of herk/planes.cuh."""
INT8_TILE, INT8_HALF, INT8_BLOCK_K, INT8_STAGES = 128, 64, 128, 4
"""kTile, kHalf, kBlockK and kStages of herk/sm90_int8_kernel.cuh."""
INT8_THREADS = 384
INT8_SHARED = INT8_STAGES * (2 * (INT8_HALF + INT8_TILE) * INT8_BLOCK_K + 16) + 1024
"""Bytes of dynamic shared memory of a block: stages, two mbarriers each, and their alignment."""
INT8_LARGEST_K = 65535
"""Largest k whose sums of products of int8 s32 holds: 2 k 128^2 < 2^31."""
FinishName = Literal["mirror_tile", "gather_row"]
_COMPLEX = {"complex64": ("float2", "float"), "complex128": ("double2", "double")}
# FinishArguments, PlaneArguments and Int8Arguments of the headers.
FINISH_ARGUMENTS = (
    ("void*", "matrix"), ("void*", "triangle"), ("const void*", "c"),
    *(("int64", name) for name in (
        "stride_m", "stride_n", "stride_batch", "triangle_stride", "triangle_stride_batch",
        "c_stride", "c_stride_batch",
    )),
    ("double", "beta"), ("int", "n"), ("int", "first_row"),
)  # fmt: skip
PLANE_ARGUMENTS = (
    ("const uint16*", "x"), ("int8*", "planes"),
    *(("int64", name) for name in ("stride_row", "stride_k", "stride_batch")),
    *(("int", name) for name in ("rows", "k", "pitch", "row_blocks", "vectors")),
)  # fmt: skip
INT8_ARGUMENTS = (
    ("const void*", "c"), ("void*", "out"),
    *(("int64", name) for name in (
        "c_stride_m", "c_stride_n", "c_stride_batch",
        "out_stride_m", "out_stride_n", "out_stride_batch",
    )),
    ("double", "alpha"), ("double", "beta"), ("int", "n"), ("int", "num_k_tiles"),
    ("uint32", "tile_rows"), ("uint32", "tiles"), ("int", "conjugate"), ("int", "pairs"),
)  # fmt: skip


def finish_name(name: FinishName, dtype: str) -> str:
    """Return the symbol of a kernel that finishes results of a complex type."""
    return f"herk_{name}_{dtype}"


def finish_source(name: FinishName, dtype: str) -> str:
    """Return the CUDA C++ of the kernel that mirrors the lower triangle, or gathers it."""
    kind, real = _COMPLEX[dtype]
    mirrors = name == "mirror_tile"
    threads = MIRROR_THREADS if mirrors else GATHER_THREADS
    types = kind if mirrors else f"{kind}, {real}"
    return (
        '#include "herk/finish.cuh"\n'
        f"{size_check('FinishArguments', FINISH_ARGUMENTS)}"
        f"static_assert(kSide == {SIDE} && kMirrorThreads == {MIRROR_THREADS} &&\n"
        f'              kGatherThreads == {GATHER_THREADS}, "as the launch has it");\n'
        + kernel_entry(
            finish_name(name, dtype), "FinishArguments", f"{name}<{types}>(args);", threads
        )
    )


def planes_name(*, across: bool) -> str:
    """Return the symbol of the kernel that packs complex int8."""
    return f"herk_pack_planes_{'across' if across else 'along'}"


def planes_source(*, across: bool) -> str:
    """Return the CUDA C++ of the kernel that packs complex int8, read across or along rows."""
    return (
        '#include "herk/planes.cuh"\n'
        f"{size_check('PlaneArguments', PLANE_ARGUMENTS)}"
        f"static_assert(kPackRows == {PACK_ROWS} && kPackThreads == {PACK_THREADS} &&\n"
        f'              kPackK == {INT8_BLOCK_K}, "as the launch has it");\n'
        + kernel_entry(
            planes_name(across=across),
            "PlaneArguments",
            f"pack_planes<{literal(across)}>(args);",
            PACK_THREADS,
        )
    )


def int8_name(dtype: str, form: Form) -> str:
    """Return the symbol of the kernel that multiplies complex int8."""
    return f"herk_int8_{dtype}_{form}"


def int8_source(dtype: str, form: Form) -> str:
    """Return the CUDA C++ of the kernel that multiplies complex int8 (sm_90a)."""
    types = listed(_COMPLEX[dtype][1], form == "full")
    return (
        '#include "device/warpgroup.cuh"\n'
        f"{wgmma_s8_function(INT8_TILE)}"
        '#include "herk/sm90_int8_kernel.cuh"\n'
        f"{size_check('Int8Arguments', INT8_ARGUMENTS)}"
        f"static_assert(kTile == {INT8_TILE} && kHalf == {INT8_HALF} &&\n"
        f'              kBlockK == {INT8_BLOCK_K} && kStages == {INT8_STAGES}, "");\n'
        + kernel_entry(
            int8_name(dtype, form),
            "Int8Arguments",
            f"herk_int8<{types}>(x_map, y_map, args);",
            INT8_THREADS,
            1,
            maps=("x_map", "y_map"),
        )
    )
