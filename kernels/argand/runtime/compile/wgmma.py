"""The wgmma instructions as device functions, generated for a format and a width."""

from __future__ import annotations

from argand.operand_format import Format

_ROW_WORDS = 4
"""Registers of a thread that hold its part of the rows."""


def wgmma_function(operand: Format, n: int, arrays: int = 1) -> str:
    """Return the device function ``wgmma<sign>(d, rows, columns, keep)`` of a format and width.

    It computes d = keep d + sign rows columns^T asynchronously. d are the fp32
    accumulators, 64 x n over the warpgroup, in ``arrays`` of equal width. Columns are in shared
    memory, given by a descriptor; rows are in registers. The instruction names every register, so
    its text is generated here and is not in a header. The predicate is set at run time, because
    NVRTC 13.0 fails on a literal one.
    """
    registers = n // 2
    shape, kind = f"m64n{n}k{operand.mma_k}", operand.ptx
    d = ", ".join(f"%{i}" for i in range(registers))
    rows = ", ".join(f"%{registers + i}" for i in range(_ROW_WORDS))
    next_operand = registers + _ROW_WORDS
    # Only 16-bit formats can be read transposed.
    transposes = ", 0" if operand.bytes == 2 else ""
    each = registers // arrays
    names = [f"d{array or ''}" for array in range(arrays)]
    parameters = ", ".join(f"float (&{name})[{each}]" for name in names)
    outputs = ", ".join(f'"+f"({name}[{i}])' for name in names for i in range(each))
    inputs = ", ".join(f'"r"(rows[{i}])' for i in range(_ROW_WORDS))
    return (
        "template <int sign>\n"
        f"__device__ __forceinline__ void wgmma({parameters}, "
        f"const uint32 (&rows)[{_ROW_WORDS}],\n"
        "                                      uint64 columns, int keep) {\n"
        '    asm volatile("{\\n.reg .pred p;\\n"\n'
        f'                 "setp.ne.b32 p, %{next_operand + 1}, 0;\\n"\n'
        f'                 "wgmma.mma_async.sync.aligned.{shape}.f32.{kind}.{kind} "\n'
        f'                 "{{{d}}}, {{{rows}}}, %{next_operand}, p, %{next_operand + 2}, 1'
        f'{transposes};\\n}}\\n"\n'
        f"                 : {outputs}\n"
        f'                 : {inputs}, "l"(columns), "r"(keep), "n"(sign));\n'
        "}\n"
    )


def wgmma_pair_function(operand: Format, n: int, *, rows_in_shared: bool = False) -> str:
    """Return ``wgmma_pair<sign>(d, rows, columns, keep, more_rows, more_columns)``.

    It computes d = keep d + rows columns^T + sign more_rows more_columns^T, with arguments as
    `wgmma_function` has them; with ``rows_in_shared`` descriptors give the rows, too. The
    instructions are those of two calls of that function; one statement in place of two halves the
    operands that the compiler carries through its passes.
    """
    registers, words = n // 2, 1 if rows_in_shared else 4
    instruction = f"wgmma.mma_async.sync.aligned.m64n{n}k{operand.mma_k}.f32"
    instruction += f".{operand.ptx}.{operand.ptx}"
    d = ", ".join(f"%{i}" for i in range(registers))
    # Only 16-bit formats can be read transposed.
    transposes = "" if operand.bytes != 2 else ", 0, 0" if rows_in_shared else ", 0"

    def rows(first: int) -> str:
        if rows_in_shared:
            return f"%{first}"
        return "{" + ", ".join(f"%{first + i}" for i in range(words)) + "}"

    second = registers + words + 1
    keep = second + words + 1
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(registers))
    of = "uint64 {0}" if rows_in_shared else "const uint32 (&{0})[4]"
    held = '"l"({0})' if rows_in_shared else ", ".join(f'"r"({{0}}[{i}])' for i in range(4))
    first_rows, more_rows = of.format("rows"), of.format("more_rows")
    return (
        "template <int sign>\n"
        f"__device__ __forceinline__ void wgmma_pair(float (&d)[{registers}], {first_rows},\n"
        f"                                           uint64 columns, int keep, {more_rows},\n"
        "                                           uint64 more_columns) {\n"
        '    asm volatile("{\\n.reg .pred p, q;\\n"\n'
        f'                 "setp.ne.b32 p, %{keep}, 0;\\n"\n'
        f'                 "{instruction} {{{d}}}, {rows(registers)}, %{second - 1}, "\n'
        f'                 "p, 1, 1{transposes};\\n"\n'
        f'                 "setp.ne.b32 q, %{keep + 1}, 0;\\n"\n'
        f'                 "{instruction} {{{d}}}, {rows(second)}, %{keep - 1}, "\n'
        f'                 "q, %{keep + 2}, 1{transposes};\\n}}\\n"\n'
        f"                 : {outputs}\n"
        f'                 : {held.format("rows")}, "l"(columns), {held.format("more_rows")},\n'
        '                   "l"(more_columns), "r"(keep), "r"(1), "n"(sign));\n'
        "}\n"
    )


def wgmma_s8_rows_function(n: int) -> str:
    """Return ``wgmma_s8(sums, rows, columns, keep)``: sums = keep sums + rows columns^T in s32.

    sums are 64 x n over the warpgroup; rows are in registers, columns in shared memory, given by a
    descriptor.
    """
    registers = n // 2
    sums = ", ".join(f"%{i}" for i in range(registers))
    rows = ", ".join(f"%{registers + i}" for i in range(4))
    outputs = ", ".join(f'"+r"(sums[{i}])' for i in range(registers))
    inputs = ", ".join(f'"r"(rows[{i}])' for i in range(4))
    return (
        f"__device__ __forceinline__ void wgmma_s8(int (&sums)[{registers}],\n"
        "                                         const uint32 (&rows)[4], uint64 columns,\n"
        "                                         int keep) {\n"
        '    asm volatile("{\\n.reg .pred p;\\n"\n'
        f'                 "setp.ne.b32 p, %{registers + 5}, 0;\\n"\n'
        f'                 "wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8 "\n'
        f'                 "{{{sums}}}, {{{rows}}}, %{registers + 4}, p;\\n}}\\n"\n'
        f"                 : {outputs}\n"
        f'                 : {inputs}, "l"(columns), "r"(keep));\n'
        "}\n"
    )


def wgmma_s8_function(n: int) -> str:
    """Return the device function ``wgmma_s8(d, rows, columns)``: d += rows columns^T in s32.

    d are the accumulators, 64 x n over the warpgroup; both operands are in shared memory, given by
    descriptors.
    """
    registers = n // 2
    d = ", ".join(f"%{i}" for i in range(registers))
    outputs = ", ".join(f'"+r"(d[{i}])' for i in range(registers))
    return (
        f"__device__ __forceinline__ void wgmma_s8(int (&d)[{registers}], uint64 rows,\n"
        "                                         uint64 columns) {\n"
        '    asm volatile("{\\n.reg .pred p;\\n"\n'
        f'                 "setp.ne.b32 p, %{registers + 2}, 0;\\n"\n'
        f'                 "wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8 "\n'
        f'                 "{{{d}}}, %{registers}, %{registers + 1}, p;\\n}}\\n"\n'
        f"                 : {outputs}\n"
        '                 : "l"(rows), "l"(columns), "r"(1));\n'
        "}\n"
    )
