#!/usr/bin/env bash
# compute-sanitizer over small ragged products, Hermitian ones, images, beam power, filter banks,
# spectra, transforms and gates of every
# precision that our kernels compute, exact products, systems and every kind of softmax, on a machine
# with a GPU. The exit status is 0 only where every tool ran and found nothing.
#
#   benchmarks/sanitize/run.sh [memcheck racecheck ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH=$PWD:$PWD/kernels
if (($# == 0)); then
  set -- memcheck racecheck
fi
precisions=$(python3 -c '
from argand import PRECISIONS
print(*(row.name for row in PRECISIONS.values() if not row.exact_operands))')
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
programs=("herk exact" "beam_power exact")
for precision in $precisions; do
  programs+=("gemm $precision" "herk $precision" "image $precision" "beam_power $precision" "dft $precision")
done
for kind in fp32 fp16 bf16 complex64 rounded; do
  programs+=("softmax $kind")
done
for precision in fp64 fp32 $precisions; do
  programs+=("gates $precision" "channelise $precision" "spectrum $precision")
done
for dtype in complex64 complex128; do
  programs+=("exact $dtype" "solve $dtype" "hermitian $dtype" "readout $dtype")
done

# Runs one program under one tool, on the card whose turn it is, and says at once what came of it and how long it took.
watch() {
  local tool=$1 program=$2 log status=0 how=
  local -a cards
  IFS=, read -ra cards <<<"$CARDS"
  export CUDA_VISIBLE_DEVICES=${cards[$(($3 % ${#cards[@]}))]}
  log="$LOGS/$tool $program"
  # racecheck does not see that the lanes of a warp have met when one of them arrives at a barrier for
  # all: in rings of softmax each arrives for itself (docs/kernels/softmax.md).
  if [[ $tool == racecheck && $program =~ softmax\ (fp|bf|complex) ]]; then
    how=--watched
  fi
  # cuda-bindings asks the driver for functions that it may not have: no error of ours.
  # shellcheck disable=SC2086  # a program is a module and its argument
  compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 --report-api-errors no \
    python3 -m benchmarks.sanitize.$program $how >"$log" 2>&1 || status=$?
  # Both have to say so: a tool that never reached the device reports no error either.
  if ((status == 0)) && grep -Eq '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$log"; then
    echo "$tool $program: clean in $SECONDS s"
  else
    echo "$tool $program: NOT clean in $SECONDS s, exit status $status"
    cat "$log"
    return 1
  fi
}
export -f watch
export LOGS=$logs
CARDS=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}
export CARDS

# Most of the time is a tool's own, on the CPU; xargs fails where one of them does.
turn=0
for tool in "$@"; do
  for program in "${programs[@]}"; do
    printf '%s\0%s\0%s\0' "$tool" "$program" "$((turn++))"
  done
done | xargs -0 -n 3 -P "$(nproc)" bash -c 'watch "$@"' watch
