#!/usr/bin/env bash
# Nsight Compute on our products, on a machine with a GPU and ncu: what docs/data/h200-ncu.txt holds.
# The table of docs/performance-h200.md is made from it (python -m workflow.schemas.generate).
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD:$PWD/kernels
script='
import sys, cupy as cp
from argand import gemm
precision, (m, n, k, batch) = sys.argv[1], map(int, sys.argv[2:6])
rng = cp.random.default_rng(0)
def normal(*shape):
    parts = [rng.standard_normal(shape, dtype=cp.float32) for _ in range(2)]
    return (parts[0] + 1j * parts[1]).astype(cp.complex64)
a, b = normal(batch, m, k), normal(batch, k, n)
for _ in range(3):
    gemm(a, b, precision=precision)
cp.cuda.Device().synchronize()'
stalls=""
for name in math_pipe_throttle short_scoreboard barrier long_scoreboard mio_throttle wait dispatch_stall; do
  stalls+=",smsp__average_warps_issue_stalled_${name}_per_issue_active.ratio"
done
for case in "tf32 4096 4096 4096 1" "3xtf32 4096 4096 4096 1" "fp16 4096 4096 4096 1" "fp16 64 4096 64 256"; do
  echo "=== $case"
  # shellcheck disable=SC2086
  ncu --clock-control none --kernel-name 'regex:gemm|scan|largest' --launch-skip 2 --launch-count 3 \
    --section SpeedOfLight --section WarpStateStats --section LaunchStats \
    --section ComputeWorkloadAnalysis \
    --metrics "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active$stalls" \
    python3 -c "$script" $case
done
