"""Plans of the kernels that multiply residues, and the sources of all kernels of exact products.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from argand.device import Arch
from argand.gemm.families import Family
from argand.gemm.modular.constants import (
    INT32_MODULI,
    SUM_BIAS,
    decode_source,
    encode_source,
    reduce_source,
)
from argand.gemm.modular.moduli import NORM_BLOCK, QUANTUM_BITS
from argand.gemm.modular.proof_constants import proof_source
from argand.runtime.arguments import Fields, size_check
from argand.runtime.plan import TARGET, PlanError
from argand.runtime.wgmma import wgmma_s8_function

TILE_K = 128
"""k of a stage, which is also the bytes of a row."""
COLUMN_BLOCK = 128
"""n of residues is a multiple of this."""
DECODE_ROWS = 8
"""Most rows that a warp decodes."""
ENCODE_THREADS = 768
"""Threads of a multiprocessor that encode."""
WARPS = 8
"""Warps of a CTA of the kernels that find norms and encode."""
EXPONENT_WARPS = 32
"""Warps of a CTA that finds the exponents of 32 lines."""
DECODE_WARPS = 4
"""Warps of a CTA that decodes."""
ACROSS_BYTES = 128
"""Bytes of lines that a CTA reads which encodes across lines."""
ACROSS_GROUP = 8
"""Neighbouring CTAs across lines that are launched one after another."""
_NORM_THREADS = 512
"""Threads of a CTA that finds norms across lines."""
_LINE_CONSTANTS = {"kLineBlock": NORM_BLOCK, "kQuantumBits": QUANTUM_BITS}
_TILE_CONSTANTS = {"kTileK": TILE_K, "kColumnBlock": COLUMN_BLOCK, "kSumBias": SUM_BIAS}
Reading = Literal["whole lines", "along k", "across lines"]
"""How an operand is encoded: lines held in shared memory, by blocks along k, or transposed."""
_ALIGNMENT = 1024


@dataclass(frozen=True)
class ResiduePlan:
    """One kernel that multiplies residues: a tile, and how many stages are in shared memory.

    ``warpgroup_rows`` are those of a consumer warpgroup of wgmma, 0 for mma.sync.
    """

    block_m: int
    block_n: int
    stages: int
    warpgroup_rows: int = 0

    @property
    def family(self) -> Family:
        """The family of kernels."""
        return "wgmma" if self.warpgroup_rows else "mma.sync"

    @property
    def threads(self) -> int:
        """Threads of a block: two consumer warpgroups and a producer, or warps of 32 x 64."""
        return 384 if self.warpgroup_rows else self.block_m * self.block_n // 64

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory of a block."""
        stages = self.stages * (self.block_m + self.block_n) * TILE_K
        return stages + (16 * self.stages + _ALIGNMENT if self.warpgroup_rows else 0)

    def name(self) -> str:
        """Return the plan in words, for a record's algorithm column."""
        return f"{self.family} {self.block_m}x{self.block_n}x{TILE_K} {self.stages} stages"


WGMMA_PLANS = (
    ResiduePlan(128, 256, 4, 64),
    ResiduePlan(256, 192, 4, 128),
    ResiduePlan(128, 128, 6, 64),
)
"""The plans for Hopper: a tile of 256 x 192 reads least from L2, small ones fill a card."""
MMA_PLANS = (ResiduePlan(128, 128, 3), ResiduePlan(64, 64, 4))


