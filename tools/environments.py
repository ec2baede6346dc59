"""Conda, container and SBOM files with the packages of the locks: ``python -m tools.environments``.

`envs/lock.sh` writes them again with the locks. They name the same files by the same hashes, so an
environment of either kind is the one of ``make run``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = "3.12"
IMAGE = f"python:{PYTHON}-slim"
_GENERATED = "# Written by python -m tools.environments from envs/cpu.txt; envs/lock.sh runs it."


def requirements(lock: str) -> list[str]:
    """Return the packages of a lock, each with its marker and hashes in one line."""
    lines = lock.replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines if line.strip() and line[0] != "#"]


def conda(lock: str) -> str:
    """Return an environment for conda.

    Snakemake copies the file, so it holds the lock and names none.
    """
    packages = "".join(f"      - {line}\n" for line in requirements(lock))
    return (
        f"{_GENERATED}\n"
        "# For those who prefer conda, and for rules with --software-deployment-method conda.\n"
        "name: argand\n"
        "channels:\n  - conda-forge\n  - nodefaults\n"
        f"dependencies:\n  - python={PYTHON}\n  - pip\n  - pip:\n{packages}"
    )


def docker(lock: str) -> str:
    """Return an image of the clone that holds this file, to be built from its root."""
    return f"""{_GENERATED}
#   docker build -f envs/Dockerfile -t argand .          (with a GPU: --build-arg CUDA=13, or 12)
#   docker run --rm -v "$PWD:/work" argand --cores all --config study=study.yaml
FROM {IMAGE}
LABEL argand.lock="{_digest(lock)}"
ARG CUDA=
WORKDIR /opt/argand
COPY envs/*.txt envs/
RUN python -m pip install --no-cache-dir --require-hashes -r envs/cpu.txt
RUN if [ -n "$CUDA" ]; then \\
      python -m pip install --no-cache-dir --require-hashes -r "envs/gpu-cuda$CUDA.txt"; fi
COPY . .
WORKDIR /work
ENTRYPOINT ["snakemake", "--snakefile", "/opt/argand/Snakefile", \\
  "--workflow-profile", "/opt/argand/profiles/default"]
"""


def apptainer(lock: str) -> str:
    """Return the definition of an image for Apptainer, whose containers many clusters run."""
    return f"""{_GENERATED}
#   apptainer build argand.sif envs/argand.def           (with a GPU: --build-arg CUDA=13, or 12)
#   apptainer run argand.sif --cores all --config study=study.yaml
Bootstrap: docker
From: {IMAGE}

%arguments
    CUDA=

%labels
    argand.lock {_digest(lock)}

%files
    . /opt/argand

%post
    cd /opt/argand
    python -m pip install --no-cache-dir --require-hashes -r envs/cpu.txt
    if [ -n "{{{{ CUDA }}}}" ]; then
      python -m pip install --no-cache-dir --require-hashes -r "envs/gpu-cuda{{{{ CUDA }}}}.txt"
    fi

%runscript
    exec snakemake --snakefile /opt/argand/Snakefile \\
      --workflow-profile /opt/argand/profiles/default "$@"
"""


def bill_of_materials(lock: str) -> str:
    """Return CycloneDX 1.5: each package of the lock and its version."""
    found = re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", lock, re.MULTILINE)
    components = [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in found
    ]
    bill = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "argand"}},
        "components": components,
    }  # fmt: skip
    return json.dumps(bill, indent=1) + "\n"


def definitions(root: Path = ROOT) -> dict[Path, str]:
    """Return the text of each definition, by its file."""
    lock = (root / "envs" / "cpu.txt").read_text(encoding="utf-8")
    folder = root / "envs"
    return {
        folder / "environment.yaml": conda(lock),
        folder / "Dockerfile": docker(lock),
        folder / "argand.def": apptainer(lock),
        folder / "argand.cdx.json": bill_of_materials(lock),
    }


def _digest(lock: str) -> str:
    return f"sha256:{hashlib.sha256(lock.encode()).hexdigest()}"


def main() -> None:
    """Write the definitions again."""
    for path, text in definitions().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
