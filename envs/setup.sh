#!/usr/bin/env bash
# Sets up .venv from the locked requirements: `envs/setup.sh run` (plus the GPU lock that fits where a
# GPU answers) or `envs/setup.sh dev`. A second word names a lock that is installed too: an executor of
# Snakemake's, such as `slurm`, which `dev` has, or `frameworks`. Installs nothing where the locks have not
# changed since.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:?usage: envs/setup.sh run|dev [executor]}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "argand needs Python 3.11 or newer; $python is $("$python" --version 2>&1)." >&2
  echo "Name another one: make run PYTHON=python3.12" >&2
  exit 1
fi

# A link to a folder of packages on another disk is fine. One to another tree's .venv is not: what is
# installed there would be this tree's locks, and its argand this tree's.
venv=$(readlink -f .venv) || venv=$(pwd -P)/.venv
owner=$(dirname "$venv")
if [ "$owner" != "$(pwd -P)" ] && [ -e "$owner/envs/setup.sh" ]; then
  echo ".venv is a link to that of $owner, which would be changed: remove the link." >&2
  exit 1
fi

# A pip of today first: that of Python 3.11 takes twice as long to read what an index has.
locks=(envs/pip.txt envs/cpu.txt)
if [ "$purpose" = dev ]; then locks=(envs/pip.txt envs/dev.txt envs/slurm.txt); fi
if [ -n "${2:-}" ]; then
  if [ ! -e "envs/$2.txt" ]; then
    echo "There is no lock envs/$2.txt; docs/clusters.md says how to add one for an executor." >&2
    exit 1
  fi
  locks+=("envs/$2.txt")
fi

# The newest CUDA that the driver speaks decides between the two GPU locks. Where the GPUs are in other
# machines, such as a cluster's, ARGAND_CUDA says it.
cuda=${ARGAND_CUDA:-}
if [ -z "$cuda" ] && answer=$(nvidia-smi 2>/dev/null); then
  cuda=$(sed -nE 's/.*CUDA Version: ([0-9]+)\..*/\1/p' <<<"$answer" | head -n 1)
  cuda=${cuda:-unknown}
fi
if [[ $cuda =~ ^[0-9]+$ ]] && [ "$cuda" -ge 13 ]; then
  locks+=(envs/gpu-cuda13.txt)
elif [ "$cuda" = 12 ]; then
  locks+=(envs/gpu-cuda12.txt)
elif [ -n "$cuda" ]; then
  echo "A GPU is to be used, but its driver speaks CUDA $cuda; argand needs 12 or newer." >&2
  echo "Going on without it would be silent; set ARGAND_NO_GPU=1 to use the CPU." >&2
  [ -n "${ARGAND_NO_GPU:-}" ] || exit 1
fi

# A lock by a pip, in parts beside each other, since it takes one package after the other. No part looks for
# dependencies: a lock names all.
parts=.venv/.parts
install() {
  rm -rf $parts && mkdir $parts && awk -v n="$(nproc)" -v parts=$parts '
    /^[^ #]/ { part = count++ % (n < 4 ? n : 4) }
    { print > (parts "/" part) }' "$1" &&
    printf '%s\n' $parts/* | xargs -P 4 -n 1 "${@:2}" install --quiet --disable-pip-version-check \
      --no-compile --no-deps --require-hashes -r &&
    rm -r $parts
}

[ -x .venv/bin/python ] || "$python" -m venv --without-pip .venv
# The locked pip by that of the Python, where it has one: to unpack ensurepip's before takes four seconds.
if [ ! -e .venv/.installed-pip ]; then
  if install envs/pip.txt "$python" -m pip --python .venv/bin/python 2>/dev/null; then
    cp envs/pip.txt .venv/.installed-pip
  else
    .venv/bin/python -m ensurepip >/dev/null
  fi
fi
compile=
for lock in "${locks[@]}"; do
  stamp=.venv/.installed-$(basename "$lock" .txt)
  if [ ! -e "$stamp" ] || ! cmp -s "$lock" "$stamp"; then
    echo "Installing $lock into .venv (a minute or so the first time)."
    install "$lock" .venv/bin/python -m pip
    cp "$lock" "$stamp"
    compile=yes
  fi
done
# By all cores, where pip compiles one file after the other; and not what nothing here imports, over half.
if [ -n "$compile" ]; then
  unused='/(_?tests?|pip|setuptools|distutils|mypyc?|fontTools|lexers|gui|devtools|dialects'
  unused+='|silx|fabio|lxml|gitdb?|filelock|distlib|virtualenv|identify|pre_commit)/'
  (cd .venv && bin/python -m compileall -qq -j 0 -x "$unused" lib) || true  # templates, which are no Python, fail
fi
stamp=.venv/.installed-argand
if [ ! -e "$stamp" ] || ! cmp -s pyproject.toml "$stamp"; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-compile -e .
  cp pyproject.toml "$stamp"
fi

# Once for all jobs: where bytecode may not be written beside the sources (PYTHONDONTWRITEBYTECODE, a
# read-only clone of another user's), each of the fifty jobs of the default study would compile its own
# three hundred modules, which takes as long as to import them.
.venv/bin/python -m compileall -qq -j 0 kernels workflow benchmarks || true  # an import says what is wrong