def plans_of(arch: Arch, family: Family | None = None) -> tuple[ResiduePlan, ...]:
    """Return the plans of an architecture, of one family or of the fastest that it has.

    Raises PlanError where it has none.
    """
    if family is None:
        family = "wgmma" if arch.target == TARGET else "mma.sync"
    found = [
        plan
        for plan in (*WGMMA_PLANS, *MMA_PLANS)
        if plan.family == family and plan.shared_bytes <= arch.shared_bytes
        and (family != "wgmma" or arch.target == TARGET)
    ]  # fmt: skip
    if not found:
        raise PlanError(f"{arch.name} has no kernels of {family} for exact products, but mma.sync")
    return tuple(found)


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
)  # fmt: skip
EXPONENT_ARGUMENTS: Fields = (
    ("const uint64*", "norms"), ("int*", "exponents"), ("int64", "limit"), ("int", "lines"),
    ("int", "k_blocks"), ("int", "limit_shift"),
)  # fmt: skip
PRODUCT_ARGUMENTS: Fields = (
    ("const signed char*", "a"), ("const signed char*", "b"), ("signed char*", "residues"),
    ("int64", "slice_bytes"), ("int64", "a_plane"), ("int64", "b_plane"),
    ("int", "m"), ("int", "n"), ("int", "k_tiles"),
    ("int", "slice_tiles"), ("int", "slices"), ("int", "planes"), ("int", "a_batched"),
    ("int", "b_batched"), ("uint32", "tiles_m"), ("uint32", "tiles_n"), ("uint32", "tiles"),
)  # fmt: skip
SLICE_ARGUMENTS: Fields = (
    ("signed char*", "residues"), ("int64", "slice_bytes"), ("int64", "plane_bytes"),
    ("int", "slices"), ("int", "planes"),
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
    ("const uint32*", "proof_fragments"), ("const uint32*", "proof_scaled_x"),
    ("uint64*", "proof_sums"),
)  # fmt: skip
NORM_KERNELS = {True: "norms_along_k", False: "norms_across_lines"}
ENCODE_KERNEL, PRODUCT_KERNEL, DECODE_KERNEL = "encode", "residue_product", "decode"
SLICE_KERNEL, EXPONENT_KERNEL = "add_slices", "line_exponents"


ITEM = {"complex64": 8, "complex128": 16}
"""Bytes of a number."""


def decode_bytes(count: int, *, proved: bool = False) -> int:
    """Shared memory of a CTA that decodes: two rows of residues a warp, padded for a proof."""
    return DECODE_WARPS * 2 * 2 * count * (COLUMN_BLOCK + 16 * proved)


def real_type(dtype: str) -> str:
    """The C++ type of a complex type's parts."""
    return {"complex64": "float", "complex128": "double"}[dtype]


def constants_check(values: Mapping[str, int]) -> str:
    """C++ that does not compile where constants of the kernels are not what launches take."""
    return "".join(f"static_assert({name} == {value});\n" for name, value in values.items())


def norm_lines(item: int) -> int:
    """Lines of a CTA that finds norms across lines, of numbers of ``item`` bytes: `kNormLines`."""
    return 256 // item


def norm_threads(*, along_k: bool) -> int:
    """Threads of a CTA that finds norms."""
    return 32 * WARPS if along_k else _NORM_THREADS


def whole_line_bytes(item: int, k_blocks: int, buffers: int) -> int:
    """Shared memory of a CTA that holds lines of so many blocks, and the norms of a line's."""
    return k_blocks * (buffers * NORM_BLOCK * item + 8)


def norm_source(dtype: str, *, along_k: bool) -> str:
    """CUDA C++ of the kernels that find the exponents of an operand of a complex type."""
    name, real = NORM_KERNELS[along_k], real_type(dtype)
    threads = norm_threads(along_k=along_k)
    return (
        '#include "gemm/modular/norms.cuh"\n'
        f"{size_check('NormArguments', NORM_ARGUMENTS)}"
        + constants_check(
            _LINE_CONSTANTS
            | {
                "kNormThreads": _NORM_THREADS,
                f"kNormLines<{real}>": norm_lines(ITEM[dtype]),
            }
        )
        + kernel_source(f"modular_{name}", threads, "NormArguments", f"{name}<{real}>(args)")
    )


def exponent_source() -> str:
    """CUDA C++ of the kernel that finds the exponents of lines of many blocks."""
    threads = 32 * EXPONENT_WARPS
    return (
        '#include "gemm/modular/norms.cuh"\n'
        + size_check("ExponentArguments", EXPONENT_ARGUMENTS)
        + constants_check({"kExponentWarps": EXPONENT_WARPS})
        + kernel_source(
            f"modular_{EXPONENT_KERNEL}", threads, "ExponentArguments", "line_exponents(args)"
        )
    )


