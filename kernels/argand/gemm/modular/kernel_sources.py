"""Arguments and CUDA C++ of the kernels of exact products. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping

from argand.gemm.modular.constants import (
    INT32_MODULI,
    SUM_BIAS,
    decode_source,
    encode_source,
    reduce_source,
)
from argand.gemm.modular.encode_plan import (
    ACROSS_BYTES,
    ACROSS_GROUP,
    EXPONENT_WARPS,
    FEW_THREADS,
    NORM_THREADS,
    WARPS,
    EncodePlan,
    encode_threads,
    norm_lines,
    norm_threads,
)
from argand.gemm.modular.moduli import NORM_BLOCK, QUANTUM_BITS
from argand.gemm.modular.product_plan import BLOCK_K, COLUMN_BLOCK, RASTER_ROWS, ResiduePlan
from argand.gemm.modular.proof_constants import proof_source
from argand.runtime.compile.cpp import constant, listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_s8_function
from argand.runtime.complex_types import ITEM
from argand.runtime.launch.arguments import Fields, size_check

_LINE_CONSTANTS = {"kLineBlock": NORM_BLOCK, "kQuantumBits": QUANTUM_BITS}
_TILE_CONSTANTS = {
    "kBlockK": BLOCK_K, "kRasterRows": RASTER_ROWS, "kColumnBlock": COLUMN_BLOCK,
    "kSumBias": SUM_BIAS,
}  # fmt: skip

DECODE_ROWS = 8
"""Most rows that a warp decodes."""
DECODE_WARPS = 4
"""Warps of a CTA that decodes."""

NORM_ARGUMENTS: Fields = (
    ("const void*", "x"), ("uint64*", "norms"), ("int64", "line_stride"), ("int64", "k_stride"),
    ("int64", "batch_stride"), ("int", "lines"), ("int", "k"), ("int", "k_blocks"),
    ("int", "batches"),
)  # fmt: skip
ENCODE_ARGUMENTS: Fields = (
    ("const void*", "x"), ("signed char*", "planes"), ("int*", "exponents"),
    ("const uint64*", "norms"), ("int64", "limit"), ("int64", "line_stride"),
    ("int64", "k_stride"), ("int64", "batch_stride"),
    *(("int", name) for name in (
        "lines", "stored_lines", "k", "k_blocks", "pitch", "batches", "first_line",
        "exponent_lines", "limit_shift", "conjugate", "known",
    )),
    ("const uint2*", "vector"), ("uint64*", "sums"), ("int64", "vector_batch"),
    ("int64", "sum_batch"),
)  # fmt: skip
EXPONENT_ARGUMENTS: Fields = (
    ("const uint64*", "norms"), ("int*", "exponents"), ("int64", "limit"), ("int", "lines"),
    ("int", "k_blocks"), ("int", "limit_shift"),
)  # fmt: skip
PRODUCT_ARGUMENTS: Fields = (
    ("const signed char*", "a"), ("const signed char*", "b"), ("signed char*", "residues"),
    ("int64", "slice_bytes"), ("int64", "a_plane"), ("int64", "b_plane"),
    ("int", "m"), ("int", "n"), ("int", "num_k_tiles"), ("int", "k_tiles_per_slice"),
    ("int", "split_k_slices"), ("int", "planes"), ("int", "first_plane"),
    ("int", "a_batched"), ("int", "b_batched"),
    ("uint32", "tiles_m"), ("uint32", "tiles_n"), ("uint32", "tiles"),
)  # fmt: skip
SLICE_ARGUMENTS: Fields = (
    ("signed char*", "residues"), ("int64", "slice_bytes"), ("int64", "plane_bytes"),
    ("int", "split_k_slices"), ("int", "planes"),
)  # fmt: skip
DECODE_ARGUMENTS: Fields = (
    ("const signed char*", "residues"), ("const int*", "a_exponents"),
    ("const int*", "b_exponents"), ("const void*", "c"), ("void*", "out"),
    *(("int64", f"{x}_stride_{axis}") for x in ("c", "out") for axis in ("m", "n", "batch")),
    *(("int", name) for name in (
        "m", "n", "batches", "a_lines", "b_lines", "first_column", "scaled", "has_c", "warp_rows",
        "pairs",
    )),
    *(("double", name) for name in ("alpha_re", "alpha_im", "beta_re", "beta_im")),
    ("const uint4*", "proof_fragments"), ("const int2*", "proof_scaled_x"),
    ("uint64*", "proof_sums"),
)  # fmt: skip
NORM_KERNELS = {True: "norms_along_k", False: "norms_across_lines"}
ENCODE_KERNEL, PRODUCT_KERNEL, DECODE_KERNEL = "encode", "residue_product", "decode"
_ENCODE_HEADERS = {"whole lines": "encode_whole", "clustered lines": "encode_cluster"}
SLICE_KERNEL, EXPONENT_KERNEL = "add_slices", "line_exponents"
_PLAN = ("warpgroup_rows", "block_m", "block_n", "stages", "resident_tiles", "stack_tiles")
"""Members of a plan in the order of its structure in CUDA C++."""


def real_type(dtype: str) -> str:
    """Return the C++ type of a complex type's parts."""
    return {"complex64": "float", "complex128": "double"}[dtype]


