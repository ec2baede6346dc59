"""The kernel that multiplies a library's transforms by the factor of their norm. Needs no GPU."""

from __future__ import annotations

from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

SCALE_KERNEL = "dft_scale"
SCALE_THREADS = 256
SCALED_BY_BLOCK = 4 * SCALE_THREADS
"""Elements; kScaledByThread of dft/scale.cuh."""
SCALE_ARGUMENTS = (("void*", "x"), ("int64", "count"), ("double", "factor"))
"""ScaleArguments of dft/scale.cuh."""


def scale_source(output: str) -> str:
    """Return the CUDA C++ of the kernel for results of a type, complex64 or complex128."""
    real = "double" if output == "complex128" else "float"
    return (
        '#include "dft/scale.cuh"\n'
        f"using Arguments = ScaleArguments<{real}2>;\n"
        f"{size_check('Arguments', SCALE_ARGUMENTS)}"
        + kernel_entry(SCALE_KERNEL, "Arguments", f"scale<{real}>(args);", SCALE_THREADS)
    )
