#!/usr/bin/env bash
# Sets up .venv from the locked requirements: `envs/setup.sh run` (plus the GPU lock that fits where a
# GPU answers) or `envs/setup.sh dev`. Does nothing where the locks have not changed since.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:?usage: envs/setup.sh run|dev}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "argand needs Python 3.11 or newer; $python is $("$python" --version 2>&1)." >&2
  echo "Name another one: make run PYTHON=python3.12" >&2
  exit 1
fi

locks=(envs/cpu.txt)
if [ "$purpose" = dev ]; then locks=(envs/dev.txt); fi

# The newest CUDA that the driver speaks decides between the two GPU locks.
if answer=$(nvidia-smi 2>/dev/null); then
  cuda=$(sed -nE 's/.*CUDA Version: ([0-9]+)\..*/\1/p' <<<"$answer" | head -n 1)
  if [ "${cuda:-0}" -ge 13 ]; then
    locks+=(envs/gpu-cuda13.txt)
  elif [ "${cuda:-0}" -eq 12 ]; then
    locks+=(envs/gpu-cuda12.txt)
  else
    echo "A GPU answers, but its driver speaks CUDA ${cuda:-unknown}; argand needs 12 or newer." >&2
    echo "Going on without it would be silent; set ARGAND_NO_GPU=1 to use the CPU." >&2
    [ -n "${ARGAND_NO_GPU:-}" ] || exit 1
  fi
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
for lock in "${locks[@]}"; do
  stamp=.venv/.installed-$(basename "$lock" .txt)
  if [ ! -e "$stamp" ] || ! cmp -s "$lock" "$stamp"; then
    echo "Installing $lock into .venv (a minute or so the first time)."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    cp "$lock" "$stamp"
  fi
done
stamp=.venv/.installed-argand
if [ ! -e "$stamp" ] || ! cmp -s pyproject.toml "$stamp"; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
  cp pyproject.toml "$stamp"
fi