def is_narrow(dtype: str, count: int) -> bool:
    """Return whether the integers of a complex type by ``count`` moduli fit 32 bits."""
    return count <= INT32_MODULI and dtype == "complex64"


def constants_check(values: Mapping[str, int]) -> str:
    """Return C++ that compiles only where the kernels' constants are those of launches."""
    return "".join(f"static_assert({name} == {value});\n" for name, value in values.items())


def norm_source(dtype: str, *, along_k: bool) -> str:
    """Return CUDA C++ of the kernels that find the exponents of an operand of a complex type."""
    name, real = NORM_KERNELS[along_k], real_type(dtype)
    threads = norm_threads(along_k=along_k)
    return (
        '#include "gemm/modular/norms.cuh"\n'
        f"{size_check('NormArguments', NORM_ARGUMENTS)}"
        + constants_check(
            _LINE_CONSTANTS
            | {
                "kNormThreads": NORM_THREADS,
                f"kNormLines<{real}>": norm_lines(ITEM[dtype]),
            }
        )
        + kernel_entry(f"modular_{name}", "NormArguments", f"{name}<{real}>(args);", threads, 1)
    )


def exponent_source() -> str:
    """Return the CUDA C++ of the kernel that finds the exponents of lines of many blocks."""
    threads = 32 * EXPONENT_WARPS
    return (
        '#include "gemm/modular/norms.cuh"\n'
        + size_check("ExponentArguments", EXPONENT_ARGUMENTS)
        + constants_check({"kExponentWarps": EXPONENT_WARPS})
        + kernel_entry(
            f"modular_{EXPONENT_KERNEL}", "ExponentArguments", "line_exponents(args);", threads, 1
        )
    )


def encode_kernel_source(
    dtype: str, count: int, plan: EncodePlan, *, permuted: bool, proved: bool = False
) -> str:
    """Return the CUDA C++ of the kernel that stores the residues of an operand.

    ``permuted`` says that lines are stored in B's order, which depends on the type. ``proved`` adds
    B' x of a proof, where lines are transposed, or subtracts A'(B' x).
    """
    source, narrow, reading = real_type(dtype), is_narrow(dtype, count), plan.reading
    scaled = "float" if narrow else "double"
    most = encode_threads(dtype, reading, wide=not narrow, proved=proved)
    resident = plan.resident or most // plan.threads
    # After Hopper the same 64-bit integers would spill, and across lines on Ampere too.
    hold = "__CUDA_ARCH__ == 900" if reading == "across lines" else "__CUDA_ARCH__ < 1000"
    wide = f"{hold} ? {resident} : {min(resident, FEW_THREADS // plan.threads)}"
    function = f"encode_{reading.replace(' ', '_')}"
    held = {
        "whole lines": f", {plan.buffers}",
        "clustered lines": f", {plan.cluster[0]}, {plan.cluster[1]}",
    }
    types = f"{listed(scaled, source, permuted, proved)}{held.get(reading, '')}"
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        f"{encode_source(count, 4 if narrow else 8)}"
        f'#include "gemm/modular/{_ENCODE_HEADERS.get(reading, "encode")}.cuh"\n'
        f"{size_check('EncodeArguments', ENCODE_ARGUMENTS)}"
        + constants_check(
            _LINE_CONSTANTS
            | {
                "kColumnBlock": COLUMN_BLOCK,
                "kAcrossWarps": WARPS,
                "kAcrossBytes": ACROSS_BYTES,
                "kAcrossGroup": ACROSS_GROUP,
            }
        )
        + kernel_entry(
            f"modular_{ENCODE_KERNEL}",
            "EncodeArguments",
            f"{function}<{types}>(args);",
            plan.threads,
            # Without it the addresses of all planes would be kept in registers.
            resident if narrow else wide,
            cluster=plan.cluster[0] if reading == "clustered lines" else 1,
        )
    )


