#!/usr/bin/env bash
# Resolves the extras and groups of pyproject.toml into envs/*.txt: every version pinned, every file's
# hash, no URL, for Python 3.11 and newer on every platform. Needs uv (`pip install uv`).
set -euo pipefail
cd "$(dirname "$0")/.."
resolve() {
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --no-emit-index-url --no-emit-find-links "$@"
}
lock() { resolve pyproject.toml "$@"; }
resolve --group pip -o envs/pip.txt  # without what argand needs
lock --extra workflow --group build -o envs/cpu.txt
lock --extra workflow --group build --group dev -c envs/cpu.txt -o envs/dev.txt
lock --group frameworks -c envs/cpu.txt -c envs/dev.txt -o envs/frameworks.txt
for executor in slurm; do lock --group "$executor" -c envs/cpu.txt -o "envs/$executor.txt"; done
for cuda in 12 13; do lock --extra "cuda$cuda" -c envs/cpu.txt -o "envs/gpu-cuda$cuda.txt"; done
"${PYTHON:-python3}" -m tools.environments
if grep -n '://' envs/*.txt; then
  echo "A lock must not hold a URL." >&2
  exit 1
fi
