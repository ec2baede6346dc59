"""One product for a profiler: ``python -m benchmarks.profiled_gemm tf32 4096x4096x4096``.

Two calls warm up; the third runs between cudaProfilerStart and cudaProfilerStop, so that a profiler
that waits for them sees every kernel of one whole call and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from argand import PRECISIONS, gemm

from benchmarks.operands import random_operands
from benchmarks.shapes import Shape


def main(argv: Sequence[str] | None = None) -> int:
    """Multiply three times, the last one in view."""
    import cupy
    from cupyx.profiler import profile

    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=PRECISIONS)
    found.add_argument("shape", type=Shape.parse)
    arguments = found.parse_args(argv)
    a, b = (cupy.asarray(x) for x in random_operands(arguments.shape, seed=1))
    for _ in range(2):
        gemm(a, b, precision=arguments.precision)
    cupy.cuda.get_current_stream().synchronize()
    with profile():
        gemm(a, b, precision=arguments.precision)
        cupy.cuda.get_current_stream().synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
