"""One product for a profiler: ``python -m benchmarks.gemm.profiled tf32 4096x4096x4096``.

Without arguments it prints the products that `benchmarks/gemm/profile.sh` profiles. Two calls warm
up; the third runs between cudaProfilerStart and cudaProfilerStop, so that a profiler that waits for
them sees every kernel of one whole call and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from argand import PRECISIONS, gemm

from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.shapes import Shape

_SQUARE = Shape(4096, 4096, 4096)
CASES = (
    *((precision, _SQUARE) for precision in ("tf32", "3xtf32", "3xfp16", "fp16")),
    ("3xtf32", Shape(3456, 4096, 4096)),
    ("3xfp16", Shape(8192, 8192, 8192)),
    ("tf32", Shape(256, 4096, 256, batch=256)),
    ("tf32", Shape(1024, 1024, 1024, batch=256)),
)
"""The rows of docs/tables/products-profile.md: products whose limits the counters show."""


def main(argv: Sequence[str]) -> int:
    """Multiply three times, the last one in view; or print the cases."""
    if not argv:
        print(*(f"{precision} {shape}" for precision, shape in CASES), sep="\n")
        return 0
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=PRECISIONS)
    found.add_argument("shape", type=Shape.parse)
    arguments = found.parse_args(argv)
    import cupy
    from cupyx.profiler import profile

    a, b = (cupy.asarray(x) for x in random_operands(arguments.shape, seed=1))
    for _ in range(2):
        gemm(a, b, precision=arguments.precision)
    cupy.cuda.get_current_stream().synchronize()
    with profile():
        gemm(a, b, precision=arguments.precision)
        cupy.cuda.get_current_stream().synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
