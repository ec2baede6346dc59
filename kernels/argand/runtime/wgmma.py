"""The wgmma instruction as device functions, generated for a format and a width."""

from __future__ import annotations

from argand.runtime.plan import MMA_DEPTH


def wgmma_function(operand: str, columns: int, arrays: int = 1, *, described: bool = False) -> str:
    """The device function ``wgmma<sign>(sums, rows, columns, keep)`` of one format and width.

    sums (64 x columns over the warpgroup, fp32) = keep sums + sign rows columns^T, asynchronous; in
    so many arrays, each of as many columns. Rows are in registers or, as columns are, ``described``
    in shared memory. The instruction names every register, so its text is written here and not in a
    header. The predicate is set at run time: NVRTC 13.0 fails on a literal one.
    """
    count = columns // 2
    shape = f"m64n{columns}k{MMA_DEPTH[operand]}"
    kind = {"tf32": "tf32", "fp16": "f16", "bf16": "bf16"}[operand]
    sums = ", ".join(f"%{i}" for i in range(count))
    words = 1 if described else 4
    rows = ", ".join(f"%{count + i}" for i in range(words))
    rows = rows if described else f"{{{rows}}}"
    at = count + words
    transposes = "" if operand == "tf32" else ", 0, 0" if described else ", 0"
    each = count // arrays
    names = [f"sums{array or ''}" for array in range(arrays)]
    taken = ", ".join(f"float (&{name})[{each}]" for name in names)
    outputs = ", ".join(f'"+f"({name}[{i}])' for name in names for i in range(each))
    given = "uint64 rows" if described else "const uint32 (&rows)[4]"
    inputs = '"l"(rows)' if described else ", ".join(f'"r"(rows[{i}])' for i in range(4))
    return (
        "template <int sign>\n"
        f"__device__ __forceinline__ void wgmma({taken}, {given},\n"
        "                                      uint64 columns, int keep) {\n"
        '    asm volatile("{\\n.reg .pred p;\\n"\n'
        f'                 "setp.ne.b32 p, %{at + 1}, 0;\\n"\n'
        f'                 "wgmma.mma_async.sync.aligned.{shape}.f32.{kind}.{kind} "\n'
        f'                 "{{{sums}}}, {rows}, %{at}, p, %{at + 2}, 1{transposes};\\n}}\\n"\n'
        f"                 : {outputs}\n"
        f'                 : {inputs}, "l"(columns), "r"(keep), "n"(sign));\n'
        "}\n"
    )
