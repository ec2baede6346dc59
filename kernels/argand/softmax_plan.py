"""How a softmax runs on a GPU: the plan, the choice, the source. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.precision import Precision

_WARP = 32
_SMALL_BLOCK = 128
"""Threads of a block whose warps have a row each."""
_LARGEST_BLOCK = {4: 1024, 8: 512}
"""By bytes of a value: fp64's exponential needs more than the 64 registers of 1024 threads."""
_REGISTER_BYTES = {1: 128, 2: 64}
"""Of a row, a thread, by terms: 32 floats of one term fit in the 64 registers of 1024 threads."""
_ACCESS_BYTES = 16


@dataclass(frozen=True)
class SoftmaxPlan:
    """Threads for a row, values a thread holds, values an access, and whether that is a row."""

    row_threads: int
    block_threads: int
    values: int
    vector: int
    resident: bool

    @property
    def rows_a_block(self) -> int:
        """Rows that a block works on at a time."""
        return self.block_threads // self.row_threads


def plan_softmax(columns: int, precision: Precision, *, aligned: bool) -> SoftmaxPlan:
    """The plan for rows of this length.

    Args:
        columns: values of a row.
        precision: whose output type decides the bytes of a value, and whose terms take registers.
        aligned: whether every row begins at a multiple of 16 bytes and is whole such words.
    """
    item_bytes = 8 if precision.real_output == "float64" else 4
    vector = _ACCESS_BYTES // item_bytes if aligned else 1
    most = _REGISTER_BYTES[precision.terms] // item_bytes
    threads = _WARP
    # Sixteen bytes times four a thread keep enough loads in flight; more threads than that idle.
    while threads < _LARGEST_BLOCK[item_bytes] and threads * (most // 2) < columns:
        threads *= 2
    values = max(vector, most // 8)
    while values < most and threads * values < columns:
        values *= 2
    resident = threads * values >= columns
    if not resident:
        values = most // 2
    block = max(threads, _SMALL_BLOCK) if threads == _WARP else threads
    return SoftmaxPlan(threads, block, values, vector, resident)


def kernel_name(precision: Precision, log: bool, plan: SoftmaxPlan) -> str:
    """The kernel's symbol."""
    kind = "log_softmax" if log else "softmax"
    how = "resident" if plan.resident else "streamed"
    return f"{kind}_{precision.symbol}_{how}_{plan.row_threads}x{plan.values}_{plan.vector}"


def softmax_source(precision: Precision, log: bool, plan: SoftmaxPlan) -> str:
    """The CUDA C++ of one kernel of the family."""
    held = "exact" if precision.exact_operands else precision.operand.name
    real = "double" if precision.real_output == "float64" else "float"
    roundings = ", ".join(
        f"Rounding::{(*precision.roundings, precision.roundings[0])[i]}" for i in range(2)
    )
    fields = {
        "held": f"Held::{held}",
        "terms": precision.terms,
        "roundings": f"{{{roundings}}}",
        "log": str(log).lower(),
        "row_threads": plan.row_threads,
        "block_threads": plan.block_threads,
        "values": plan.values,
        "vector": plan.vector,
        "resident": str(plan.resident).lower(),
    }
    members = ", ".join(f".{name} = {value}" for name, value in fields.items())
    return (
        '#include "softmax.cuh"\n'
        f"constexpr SoftmaxPlan kPlan{{{members}}};\n"
        f'extern "C" __global__ void __launch_bounds__({plan.block_threads}, 1)\n'
        f"{kernel_name(precision, log, plan)}(const {real}* x, {real}* out, int64 rows,\n"
        "    int64 columns, int64 x_stride, int64 out_stride) {\n"
        "    softmax_rows<kPlan>(x, out, rows, columns, x_stride, out_stride);\n"
        "}\n"
    )
