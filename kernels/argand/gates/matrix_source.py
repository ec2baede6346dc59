"""The kernel that prepares a gate's matrix on the GPU: its arguments, CUDA C++ and values.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand.gates.operands import column_positions, exchanged_rows
from argand.gates.plan import GatePlan
from argand.gates.source import tensor_core_gate
from argand.gates.truncation import k_tile_bits, truncation_bias
from argand.runtime.compile.cpp import operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check

MATRIX_ARGUMENTS: Fields = (
    ("const void*", "source"), ("void*", "operand"), ("int*", "exponent"),
    ("int64", "row_stride"), ("int64", "column_stride"), ("double", "own"), ("double", "later"),
    ("uint32", "width"), ("uint32", "positions"), ("uint32", "stored"), ("uint32", "tile_bit"),
    ("uint32", "tile_bits"), ("uint32", "exchanged_rows"), ("int", "transposed"),
)  # fmt: skip
"""Members of ``MatrixArguments`` in ``cuda/gates/matrix_kernel.cuh``."""
MATRIX_THREADS = 512
_NUMBERS = {"complex64": "float2", "complex128": "double2"}
SOURCES = tuple(_NUMBERS)
"""Types of a matrix that the kernel reads."""


def matrix_kernel_name(plan: GatePlan, source: str) -> str:
    """Return the symbol of the kernel that reads matrices of a type."""
    row = plan.precision
    scaled = row.operand.name if row.scaled else "unscaled"
    form = f"packed_{row.symbol}" if plan.packs_terms else scaled
    if plan.reads_fragments:
        where = "inside" if plan.targets_qubit0 else "outside"
        form = f"fragments_{row.symbol}_{plan.width}_{where}"
    return f"gate_matrix_{form}_{source}_to_{row.output}"


def matrix_source(plan: GatePlan) -> str:
    """Return CUDA C++ of the kernels that prepare matrices of each type for a plan."""
    row = plan.precision
    exponent = f"scale_exponent<Operand::{row.operand.name}>(absmax)" if row.scaled else "0"
    packed = f"PackedTerms<{operand_arguments(row)}>"
    include, terms = "", packed if plan.packs_terms else "UnsplitNumbers"
    if plan.reads_fragments:
        header, gate = tensor_core_gate(plan)
        include, terms = f'#include "gates/{header}_kernel.cuh"\n', f"FragmentTerms<{gate}>"
    kernels = "".join(
        kernel_entry(
            matrix_kernel_name(plan, kind),
            "MatrixArguments",
            f"prepare_matrix<{number}, {_NUMBERS[row.output]}, Exponent, {terms}>(args);",
            MATRIX_THREADS,
        )
        for kind, number in _NUMBERS.items()
    )
    return (
        f'{include}#include "gates/matrix_kernel.cuh"\n'
        f"{size_check('MatrixArguments', MATRIX_ARGUMENTS)}"
        "struct Exponent {\n"
        f"    static __device__ __forceinline__ int of(uint32 absmax) {{ return {exponent}; }}\n"
        "};\n"
        f"{kernels}"
    )


def matrix_values(
    plan: GatePlan, targets: Sequence[int], strides: tuple[int, int]
) -> dict[str, Any]:
    """Return a value for each member, with addresses of 0.

    ``targets`` are those of the call, whose bits the kernel sorts; ``strides`` are the rows' and
    the columns', in numbers.
    """
    positions, stored = (
        sum(int(position) << 4 * bit for bit, position in enumerate(found))
        for found in (np.argsort(targets), column_positions(plan))
    )
    bias = truncation_bias(plan)
    first, count = k_tile_bits(plan) if plan.on_tensor_cores else (0, 0)
    return {
        "source": 0, "operand": 0, "exponent": 0,
        "row_stride": strides[0], "column_stride": strides[1],
        "own": bias.own, "later": bias.later, "width": plan.width,
        "positions": positions, "stored": stored, "tile_bit": first, "tile_bits": count,
        "exchanged_rows": exchanged_rows(plan), "transposed": not plan.on_tensor_cores,
    }  # fmt: skip
