#!/usr/bin/env bash
# Nsight Compute on our products, on a machine with a GPU and ncu: one line for every kernel of a
# whole call, those that pack or find the row absmax beside the one that multiplies.
# docs/data/h200-ncu.txt is its output:
#
#   benchmarks/gemm/profile.sh docs/data/h200-ncu.txt ["tf32 256x64x4096x64" ...]
#
# Without cases, those of benchmarks/gemm/profiled.py. The clock is left to the card, as it is in
# the benchmarks.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH=$PWD:$PWD/kernels
target=${1:?usage: profile_gemm.sh OUTPUT [CASE ...]}
shift
if (($# == 0)); then
  listed=$(python3 -m benchmarks.gemm.profiled)
  mapfile -t cases <<<"$listed"
  set -- "${cases[@]}"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# ncu refuses a whole run for one metric that this card does not have: ask for those it has.
ncu --query-metrics >"$folder/known"
selected=()
while read -r metric; do
  if [[ $metric == launch__* ]] || grep -qwF "${metric%%.*}" "$folder/known"; then
    selected+=("$metric")
  else
    echo "not measured, unknown to this card: $metric" >&2
  fi
done < <(python3 -m benchmarks.gemm.ncu_table)

files=()
for case in "$@"; do
  file=$folder/${case// /-}.csv
  read -r precision shape <<<"$case"
  ncu --clock-control none --profile-from-start off \
    --metrics "$(IFS=,; echo "${selected[*]}")" --csv --page raw --print-units base \
    --log-file "$file" python3 -m benchmarks.gemm.profiled "$precision" "$shape" >&2
  files+=("$case=$file")
done
python3 -m benchmarks.gemm.ncu_table "${files[@]}" | tee "$target"