def encode_kernel_source(
    dtype: str,
    count: int,
    reading: Reading,
    *,
    permuted: bool,
    buffers: int = 2,
    threads: int = 256,
) -> str:
    """CUDA C++ of the kernel that stores the residues of an operand.

    ``permuted`` says that lines are stored in B's order, which depends on the type. A CTA of whole
    lines holds so many at a time, and has so many threads.
    """
    source, narrow = real_type(dtype), count <= INT32_MODULI and dtype == "complex64"
    scaled = "float" if narrow else "double"
    function = f"encode_{reading.replace(' ', '_')}"
    held = f", {buffers}" if reading == "whole lines" else ""
    call = f"{function}<{scaled}, {source}, {str(permuted).lower()}, {source}{held}>(args)"
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        f"{encode_source(count, 4 if narrow else 8)}"
        '#include "gemm/modular/encode.cuh"\n'
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
        + kernel_source(
            f"modular_{ENCODE_KERNEL}",
            threads,
            "EncodeArguments",
            call,
            # Without it the addresses of all planes would be kept in registers.
            resident=ENCODE_THREADS // threads,
        )
    )


def product_source(plan: ResiduePlan) -> str:
    """CUDA C++ of the kernel that multiplies residues."""
    wgmma = plan.family == "wgmma"
    header = "sm90_kernel" if wgmma else "sm80_kernel"
    maps = "const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, "
    call = "residue_product_wgmma<kPlan>(a_map, b_map, args)"
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        + reduce_source()
        + ('#include "device/warpgroup.cuh"\n' + wgmma_s8_function(plan.block_n) if wgmma else "")
        + f'#include "gemm/modular/{header}.cuh"\n'
        + size_check("ResidueArguments", PRODUCT_ARGUMENTS)
        + constants_check(_TILE_CONSTANTS)
        + f"constexpr ResiduePlan kPlan{{{plan.warpgroup_rows}, {plan.block_m}, {plan.block_n}, "
        f"{plan.stages}}};\n"
        + kernel_source(
            f"modular_{PRODUCT_KERNEL}",
            plan.threads,
            "ResidueArguments",
            call if wgmma else "residue_product_mma<kPlan>(args)",
            maps if wgmma else "",
        )
    )


def slice_source() -> str:
    """CUDA C++ of the kernel that adds the residues of split-K slices."""
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        + reduce_source()
        + '#include "gemm/modular/slices.cuh"\n'
        + size_check("SliceArguments", SLICE_ARGUMENTS)
        + constants_check(_TILE_CONSTANTS)
        + kernel_source(f"modular_{SLICE_KERNEL}", 32 * WARPS, "SliceArguments", "add_slices(args)")
    )


def decode_kernel_source(dtype: str, count: int, *, proved: bool = False) -> str:
    """CUDA C++ of the kernel that makes results of a complex type from residues.

    ``proved`` adds C' x of a proof.
    """
    # Few moduli leave registers for more warps, which hide the latency of loads. A proof takes
    # some of them. After Hopper, where the same numbers would spill, the assembler decides.
    resident = (5 if dtype == "complex64" and count <= INT32_MODULI else 4) - proved
    real, proof = real_type(dtype), "RowProof" if proved else "NoProof"
    return (
        '#include "gemm/modular/moduli.cuh"\n'
        f"{decode_source(count, 3 if dtype == 'complex64' else 4)}"
        + (proof_source(count) if proved else "")
        + f'#include "gemm/modular/{"decode_proof" if proved else "decode"}.cuh"\n'
        + size_check("DecodeArguments", DECODE_ARGUMENTS)
        + constants_check({"kColumnBlock": COLUMN_BLOCK})
        + kernel_source(
            f"modular_{DECODE_KERNEL}",
            32 * DECODE_WARPS,
            "DecodeArguments",
            f"decode<{real}, {proof}<{real}>>(args)",
            resident=f"__CUDA_ARCH__ < 1000 ? {resident} : 1",
        )
    )


def kernel_source(
    name: str, threads: int, arguments: str, call: str, maps: str = "", resident: int | str = 1
) -> str:
    """CUDA C++ of a kernel that makes one call; ``resident`` CTAs fit a multiprocessor."""
    return (
        f'extern "C" __global__ void __launch_bounds__({threads}, {resident})\n'
        f"{name}({maps}const __grid_constant__ {arguments} args) {{\n    {call};\n}}\n"
    )