def product_source(plan: ResiduePlan, *, adds: bool = False) -> str:
    """Return the CUDA C++ of the kernel that multiplies residues, and ``adds`` them to others."""
    wgmma = plan.family == "wgmma"
    header = "sm90_kernel" if wgmma else "sm80_kernel"
    if plan.resident_tiles:
        header = "sm90_resident_kernel"
    maps = ("a_map", "b_map") if wgmma else ()
    kernel = "residue_product_wgmma" if wgmma else "residue_product_mma"
    kernel = "residue_product_resident" if plan.resident_tiles else kernel
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        + reduce_source()
        + ('#include "device/warpgroup.cuh"\n' + wgmma_s8_function(plan.block_n) if wgmma else "")
        + f'#include "gemm/modular/{header}.cuh"\n'
        + size_check("ResidueArguments", PRODUCT_ARGUMENTS)
        + constants_check(_TILE_CONSTANTS)
        + constant("ResiduePlan", {name: getattr(plan, name) for name in _PLAN} | {"adds": adds})
        + kernel_entry(
            f"modular_{PRODUCT_KERNEL}",
            "ResidueArguments",
            f"{kernel}<kPlan>({', '.join((*maps, 'args'))});",
            plan.threads,
            1,
            maps=maps,
        )
    )


def slice_source() -> str:
    """Return the CUDA C++ of the kernel that adds the residues of split-K slices."""
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        + reduce_source()
        + '#include "gemm/modular/slices.cuh"\n'
        + size_check("SliceArguments", SLICE_ARGUMENTS)
        + constants_check(_TILE_CONSTANTS)
        + kernel_entry(
            f"modular_{SLICE_KERNEL}", "SliceArguments", "add_slices(args);", 32 * WARPS, 1
        )
    )


def decode_kernel_source(dtype: str, count: int, *, proved: bool = False) -> str:
    """Return the CUDA C++ of the kernel that makes results of a complex type from residues.

    ``proved`` adds C' x of a proof.
    """
    # More warps hide the latency of loads. A proof takes registers, of many moduli for two CTAs.
    # After Hopper, where the same numbers would spill, the assembler decides.
    narrow = is_narrow(dtype, count)
    resident = 5 if not proved else 3 if not narrow else 5 if count > 4 else 4
    # Before Hopper three would spill in the results of complex64.
    before = 2 if proved and dtype == "complex64" and not narrow else resident
    real, proof = real_type(dtype), "RowProof" if proved else "NoProof"
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        f"{decode_source(count, 3 if dtype == 'complex64' else 4)}"
        + (proof_source(count) if proved else "")
        + f'#include "gemm/modular/{"decode_proof" if proved else "decode"}.cuh"\n'
        + size_check("DecodeArguments", DECODE_ARGUMENTS)
        + constants_check({"kColumnBlock": COLUMN_BLOCK})
        + kernel_entry(
            f"modular_{DECODE_KERNEL}",
            "DecodeArguments",
            f"decode<{real}, {proof}<{real}>>(args);",
            32 * DECODE_WARPS,
            f"__CUDA_ARCH__ < 900 ? {before} : __CUDA_ARCH__ < 1000 ? {resident} : 1",
        )
    )


def decode_bytes(count: int, *, proved: bool = False) -> int:
    """Return the shared memory of a CTA that decodes: two rows per warp, padded for a proof."""
    return DECODE_WARPS * 2 * 2 * count * (COLUMN_BLOCK + 16 * proved)
