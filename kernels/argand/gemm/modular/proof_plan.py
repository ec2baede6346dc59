"""Arguments and sources of the kernels that prove exact products, beside the one that decodes.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.gemm.modular.encode_plan import WARPS
from argand.gemm.modular.kernel_sources import constants_check, is_narrow, real_type
from argand.gemm.modular.product_plan import COLUMN_BLOCK
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check

BEGIN_PROOF, END_PROOF, REDUCE_IMAGE = "begin_proof", "end_proof", "reduce_image"
IMAGE_KERNEL = "add_image"
LANES_TERMS, LANES_SUMS = 1024, 2
"""Terms and sums of a warp whose lanes hold terms of the same sums."""
OWN_TERMS, OWN_SUMS = 256, 32
"""Terms and sums of a warp whose lanes have a sum each."""
RESULT_BYTES = 16
"""`ProofResult`: two 32-bit numbers, and from byte 8 on the key."""

BEGIN_PROOF_ARGUMENTS: Fields = (
    ("const void*", "result"), ("uint2*", "x"), ("int2*", "scaled_x"), ("uint32*", "fragments"),
    ("uint64*", "image"), ("uint64*", "sums"), ("int64", "image_words"), ("int64", "sum_words"),
    ("int", "columns"), ("int", "scale"),
)  # fmt: skip
IMAGE_ARGUMENTS: Fields = (
    ("const void*", "x"), ("const int*", "exponents"), ("const uint2*", "column"),
    ("const uint64*", "vector"), ("uint64*", "sums"),
    *(("int64", name) for name in (
        "line_stride", "k_stride", "batch_stride", "exponent_batch", "vector_batch", "sum_batch",
    )),
    *(("int", name) for name in ("lines", "k", "batches", "conjugate")),
)  # fmt: skip
REDUCE_IMAGE_ARGUMENTS: Fields = (
    ("const uint64*", "image"), ("uint32*", "vector"), ("int64", "words"), ("int64", "k"),
    ("int64", "vector_pitch"),
)  # fmt: skip
END_PROOF_ARGUMENTS: Fields = (("const uint64*", "sums"), ("void*", "result"), ("int64", "rows"))


def image_warps(outs: int, terms: int, *, lanes_sum: bool) -> int:
    """Return the warps of a matrix times a vector: ``outs`` sums of ``terms`` terms each."""
    sums, each = (LANES_SUMS, LANES_TERMS) if lanes_sum else (OWN_SUMS, OWN_TERMS)
    return -(-outs // sums) * -(-terms // each)


def begin_proof_source(dtype: str) -> str:
    """Return the CUDA C++ of the kernel that makes a proof's random numbers, for a result type."""
    return _source(
        BEGIN_PROOF, BEGIN_PROOF_ARGUMENTS, "BeginProofArguments",
        f"begin_proof<{real_type(dtype)}>(args)",
    )  # fmt: skip


def image_source(dtype: str, count: int, *, lines_summed: bool, lanes_sum: bool) -> str:
    """Return the CUDA C++ of the kernel that multiplies an operand's integers by a vector.

    ``lines_summed`` is B' x, where an operand's lines are terms; lanes read terms of a sum
    (``lanes_sum``), or each one of its own sum.
    """
    scaled = "float" if is_narrow(dtype, count) else "double"
    types = listed(scaled, real_type(dtype), lines_summed, lanes_sum)
    checks = constants_check({
        "kImageTerms<true>": LANES_TERMS, "kImageTerms<false>": OWN_TERMS,
        "kImageSums<true>": LANES_SUMS, "kImageSums<false>": OWN_SUMS,
    })  # fmt: skip
    return _source(
        IMAGE_KERNEL, IMAGE_ARGUMENTS, "ImageArguments",
        f"add_image<{types}>(args)", checks,
    )  # fmt: skip


def reduce_image_source() -> str:
    """Return the CUDA C++ of the kernel that reduces B' x modulo the prime."""
    return _source(
        REDUCE_IMAGE, REDUCE_IMAGE_ARGUMENTS, "ReduceImageArguments", "reduce_image(args)"
    )


def end_proof_source() -> str:
    """Return the CUDA C++ of the kernel that counts the rows that are wrong."""
    return _source(END_PROOF, END_PROOF_ARGUMENTS, "EndProofArguments", "end_proof(args)")


def _source(name: str, fields: Fields, arguments: str, call: str, checks: str = "") -> str:
    return (
        f'#include "gemm/modular/proof_image.cuh"\n{size_check(arguments, fields)}'
        + constants_check({"sizeof(ProofResult)": RESULT_BYTES, "kColumnBlock": COLUMN_BLOCK})
        + checks
        + kernel_entry(f"modular_{name}", arguments, f"{call};", 32 * WARPS, 1)
    )
